"""What the answers of pip and conda channels depend on, as far as that is known without asking."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..base import canonical_json, sha256_text
from ..knowledge.channels import NOARCH, SUBDIRS, VirtualPackage
from ..model.plan import Plan
from .index import local_path
from .settings import read_settings
from .virtualenv import Run

# What the environment of every step sets: a listing without it leaves things out, as pip's own
# options quiet and isolated make it do.
_WHOLE = ":env:.user='0'"
# Options that name files with more requirements, which may name further ones.
_FURTHER = (".build-constraint=", ".requirement=")
# In a file of constraints: another file, or an option.
_NAMES_MORE = re.compile(r"^\s*-", re.MULTILINE)
# To look at more files than this takes longer than to ask.
_MOST_FILES = 10_000


def request_fingerprint(
    plan: Plan, glibc: str, inside: Run, virtual: Sequence[VirtualPackage] = ()
) -> str | None:
    """Return 64 hex digits for a request: the same request has the same answer, until an index or
    channel on the network has something new.

    *inside* starts a command as for ``make_lock``. *virtual*: what the target has, for packages of
    conda. None where what the answer depends on is not
    known: packages of the site, which a virtualenv lets in, files that pip's configuration names
    and that name others, folders that cannot be read or are too large to be looked at. A site's
    constraints, which name packages alone, are part of the request.
    """
    if plan.system_site_packages:
        return None
    listing = inside([sys.executable, "-m", "pip", "config", "list"])
    config = listing.stdout.splitlines() if listing.ok else []
    hidden = Path(sys.prefix, "pip.conf")  # read here, and not in the plan's environment
    if _WHOLE not in config or hidden.exists() or any(each in listing.stdout for each in _FURTHER):
        return None
    try:
        request = {
            "plan": plan.plain(),
            "glibc": glibc,
            "pip": [version("pip"), *sorted(config)],
            "places": _place_states(plan, listing.stdout),
            **({"virtual": [*virtual]} if plan.channels else {}),
        }
        return sha256_text(canonical_json(request))
    except (OSError, ValueError, RuntimeError, PackageNotFoundError):
        return None  # whatever is wrong with a place, pip is the one to say it


def _place_states(plan: Plan, config: str) -> Sequence[tuple[str, int, int]]:
    """Return what there is in all places that are on this machine."""
    settings = read_settings(config, plan)
    channels = (
        f"{each.url}/{subdir}" for each in plan.channels for subdir in (SUBDIRS[plan.arch], NOARCH)
    )
    places = map(local_path, (*settings.find_links, *settings.indexes, *channels))
    states = [_file_state(path) for path in _constraints(config)]
    for place in (path for path in places if path is not None):
        for each in _states_in(place):
            states.append(each)
            if len(states) > _MOST_FILES:
                raise ValueError(f"{place} is too large to read")
    return sorted(states)


def _constraints(config: str) -> Iterator[Path]:
    """Yield the files of constraints that pip's configuration names for any of its commands.

    Raises ValueError for one that is not on this machine, or names more than packages, OSError.
    """
    for line in config.splitlines():
        key, _, value = line.partition("=")
        for name in str(ast.literal_eval(value)).split() if key.endswith(".constraint") else ():
            path = local_path(name)
            if path is None or _NAMES_MORE.search(path.read_text(encoding="utf-8")):
                raise ValueError(f"the files that {name} refers to are unknown")
            yield path


def _states_in(place: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size in bytes and time in nanoseconds of what pip reads or lists there.

    That is a page of links, a folder of wheels, an index (a folder with a page for each project) or
    a folder of conda packages.
    """
    if not place.is_dir():
        yield _file_state(place)
        return
    with os.scandir(place) as entries:
        for entry in entries:
            path = Path(entry.path)
            yield _file_state(path)
            if entry.is_dir():
                yield _file_state(path / "index.html")


def _file_state(path: Path) -> tuple[str, int, int]:
    try:
        state = path.stat()
    except FileNotFoundError:
        return (str(path), -1, 0)  # what is not there today may be there tomorrow
    return (str(path), state.st_size, state.st_mtime_ns)
