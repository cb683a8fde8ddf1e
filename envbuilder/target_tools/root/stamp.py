"""A root and its stamp: the site and architecture that it is for, and the group that shares it."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from .. import sharing
from ..errors import UsageError
from ..files import (
    IrregularFileError,
    canonical_json,
    entries,
    make_folder,
    read_json,
    write_atomically,
)
from ..sharing import STAMP
from .layout import BUNDLED, Home
from .registry import from_modulefiles

# Only a root that is shared has the new one: earlier releases would make files there that the other
# members cannot change.
SCHEMA = 1
SHARED_SCHEMA = 2
NAME = re.compile(r"[a-z0-9]+([._+-][a-z0-9]+)*$")


class Root(NamedTuple):
    """A root that exists and is stamped."""

    path: Path
    site: str
    arch: str
    # What the group that shares it is called; None: it is one user's.
    shared: "str | None" = None

    def home(self, name: str) -> Home:
        """Return the places of an environment."""
        return Home(self.path, name)

    def homes(self) -> "list[Home]":
        """Return all environments of the root by name, also those without a registry."""
        homes = [Home(self.path, each.name) for each in sorted(self.path.iterdir())]
        return [each for each in homes if each.registry_file.exists() or from_modulefiles(each)]


def find_root(path: Path) -> "Root | None":
    """Return the root in a folder, stamped or not; None if the folder is not a root."""
    return read_stamp(path) or root_of_bundles(path)


def read_stamp(path: Path) -> "Root | None":
    """Return the root in a stamped folder; None without a stamp. Raises UsageError."""
    file, stranger, problem = path / STAMP, None, None
    try:
        stamp, stranger = sharing.read_stamp(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IrregularFileError as error:
        stamp, problem = {}, str(error)
    except ValueError as error:
        stamp, problem = {}, f"not JSON: {error}"
    else:
        problem = stamp_problem(stamp)
    schema = stamp.get("schema") if isinstance(stamp, dict) else None
    if isinstance(schema, int) and schema > SHARED_SCHEMA:
        raise UsageError(
            "root.newer-schema",
            f"the root {path} has schema {schema} of a newer envbuild; "
            f"this envbuild supports schema {SHARED_SCHEMA}",
            "update envbuild, or use another --root",
        )
    if problem:
        raise UsageError(
            "root.stamp-damaged",
            f"{file} is damaged: {problem}",
            'it should contain {"schema": 1, "site": "...", "arch": "..."}; for a shared root '
            '{"schema": 2, ..., "group": "..."}',
        )
    if stranger and "group" in stamp:
        owner = sharing.user_name(path.stat().st_uid)
        raise UsageError(
            "root.stamp-owner-mismatch",
            f"{file} shares the root with group {stamp['group']}, but {stranger} wrote it; only "
            f"the owner of the folder, {owner}, can share it",
            f"if this is intended, run as root: chown {owner} '{file}'; "
            "otherwise use another --root",
        )
    return Root(path, stamp["site"], stamp["arch"], stamp.get("group"))


def stamp_problem(stamp: Any) -> "str | None":
    """Return the problem of a stamp, or None."""
    if not isinstance(stamp, dict):
        return "not a JSON object"
    if set(stamp) - {"schema", "group"} != {"site", "arch"}:
        return "it must contain site and arch"
    if ("group" in stamp) != (stamp.get("schema") == SHARED_SCHEMA):
        return "schema 2 requires a group, schema 1 allows none"
    group = stamp.get("group", "-")
    if not (isinstance(group, str) and group.isprintable() and group.strip()):
        return "its group must be a name"
    names = all(isinstance(stamp[n], str) and NAME.match(stamp[n]) for n in ("site", "arch"))
    return None if names else "site and arch must be names"


def root_of_bundles(path: Path) -> "Root | None":
    """Return the root that bundles of an earlier release made, which wrote no stamp.

    They published number 1 without a proof, from a build folder that is marked as copied; its lock
    names the site. Nothing is written: ``open_root`` stamps it.
    """
    for folder in entries(path / "modulefiles"):
        home = Home(path, folder.name)
        builds = [home.build(each.id) for each in from_modulefiles(home)]
        for build in builds:
            if not (build / BUNDLED).is_file():
                continue
            try:
                plan = read_json(build / "lock.json")["plan"]
                stamp = {name: plan[name] for name in ("site", "arch")}
            except (OSError, ValueError, TypeError, KeyError):
                continue
            if stamp_problem(stamp) is None:
                return Root(path, stamp["site"], stamp["arch"])
    return None


def make_root(root: Root) -> None:
    """Make and stamp a root. Raises UsageError for a group that cannot share it, OSError."""
    stamp = {"schema": SCHEMA, "site": root.site, "arch": root.arch}
    if root.shared is None:
        make_folder(root.path)
        write_atomically(root.path / STAMP, canonical_json(stamp))
        return
    group = sharing.group_number(root.shared)
    if not sharing.may_write(group):
        raise UsageError(
            "root.not-group-member",
            f"cannot share the root with group {root.shared}: you are not a member",
            "groups lists your groups; log in again after a change",
        )
    make_folder(root.path)
    if not sharing.may_share(root.path, os.geteuid(), group):
        raise UsageError(
            "root.not-owner",
            f"cannot share {root.path}: it belongs to {sharing.owner_of(root.path)}",
            "use --root with a new folder or one of your own",
        )
    try:
        sharing.share_folder(root.path, group)
    except PermissionError as error:
        raise UsageError(
            "root.wrong-group-permissions",
            f"{sharing.misfit(root.path, group)}, and it belongs to {sharing.owner_of(root.path)}",
            repair(root.path, root.shared),
        ) from error
    stamp = dict(stamp, schema=SHARED_SCHEMA, group=root.shared)
    write_atomically(root.path / STAMP, canonical_json(stamp), mode=0o644)


def repair(folder: Path, group: "str | None") -> str:
    """Return the hint for a folder whose group or mode does not fit the shared root."""
    mode = f"{sharing.FOLDER_MODE:o}"
    return f"its owner can fix it: chgrp {group} '{folder}' && chmod {mode} '{folder}'"
