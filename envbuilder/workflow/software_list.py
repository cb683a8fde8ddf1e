"""The components with their versions in a file of another tool, for ``advisories check``."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..documents.source import MAX_BYTES, source_of
from ..errors import Place, UsageError
from ..formats.environment_yml import EnvironmentFile
from ..formats.foreign import ForeignFile, read_foreign, read_text
from ..formats.markers import applies
from ..formats.match_spec import parse
from ..knowledge.channels import SUBDIRS
from ..knowledge.components import Component
from ..knowledge.names import package_names
from ..knowledge.terms import Origin
from ..machine.modules.names import provided_by_name, stems, unread_modules
from ..model.site import StatedModule
from ..runtimes import RUNTIMES
from ..target_tools.names import normalize
from ..text import counted, shown
from .context import Context

# So many lines that are not read are listed.
_MOST_LINES = 10
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(.*)")
_EXACT = re.compile(r"={2,3}\s*([^\s;,#*]+)\s*(;.*)?")
_STDIN = "standard input"


@dataclass(frozen=True)
class ComponentList:
    """Components with their versions, where each comes from, and the names of their packages."""

    versions: Mapping[str, str]
    origins: Mapping[str, Origin]
    distributions: Mapping[str, str]


class _FileEntry(NamedTuple):
    """A package in a file. ``version``: None if the file states none, or a range.

    ``name``: of its distribution; empty for software that is none.
    """

    place: Place
    text: str
    component: str | None
    version: str | None
    origin: Origin
    name: str = ""


def load_software(file: Path, pipe: BinaryIO, context: Context) -> ComponentList:
    """Read a file in any format of ``recipes import``; ``-`` reads *pipe*. Warn of unread lines.

    Raises UsageError or DocumentError for a file that cannot be read, and UsageError for two
    versions of one component.
    """
    found = _read(file, pipe, context)
    components = context.knowledge.components
    listed = list(_listed(found, components))
    unread = [f"{each.place}: not read: {shown(each.text)}" for each in _unread(listed)]
    called = _STDIN if str(file) == "-" else shown(str(file))
    lines = (*unread, *_unread_modules(found.asked, components), *found.notes)
    for line in lines[:_MOST_LINES]:
        context.reporter.warn(line)
    if len(lines) > _MOST_LINES:
        more = counted(len(lines) - _MOST_LINES, "more line")
        context.reporter.warn(f"{called}: {more}; envbuild recipes import shows them all")
    versions: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    distributions: dict[str, str] = {}
    for each in listed:
        if each.component is None or each.version is None:
            continue
        if versions.setdefault(each.component, each.version) != each.version:
            if ";" in each.text:
                text = f"{versions[each.component]} is before it; which one depends on the Python"
                context.reporter.warn(f"{each.place}: not read: {shown(each.text)}: {text}")
                continue
            raise UsageError(
                "component.two-versions",
                f"{each.place}: two versions of {each.component}: {versions[each.component]} and "
                f"{each.version}",
                "a stack has one version: remove one of the lines",
            )
        # The index has no wheels of what pip builds from its sources.
        is_built = each.origin == "pip" and each.component in RUNTIMES
        origins.setdefault(each.component, "build" if is_built else each.origin)
        if each.name:
            distributions.setdefault(each.component, normalize(each.name))
    others = sum(each.component is None for each in listed)
    context.reporter.say(
        f"{found.asked.name or called}: {found.form}: "
        f"{counted(len(versions), 'component')}, {counted(others, 'other package')}"
    )
    return ComponentList(versions, origins, distributions)


def _read(file: Path, pipe: BinaryIO, context: Context) -> ForeignFile:
    own = SUBDIRS.get(platform.machine(), "")  # type: ignore[call-overload]
    if str(file) != "-":
        return read_foreign(context.path(file), shown(str(file), 240), None, own)
    return read_text(source_of(pipe.read(MAX_BYTES), _STDIN), None, own, lambda _: None)


def _listed(file: ForeignFile, components: Mapping[str, Component]) -> Iterator[_FileEntry]:
    """Yield each package, in the order of the file's sections, that its platform needs."""
    asked = file.asked
    names, modules = package_names(components), stems(components)

    def component_of(name: str) -> str | None:
        return names.get(normalize(name)) or modules.get(name.lower())

    def place_of(text: str) -> Place:
        return asked.places.get(text, Place(""))

    for text in asked.specs:
        spec = parse(text)
        if spec:
            exact = _EXACT.fullmatch(spec.version)
            version = exact[1] if exact else None
            yield _FileEntry(
                place_of(text), text, component_of(spec.name), version, "conda", spec.name
            )
    for line in asked.pip:
        found = _REQUIREMENT.fullmatch(line)
        if found and applies(line.partition(";")[2], file.platform) is not False:
            exact = _EXACT.fullmatch(found[2])
            version = exact[1] if exact else None
            yield _FileEntry(place_of(line), line, component_of(found[1]), version, "pip", found[1])
    for name, bounds in asked.software:
        exact = _EXACT.fullmatch(bounds)
        text = f"{name} {bounds}"
        version = exact[1] if exact else None
        yield _FileEntry(place_of(name), text, component_of(name), version, "module")
    for module in asked.modules:
        provided = provided_by_name(module, modules)
        component, release = next(iter(provided.items()), (None, None))
        yield _FileEntry(place_of(module), module, component, release, "module")


def _unread(listed: list[_FileEntry]) -> Iterator[_FileEntry]:
    """Yield the components without one version that are in no other line either."""
    read = {each.component for each in listed if each.version}
    for each in listed:
        if each.component and each.version is None and each.component not in read:
            yield each


def _unread_modules(asked: EnvironmentFile, components: Mapping[str, Component]) -> Iterator[str]:
    """Yield a line for each module whose name looks like a component's and states no release."""
    modules = [StatedModule(name=name) for name in asked.modules]
    for name, _ in unread_modules(modules, components):
        yield f"{asked.places[name]}: not read: {shown(name)}"
