"""Users and a group that are there for a few processes alone: nothing of the system is changed.

In a mount namespace of their own /etc/passwd and /etc/group are others. Ann and bob are in the
group ``team``, eve is not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import pytest

NUMBERS = {"ann": 50001, "bob": 50002, "eve": 50003}
TEAM = 50010
AS_USER = """
mount --bind "$1" /etc/passwd
mount --bind "$2" /etc/group
umask "$3"
name=$4
shift 4
exec setpriv --reuid "$name" --regid "$name" --init-groups --inh-caps=-all "$@"
"""


@dataclass(frozen=True)
class Users:
    """Runs programs as ann, bob or eve. ``folder``: all may write there, as in /tmp."""

    folder: Path

    def words(self, name: str, umask: int, *words: str | Path) -> list[str]:
        accounts = [str(self.folder / "etc" / file) for file in ("passwd", "group")]
        script = "\n".join(["set -e", *opened(self.folder / "opened"), AS_USER])
        start = ["unshare", "--mount", "sh", "-c", script, "sh", *accounts, f"{umask:03o}", name]
        return [*start, *(str(word) for word in words)]

    def environ(self, name: str) -> dict[str, str]:
        home = self.folder / "home" / name
        paths = {"HOME": str(home), "TMPDIR": str(home)}
        # How packages are come by is the machine's to say.
        passed = {
            key: value
            for key, value in os.environ.items()
            if key.startswith("PIP_") or key.lower().endswith("_proxy") or key == "SSL_CERT_FILE"
        }
        return {
            **passed,
            **paths,
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "300",
        }

    def start(self, name: str, *words: str | Path, umask: int = 0o077) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(name, umask, *words),
            env=self.environ(name),
            cwd=self.folder / "home" / name,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, name: str, *words: str | Path, umask: int = 0o077
    ) -> subprocess.CompletedProcess[str]:
        with self.start(name, *words, umask=umask) as running:
            out, err = running.communicate(timeout=300)
        return subprocess.CompletedProcess(words, running.returncode, out, err)

    def envbuild(
        self, name: str, *words: str | Path, umask: int = 0o077
    ) -> subprocess.CompletedProcess[str]:
        return self.run(name, sys.executable, "-m", "envbuilder", *words, umask=umask)


def opened(stage: Path) -> Iterator[str]:
    """Yield the lines that let all users come to this Python and this code.

    A Python in the home of root is no use to others. What is needed of such a folder is put aside,
    and put back where the folder was.
    """
    needed = {Path(sys.base_prefix), Path(sys.prefix), Path(__file__).resolve().parent.parent}
    closed = {path: closed_above(path) for path in sorted(needed)}
    places = {path: stage / str(number) for number, path in enumerate(closed) if closed[path]}
    for path, place in places.items():
        place.mkdir(parents=True, exist_ok=True)
        yield f"mount --bind {quote(str(path))} {quote(str(place))}"
    for folder in {each for each in closed.values() if each}:
        yield f"mount -t tmpfs -o mode=755 none {quote(str(folder))}"
    for path, place in places.items():
        yield f"mkdir -p {quote(str(path))}"
        yield f"mount --move {quote(str(place))} {quote(str(path))}"


def closed_above(path: Path) -> Path | None:
    """Return the topmost folder above a path that not all may enter; None: they may come to it."""
    above = reversed(path.parents)
    return next((each for each in above if not each.stat().st_mode & 0o001), None)


def make_users() -> Iterator[Users]:
    """Make them, and their folder, for a fixture; skip where that cannot be."""
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    missing = [each for each in ("unshare", "setpriv") if shutil.which(each) is None]
    if missing:
        pytest.skip(f"needs the program {missing[0]}")
    folder = Path(tempfile.mkdtemp(prefix="shared-"))
    folder.chmod(0o1777)
    (folder / "etc").mkdir(mode=0o755)
    everybody = {"root": 0, **NUMBERS}
    accounts = [f"{name}:x:{number}:{number}::/:/bin/sh" for name, number in everybody.items()]
    groups = [f"{name}:x:{number}:" for name, number in everybody.items()]
    for file, lines in (("passwd", accounts), ("group", [*groups, f"team:x:{TEAM}:ann,bob"])):
        path = folder / "etc" / file
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        path.chmod(0o644)
    (folder / "home").mkdir(mode=0o755)
    for name, number in NUMBERS.items():
        (folder / "home" / name).mkdir(mode=0o700)
        os.chown(folder / "home" / name, number, number)
    users = Users(folder)
    tried = users.run("ann", sys.executable, "-c", "import envbuilder")
    try:
        if tried.returncode:
            pytest.skip(f"no other user can run this here: {tried.stderr.strip()[-200:]}")
        yield users
    finally:
        shutil.rmtree(folder)
