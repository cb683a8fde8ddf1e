"""What a document must agree with outside itself: its file's name and the known components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..errors import Problem
from ..knowledge.fact_values import fact_fault, provider_fact_fault
from ..knowledge.rows import Knowledge
from ..text import nearest, shown, unknown
from .scalars import kind
from .tree import Items, Node, Pairs, Scalar, find

_PACKAGES_HINT = "write a package that is not a component under 'packages:', as a pip requirement"
_CHANNELS_HINT = (
    "write its URL or folder, or add it under channels: in knowledge/versions.yaml of a folder of "
    "your own"
)
_FLAGS_HINT = "write variables that programs read at run time under 'env:'"
_FACTS_HINT = "docs/knowledge.md lists the facts of modules in its section Conditions"
OWN_COMPONENTS_HINT = (
    "add it in knowledge/components.yaml of a folder of your own: see docs/recipes.md"
)


# What starts ranks elsewhere, beside the programs of the launchers that envbuild has entries for.
_OTHER_LAUNCHERS = ("mpiexec.hydra", "orterun", "prterun", "aprun", "ibrun", "blaunch")


def schema_is_a_number(root: Pairs) -> Iterator[Problem]:
    """Yield a problem for ``schema: true``: pydantic takes it for 1, as Python does."""
    schema = find(root, ("schema",))
    if isinstance(schema, Scalar) and kind(schema) == "bool":
        message = f"unknown schema '{schema.text}': this envbuild reads schema 1"
        yield Problem("document.unknown-schema", message, schema.place, ("write 'schema: 1'",))


def name_fits(root: Pairs, path: Path) -> Iterator[Problem]:
    """Yield a problem unless the document has the name of its file, by which it is found."""
    name = find(root, ("name",))
    if isinstance(name, Scalar) and name.text != path.stem:
        message = (
            f"the name '{shown(name.text)}' differs from the name of the file: '{shown(path.stem)}'"
        )
        yield Problem(
            "document.name-mismatch", message, name.place, ("rename the file or change the name",)
        )


def launcher_is_spelt_right(root: Pairs, programs: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for a launcher that is nearly, but not quite, one of those that are known.

    A site may have a launcher of its own: then its name is unlike these, or it is given by path.
    One guide to a machine writes ddlrun also ddlrn and ddllrun.
    """
    names = (*programs, *_OTHER_LAUNCHERS)
    first = next(iter(_items(root, "launcher", "command")), None)
    if not isinstance(first, Scalar) or "/" in first.text or first.text in names:
        return
    if nearest(first.text, names, cutoff=0.85):
        message = unknown("launcher", first.text, names)
        yield Problem(
            "launcher.unknown", message, first.place, ("write the path of a program of your own",)
        )


def names_are_known(root: Pairs, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield a problem for every name in a recipe or site that nothing is known of.

    Components of a stack or that a module provides, distributions under ``pip-names``, conda
    channels, facts, and the flags of a runtime; one of which no flags are recorded takes any.
    """
    stacks = [_pairs(root, "for-arch", key.text, "stack") for key, _ in _pairs(root, "for-arch")]
    asked = (*_pairs(root, "stack"), *chain(*stacks), *_pairs(root, "pip-names"))
    yield from _components(asked, knowledge, _PACKAGES_HINT)
    for n, _ in enumerate(_items(root, "modules")):
        provided = _pairs(root, "modules", n, "provides")
        yield from _components(provided, knowledge, OWN_COMPONENTS_HINT)
        yield from _provider_facts(_pairs(root, "modules", n, "facts"), knowledge)
    yield from _networks(root, knowledge)
    for key, value in _pairs(root, "pip-names"):
        component = knowledge.components.get(key.text)
        if component and isinstance(value, Scalar):
            there = [name for name in (component.pip, *component.pip_variants) if name]
            what = f"distribution of {key.text}"
            yield from _is_one_of("package.unknown", there, value, what)
    listed = (*_items(root, "channels"), *_items(root, "channel-order"))
    for name in (*listed, *(key for key, _ in _pairs(root, "channels"))):
        # What is no name is a URL or a folder, and may be anybody's.
        if isinstance(name, Scalar) and "/" not in name.text:
            known = knowledge.channels
            yield from _is_one_of("channel.unknown", known, name, "conda channel", _CHANNELS_HINT)
    package = find(root, ("runtime", "package"))
    of = package.text if isinstance(package, Scalar) else ""
    flags = [name for name, flag in knowledge.flags.items() if flag.runtime == of]
    for key, _ in _pairs(root, "runtime", "flags") if flags else ():
        yield from _is_one_of("flag.unknown", flags, key, f"flag of {of}", _FLAGS_HINT)


def component_fault(name: str, knowledge: Knowledge, hint: str) -> tuple[str, str] | None:
    """Return what is wrong with the name of a component, and a hint; None: it is one."""
    if name in knowledge.components:
        return None
    kinds = knowledge.fulfilling(name)
    if kinds:
        return (
            f"'{shown(name)}' is not a component, but is provided by {', '.join(kinds)}",
            "write one of these",
        )
    return unknown("component", name, knowledge.components), hint


def _components(
    pairs: Iterable[tuple[Scalar, Node]], known: Knowledge, hint: str
) -> Iterator[Problem]:
    for key, _ in pairs:
        fault = component_fault(key.text, known, hint)
        if fault:
            yield Problem("component.unknown", fault[0], key.place, fault[1:])


def _provider_facts(pairs: Iterable[tuple[Scalar, Node]], known: Knowledge) -> Iterator[Problem]:
    """Yield a problem for a module's fact that no condition asks for, or of another type."""
    for key, node in pairs:
        if isinstance(node, Scalar):
            value = node.text == "true" if kind(node) == "bool" else node.text
            fault = provider_fact_fault(key.text, value, known)
            if fault:
                yield Problem("fact.not-recognised", fault, key.place, (_FACTS_HINT,))


def _networks(root: Pairs, known: Knowledge) -> Iterator[Problem]:
    """Yield a problem for every network of a site or its partitions that no condition asks for."""
    partitions = (("partitions", key.text) for key, _ in _pairs(root, "partitions"))
    for keys in ((), *partitions):
        for node in _items(root, *keys, "facts", "network"):
            fault = fact_fault("network", node.text, known) if isinstance(node, Scalar) else None
            if fault:
                yield Problem("fact.not-recognised", fault[0], node.place, fault[1:])


def _is_one_of(
    problem_id: str, names: Iterable[str], word: Scalar, what: str, *hints: str
) -> Iterator[Problem]:
    if word.text not in names:
        yield Problem(problem_id, unknown(what, word.text, names), word.place, hints)


def _pairs(root: Pairs, *keys: str | int) -> tuple[tuple[Scalar, Node], ...]:
    node = find(root, keys)
    return node.pairs if isinstance(node, Pairs) else ()


def _items(root: Pairs, *keys: str) -> tuple[Node, ...]:
    node = find(root, keys)
    return node.items if isinstance(node, Items) else ()
