"""A conda prefix for a bundle: linked here for the target, and packed to be made anywhere there.

The target has neither py-rattler, whose wheels want a Python and a glibc of today, nor zstd, which
conda packages are compressed with.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from .. import data, process
from ..errors import BuildError
from ..target_tools.files import remove_tree, sha256_of
from ..target_tools.relocate import PLACEHOLDER

LIST = "conda.json"
PACKAGES = "conda-packages"
ARCHIVE = "conda-prefix.tar.gz"
TABLE = "conda-prefix.json"
_SUMS = "SHA256SUMS"
_SECONDS = 3600.0
_LAST_LINES = 8


def pack_prefix(build: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Put the packed prefix into a build folder, in the place of the packages that it is made of.

    Without py-rattler the packages stay, for a program of conda's family on the target. Raises
    BuildError where they cannot be linked, or want to run something.
    """

    def run(*words: str | Path) -> process.Finished:
        command = [sys.executable, "-I", str(data.TARGET_TOOLS), *map(str, words)]
        return process.run(command, env=environ, cwd=build, timeout=_SECONDS)

    if not run("conda-engine", "here").ok:
        say(
            "envbuild[conda] is not installed: the bundle contains conda packages that are not "
            "linked, and install.sh needs conda, mamba or micromamba"
        )
        return
    with tempfile.TemporaryDirectory(dir=build, prefix=".linked-") as scratch:
        prefix, cache = Path(scratch, "prefix"), Path(scratch, "cache")
        for words in (
            ("conda-engine", "link", "--as", PLACEHOLDER, prefix, cache, LIST, PACKAGES),
            ("conda-packages", "check", prefix, LIST),
            ("relocate", "pack", prefix, cache, ARCHIVE, TABLE),
        ):
            done = run(*words)
            if not done.ok:
                lines = [each for each in done.stderr.splitlines() if each.strip()][-_LAST_LINES:]
                raise BuildError(
                    "conda.link-failed",
                    "\n  | ".join(["cannot link the conda packages", *lines]),
                )
    remove_tree(build / PACKAGES)
    kept = [
        line
        for line in (build / _SUMS).read_text(encoding="utf-8").splitlines()
        if not line.partition("  ")[2].startswith(f"{PACKAGES}/")
    ]
    kept += [f"{sha256_of(build / name)}  {name}" for name in (ARCHIVE, TABLE)]
    (build / _SUMS).write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
