"""What pydantic finds wrong with a document, in plain words and with the place of the fault."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from ..errors import Place, Problem
from ..model.base import kebab
from ..text import LONG, nearest, shown, unknown
from .scalars import in_words, kind
from .tree import Items, Keys, Node, Pairs, Scalar, find, key_place

# What a version looks like that YAML takes for a number.
_SERIES = re.compile(r"[0-9]+(\.[0-9]+)?")

# Behind a mapping's key in the position that pydantic reports: the fault is in the key itself.
_KEY = "[key]"

PATTERNS = {
    r"^[a-z0-9]+(?:[._+-][a-z0-9]+)*$": (
        "must be lower-case letters and digits with single '.', '_', '+' or '-' between them"
    ),
    r"^[A-Za-z_][A-Za-z0-9_]*$": "must be a variable name: letters, digits and '_'",
    r"^(https?|file)://[^\s'\"`$\\<>|;&]+$": (
        "must be an http, https or file URL without spaces, quotes or shell characters"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._+-]*(/\.?[A-Za-z0-9][A-Za-z0-9._+-]*)*$": (
        "must be a module name such as OpenMPI/3.1.4-gcccuda-2018b"
    ),
    r"^[0-9][A-Za-z0-9.+_-]*$": "must be a version such as 3.1.4",
    r"^[A-Z][A-Z0-9]*(-[A-Z0-9]+)+$": "must be an id such as OMPI-001",
    r"^[a-z][a-z0-9_]*$": "must be a fact's name such as cuda_aware",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "must be a day such as 2021-12-01",
    r"^[0-9a-f]{40}$": "must be a git commit: 40 hex digits",
    r"^[0-9a-f]{64}$": "must be a sha256: 64 hex digits",
}
"""What a value that fails one of the models' patterns should have been, by the pattern."""

_WHOLE_NUMBER = "a whole number"
_TYPES = {
    "string_type": "text",
    "int_type": _WHOLE_NUMBER,
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
}


def problems(errors: Sequence[ErrorDetails], root: Pairs, model: type[BaseModel]) -> list[Problem]:
    """Put pydantic's findings into words; of the ways to read one value, the likeliest counts."""
    messages = [problem(each, root, model) for each in _likeliest(errors, root)]
    return [each for each in messages if each]


def problem(error: ErrorDetails, root: Pairs, model: type[BaseModel]) -> Problem | None:
    """Put one of pydantic's findings into words; None: it follows from what is reported already."""
    keys: Keys = tuple(error["loc"])
    in_key = keys[-1:] == (_KEY,)
    if in_key:
        keys = keys[:-1]
    keys = _written(keys, root, missing=error["type"] == "missing")
    if error["type"] == "missing":
        return _missing(keys, root)
    node = find(root, keys)
    if node is None:
        return None
    if error["type"] == "extra_forbidden" or (in_key and error["type"] == "literal_error"):
        return _unknown_key(error, keys, root, model)
    if error["type"] == "too_short" and _length(node) >= error["ctx"]["min_length"]:
        return None  # pydantic counts what is left when the wrong items are gone
    if in_key:
        return Problem(f"{_label(keys[:-1])}: {_name(error, _last(keys))}", key_place(root, keys))
    if error["type"] in _TYPES:
        return _type(error["type"], keys, node)
    if error["type"] == "literal_error":
        return _literal(error, keys, node)
    return Problem(f"{_label(keys)}{_value(error, _text(node))}", node.place)


def _written(keys: Keys, root: Pairs, missing: bool) -> Keys:
    """Leave out what pydantic puts among the keys where a value may be read in several ways.

    ``missing``: the last one is a key that the document lacks.
    """
    kept: list[str | int] = []
    node: Node | None = root
    for n, key in enumerate(keys):
        if isinstance(node, Pairs):
            if key not in node.index and not (missing and n == len(keys) - 1):
                continue
        elif not (isinstance(node, Items) and isinstance(key, int)):
            continue
        kept.append(key)
        node = find(root, tuple(kept))
    return tuple(kept)


def _likeliest(errors: Sequence[ErrorDetails], root: Pairs) -> list[ErrorDetails]:
    """Where a value may be read in several ways, keep what is said of the one that fits its form.

    ``affected: ">=x"`` is a bad range, and besides no list: the second is no news.
    """
    best: dict[Keys, ErrorDetails] = {}
    for error in errors:
        loc: Keys = tuple(error["loc"])
        keys = _written(loc, root, missing=error["type"] == "missing")
        place = (*keys, _KEY) if loc[-1:] == (_KEY,) else keys
        if place not in best or (error["type"] not in _TYPES and best[place]["type"] in _TYPES):
            best[place] = error
    below = {keys[:n] for keys in best for n in range(len(keys))}
    # No list, says one reading of a mapping; the other one looked into it and found a fault there.
    return [e for keys, e in best.items() if not (keys in below and e["type"] in _TYPES)]


