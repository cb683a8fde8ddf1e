"""What checkouts, release notes and package indexes contain: releases and statements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..documents.source import read as read_source
from ..errors import DocumentError, UsageError
from ..formats.easyconfig import read as read_easyconfig
from ..formats.release_notes import NoteStatement
from ..formats.release_notes import read as read_notes
from ..formats.spack_package import SpackStatement
from ..formats.spack_package import read as read_spack_package
from ..knowledge.names import package_names, read_name
from ..knowledge.ranges import ANY_VERSION, matches, version
from ..knowledge.rows import Knowledge
from ..machine.modules.names import stems
from ..text import shown
from ..workflow.context import Context

_EASYCONFIGS = "easybuild/easyconfigs"
_PACKAGES = ("repos/spack_repo/builtin/packages", "var/spack/repos/builtin/packages")


class ShippedStack(NamedTuple):
    """A combination that EasyBuild ships: versions by component."""

    versions: Mapping[str, str]
    file: str


class ComponentStatement(NamedTuple):
    """A statement of Spack about two components."""

    component: str
    other: str
    statement: SpackStatement
    source: str

    def refuses(self, release: str, other: str) -> bool:
        """Whether it excludes these releases together."""
        inside = matches(other, self.statement.package_bounds)
        return matches(release, self.statement.bounds) and inside is self.statement.forbids

    def admits(self, release: str, other: str) -> bool:
        """Whether it states that these releases go together."""
        bounds, of_other = self.statement.bounds, self.statement.package_bounds
        if self.statement.forbids or of_other == ANY_VERSION:
            return False
        return matches(release, bounds) and matches(other, of_other)


class ReleaseNote(NamedTuple):
    """A statement of the release notes of a component. ``other``: the component it requires."""

    component: str
    statement: NoteStatement
    other: str | None
    source: str


@dataclass
class SourceContents:
    """What sources contain."""

    releases: dict[str, set[str]] = field(default_factory=dict)
    shipped: list[ShippedStack] = field(default_factory=list)
    statements: list[ComponentStatement] = field(default_factory=list)
    notes: list[ReleaseNote] = field(default_factory=list)
    on_index: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    conditional: int = 0
    unread: list[str] = field(default_factory=list)


def read_checkout(source: Path, knowledge: Knowledge, contents: SourceContents) -> None:
    """Add what a checkout or a file contains.  Raises UsageError for one of another kind."""
    notes = _notes_files(source, knowledge)
    packages = next((source / each for each in _PACKAGES if (source / each).is_dir()), None)
    if (source / _EASYCONFIGS).is_dir():
        _read_easyconfigs(source, knowledge, contents)
    elif packages is not None:
        _read_packages(source, packages, knowledge, contents)
    elif notes:
        for component, path in notes:
            _read_notes(source, component, path, knowledge, contents)
    else:
        raise UsageError(
            "knowledge.unknown-source",
            f"'{shown(str(source))}' is neither a checkout of easybuild-easyconfigs or "
            "spack-packages nor release notes of a component",
            f"it has no folder {_EASYCONFIGS} or {_PACKAGES[0]}; name a checkout like its "
            "repository (ompi), a file like its component (nccl.txt)",
        )


def _read_easyconfigs(source: Path, knowledge: Knowledge, contents: SourceContents) -> None:
    aliases = stems(knowledge.components)
    components = knowledge.components.items()
    modules = {name: component for component, entry in components for name in entry.modules}
    for path in sorted((source / _EASYCONFIGS).glob("*/*/*.eb")):
        name = path.parent.name
        said = (
            read_name(f"{name}/{path.stem[len(name) + 1 :]}", aliases) if name in modules else None
        )
        if said is None or modules[name] != said.component or version(said.release) is None:
            continue
        versions = {said.component: said.release}
        if said.facts.get("compiler") == "gcc":
            versions["gcc"] = said.facts["compiler_version"]
        try:
            software, _ = read_easyconfig(read_source(path))
        except DocumentError:
            contents.unread.append(str(path.relative_to(source)))
            continue
        generation = knowledge.generations.get(software.toolchain or "")
        if generation and "gcc" in generation.components:
            versions["gcc"] = generation.components["gcc"]
        for each, bounds in software.software:
            if each in modules and bounds.startswith("=="):
                versions.setdefault(modules[each], bounds.removeprefix("=="))
        contents.releases.setdefault(said.component, set()).add(said.release)
        contents.shipped.append(ShippedStack(versions, str(path.relative_to(source))))


def _read_packages(
    source: Path, packages: Path, knowledge: Knowledge, contents: SourceContents
) -> None:
    names = package_names(knowledge.components)
    names |= stems(knowledge.components)

    def component_of(package: str) -> str | None:
        plain = package.replace("_", "-")
        return names.get(plain) or names.get(plain.removeprefix("py-"))

    commit = _commit(source)
    for path in sorted(packages.glob("*/package.py")):
        component = component_of(path.parent.name)
        package = read_spack_package(read_source(path)) if component else None
        if component is None or package is None:
            continue
        contents.releases.setdefault(component, set()).update(package.releases)
        link = f"https://github.com/spack/spack-packages/blob/{commit}/{path.relative_to(source)}"
        for statement in package.statements:
            other = component_of(statement.package)
            if other is None or other == component:
                continue
            if statement.condition:
                contents.conditional += 1
            else:
                contents.statements.append(
                    ComponentStatement(component, other, statement, f"{link}#L{statement.line}")
                )


def _notes_files(source: Path, knowledge: Knowledge) -> list[tuple[str, Path]]:
    """Return the release notes of a checkout, or a file of such, with the component of each."""
    if source.is_file():
        return [(source.stem, source)] if source.stem in knowledge.components else []
    name = source.resolve().name
    return [
        (component, path)
        for component, entry in knowledge.components.items()
        for repository, _, pattern in (each.partition("/") for each in entry.release_notes)
        if repository == name
        for path in sorted(source.glob(pattern))
    ]


def _read_notes(
    source: Path, component: str, path: Path, knowledge: Knowledge, contents: SourceContents
) -> None:
    names = package_names(knowledge.components) | stems(knowledge.components)
    place = path.name if path == source else _blob(source) + str(path.relative_to(source))
    for statement in read_notes(read_source(path).text):
        contents.releases.setdefault(component, set()).add(statement.release)
        other = names.get(statement.name.lower().replace(" ", ""))
        if statement.kind != "requires" or other not in (None, component):
            link = f"{place}#L{statement.line}"
            contents.notes.append(ReleaseNote(component, statement, other, link))


def _blob(checkout: Path) -> str:
    """Return the address of the files of a checkout of GitHub; of another one its name."""
    try:
        settings = (checkout / ".git" / "config").read_text(encoding="utf-8")
    except (OSError, ValueError):
        settings = ""
    url = re.search(r"url = (https://github\.com/[\w.-]+/[\w-]+)", settings)
    return f"{url[1]}/blob/{_commit(checkout)}/" if url else f"{checkout.resolve().name}/"


def _commit(checkout: Path) -> str:
    """Return the commit of a checkout; 'develop' if git's own files do not show it."""
    try:
        head = (checkout / ".git" / "HEAD").read_text(encoding="ascii").strip()
        named = head.removeprefix("ref: ")
        text = head if named == head else (checkout / ".git" / named).read_text(encoding="ascii")
    except (OSError, ValueError):
        return "develop"
    return text.strip()[:8]


def read_index(
    index: str,
    before: Mapping[str, Any],
    knowledge: Knowledge,
    contents: SourceContents,
    context: Context,
) -> None:
    """Add the releases of an index that are not recorded.  Raises BuildError without it."""
    # lazy import: only an index is asked for
    from ..locking.connection import Connection, Unreachable
    from ..locking.failures import index_unreachable
    from ..locking.index_releases import new_releases
    from ..locking.settings import configured
    from ..workflow.secret_links import pip_configuration

    connection = Connection(
        configured(pip_configuration(context.environ), (index,)), context.environ
    )
    known = {
        name: {
            *(each.version for each in releases),
            *(each["version"] for each in before.get("releases", {}).get(name, ())),
        }
        for name, releases in knowledge.releases.items()
    }
    try:
        for component, release in new_releases(connection, index, knowledge, known):
            contents.on_index.setdefault(component, []).append(release)
    except Unreachable as error:
        raise index_unreachable(error.place, error.reason) from error
