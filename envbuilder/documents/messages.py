"""What pydantic finds wrong with a document, in plain words and with the place of the fault."""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..base import WANTED, kebab
from ..errors import DocumentError, Place, Problem
from ..text import LONG, nearest, shown, unknown
from .scalars import in_words, kind
from .tree import KEY, Items, Keys, Node, Pairs, Scalar, find, key_place

# More would push the first ones off the screen.
MAX_PROBLEMS = 20

# So many of pydantic's findings are put into words, and sorted; the search for near names takes
# time, and a hostile document has tens of thousands of wrong ones.
_ENOUGH = 500

# What a version looks like that YAML takes for a number.
_SERIES = re.compile(r"[0-9]+(\.[0-9]+)?")

_WHOLE_NUMBER = "a whole number"
_TYPES = {
    "string_type": "text",
    "int_type": _WHOLE_NUMBER,
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
}


# What is wrong with a value of the right type, by pydantic's name for it.
_FAULTS = {
    "value_error": "{error}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_unicode": "has half a character (a lone surrogate)",
    "too_short": "must have at least {min_length} entry",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


# Keys of earlier documents, each with why it is refused and what to do.
_REMOVED = {
    "channel-keys": (
        "channel-keys requires conda's content trust, which envbuild does not support",
        "remove the key: the lock has the sha256 of each package, and --key verifies a signed lock",
    )
}


def problems(error: ValidationError, root: Pairs, model: type[BaseModel]) -> list[Problem]:
    """Put pydantic's findings into words; of the ways to read one value, the likeliest counts."""
    details = error.errors(include_url=False, include_input=False)[:_ENOUGH]
    messages = [_problem(keys, each, root, model) for keys, each in _likeliest(details, root)]
    return [each for each in messages if each]


def all_of(problems: Sequence[Problem]) -> DocumentError:
    """Return the error that says them all, in the order of the text; of very many the first."""
    ordered = sorted(problems, key=_position)
    # lazy import: 10 ms, and most documents are right
    from ..redaction.redact import redact

    # A message repeats what is written, and may end in the log of a CI job.
    first = [
        problem._replace(message=redact(problem.message, {}).text)
        for problem in ordered[:MAX_PROBLEMS]
    ]
    if len(ordered) > MAX_PROBLEMS:
        rest = len(ordered) - MAX_PROBLEMS
        first.append(
            Problem(
                "document.more-problems",
                f"and at least {rest} more problems",
                ordered[MAX_PROBLEMS].place,
            )
        )
    return DocumentError(tuple(first))


def _position(problem: Problem) -> tuple[str, int, int]:
    place = problem.place or Place("")
    return place.file, place.line, place.column


def _problem(
    keys: Keys, error: ErrorDetails, root: Pairs, model: type[BaseModel]
) -> Problem | None:
    """Put one of pydantic's findings into words; None: it follows from what is reported already."""
    what = error["type"]
    if what == "missing":
        return _missing(keys, root)
    in_key = keys[-1:] == (KEY,)
    keys = keys[:-1] if in_key else keys
    node = find(root, keys)
    if node is None:
        return None
    if what == "extra_forbidden" and keys[-1] in _REMOVED:
        message, hint = _REMOVED[str(keys[-1])]
        return Problem("document.removed-key", message, key_place(root, keys), (hint,))
    if what == "extra_forbidden" or (in_key and what == "literal_error"):
        names = _choices(error) if "ctx" in error else field_names(model, keys[:-1])
        place = key_place(root, keys)
        return _unknown("document.unknown-key", "key", str(keys[-1]), names, place)
    length = len(node.items if isinstance(node, Items) else getattr(node, "pairs", ()))
    if what == "too_short" and length >= error["ctx"]["min_length"]:
        return None  # pydantic counts what is left when the wrong items are gone
    if in_key:
        name = "" if what == "value_error" else f"the name '{shown(str(keys[-1]))}' "
        return Problem(
            "document.invalid-key",
            f"{_label(keys[:-1])}: {name}{_fault(error)}",
            key_place(root, keys),
        )
    if what in _TYPES:
        return _type(what, keys, node)
    if what == "literal_error":
        return _literal(error, keys, node)
    colon = ":" if what == "value_error" else ""
    text = shown(node.text) if isinstance(node, Scalar) else ""
    found = f", not '{text}'" if what == "string_pattern_mismatch" else ""
    message = f"{_label(keys)}{colon} {_fault(error)}{found}"
    return Problem("document.invalid-value", message, node.place)


def _fault(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return WANTED[context["pattern"]]
    words = _FAULTS.get(error["type"], "is wrong: {msg}")
    return shown(words.format(msg=error["msg"], **context), LONG)


def _likeliest(errors: Sequence[ErrorDetails], root: Pairs) -> list[tuple[Keys, ErrorDetails]]:
    """Where a value may be read in several ways, keep what is said of the one that fits its form.

    ``affected: ">=x"`` is a bad range, and besides no list: the second is no news.
    """
    best: dict[Keys, ErrorDetails] = {}
    for error in errors:
        keys = _written(error, root)
        if keys not in best or (error["type"] not in _TYPES and best[keys]["type"] in _TYPES):
            best[keys] = error
    below = {keys[:n] for keys in best for n in range(len(keys))}
    # No list, says one reading of a mapping; the other one looked into it and found a fault there.
    return [each for each in best.items() if each[0] not in below or each[1]["type"] not in _TYPES]


def _written(error: ErrorDetails, root: Pairs) -> Keys:
    """Return where the fault is, without what pydantic puts among the keys that is not written.

    That is the way in which it reads a value that may be read in several. The last key of what is
    missing is not written either, and KEY stays.
    """
    kept: Keys = ()
    node: Node | None = root
    loc: Keys = error["loc"]
    written = len(loc) - (error["type"] == "missing" or loc[-1:] == (KEY,))
    for key in loc[:written]:
        there = key in node.index if isinstance(node, Pairs) else isinstance(key, int)
        if there and isinstance(node, Pairs | Items):
            kept = (*kept, key)
            node = find(root, kept)
    return (*kept, *loc[written:])


def _label(keys: Keys) -> str:
    """Return ``smoke.ranks`` or ``packages[0]``."""
    parts = "".join(f"[{key}]" if isinstance(key, int) else f".{shown(key, 40)}" for key in keys)
    return parts.removeprefix(".") or "the document"


def _missing(keys: Keys, root: Pairs) -> Problem | None:
    around = find(root, keys[:-1])
    if not isinstance(around, Pairs) or around.partial:
        return None
    hints = ("begin with 'schema: 1'",) if keys == ("schema",) else ()
    of = f" in {_label(keys[:-1])}" if len(keys) > 1 else ""
    return Problem(
        "document.missing-key",
        f"the key '{shown(str(keys[-1]))}' is missing{of}",
        around.place,
        hints,
    )


def _unknown(problem_id: str, what: str, word: str, names: list[str], place: Place) -> Problem:
    hints = () if nearest(word, names) else (f"valid: {', '.join(names)}",)
    return Problem(problem_id, unknown(what, word, names), place, hints)


def field_names(model: type[BaseModel], keys: Keys) -> list[str]:
    """Return the keys that the mapping at *keys* of a document of *model* may have."""
    part: Any = model
    for key in keys:
        inside = get_args(part)
        if _is_model(part):
            part = _fields(part).get(str(key))
        else:
            part = inside[-1 if get_origin(part) is dict else 0] if inside else None
        if get_origin(part) in (Union, types.UnionType):
            readings = [each for each in get_args(part) if each is not type(None)]
            part = next(filter(_is_model, readings), readings[0])
    return [*_fields(part)] if _is_model(part) else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    fields = model.model_fields.items()
    return {each.alias or kebab(name): each.annotation for name, each in fields}


def _type(error: str, keys: Keys, node: Node) -> Problem:
    wanted = _TYPES[error]
    words = in_words(node)
    if wanted == _WHOLE_NUMBER and isinstance(node, Scalar) and kind(node) == "number":
        words = f"'{shown(node.text)}'"
    message = f"{_label(keys)} must be {wanted}, not {words}"
    return Problem("document.wrong-type", message, node.place, _type_hints(wanted, keys, node))


def _type_hints(wanted: str, keys: Keys, node: Node) -> tuple[str, ...]:
    if not isinstance(node, Scalar):
        return ()
    raw = shown(node.text)
    kind_of = kind(node)
    if wanted == "text" and kind_of not in ("null", "text"):
        # A bare version is no range: quotes alone would lead to the next error.
        if keys[:1] == ("stack",) and _SERIES.fullmatch(node.text):
            return (f'write "=={raw}.*" for that series, or ">={raw}"',)
        return (f'write "{raw}"',)
    if wanted == "a list" and node.text:
        return (f"write [{raw}]",)
    if wanted == "true or false" and kind_of == "switch":
        return (f"write {'true' if node.text.lower() in ('yes', 'on') else 'false'}",)
    if wanted == _WHOLE_NUMBER and kind_of in ("number", "text") and node.text:
        return ("write digits only, without quotes",)
    return ()


def _choices(error: ErrorDetails) -> list[str]:
    return re.findall(r"'([^']*)'", error["ctx"]["expected"]) or [error["ctx"]["expected"]]


def _literal(error: ErrorDetails, keys: Keys, node: Node) -> Problem:
    choices = _choices(error)
    if not isinstance(node, Scalar) or kind(node) == "null":
        message = f"{_label(keys)} must be one of {', '.join(choices)}, not {in_words(node)}"
        return Problem("document.wrong-type", message, node.place)
    if keys == ("schema",):
        message = f"unknown schema '{shown(node.text)}': this envbuild reads schema {choices[0]}"
        if kind(node) == "text":
            message = f"schema must be the number {choices[0]}, not text"
        hints = (f"write 'schema: {choices[0]}'",)
        return Problem("document.unknown-schema", message, node.place, hints)
    what = next(key for key in reversed(keys) if isinstance(key, str))
    if isinstance(keys[-1], int):
        what = what.removesuffix("s")
    return _unknown("document.unknown-value", what, node.text, choices, node.place)
