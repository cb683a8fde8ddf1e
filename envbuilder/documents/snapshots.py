"""Snapshots of sites, read from the files that ``envbuild sites snapshot`` writes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ..errors import EnvbuildError, UsageError
from ..knowledge.entries import Entries
from ..knowledge.rows import Knowledge
from ..model.site import Site, Snapshot
from .json_file import JsonFile
from .load import LoadedDocument, checked
from .source import read, source_of

# A key that the author, or an earlier draft, left as a comment.
_COMMENT = re.compile(r"^#[ \t]*snapshot:[ \t]*\S+\.json\b.*$", re.MULTILINE)

load_snapshot = JsonFile(
    model=Snapshot,
    called="snapshot",
    again="record it again: envbuild sites snapshot SITE --output FILE",
    # 12,000 modules take about 6 MB.
    max_bytes=64 * 1024 * 1024,
).load


def snapshot_name(site_file: Path) -> str:
    """Return the name that a site's snapshot has beside its file, where nothing says another."""
    return f"{site_file.stem}.snapshot.json"


def snapshot_command(site_file: Path, snapshot: Path | None = None) -> str:
    """Return the command that records the modules of a site in a snapshot."""
    file = snapshot or site_file.parent / snapshot_name(site_file)
    return shlex.join(["envbuild", "sites", "snapshot", str(site_file), "--output", str(file)])


def snapshot_of_site(site: Site, site_file: Path) -> Snapshot:
    """Return the snapshot that a site's file names.

    Raises UsageError where there is none, and like ``load_snapshot``.
    """
    file = site_file.parent / (site.snapshot or snapshot_name(site_file))
    if not file.exists():
        raise UsageError(
            "snapshot.missing",
            f"the snapshot of site {site.name} is missing: no such file: {file}",
            f"{snapshot_command(site_file, file)} records it",
        )
    return load_snapshot(file)


def snapshot_file(loaded: LoadedDocument[Site]) -> Path | None:
    """Return the file that a site names as its snapshot, there or not; None: it names none."""
    name = loaded.value.snapshot
    return loaded.path.parent / name if name is not None else None


def other_snapshots(loaded: LoadedDocument[Site]) -> Iterator[Path]:
    """Yield the snapshots of the site's module trees beside its file that it does not use.

    Sites may share trees: what is named after another site's file is that site's.
    """
    trees, used, folder = set(loaded.value.module_trees), snapshot_file(loaded), loaded.path.parent
    others = {snapshot_name(each) for each in folder.glob("*.yaml")} - {snapshot_name(loaded.path)}
    for path in sorted(folder.glob("*.snapshot.json")):
        if path.name in others or (used and used.exists() and path.samefile(used)):
            continue
        try:
            recorded = load_snapshot(path)
        except EnvbuildError:
            continue  # of another tool, or of a site that reports it itself
        if trees.intersection(tree.path for tree in recorded.trees):
            yield path


def text_with_snapshot(
    loaded: LoadedDocument[Site], name: str, knowledge: Knowledge, entries: Entries
) -> str | None:
    """Return the text of a site's file with the key ``snapshot``; None: it cannot be added so."""
    import yaml

    text = read(loaded.path).text
    line = yaml.safe_dump({"snapshot": name}, width=1000).strip()
    text, commented = _COMMENT.subn(lambda _: line, text, count=1)
    if not commented:
        text = f"{text.rstrip()}\n{line}\n"
    wanted = loaded.value.model_copy(update={"snapshot": name})
    try:
        source = source_of(text.encode(), str(loaded.path))
        value = checked(source, loaded.path, Site, knowledge, entries).value
    except EnvbuildError:
        return None
    return text if value == wanted else None


def lacks_snapshot(site: Site) -> bool:
    """Whether a site has module trees and nothing says what they hold."""
    return bool(site.module_trees) and site.snapshot is None
