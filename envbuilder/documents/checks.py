"""What a document must agree with outside itself: its file's name and the known components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import Problem
from ..model.knowledge import Knowledge
from ..text import nearest, shown, unknown
from .scalars import kind
from .tree import Items, Node, Pairs, RefusedValue, Scalar

_PACKAGES_HINT = (
    "a package that envbuild need not know goes under 'packages:', as a pip requirement"
)
_CHANNELS_HINT = "a folder of your own can record it, in knowledge/versions.yaml, under channels:"
_FLAGS_HINT = "what programs read when they run goes under 'env:'"
OWN_COMPONENTS_HINT = (
    "a folder of your own can add it, in knowledge/components.yaml: see docs/recipes.md"
)


def schema_is_a_number(root: Pairs) -> Iterator[Problem]:
    """Yield a problem for ``schema: true``: pydantic takes it for 1, as Python does."""
    schema = _child(root, "schema")
    if isinstance(schema, Scalar) and kind(schema) == "bool":
        message = f"unknown schema '{schema.text}': this envbuild reads schema 1"
        yield Problem(message, schema.place, ("write 'schema: 1'",))


def name_fits(root: Pairs, path: Path) -> Iterator[Problem]:
    """Yield a problem unless the document has the name of its file, by which it is found."""
    name = _child(root, "name")
    if isinstance(name, Scalar) and name.text != path.stem:
        message = f"the name '{shown(name.text)}' is not the file's: '{shown(path.stem)}'"
        yield Problem(message, name.place, ("rename the file or change the name",))


def components_are_known(root: Pairs, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield a problem for every component that a recipe's stack or a site's module misnames."""
    yield from _unknown_names(_child(root, "stack"), knowledge, _PACKAGES_HINT)
    modules = _child(root, "modules")
    for module in modules.items if isinstance(modules, Items) else ():
        yield from _unknown_names(_child(module, "provides"), knowledge, OWN_COMPONENTS_HINT)


def pip_names_are_known(root: Pairs, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield a problem for every ``pip-names`` entry that is no distribution of its component."""
    names = _child(root, "pip-names")
    yield from _unknown_names(names, knowledge, _PACKAGES_HINT)
    for component in knowledge.components if isinstance(names, Pairs) else ():
        value = _child(names, component)
        if isinstance(value, Scalar):
            of_it = knowledge.components[component]
            there = [name for name in (of_it.pip, *of_it.pip_variants) if name]
            if value.text not in there:
                what = f"distribution of {component}"
                yield Problem(unknown(what, value.text, there), value.place, ())


def channels_are_known(root: Pairs, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield a problem for every conda channel of a recipe or site that nothing is recorded of."""
    channels = _child(root, "channels")
    names: list[Node | Scalar] = []
    if isinstance(channels, Items):
        names = list(channels.items)
    elif isinstance(channels, Pairs):
        names = [key for key, _ in channels.pairs]
    for name in names:
        if isinstance(name, Scalar) and name.text not in knowledge.channels:
            message = unknown("conda channel", name.text, knowledge.channels)
            yield Problem(message, name.place, (_CHANNELS_HINT,))


# What starts ranks elsewhere, beside the programs of the launchers that envbuild has entries for.
_OTHER_LAUNCHERS = ("mpiexec.hydra", "orterun", "prterun", "aprun", "ibrun", "blaunch")


def launcher_is_spelt_right(root: Pairs, programs: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for a launcher that is nearly, but not quite, one of those that are known.

    A site may have a launcher of its own: then its name is unlike these, or it is given by path.
    One guide to a machine writes ddlrun also ddlrn and ddllrun.
    """
    names = (*programs, *_OTHER_LAUNCHERS)
    words = _child(_child(root, "launcher"), "command")
    first = words.items[0] if isinstance(words, Items) and words.items else None
    if not isinstance(first, Scalar) or "/" in first.text or first.text in names:
        return
    if nearest(first.text, names, cutoff=0.85):
        message = unknown("launcher", first.text, names)
        yield Problem(message, first.place, ("give the path of a program of your own",))


def flags_are_known(root: Pairs, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield a problem for every flag of a recipe's runtime that the runtime does not know.

    A runtime of which no flags are recorded takes any.
    """
    runtime = _child(root, "runtime")
    package = _child(runtime, "package")
    of = package.text if isinstance(package, Scalar) else ""
    names = [name for name, flag in knowledge.flags.items() if flag.runtime == of]
    flags = _child(runtime, "flags")
    for key, _ in flags.pairs if isinstance(flags, Pairs) and names else ():
        if key.text not in names:
            yield Problem(unknown(f"flag of {of}", key.text, names), key.place, (_FLAGS_HINT,))


def _child(node: Node, key: str) -> Node:
    """Return what stands at *key*; where nothing does, a node that nothing is known of."""
    pairs = node.index if isinstance(node, Pairs) else {}
    return pairs[key][1] if key in pairs else RefusedValue(node.place)


def _unknown_names(names: Node, knowledge: Knowledge, hint: str) -> Iterator[Problem]:
    for key, _ in names.pairs if isinstance(names, Pairs) else ():
        if key.text in knowledge.components:
            continue
        kinds = [name for name, each in knowledge.components.items() if key.text in each.fulfils]
        if kinds:
            message = f"'{shown(key.text)}' is not a component: {', '.join(kinds)} fulfil it"
            yield Problem(message, key.place, ("name one of them",))
        else:
            yield Problem(unknown("component", key.text, knowledge.components), key.place, (hint,))
