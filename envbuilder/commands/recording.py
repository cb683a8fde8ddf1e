"""``knowledge record``: what checkouts of EasyBuild and Spack state, as data to accept or refuse.

Releases become ``versions.yaml`` of a folder of knowledge. Statements become drafts of rows, which
a person moves to ``advisories.yaml`` or ``couplings.yaml``. Contradictions are combinations that
EasyBuild ships or Spack admits, and that rows refuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ..documents.source import read as read_source
from ..errors import DocumentError, UsageError
from ..formats.easyconfig import read as read_easyconfig
from ..formats.spack_package import SpackStatement
from ..formats.spack_package import read as read_spack_package
from ..formats.writing import yaml_text
from ..knowledge.ageing import outdated_ends, recorded_releases
from ..knowledge.matching import rows as all_rows
from ..knowledge.names import package_names, read_name
from ..knowledge.ranges import ANY_VERSION, matches, sort_key, version
from ..knowledge.rows import (
    Advisory,
    Coupling,
    Existing,
    Knowledge,
    Ranges,
    Row,
    Selection,
    Selector,
)
from ..knowledge.terms import Origin
from ..machine.modules.names import stems
from ..model.outcome import RecordResult
from ..resolve.facts import Facts
from ..resolve.verdicts import StackFacts, match
from ..target_tools.files import make_folder
from ..text import shown
from ..workflow.context import Context

_HEAD = "# Written by: envbuild knowledge record\n"
_EASYCONFIGS = "easybuild/easyconfigs"
_PACKAGES = ("repos/spack_repo/builtin/packages", "var/spack/repos/builtin/packages")
_DRAFTS = "{}.drafts.yaml"
# What pip installs is not built as Spack and EasyBuild build it.
_BUILT = ("module", "system", "build")


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


@dataclass
class SourceContents:
    """What sources contain."""

    releases: dict[str, set[str]] = field(default_factory=dict)
    shipped: list[ShippedStack] = field(default_factory=list)
    statements: list[ComponentStatement] = field(default_factory=list)
    on_index: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    conditional: int = 0


def record(sources: Sequence[str], output: Path, context: Context) -> RecordResult:
    """Read checkouts and indexes, and write what is new to a folder of knowledge.

    Raises UsageError for a source of another kind, and for a versions.yaml written by hand;
    BuildError for an index that cannot be reached.
    """
    knowledge, folder = context.knowledge, context.path(output)
    contents = SourceContents()
    before = _written_versions(folder / "versions.yaml")
    for source in sources:
        if "://" in source:
            _read_index(source, before, knowledge, contents, context)
        else:
            _read(context.path(source), knowledge, contents)
    new, versions = _new_releases(contents, _existing(before), knowledge)
    on_index = sum(map(len, contents.on_index.values()))
    today = context.clock().date().isoformat()
    by_verdict, drafts, against = _drafts(contents, knowledge, today)
    files: dict[str, str] = {}
    if new or on_index:
        releases = _index_releases(contents, before, knowledge)
        files["versions.yaml"] = _versions_text(versions, releases, today)
    files |= _draft_texts(drafts, folder)
    make_folder(folder)
    for name, text in files.items():
        (folder / name).write_text(_HEAD + text, encoding="utf-8")
    return RecordResult(
        releases=sum(map(len, contents.releases.values())) + on_index,
        new_releases=new + on_index,
        statements=by_verdict,
        shipped=len(contents.shipped),
        contradictions=(*_contradictions(contents, knowledge), *against),
        outdated=tuple(_outdated(versions, knowledge)),
        written=tuple(str(output / name) for name in files),
    )


def _read(source: Path, knowledge: Knowledge, contents: SourceContents) -> None:
    packages = next((source / each for each in _PACKAGES if (source / each).is_dir()), None)
    if (source / _EASYCONFIGS).is_dir():
        _read_easyconfigs(source, knowledge, contents)
    elif packages is not None:
        _read_packages(source, packages, knowledge, contents)
    else:
        raise UsageError(
            "knowledge.unknown-source",
            f"'{shown(str(source))}' is neither a checkout of easybuild-easyconfigs nor of "
            "spack-packages",
            f"it has no folder {_EASYCONFIGS} or {_PACKAGES[0]}",
        )


def _read_easyconfigs(source: Path, knowledge: Knowledge, contents: SourceContents) -> None:
    aliases = stems(knowledge.components)
    modules = {
        name: component
        for component, known in knowledge.components.items()
        for name in known.modules
    }
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


def _commit(checkout: Path) -> str:
    """Return the commit of a checkout; 'develop' if git's own files do not show it."""
    try:
        head = (checkout / ".git" / "HEAD").read_text(encoding="ascii").strip()
        named = head.removeprefix("ref: ")
        text = head if named == head else (checkout / ".git" / named).read_text(encoding="ascii")
    except (OSError, ValueError):
        return "develop"
    return text.strip()[:8]


