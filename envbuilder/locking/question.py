"""What pip's answer depends on, as far as that can be known without asking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..model.base import canonical_json
from ..model.plan import Plan
from .index import local_path
from .settings import read_settings


def question(plan: Plan, glibc: str, pip_config: str) -> str | None:
    """Return one text for one question: who asks the same again gets the same, until an index
    that is on the network has something new.

    *pip_config* is what ``pip config list`` prints. It may hold passwords: the text is for a hash,
    never for a file. None where the answer depends on more: on packages of the site, which a
    virtualenv lets in, or on a folder that cannot be read.
    """
    if plan.system_site_packages:
        return None
    settings = read_settings(pip_config, plan)
    places = (local_path(each) for each in (*settings.find_links, *settings.indexes))
    try:
        folders = {str(path): sorted(_state(path)) for path in places if path is not None}
    except OSError:
        return None
    return canonical_json(
        {
            "plan": plan.model_dump(mode="json"),
            "glibc": glibc,
            "pip": sorted(pip_config.splitlines()),
            "folders": folders,
        }
    )


def _state(place: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, size in bytes and time in nanoseconds of what pip reads or lists there.

    That is a page of links, a folder of wheels, or an index: a folder with a page for each project.
    """
    if not place.is_dir():
        yield _seen(place)
        return
    with os.scandir(place) as entries:
        for entry in entries:
            path = Path(entry.path)
            yield _seen(path)
            if entry.is_dir():
                yield _seen(path / "index.html")


def _seen(path: Path) -> tuple[str, int, int]:
    try:
        state = path.stat()
    except FileNotFoundError:
        return (str(path), -1, 0)  # what is not there today may be there tomorrow
    return (str(path), state.st_size, state.st_mtime_ns)
