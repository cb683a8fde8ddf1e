"""EasyBuild's easyconfigs: a module with its toolchain and dependencies.

https://docs.easybuild.io, "Writing easyconfig files". They are Python; their assignments are
read as data, and nothing of them is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..documents.source import Source
from ..errors import DocumentError, Place, Problem
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import Reading

_DEPENDENCIES, _EXTENSIONS, _CHECKSUMS = "dependencies", "exts_list", "checksums"
# A dependency that is a module of the site, not an easyconfig: "Using external modules".
_EXTERNAL = "EXTERNAL_MODULE"
# What names the module; what describes it or says where its sources are.
_READ = frozenset({"name", "version", "toolchain", "easyblock", _DEPENDENCIES, _EXTENSIONS})
_ABOUT = frozenset({"homepage", "description", "moduleclass", _CHECKSUMS})
# Lists of packages that the module contains, or that only its build needs.
_WITHIN = (_EXTENSIONS, "components", "builddependencies")
_GENERATION = re.compile(r"20\d\d[ab]")
# Toolchains without a compiler.
_SYSTEM = frozenset({"system", "dummy"})
_TEMPLATE = re.compile(r"%\((\w+)\)s")
_MOST_CHARACTERS = 100_000


class _NotDataError(ValueError):
    """An expression that is no constant, names of the file, + or %."""


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the module, its dependencies and toolchain, and notes on what was left out.

    Raises DocumentError for what is no Python, or has neither name nor version.
    """
    reading = Reading("EasyBuild's eb --copy-ec copies such a file")
    file = _Easyconfig(reading, source, {_EXTERNAL: _EXTERNAL}, {})
    try:
        for statement in ast.parse(source.text).body:
            file.assign(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = Place(source.file, getattr(error, "lineno", 1) or 1, 1)
        problem = Problem("package-list.not-python", "not an easyconfig: not Python", place)
        raise DocumentError((problem,)) from error
    name, version = file.values.get("name"), file.values.get("version")
    for key, value in (("name", name), ("version", version)):
        if not isinstance(value, str):
            reading.wrong("package-list.missing-key", Place(source.file, 1, 1), f"{key} is missing")
    reading.check()
    software = {str(name): (f"=={version}", file.place("name"))}
    file.check_name(str(name), str(version))
    for key in _WITHIN:
        for (extension, release), place in file.dependencies(key):
            if extension.lower() != str(name).lower():
                text = shown(f"{extension} {release}", 60)
                reading.note(place, f"{text} of {key} is left out: the module contains it")
    modules: dict[str, Place] = {}
    for row, place in file.dependencies(_DEPENDENCIES):
        if row[1] == _EXTERNAL:
            modules.setdefault(row[0], place)
        else:
            software.setdefault(row[0], (f"=={row[1]}", place))
    file.note_checksums()
    kind = file.kind()
    toolchains = {kind: file.place("toolchain")} if kind else {}
    return EnvironmentFile(
        software=tuple((each, bounds) for each, (bounds, _) in software.items()),
        modules=tuple(modules),
        toolchain=file.generation(),
        toolchain_kind=kind,
        only_pip=True,
        places={**toolchains, **modules, **{each: at for each, (_, at) in software.items()}},
    ), tuple(reading.notes)


@dataclass(frozen=True)
class _Easyconfig:
    """The parameters of an easyconfig, and the line of each."""

    reading: Reading
    source: Source
    values: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, ast.expr] = field(default_factory=dict)

    def place(self, key: str) -> Place:
        return Place(self.source.file, self.lines.get(key, 1), 1)

    def assign(self, statement: ast.stmt) -> None:
        """Read an assignment; note every other statement, and what has no meaning for a recipe."""
        place = Place(self.source.file, statement.lineno, 1)
        target = getattr(statement, "target", None) or next(
            iter(getattr(statement, "targets", ())), None
        )
        value = getattr(statement, "value", None)
        if not isinstance(target, ast.Name) or not isinstance(value, ast.expr):
            text = shown(" ".join(ast.unparse(statement).split()), 60)
            self.reading.note(place, f"{text} is left out: not a parameter")
            return
        key = target.id
        self.lines.setdefault(key, statement.lineno)
        if isinstance(statement, ast.AugAssign) and key in self.nodes:
            value = ast.BinOp(self.nodes[key], statement.op, value)
        self.nodes[key] = value
        try:
            self.values[key] = _value(value, self.values)
        except _NotDataError:
            self.values.pop(key, None)
        if key not in _READ | _ABOUT and not key.startswith("local_"):
            self.reading.note(place, f"{shown(key)} is left out: the module contains its result")

    def dependencies(self, key: str) -> list[tuple[tuple[str, str], Place]]:
        """Return name and version of each dependency or extension, with its place."""
        found = []
        for item in self._items(key, self.nodes.get(key)):
            place = Place(self.source.file, item.lineno, item.col_offset + 1)
            elements = item.elts if isinstance(item, ast.Tuple) else []
            try:
                name, version, *_ = (_value(each, self.values) for each in elements[:2])
                found.append(((_text(name), _text(version)), place))
                self._note_fields(_text(name), elements[2:])
            except (_NotDataError, ValueError):
                text = shown(ast.unparse(item), 60)
                self.reading.note(place, f"{text} of {key} is left out: not read as data")
        return found

    def _note_fields(self, name: str, fields: list[ast.expr]) -> None:
        """Note what stands behind a version: suffix and toolchain, or the keys of options."""
        for each in fields:
            texts = [each] if not isinstance(each, ast.Dict) else [key for key in each.keys if key]
            words = ", ".join(ast.unparse(text).strip("'") for text in texts)
            if words not in ("", _CHECKSUMS):
                place = Place(self.source.file, each.lineno, each.col_offset + 1)
                self.reading.note(place, f"{shown(words, 240)} of {shown(name)} is left out")

    def check_name(self, name: str, version: str) -> None:
        """Note a version that the name of the file, NAME-VERSION..., does not have."""
        file = Path(self.source.file).name
        if file.startswith(f"{name}-") and not file.startswith(f"{name}-{version}"):
            text = f"the version is {shown(version)}, unlike the name of the file"
            self.reading.note(self.place("version"), text)

    def _items(self, key: str, node: ast.expr | None) -> Iterator[ast.expr]:
        """Yield the items of lists and of their sums; note every other expression."""
        if isinstance(node, ast.List | ast.Tuple):
            yield from node.elts
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self._items(key, node.left)
            yield from self._items(key, node.right)
        elif isinstance(node, ast.Name) and node.id in self.nodes and node.id != key:
            yield from self._items(node.id, self.nodes[node.id])
        elif node is not None:
            place = Place(self.source.file, node.lineno, 1)
            self.reading.note(place, f"{shown(ast.unparse(node), 60)} of {key} is left out")

    def generation(self) -> str | None:
        """Return the generation of the toolchain; note a toolchain without one."""
        toolchain = self.values.get("toolchain")
        version = toolchain.get("version") if isinstance(toolchain, Mapping) else None
        if isinstance(version, str) and _GENERATION.fullmatch(version):
            return version
        if version is not None:
            text = shown(str(version), 60)
            self.reading.note(self.place("toolchain"), f"the toolchain {text} is no generation")
        return None

    def kind(self) -> str | None:
        """Return the kind of the toolchain: foss."""
        toolchain = self.values.get("toolchain")
        kind = toolchain.get("name") if isinstance(toolchain, Mapping) else None
        return kind if isinstance(kind, str) and kind not in _SYSTEM else None

    def note_checksums(self) -> None:
        """Note the first checksums of the file, its own or those of an extension."""
        keys = (each for node in self.nodes.values() for each in ast.walk(node))
        lines = [self.lines[_CHECKSUMS]] if _CHECKSUMS in self.lines else []
        lines += [
            each.lineno
            for each in keys
            if isinstance(each, ast.Constant) and each.value == _CHECKSUMS
        ]
        if lines:
            self.reading.note(Place(self.source.file, min(lines), 1), "the checksums are left out")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or _TEMPLATE.search(value):
        raise _NotDataError(value)
    return value


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of constants, names of the file, + and %. Raises _NotDataError."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise _NotDataError(node.id)
        return names[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_value(each, names) for each in node.elts)
    if isinstance(node, ast.Dict):
        return {
            key.value: _value(value, names)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return _combined(node, names)
    raise _NotDataError(type(node).__name__)


def _combined(node: ast.BinOp, names: Mapping[str, Any]) -> str:
    left, right = _value(node.left, names), _value(node.right, names)
    if not isinstance(left, str) or len(left) > _MOST_CHARACTERS:
        raise _NotDataError(left)
    if isinstance(node.op, ast.Add) and isinstance(right, str):
        return left + right
    # %s and the templates of EasyBuild alone: a width such as %999999999s would fill the memory.
    if isinstance(node.op, ast.Mod) and re.fullmatch(r"(?:[^%]|%s|%\(\w+\)s|%%)*", left):
        values = iter(right if isinstance(right, tuple) else (right,))
        try:
            return re.sub(r"(?<![%\w)])%s", lambda _: str(next(values)), left)
        except StopIteration:
            raise _NotDataError(left) from None
    raise _NotDataError(left)