def _read_index(
    index: str,
    before: Mapping[str, Any],
    knowledge: Knowledge,
    contents: SourceContents,
    context: Context,
) -> None:
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


def _index_releases(
    contents: SourceContents, before: Mapping[str, Any], knowledge: Knowledge
) -> dict[str, list[dict[str, Any]]]:
    """Return all releases of components that got new ones: a file replaces those that ship."""
    releases = dict(before.get("releases", {}))
    for name, new in contents.on_index.items():
        recorded = [
            each.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            for each in knowledge.releases[name]
        ]
        listed = [*releases.get(name, recorded), *new]
        releases[name] = sorted(listed, key=lambda each: sort_key(each["version"]))
    return releases


def _outdated(versions: Mapping[str, list[str]], knowledge: Knowledge) -> Iterator[str]:
    """Yield the open ranges of rows that were not confirmed for more than two releases."""
    existing = {
        name: Existing.model_construct(source="", versions=tuple(listed))
        for name, listed in versions.items()
    }
    now = knowledge.model_copy(update={"existing": {**knowledge.existing, **existing}})
    for end in outdated_ends(now):
        limit = end.confirmed_to or "no release"
        yield f"{end.row.id}: confirmed to {end.component} {limit}, {len(end.later)} later"


def _existing(before: Mapping[str, Any]) -> Mapping[str, list[str]]:
    return {name: each["versions"] for name, each in before.get("existing", {}).items()}


def _written_versions(path: Path) -> Mapping[str, Any]:
    """Return the file that an earlier call wrote."""
    if not path.exists():
        return {}
    source = read_source(path)
    if not source.text.startswith(_HEAD):
        raise UsageError(
            "knowledge.written-by-hand",
            f"'{shown(str(path))}' was not written by knowledge record, which would replace it",
            "name another folder with --output, and copy what you accept",
        )
    # lazy import: only a second call has something to read
    import yaml

    value: dict[str, Any] = yaml.safe_load(source.text)
    return value


def _new_releases(
    contents: SourceContents, before: Mapping[str, list[str]], knowledge: Knowledge
) -> tuple[int, dict[str, list[str]]]:
    """Return the number of new releases, and all releases of components that have or had some."""
    versions, count = {name: list(each) for name, each in before.items()}, 0
    for name, found in sorted(contents.releases.items()):
        recorded = {*recorded_releases(knowledge, name), *before.get(name, ())}
        parsed = {version(each) for each in recorded}
        new = [each for each in found if version(each) not in (None, *parsed)]
        if new:
            existing = knowledge.existing.get(name)
            listed = {*(existing.versions if existing else ()), *before.get(name, ()), *new}
            versions[name] = sorted(listed, key=sort_key)
            count += len(new)
    return count, versions


