"""What loading a module does, read from what ``module show`` prints of it.

Lmod prints the calls of a modulefile as Lua, Environment Modules prints them as Tcl, both in the
order in which they were made and without the conditions around them: in an environment without
modules, ``if not isloaded("X") then load("X") end`` is shown as ``load("X")``. Neither quotes what
stands in a text, so a call is read up to a line that ends as calls do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


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


@dataclass
class _Reading:
    """The effects of one modulefile while its calls are read."""

    loads: list[Load] = field(default_factory=list)
    needs: list[tuple[Load, ...]] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    unloads: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    paths: list[tuple[str, str]] = field(default_factory=list)

    def path(self, variable: str, value: str) -> None:
        self.paths += [(variable, each) for each in value.split(":") if each]

    def done(self, broken: str | None = None) -> Effects:
        return Effects(
            loads=tuple(dict.fromkeys(self.loads)),
            needs=tuple(self.needs),
            conflicts=tuple(dict.fromkeys(self.conflicts)),
            families=tuple(dict.fromkeys(self.families)),
            unloads=tuple(dict.fromkeys(self.unloads)),
            variables=self.variables,
            paths=tuple(dict.fromkeys(self.paths)),
            broken=broken,
        )


_LMOD_HEAD = re.compile(r"^-{10,}\n +(/.*):\n-{10,}\n", re.MULTILINE)
_CALL = re.compile(r"^(\w+)[({]")
_SETENV = re.compile(r'\w+\("([^"]*)","(.*)"\)$', re.DOTALL)
_ARGUMENT = re.compile(r'(\w+)\(([^()]*)\)|"([^"]*)"')
_TEXT = re.compile(r'"([^"]*)"')
_ENDS = ('")', '"))', '"}', "})", "()")


def of_lmod(text: str) -> dict[str, Effects]:
    """Return the effects of every modulefile that Lmod shows in *text*, by its path."""
    parts = _LMOD_HEAD.split(text)
    return {path: _lmod(part) for path, part in zip(parts[1::2], parts[2::2], strict=True)}


def _lmod(text: str) -> Effects:
    reading = _Reading()
    for name, call in _lua_calls(text):
        take = _LUA.get(name)
        if take is not None:
            take(reading, call)
    return reading.done()


def _texts(call: str) -> list[str]:
    return _TEXT.findall(call)


def _lua_set(reading: _Reading, call: str) -> None:
    match = _SETENV.match(call)
    if match is not None:
        reading.variables[match[1]] = match[2]


def _lua_path(reading: _Reading, call: str) -> None:
    variable, *values = _texts(call)
    for value in values[:1]:
        reading.path(variable, value)


# Calls that do not stand here (whatis, set_alias, ...) have no effect that matters.
_LUA: Mapping[str, Callable[[_Reading, str], None]] = {
    "load": lambda reading, call: reading.loads.extend(_lua_modules(call)),
    "always_load": lambda reading, call: reading.loads.extend(_lua_modules(call)),
    "depends_on": lambda reading, call: reading.loads.extend(_lua_modules(call)),
    "try_load": lambda reading, call: reading.loads.extend(
        Load((each,), optional=True) for each in _texts(call)
    ),
    "load_any": lambda reading, call: reading.loads.append(Load(tuple(_texts(call)))),
    "depends_on_any": lambda reading, call: reading.loads.append(Load(tuple(_texts(call)))),
    "prereq": lambda reading, call: reading.needs.extend((one,) for one in _lua_modules(call)),
    "prereq_any": lambda reading, call: reading.needs.append(tuple(_lua_modules(call))),
    "conflict": lambda reading, call: reading.conflicts.extend(_texts(call)),
    "family": lambda reading, call: reading.families.extend(_texts(call)[:1]),
    "unload": lambda reading, call: reading.unloads.extend(_texts(call)),
    "setenv": _lua_set,
    "pushenv": _lua_set,
    "prepend_path": _lua_path,
    "append_path": _lua_path,
}


def _lua_calls(text: str) -> Iterator[tuple[str, str]]:
    """Yield the calls with their names; a text in one may go over several lines."""
    name, call = "", ""
    for line in text.splitlines():
        if not name:
            match = _CALL.match(line)
            if match is None:
                continue
            name, call = match[1], line
        else:
            call = f"{call}\n{line}"
        ends = ("]])",) if call.startswith("help([[") else _ENDS
        if line.endswith(ends):
            yield name, call
            name = ""


def _lua_modules(call: str) -> Iterator[Load]:
    """Yield the modules that a call names: ``"GCC/7.3.0"``, ``atleast("GCC","7")``."""
    inner = call[call.index("(") + 1 : -1]
    for function, arguments, plain in _ARGUMENT.findall(inner):
        texts = _TEXT.findall(arguments)
        if not function:
            yield Load((plain,))
        elif function == "atleast":
            yield Load((texts[0],), lowest=texts[1])
        elif function == "atmost":
            yield Load((texts[0],), highest=texts[1])
        elif function == "between":
            # A '<' there leaves out the bound itself, which no site relies on.
            low, high = (each.strip("<") for each in texts[1:3])
            yield Load((texts[0],), lowest=low, highest=high)
        elif texts:
            yield Load((texts[0],))


_TCL_HEAD = re.compile(r"^-{10,}\n(/.*):\n", re.MULTILINE)
_TCL_ERROR = re.compile(r"Module ERROR: (.*)")


def of_tcl(text: str) -> dict[str, Effects]:
    """Return the effects of every modulefile that Environment Modules shows, by its path."""
    parts = _TCL_HEAD.split(text)
    return {path: _tcl(part) for path, part in zip(parts[1::2], parts[2::2], strict=True)}


def _tcl(text: str) -> Effects:
    error = _TCL_ERROR.search(text)
    if error is not None:
        return Effects(broken=error[1].strip())
    reading = _Reading()
    for name, *words in _tcl_calls(text):
        take = _TCL.get(name)
        if take is not None and words:
            take(reading, words)
    return reading.done()


def _tcl_module(reading: _Reading, verb: str, names: list[str]) -> None:
    if verb in ("load", "add"):
        reading.loads += [Load((each,)) for each in names]
    elif verb == "try-load":
        reading.loads += [Load((each,), optional=True) for each in names]
    elif verb == "load-any":
        reading.loads.append(Load(tuple(names)))
    elif verb in ("unload", "rm"):
        reading.unloads += names
    elif verb in ("swap", "switch") and names:
        reading.unloads += names[:1] if len(names) > 1 else ()
        reading.loads.append(Load((names[-1],)))
    elif verb == "use":
        for folder in names:
            reading.path("MODULEPATH", folder)


def _tcl_set(reading: _Reading, words: list[str]) -> None:
    if len(words) > 1:
        reading.variables[words[-2]] = words[-1]


def _tcl_path(reading: _Reading, words: list[str]) -> None:
    # ``-d C`` names another separator; such a variable is no list of folders.
    variable, *values = _plain(words) or [""]
    for value in values if "-d" not in words else ():
        reading.path(variable, value)


def _plain(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _tcl_loads(words: list[str]) -> list[Load]:
    return [Load((each,)) for each in _plain(words)]


_TCL: Mapping[str, Callable[[_Reading, list[str]], None]] = {
    "module": lambda reading, words: _tcl_module(reading, words[0], _plain(words[1:])),
    "depends-on": lambda reading, words: reading.loads.extend(_tcl_loads(words)),
    "depends-on-any": lambda reading, words: reading.loads.append(Load(tuple(_plain(words)))),
    "prereq": lambda reading, words: reading.needs.append(tuple(_tcl_loads(words))),
    "prereq-any": lambda reading, words: reading.needs.append(tuple(_tcl_loads(words))),
    "prereq-all": lambda reading, words: reading.needs.extend((e,) for e in _tcl_loads(words)),
    "conflict": lambda reading, words: reading.conflicts.extend(_plain(words)),
    "family": lambda reading, words: reading.families.extend(_plain(words)[:1]),
    "setenv": _tcl_set,
    "pushenv": _tcl_set,
    "prepend-path": _tcl_path,
    "append-path": _tcl_path,
}


def _tcl_calls(text: str) -> Iterator[list[str]]:
    """Yield the words of each call; a word in braces may go over several lines."""
    call = ""
    for line in text.splitlines():
        call = f"{call}\n{line}" if call else line
        if call.count("{") > call.count("}"):
            continue
        words = _tcl_words(call)
        if words and not set(words[0]) <= {"-"}:
            yield words
        call = ""


_TCL_WORD = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}|\"((?:[^\"\\]|\\.)*)\"|((?:[^\s\\]|\\.)+)")


def _tcl_words(call: str) -> list[str]:
    """Return the words of a Tcl list."""
    words = []
    for match in _TCL_WORD.finditer(call):
        braced, quoted, plain = match.groups()
        words.append(
            braced if braced is not None else re.sub(r"\\(.)", r"\1", quoted or plain or "")
        )
    return words