def _label(keys: Keys) -> str:
    """Return ``smoke.ranks`` or ``packages[0]``."""
    parts = "".join(f"[{key}]" if isinstance(key, int) else f".{shown(key, 40)}" for key in keys)
    return parts.removeprefix(".") or "the document"


def _last(keys: Keys) -> str:
    return shown(str(keys[-1]))


def _text(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else ""


def _length(node: Node) -> int:
    if isinstance(node, Items):
        return len(node.items)
    return len(node.pairs) if isinstance(node, Pairs) else 0


def _missing(keys: Keys, root: Pairs) -> Problem | None:
    around = find(root, keys[:-1])
    if not isinstance(around, Pairs) or around.partial:
        return None
    hints = ("begin with 'schema: 1'",) if keys == ("schema",) else ()
    of = f" in {_label(keys[:-1])}" if len(keys) > 1 else ""
    return Problem(f"the key '{_last(keys)}' is missing{of}", around.place, hints)


def _unknown_key(
    error: ErrorDetails, keys: Keys, root: Pairs, model: type[BaseModel]
) -> Problem | None:
    names = _choices(error) if "ctx" in error else field_names(model, keys[:-1])
    return _unknown("key", str(keys[-1]), names, key_place(root, keys))


def _unknown(what: str, word: str, names: list[str], place: Place) -> Problem:
    hints = () if nearest(word, names) else (f"there are: {', '.join(names)}",)
    return Problem(unknown(what, word, names), place, hints)


def field_names(model: type[BaseModel], keys: Keys) -> list[str]:
    """Return the keys that the mapping at *keys* of a document of *model* may have."""
    annotation: Any = model
    for key in keys:
        annotation = _inner(annotation, key)
    return [kebab(name) for name in annotation.model_fields] if _is_model(annotation) else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _inner(annotation: Any, key: str | int) -> Any:
    """Return the type of what stands at *key* of a value of type *annotation*."""
    if _is_model(annotation):
        fields = {kebab(name): field.annotation for name, field in annotation.model_fields.items()}
        return _not_none(fields.get(str(key)))
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return _not_none(arguments[1])
    return _not_none(arguments[0]) if arguments else None


def _not_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return next((part for part in parts if _is_model(part)), parts[0])


def _type(error: str, keys: Keys, node: Node) -> Problem:
    wanted = _TYPES[error]
    words = in_words(node)
    if wanted == _WHOLE_NUMBER and isinstance(node, Scalar) and kind(node) == "number":
        words = f"'{shown(node.text)}'"
    message = f"{_label(keys)} must be {wanted}, not {words}"
    return Problem(message, node.place, _type_hints(wanted, keys, node))


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
        return Problem(message, node.place)
    if keys == ("schema",):
        message = f"unknown schema '{shown(node.text)}': this envbuild reads schema {choices[0]}"
        if kind(node) == "text":
            message = f"schema must be the number {choices[0]}, not text"
        return Problem(message, node.place, (f"write 'schema: {choices[0]}'",))
    what = next(key for key in reversed(keys) if isinstance(key, str))
    if isinstance(keys[-1], int):
        what = what.removesuffix("s")
    return _unknown(what, node.text, choices, node.place)


def _name(error: ErrorDetails, name: str) -> str:
    """Say what is wrong with a name that stands as a key."""
    if error["type"] == "value_error":
        return _fault(error)
    return f"the name '{name}' {_fault(error)}"


def _value(error: ErrorDetails, text: str) -> str:
    """Say what is wrong with a value of the right type, to be read after its label."""
    if error["type"] == "value_error":
        return f": {_fault(error)}"
    if error["type"] == "string_pattern_mismatch":
        return f" {_fault(error)}, not '{shown(text)}'"
    return f" {_fault(error)}"


def _fault(error: ErrorDetails) -> str:
    context: Mapping[str, Any] = error.get("ctx", {})
    say = _FAULTS.get(error["type"])
    return shown(say(context) if say else f"is wrong: {error['msg']}", LONG)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


_FAULTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "value_error": lambda context: str(context["error"]),
    "string_pattern_mismatch": lambda context: PATTERNS[context["pattern"]],
    "string_too_short": lambda _: "must not be empty",
    "string_too_long": lambda context: (
        f"must have at most {_count(context['max_length'], 'character')}"
    ),
    "string_unicode": lambda _: "has half a character (a lone surrogate)",
    "too_short": lambda context: f"must have at least {_count(context['min_length'], 'entry')}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']}",
    "less_than_equal": lambda context: f"must be at most {context['le']}",
}
