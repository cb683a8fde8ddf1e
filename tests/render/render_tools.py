"""The real programs that these tests use, and running them; a missing one skips the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

LMOD_FOLDERS = ("/usr/share/lmod/lmod", "/opt/apps/lmod/lmod", "/usr/local/lmod/lmod")


def need(*names: str) -> str:
    """Return the path of the first of these programs that is there; skip if none is."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"needs the program {' or '.join(names)}")


def lmod_folder() -> Path:
    """Return the folder that holds Lmod's init/ and libexec/; skip if there is none."""
    for folder in filter(None, (os.environ.get("LMOD_PKG"), *LMOD_FOLDERS)):
        if (Path(folder) / "libexec" / "lmod").is_file():
            return Path(folder)
    pytest.skip("needs Lmod")


def modulecmd() -> Path:
    """Return modulecmd.tcl of Environment Modules; skip if nobody says where it is."""
    path = os.environ.get("ENVBUILD_MODULECMD")
    if not path:
        pytest.skip("needs Environment Modules: ENVBUILD_MODULECMD names its modulecmd.tcl")
    return Path(path)


def clean_env(**variables: str) -> dict[str, str]:
    """Return a small environment in which no path is listed twice."""
    path = dict.fromkeys(os.environ["PATH"].split(":"))
    keep = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**keep, "PATH": ":".join(path), **variables}


def run(
    command: list[str], *, env: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command without input; stdout and stderr are kept apart."""
    return subprocess.run(
        command,
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def read_environment(path: Path) -> dict[str, str]:
    """Return what ``env -0`` wrote."""
    entries = path.read_text(encoding="utf-8", errors="surrogateescape").split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)
