"""``knowledge record``: what EasyBuild, Spack and release notes state, as data to accept or refuse.

Releases become ``versions.yaml`` of a folder of knowledge. Statements become drafts of rows, which
a person moves to ``advisories.yaml`` or ``couplings.yaml``. Contradictions are combinations that
EasyBuild ships or Spack admits, and that rows refuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..documents.source import read as read_source
from ..errors import UsageError
from ..formats.writing import yaml_text
from ..knowledge.ageing import outdated_ends, recorded_releases
from ..knowledge.components import Existing
from ..knowledge.matching import ranges as row_ranges
from ..knowledge.matching import rows as all_rows
from ..knowledge.ranges import ANY_VERSION, matches, sort_key, version
from ..knowledge.rows import Coupling, Knowledge, Ranges, Row
from ..knowledge.terms import Origin
from ..model.outcome import RecordResult
from ..resolve.facts import Facts
from ..resolve.verdicts import StackFacts, match
from ..target_tools.files import make_folder
from ..text import shown
from ..workflow.context import Context
from .source_contents import (
    ComponentStatement,
    ReleaseNote,
    SourceContents,
    read_checkout,
    read_index,
)

_HEAD = "# Written by: envbuild knowledge record\n"
_DRAFTS = "{}.drafts.yaml"
# What pip installs is not built as Spack and EasyBuild build it.
_BUILT = ("module", "system", "build")


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
            read_index(source, before, knowledge, contents, context)
        else:
            read_checkout(context.path(source), knowledge, contents)
    existing = {name: each["versions"] for name, each in before.get("existing", {}).items()}
    new, versions = _new_releases(contents, existing, knowledge)
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
        unread=tuple(contents.unread),
        written=tuple(str(output / name) for name in files),
    )


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
            by_pair.setdefault(frozenset(row_ranges(row)), []).append(row)
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
    for note in contents.notes:
        draft, selections = _note_draft(note, contents, knowledge, today)
        same = by_pair.get(frozenset(selections), ())
        is_recorded = any(row_ranges(row) == selections for row in same)
        bounds, releases = (
            selections[note.component],
            _releases(note.component, contents, knowledge),
        )
        empty = not any(matches(each, str(bounds)) for each in releases)
        counts["without effect" if empty else "known" if is_recorded else "new"] += 1
        if not is_recorded and not empty:
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
    against = {
        each.file
        for each in contents.shipped
        if {own, claim.other} <= each.versions.keys()
        and claim.refuses(each.versions[own], each.versions[claim.other])
    }
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


def _releases(name: str, contents: SourceContents, knowledge: Knowledge) -> list[str]:
    known = {*recorded_releases(knowledge, name), *contents.releases.get(name, ())}
    return sorted(known, key=sort_key)


def _refuses(row: Row, versions: Mapping[str, str]) -> bool:
    """Whether a row is about these releases, whatever its condition."""
    inside = {
        name: any(matches(versions[name], each) for each in ([of] if isinstance(of, str) else of))
        for name, of in row_ranges(row).items()
    }
    if isinstance(row, Coupling):
        return all(inside[name] for name in row.given) and not all(
            inside[name] for name in row.needs
        )
    return all(inside.values())


def _draft(
    claim: ComponentStatement, contents: SourceContents, knowledge: Knowledge, today: str
) -> dict[str, Any]:
    """Return a row as a person would write it."""
    name, other, statement = claim.component, claim.other, claim.statement
    bounds = _range(name, statement.bounds, contents, knowledge)
    of_other = _range(other, statement.package_bounds, contents, knowledge)
    own: Any = bounds
    if knowledge.components[name].pip:
        own = {"range": bounds, "origin": [*_BUILT]}
    # Neither modules nor packages of an index are built again.
    severity = "info" if statement.build else "warning"
    words = (name, statement.bounds, other, statement.package_bounds, str(statement.forbids))
    draft: dict[str, Any] = {"id": _id("SPACK", *words), "severity": severity}
    if statement.forbids:
        draft |= {"component": other, "affected": of_other, "beside": {name: own}}
        draft["summary"] = f"Spack does not build {name} {bounds} with it"
    else:
        draft |= {"given": {name: own}, "needs": {other: of_other}}
        draft["summary"] = f"Spack builds {name} {bounds} with {other} {of_other}"
    open_names = {name: bounds, **({other: of_other} if statement.forbids else {})}
    draft |= _confirmation(open_names, contents, knowledge, today)
    return {**draft, "evidence": "packager", "sources": [claim.source]}


def _note_draft(
    note: ReleaseNote, contents: SourceContents, knowledge: Knowledge, today: str
) -> tuple[dict[str, Any], dict[str, Ranges]]:
    """Return a row for a statement of release notes, and the ranges of its components.

    A fix of 4.1.5 is about 4.1.0 and later; one in the first release of a series about all before.
    """
    name, statement = note.component, note.statement
    release, releases = statement.release, _releases(name, contents, knowledge)
    row: dict[str, Any] = {"id": _id("NOTES", name, *statement), "severity": "warning"}
    selections: dict[str, Ranges] = {name: f"=={release}"}
    if statement.kind == "fixed":
        of_series = f">={release.rpartition('.')[0]}.0,<{release}"
        same = any(matches(each, of_series) for each in releases)
        selections = {name: of_series if same else f"<{release}"}
    if note.other is None:
        row |= {"component": name, "affected": selections[name]}
    else:
        selections = {name: f">={release}", note.other: f">={statement.version}"}
        row |= {"given": {name: selections[name]}, "needs": {note.other: selections[note.other]}}
    row |= {"summary": shown(statement.text, 100)}
    row |= {"fix": f"{name} {release}"} if statement.kind == "fixed" else {}
    row |= _confirmation({name: str(selections[name])}, contents, knowledge, today)
    return {**row, "evidence": "source-statement", "sources": [note.source]}, selections


def _id(prefix: str, *words: object) -> str:
    digest = hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()
    return f"{prefix}-{digest[:8].upper()}"


def _confirmation(
    ranges: Mapping[str, str], contents: SourceContents, knowledge: Knowledge, today: str
) -> dict[str, Any]:
    """Return the last release of each component whose range has no upper end."""
    confirmed = {
        each: max(contents.releases.get(each) or recorded_releases(knowledge, each), key=sort_key)
        for each, text in ranges.items()
        if text == ANY_VERSION or not any(sign in text for sign in ("<", "=="))
    }
    return {"confirmed-to": confirmed, "confirmed": today} if confirmed else {}


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
