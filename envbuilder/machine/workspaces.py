"""Workspaces: folders with an expiration date, which the tools of hpc-workspace allocate.

Sources: README, user guide, ``ws_find`` and ``ws_list`` of github.com/holgerBerger/hpc-workspace
(1.5), and of hpc-workspace-v2, whose entries begin with ``Id:`` and call the date a time.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

from ..errors import MissingToolError, UsageError
from ..model.places import WORKSPACE
from ..model.workspace import Workspace
from ..process import Finished, run
from ..target_tools.messages import one_line
from ..text import shown

FIND, LIST = "ws_find", "ws_list"

# Of ws_list: a line for the name, then indented fields.
_NAME = re.compile(r"^id *: *(\S+) *$", re.IGNORECASE | re.MULTILINE)
_FIELD = re.compile(r"\s+([a-z ]+?) *: (.+)")
_EXPIRATION = ("expiration date", "expiration time")
# As C's ctime writes a local time.
_CTIME = "%a %b %d %H:%M:%S %Y"


def expand_workspace(path: str, environ: Mapping[str, str]) -> str:
    """Return *path* with ``ws:NAME`` in front replaced by the folder of that workspace.

    Raises MissingToolError without ws_find, UsageError if there is no such workspace.
    """
    match = WORKSPACE.fullmatch(path)
    if match is None:
        return path
    name = match["name"]
    if shutil.which(FIND, path=environ.get("PATH")) is None:
        raise MissingToolError(
            "workspace.no-tools",
            f"cannot find the folder of {path}: {FIND} is not on PATH",
            "load the module of the workspace tools, or name a folder: --root DIR",
        )
    done = run([FIND, name], env=environ)
    folders = [line for line in dict.fromkeys(done.stdout.split("\n")) if line.startswith("/")]
    if not done.ok or not folders:
        raise UsageError(
            "workspace.not-found",
            f"{FIND} does not find the workspace {name}{_reason(done)}",
            f"allocate it: ws_allocate {name} DAYS",
        )
    if len(folders) > 1:
        raise UsageError(
            "workspace.ambiguous",
            f"several file systems have a workspace {name}",
            *(f"--root '{folder}{match['rest']}'" for folder in folders),
        )
    return f"{folders[0]}{match['rest']}"


def workspace_of(path: Path, environ: Mapping[str, str]) -> Workspace | None:
    """Return the workspace that *path* is in; None: in none, or the machine has no workspaces.

    Raises MissingToolError if ws_list is missing or fails although ws_find is there.
    """
    search = environ.get("PATH")
    if shutil.which(LIST, path=search) is None:
        if shutil.which(FIND, path=search) is None:
            return None
        raise MissingToolError("workspace.no-list", f"{LIST} is not on PATH, but {FIND} is")
    done = run([LIST], env=environ)
    if not done.ok:
        raise MissingToolError("workspace.no-list", f"{LIST} failed{_reason(done)}")
    resolved = path.resolve()
    inside = (
        each
        for each in _workspaces(done.stdout)
        if resolved.is_relative_to(Path(each.path).resolve())
    )
    return next(inside, None)


def _workspaces(text: str) -> Iterator[Workspace]:
    """Yield the workspaces that ws_list printed; one without a folder is left out."""
    names = [*_NAME.finditer(text)]
    for match, end in zip(names, [*(each.start() for each in names[1:]), len(text)], strict=True):
        lines = text[match.end() : end].split("\n")
        matches = filter(None, map(_FIELD.fullmatch, lines))
        fields = {field[1]: field[2] for field in matches}
        if "workspace directory" in fields:
            date = next((fields[name] for name in _EXPIRATION if name in fields), None)
            yield Workspace(
                name=match[1],
                path=fields["workspace directory"],
                expires=_moment(date),
                remaining=fields.get("remaining time"),
            )


def _moment(text: str | None) -> str | None:
    """Return a local time of ctime as ISO 8601 in UTC; None: it cannot be read."""
    try:
        local = datetime.strptime(text or "", _CTIME)
    except ValueError:
        return None
    return local.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reason(done: Finished) -> str:
    lines = done.stderr.strip().splitlines()
    return f": {shown(one_line(lines[-1], 200))}" if lines else ""
