"""Pythons other than the tests' own, as far as a machine has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

# ENVBUILD_TEST_PYTHONS=/path/to/python3.6:/path/to/python3.12
NAMED = tuple(filter(None, os.environ.get("ENVBUILD_TEST_PYTHONS", "").split(":")))


def find_python(*series: str) -> Path | None:
    """Return a Python that makes virtualenvs, of the first series (3.6) that there is one of."""
    for each in series:
        for program in _candidates(each):
            if _series(program) == each:
                return Path(program)
    return None


def _candidates(series: str) -> Iterator[str]:
    yield from NAMED
    # Before PATH, where a shim may stand for one that not everybody is given.
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from map(str, sorted(kept.glob(f"{series}.*/bin/python")))
    found = shutil.which(f"python{series}")
    if found:
        yield found


def _series(program: str) -> str:
    asks = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", asks], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
