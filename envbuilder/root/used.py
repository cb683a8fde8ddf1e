"""The roots that the user created environments in, for verbs that no root is named for."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from ..files import write_atomically
from ..target_tools.files import IrregularFileError, read_text

# The newest first. Roots that are gone stay until others take their places.
_MOST = 50


def remember_root(root: Path, environ: Mapping[str, str]) -> None:
    """Put a root at the top of the user's list. A list that cannot be written stays as it is."""
    file = _file(environ)
    if file is None or "\n" in str(root):
        return
    others = [each for each in used_roots(environ) if each != root]
    text = "".join(f"{each}\n" for each in (root, *others)[:_MOST])
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)


def used_roots(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the user's roots, the newest first; those that are gone are among them."""
    file = _file(environ)
    try:
        text = read_text(file) if file else ""
    except (IrregularFileError, OSError, ValueError):
        return ()
    return tuple(Path(line) for line in text.splitlines() if line.startswith("/"))


def _file(environ: Mapping[str, str]) -> Path | None:
    """Return the list in XDG's folder for state; None if there is no such folder."""
    stated, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if stated.startswith("/"):
        return Path(stated, "envbuild", "roots")
    return Path(home, ".local", "state", "envbuild", "roots") if home.startswith("/") else None
