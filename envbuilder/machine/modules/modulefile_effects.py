"""What loading a module does, read from what ``module show`` prints of it.

Lmod prints the calls of a modulefile as Lua, Environment Modules prints them as Tcl, both in the
order in which they were made and without the conditions around them: in an environment without
modules, ``if not isloaded("X") then load("X") end`` is shown as ``load("X")``. Neither quotes what
stands in a text, so a call is read up to a line that ends as calls do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Load:
    """A module that is loaded along. The first of *names* that is there is taken.

    *lowest* and *highest*: the versions between which one is sought, both included.
    """

    names: tuple[str, ...]
    optional: bool = False
    lowest: str | None = None
    highest: str | None = None


@dataclass(frozen=True)
class Effects:
    """What loading one modulefile does. ``needs``: of each entry one must be loaded before."""

    loads: tuple[Load, ...] = ()
    needs: tuple[tuple[Load, ...], ...] = ()
    conflicts: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    unloads: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    paths: tuple[tuple[str, str], ...] = ()
    broken: str | None = None

    def folders(self, variable: str) -> tuple[str, ...]:
        """Return what is put before or behind a variable such as PATH, in the order it is said."""
        return tuple(folder for name, folder in self.paths if name == variable)


def _verbs(**names: str) -> dict[str, str]:
    """Return what each name of a call does: names, separated by blanks, by what they do."""
    return {name: verb for verb, each in names.items() for name in each.split()}


_Call = tuple[str, list[str], list[Load]]
"""What a call does, whatever its dialect calls it; its words; the modules that it names."""


# The field of the effects that each adds to, and what it adds there.
_ADDS: Mapping[str, tuple[str, Callable[[list[str], list[Load]], Sequence[Any]]]] = {
    "load": ("loads", lambda _, modules: modules),
    "try_load": ("loads", lambda _, modules: [replace(each, optional=True) for each in modules]),
    "load_any": ("loads", lambda names, _: [Load(tuple(names))]),
    "need": ("needs", lambda _, modules: [(each,) for each in modules]),
    "need_any": ("needs", lambda _, modules: [tuple(modules)]),
    "conflict": ("conflicts", lambda names, _: names),
    "family": ("families", lambda names, _: names[:1]),
    "unload": ("unloads", lambda names, _: names),
    "set": ("variables", lambda words, _: [tuple(words[-2:])] if len(words) > 1 else []),
    "path": (
        "paths",
        # Spack puts the prefix itself there as PREFIX/.
        lambda words, _: [
            (words[0], each.removesuffix("/.")) for each in ":".join(words[1:]).split(":") if each
        ],
    ),
}


def _effects(calls: Iterable[_Call]) -> Effects:
    """Return what these calls do together; those that do nothing that matters are ignored."""
    found: dict[str, list[Any]] = defaultdict(list)
    for verb, words, modules in calls:
        if verb in _ADDS:
            field_name, adds = _ADDS[verb]
            found[field_name] += adds(words, modules)
    variables = dict(found.pop("variables", []))
    unique: dict[str, Any] = {name: tuple(dict.fromkeys(each)) for name, each in found.items()}
    return Effects(variables=variables, **unique)


_LMOD_HEAD = re.compile(r"^-{10,}\n +(/.*):\n-{10,}\n", re.MULTILINE)
_CALL = re.compile(r"^(\w+)[({]")
_SETENV = re.compile(r'\w+\("([^"]*)","(.*)"\)$', re.DOTALL)
_ARGUMENT = re.compile(r'(\w+)\(([^()]*)\)|"([^"]*)"')
_TEXT = re.compile(r'"([^"]*)"')
_ENDS = ('")', '"))', '"}', "})", "()")
# Calls that do not stand here (whatis, set_alias, ...) have no effect that matters.
_LUA = _verbs(
    load="load always_load depends_on",
    try_load="try_load",
    load_any="load_any depends_on_any",
    need="prereq",
    need_any="prereq_any",
    conflict="conflict",
    family="family",
    unload="unload",
    set="setenv pushenv",
    path="prepend_path append_path",
)
_BOUNDS = {"atleast": ["lowest"], "atmost": ["highest"], "between": ["lowest", "highest"]}


def of_lmod(text: str) -> dict[str, Effects]:
    """Return the effects of every modulefile that Lmod shows in *text*, by its path."""
    parts = _LMOD_HEAD.split(text)
    those = zip(parts[1::2], parts[2::2], strict=True)
    return {path: _effects(_lua_calls(part)) for path, part in those}


def _lua_calls(text: str) -> Iterator[_Call]:
    """Yield the calls; a text in one may go over several lines."""
    name, call = "", ""
    for line in text.splitlines():
        if not name:
            match = _CALL.match(line)
            if match is None:
                continue
            name, call = match[1], line
        else:
            call = f"{call}\n{line}"
        if line.endswith(("]])",) if call.startswith("help([[") else _ENDS):
            verb, words = _LUA.get(name, ""), _TEXT.findall(call)
            if verb == "set":
                setenv = _SETENV.match(call)
                words = list(setenv.groups()) if setenv else []
            elif verb == "path":
                words = words[:2]
            if verb and words:
                yield verb, words, list(_lua_modules(call))
            name = ""


def _lua_modules(call: str) -> Iterator[Load]:
    """Yield the modules that a call names: ``"GCC/7.3.0"``, ``atleast("GCC","7")``."""
    for function, arguments, plain in _ARGUMENT.findall(call.partition("(")[2][:-1]):
        texts = _TEXT.findall(arguments) if function else [plain]
        # A '<' there leaves out the bound itself, which no site relies on.
        values = [each.strip("<") for each in texts[1:]]
        bounds = dict(zip(_BOUNDS.get(function, ()), values, strict=False))
        if texts:
            yield Load((texts[0],), lowest=bounds.get("lowest"), highest=bounds.get("highest"))


_TCL_HEAD = re.compile(r"^-{10,}\n(/.*):\n", re.MULTILINE)
_TCL_ERROR = re.compile(r"Module ERROR: (.*)")
_TCL = {
    "module": _verbs(
        load="load add",
        try_load="try-load",
        load_any="load-any",
        unload="unload rm",
        swap="swap switch",
        path="use",
    ),
    "": _verbs(
        load="depends-on",
        load_any="depends-on-any",
        need="prereq-all",
        need_any="prereq prereq-any",
        conflict="conflict",
        family="family",
        set="setenv pushenv",
        path="prepend-path append-path",
    ),
}


def of_tcl(text: str) -> dict[str, Effects]:
    """Return the effects of every modulefile that Environment Modules shows, by its path."""
    parts = _TCL_HEAD.split(text)
    return {path: _tcl(part) for path, part in zip(parts[1::2], parts[2::2], strict=True)}


def _tcl(text: str) -> Effects:
    error = _TCL_ERROR.search(text)
    return Effects(broken=error[1].strip()) if error else _effects(_tcl_calls(text))


def _tcl_calls(text: str) -> Iterator[_Call]:
    """Yield the calls; a word in braces may go over several lines."""
    call = ""
    for line in text.splitlines():
        call = f"{call}\n{line}" if call else line
        if call.count("{") > call.count("}"):
            continue
        name, *words = _tcl_words(call) or [""]
        call = ""
        verbs = _TCL[""]
        if name == "module" and words:
            verbs, (name, *words) = _TCL[name], words
        verb = verbs.get(name, "")
        if verb == "path" and "-d" in words:
            at = words.index("-d")
            if words[at + 1 : at + 2] != [":"]:
                # Another separator: such a variable is no list of folders.
                continue
            del words[at : at + 2]
        if verb != "set":
            words = [word for word in words if not word.startswith("-")]
        if name == "use":
            words = ["MODULEPATH", *words]
        if verb == "swap":
            yield "unload", words[:-1][:1], []
            verb, words = "load", words[-1:]
        if words:
            yield verb, words, [Load((each,)) for each in words]


_TCL_WORD = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}|\"((?:[^\"\\]|\\.)*)\"|((?:[^\s\\]|\\.)+)")


def _tcl_words(call: str) -> list[str]:
    """Return the words of a Tcl list."""
    return [
        match[1] if match[1] is not None else re.sub(r"\\(.)", r"\1", match[2] or match[3] or "")
        for match in _TCL_WORD.finditer(call)
    ]