def _versions_text(
    versions: Mapping[str, list[str]], releases: Mapping[str, list[dict[str, Any]]], today: str
) -> str:
    source = "knowledge record, from easybuild-easyconfigs, spack-packages and indexes"
    existing = {name: {"source": source, "versions": each} for name, each in versions.items()}
    value: dict[str, Any] = {"schema": 1, "recorded": today, "source": source}
    return yaml_text({**value, "releases": releases, "existing": existing})


def _drafts(
    contents: SourceContents, knowledge: Knowledge, today: str
) -> tuple[dict[str, int], list[dict[str, Any]], list[str]]:
    """Return the number of statements of each kind, drafts of rows for new ones, contradictions."""
    contradictions: list[str] = []
    counts = dict.fromkeys(("new", "known", "contradicting", "without effect"), 0)
    counts["conditional"] = contents.conditional
    by_pair: dict[frozenset[str], list[Row]] = {}
    for row in all_rows(knowledge):
        if row.replaced_by is None:
            by_pair.setdefault(frozenset(_selections(row)), []).append(row)
    drafts: dict[str, dict[str, Any]] = {}
    for claim in contents.statements:
        rows = by_pair.get(frozenset((claim.component, claim.other)), ())
        verdict, against = _verdict(claim, rows, contents, knowledge)
        counts[verdict] += 1
        if against:
            more = f" and {len(against) - 3} more" if len(against) > 3 else ""
            contradictions.append(f"{_words(claim)}: {', '.join(against[:3])}{more}")
        if verdict == "new":
            draft = _draft(claim, contents, knowledge, today)
            drafts.setdefault(draft["id"], draft)
    return counts, list(drafts.values()), contradictions


def _words(claim: ComponentStatement) -> str:
    verb = "does not go" if claim.statement.forbids else "goes"
    own, other = claim.statement.bounds, claim.statement.package_bounds
    return f"{claim.component} {own} {verb} with {claim.other} {other}"


def _verdict(
    claim: ComponentStatement, rows: Sequence[Row], contents: SourceContents, knowledge: Knowledge
) -> tuple[str, tuple[str, ...]]:
    """Return what a statement is to the rows about these components, and what it contradicts.

    It contradicts rows that hold always and refuse what it admits, and combinations that EasyBuild
    ships and that it refuses.
    """
    own, others = claim.component, _releases(claim.other, contents, knowledge)
    against = set(_refused_files(claim, contents))
    # All statements about two components hold together.
    same = [each for each in contents.statements if each[:2] == claim[:2]]
    refused = known = 0
    for release, other in product(_releases(own, contents, knowledge), others):
        versions = {own: release, claim.other: other}
        refusing = [row for row in rows if _refuses(row, versions)]
        if claim.refuses(release, other):
            refused += 1
            known += bool(refusing)
        elif not refusing or release not in contents.releases.get(own, ()):
            continue
        elif claim.admits(release, other) and not any(s.refuses(release, other) for s in same):
            against.update(
                row.id for row in refusing if row.when == "true" and row.severity != "info"
            )
    if against:
        return "contradicting", tuple(sorted(against))
    if not refused:
        return "without effect", ()
    return ("known" if known == refused else "new"), ()


def _refused_files(claim: ComponentStatement, contents: SourceContents) -> Iterator[str]:
    """Yield the easyconfigs whose combination a statement refuses."""
    for shipped in contents.shipped:
        versions = shipped.versions
        present = claim.component in versions and claim.other in versions
        if present and claim.refuses(versions[claim.component], versions[claim.other]):
            yield shipped.file


def _releases(name: str, contents: SourceContents, knowledge: Knowledge) -> list[str]:
    known = {*recorded_releases(knowledge, name), *contents.releases.get(name, ())}
    return sorted(known, key=sort_key)


def _selections(row: Row) -> dict[str, Ranges]:
    """Return the ranges of the components of a row."""
    chosen: dict[str, Selection] = {}
    own: dict[str, Ranges] = {}
    if isinstance(row, Advisory):
        chosen, own = dict(row.beside), {row.component: row.affected}
    elif isinstance(row, Coupling):
        chosen = {**row.given, **row.needs}
    ranges = {n: one.range if isinstance(one, Selector) else one for n, one in chosen.items()}
    return {**ranges, **own}


