"""git, started so that nothing but the user's own transport counts: proxies, mirrors, credentials.

Nothing is ever checked out, so that no hook, filter, attribute or submodule command of a tree runs:
files are read as git stores them.
"""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import IO, Callable, Iterator, Mapping, cast

from .errors import BuildError
from .files import CHUNK
from .names import without_queries
from .processes import Running, popen, signals_held_back

# A clone of a framework with all of its history, over a slow line.
SECONDS = 2 * 3600.0
SHOWN_LINES = 6
# Bytes: what git names of a tree. PyTorch's has 2 MB.
LISTING_BYTES = 64 * 2**20
# What of the environment says how to reach a server; the rest could lead elsewhere (GIT_DIR, ...).
TRANSPORT = re.compile(r"GIT_(SSH|SSL|HTTP|PROXY|ASKPASS|CONFIG)\w*")
SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "init.defaultObjectFormat=sha1",
    "maintenance.auto=false",
)
# Not ext and fd, which start programs that a URL names.
PROTOCOLS = "file:git:http:https:ssh"
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


class GitError(Exception):
    """A git command failed; the text is git's message."""


def environment(environ: "Mapping[str, str]") -> "dict[str, str]":
    """Return the environment variables for git."""
    kept = {n: v for n, v in environ.items() if not n.startswith("GIT_") or TRANSPORT.fullmatch(n)}
    return dict(
        kept,
        GIT_ALLOW_PROTOCOL=PROTOCOLS,
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_TERMINAL_PROMPT="0",
        LC_ALL="C",
    )


class Git:
    """Runs git commands."""

    def __init__(self, environ: "Mapping[str, str]") -> None:
        """Find git on PATH. Raises BuildError if it is missing."""
        self._environ = environment(environ)
        program = shutil.which("git", path=environ.get("PATH"))
        if program is None:
            raise BuildError(
                "build.git-missing",
                "git is missing on PATH; it fetches sources that are a git tree",
                "install git or load its module; a bundle contains the sources and needs no git",
            )
        self._program = program

    def run(self, *words: str) -> bytes:
        """Return the output of a command, as bytes. Raises GitError."""
        command = self._words(*words)
        with contextlib.ExitStack() as held:
            held.enter_context(signals_held_back())
            child = popen(command, self._environ, None, subprocess.PIPE, subprocess.PIPE)
            try:
                held.close()
                out, said = child.communicate(timeout=SECONDS)
            except BaseException as error:
                Running(child).end()
                child.communicate()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise GitError(f"git did not end within {SECONDS:g} s") from None
                raise
        if child.returncode != 0:
            text = without_queries(CREDENTIALS.sub("", said.decode("utf-8", "replace")))
            lines = text.strip().splitlines()
            raise GitError("\n".join(lines[-SHOWN_LINES:]) or f"exit code {child.returncode}")
        return out

    def listing(self, repository: Path, commit: str) -> bytes:
        """Return the entries of a commit's tree, each ended by a zero byte.

        Raises GitError for more than LISTING_BYTES: a small repository can have a tree that names
        its folders again and again.
        """
        words = self._words(f"--git-dir={repository}", "ls-tree", "-r", "-z", "--full-tree", commit)
        child = popen(words, self._environ, None, subprocess.PIPE, subprocess.DEVNULL)
        with child:
            entries = cast("IO[bytes]", child.stdout).read(LISTING_BYTES + 1)
            if len(entries) > LISTING_BYTES:
                child.kill()
        if len(entries) > LISTING_BYTES:
            raise GitError(f"the names in its tree have more than {LISTING_BYTES} bytes")
        if child.returncode != 0:
            raise GitError(f"git ls-tree ended with exit code {child.returncode}")
        return entries

    def _words(self, *words: str) -> "list[str]":
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        return [self._program, *settings, *words]

    @contextlib.contextmanager
    def blobs(
        self, repository: "str | Path"
    ) -> "Iterator[Callable[[str], tuple[int, Iterator[bytes]]]]":
        """Return a function that reads a blob: its id -> (size, chunks), read before the next."""
        child = subprocess.Popen(
            self._words(f"--git-dir={repository}", "cat-file", "--batch"),
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)

        def read(blob: str) -> "tuple[int, Iterator[bytes]]":
            stdin.write(blob.encode("ascii") + b"\n")
            stdin.flush()
            words = stdout.readline().split()
            if len(words) != 3 or words[1] != b"blob":
                raise GitError(f"{blob} is missing or is not a file")
            return int(words[2]), chunks(stdout, int(words[2]))

        try:
            yield read
        finally:
            child.kill()
            child.communicate()


def chunks(stream: "IO[bytes]", size: int) -> "Iterator[bytes]":
    """Yield so many bytes of a stream, and skip the line's end behind them."""
    while size:
        data = stream.read(min(CHUNK, size))
        if not data:
            raise GitError("git ended within a file")
        size -= len(data)
        yield data
    stream.read(1)
