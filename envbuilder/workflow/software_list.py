"""The components in a list of software that a package manager or a module system printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..documents.software_list import ListedSoftware, UnreadLine, read_software
from ..documents.source import MAX_BYTES, read_bytes
from ..errors import UsageError
from ..knowledge.names import package_names
from ..knowledge.rows import Component
from ..knowledge.terms import Origin
from ..machine.modules.names import provided_by_name, stems, unread_modules
from ..model.site import StatedModule
from ..target_tools.names import normalize
from ..text import counted, shown
from .context import Context

# So many lines that are not read are listed.
_MOST_LINES = 10


@dataclass(frozen=True)
class ComponentList:
    """Components with their versions, where each comes from, and the names of their packages."""

    versions: Mapping[str, str]
    origins: Mapping[str, Origin]
    distributions: Mapping[str, str]


def load_software(file: Path, pipe: BinaryIO, context: Context) -> ComponentList:
    """Read a list; ``-`` reads *pipe*. Warn of lines that are not read.

    Raises UsageError for a file that cannot be read and for two versions of one component.
    """
    from_pipe = str(file) == "-"
    data = pipe.read(MAX_BYTES) if from_pipe else read_bytes(file)
    place = "standard input" if from_pipe else shown(str(file), 240)
    entries = list(read_software(data.decode("utf-8", "replace")))
    listed = [entry for entry in entries if isinstance(entry, ListedSoftware)]
    components = context.knowledge.components
    for line in _unread(entries, listed, components):
        context.reporter.warn(f"{place}:{line.line}: not read: {shown(line.text, 120)}")
    versions: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    distributions: dict[str, str] = {}
    for entry, component, version in _components(listed, components):
        if versions.setdefault(component, version) != version:
            raise UsageError(
                "component.two-versions",
                f"{place}:{entry.line}: two versions of {component}: {versions[component]} and "
                f"{version}",
                "a stack has one version: remove one of the lines",
            )
        origins.setdefault(component, entry.origin)
        distributions.setdefault(component, normalize(entry.name))
    others = len(listed) - len(versions)
    context.reporter.say(
        f"{place}: {counted(len(versions), 'component')}, {counted(others, 'other package')}"
    )
    return ComponentList(versions, origins, distributions)


def _components(
    listed: Iterable[ListedSoftware], components: Mapping[str, Component]
) -> Iterator[tuple[ListedSoftware, str, str]]:
    """Yield what is a component, with its canonical name and version."""
    packages, modules = package_names(components), stems(components)
    for entry in listed:
        if entry.version is None:
            provided = provided_by_name(entry.name, modules)
            yield from ((entry, component, provided[component]) for component in provided)
        elif normalize(entry.name) in packages:
            yield entry, packages[normalize(entry.name)], entry.version


def _unread(
    entries: Iterable[ListedSoftware | UnreadLine],
    listed: Iterable[ListedSoftware],
    components: Mapping[str, Component],
) -> list[UnreadLine]:
    """Return lines without a version, and modules that look like a component's."""
    names = {entry.name: entry.line for entry in listed if entry.version is None}
    modules = unread_modules([StatedModule(name=name) for name in names], components)
    lines = [entry for entry in entries if isinstance(entry, UnreadLine)]
    lines += [UnreadLine(names[name], name) for name, _ in modules]
    return sorted(lines)[:_MOST_LINES]
