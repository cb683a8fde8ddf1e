"""Places where things go wrong: file systems and networks of a namespace of its own.

Each is a list of words to start a command by; nothing outside the command sees the change.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest
from integration_tools import Done


@functools.cache
def unshare(kind: str, trial: str) -> tuple[str, ...]:
    """Return the words that start a command in a namespace of that kind; skip if forbidden."""
    # A user who is not root may be one inside a namespace, where the system permits that.
    for words in (["unshare", kind], ["unshare", "--map-root-user", kind]):
        try:
            tried = subprocess.run(
                [*words, "bash", "-c", trial], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            pytest.skip("needs the program unshare")
        if tried.returncode == 0:
            return tuple(words)
    pytest.skip(f"a namespace of its own is not permitted here: {tried.stderr.strip()}")


def _mounted(script: str, *arguments: str | Path) -> tuple[str, ...]:
    """Return the words for a command after a script that mounts; $@ holds its arguments."""
    words = unshare("--mount", "mount -t tmpfs none /mnt")
    shifted = f'set -e; {script}\nshift {len(arguments)}; exec "$@"'
    return (*words, "bash", "-c", shifted, "mount", *(str(each) for each in arguments))


def small_disk(folder: Path, kilobytes: int) -> tuple[str, ...]:
    """*folder* is a file system of this size, and empty."""
    return _mounted('mount -t tmpfs -o size="$2k" none "$1"', folder, str(kilobytes))


def nearly_full(folder: Path, kilobytes: int) -> tuple[str, ...]:
    """*folder* lies in a file system that has only so much left, with all it holds.

    It is a copy: what is written is lost when the command ends.
    """
    used = sum(path.lstat().st_blocks for path in folder.rglob("*")) // 2
    entries = sum(1 for _ in folder.rglob("*"))
    # Every file of a tmpfs takes whole pages of 4 kB.
    size = used + entries + kilobytes
    return _mounted(
        'mount -t tmpfs -o size="$2k" none /mnt; cp -a -- "$1/." /mnt/; mount --move /mnt "$1"',
        folder,
        str(size),
    )


def read_only(folder: Path) -> tuple[str, ...]:
    """*folder* is mounted read-only."""
    return _mounted('mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"', folder)


def without_network() -> tuple[str, ...]:
    """There is no network, not even the machine's own."""
    return unshare("--net", "true")


def without_privileges() -> tuple[str, ...]:
    """Root loses what lets it write where the permissions do not."""
    words = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    try:
        tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the program setpriv")
    if tried.returncode != 0:
        pytest.skip(f"root's privileges cannot be dropped here: {tried.stderr.strip()}")
    return words


def expect(done: Done, code: int, *texts: str) -> None:
    """Check that a command failed as it should: code, words, and no traceback."""
    assert done.code == code, done.text
    assert "Traceback" not in done.text, done.text
    for text in texts:
        assert text in done.err, f"{text!r} is missing in:\n{done.err}"


def lmod_bash() -> Path:
    """Return the file that gives bash the ``module`` command of Lmod; skip if there is none."""
    folders = ("/usr/share/lmod/lmod", "/opt/apps/lmod/lmod", "/usr/local/lmod/lmod")
    for folder in filter(None, (os.environ.get("LMOD_PKG"), *folders)):
        path = Path(folder) / "init" / "bash"
        if path.is_file():
            return path
    pytest.skip("needs Lmod")