def _refuses(row: Row, versions: Mapping[str, str]) -> bool:
    """Whether a row is about these releases, whatever its condition."""
    inside = {
        name: any(matches(versions[name], each) for each in _several(ranges))
        for name, ranges in _selections(row).items()
    }
    if isinstance(row, Coupling):
        return all(inside[name] for name in row.given) and not all(
            inside[name] for name in row.needs
        )
    return all(inside.values())


def _several(ranges: Ranges) -> Iterable[str]:
    return (ranges,) if isinstance(ranges, str) else ranges


def _draft(
    claim: ComponentStatement, contents: SourceContents, knowledge: Knowledge, today: str
) -> dict[str, Any]:
    """Return a row as a person would write it."""
    name, other, statement = claim.component, claim.other, claim.statement
    words = (name, statement.bounds, other, statement.package_bounds, str(statement.forbids))
    digest = hashlib.sha256(" ".join(words).encode()).hexdigest()[:8].upper()
    bounds = _range(name, statement.bounds, contents, knowledge)
    of_other = _range(other, statement.package_bounds, contents, knowledge)
    own: Any = bounds
    if knowledge.components[name].pip:
        own = {"range": bounds, "origin": [*_BUILT]}
    # Neither modules nor packages of an index are built again.
    severity = "info" if statement.build else "warning"
    draft: dict[str, Any] = {"id": f"SPACK-{digest}", "severity": severity}
    if statement.forbids:
        draft |= {"component": other, "affected": of_other, "beside": {name: own}}
        draft["summary"] = f"Spack does not build {name} {bounds} with it"
    else:
        draft |= {"given": {name: own}, "needs": {other: of_other}}
        draft["summary"] = f"Spack builds {name} {bounds} with {other} {of_other}"
    open_names = {name: bounds, **({other: of_other} if statement.forbids else {})}
    confirmed = {
        each: max(contents.releases.get(each) or recorded_releases(knowledge, each), key=sort_key)
        for each, text in open_names.items()
        if text == ANY_VERSION or not any(sign in text for sign in ("<", "=="))
    }
    if confirmed:
        draft |= {"confirmed-to": confirmed, "confirmed": today}
    return {**draft, "evidence": "packager", "sources": [claim.source]}


def _range(name: str, bounds: str, contents: SourceContents, knowledge: Knowledge) -> str:
    """Return '*' for bounds that all releases are in."""
    every = _releases(name, contents, knowledge)
    return ANY_VERSION if all(matches(each, bounds) for each in every) else bounds


def _draft_texts(drafts: Sequence[Mapping[str, Any]], folder: Path) -> Mapping[str, str]:
    """Return the files of drafts that get new ones; those of earlier calls stay as they are."""
    texts = {}
    for section in ("advisories", "couplings"):
        path = folder / _DRAFTS.format(section)
        kept: list[Mapping[str, Any]] = []
        if path.exists():
            # lazy import: only a second call has something to read
            import yaml

            kept = yaml.safe_load(read_source(path).text)[section]
        ids = {row["id"] for row in kept}
        new = [
            row
            for row in drafts
            if ("component" in row) is (section == "advisories") and row["id"] not in ids
        ]
        if new:
            texts[path.name] = yaml_text({"schema": 1, section: [*kept, *new]})
    return texts


def _contradictions(contents: SourceContents, knowledge: Knowledge) -> Iterator[str]:
    """Yield the combinations that EasyBuild ships and that a row calls an error."""
    for shipped in contents.shipped:
        origins: dict[str, Origin] = dict.fromkeys(shipped.versions, "module")
        stack = StackFacts(shipped.versions, Facts({"arch": "x86_64"}), origins)
        ids = sorted({each.row.id for each in match(knowledge, stack) if each.bad})
        if ids:
            yield f"{shipped.file}: {', '.join(ids)}"
