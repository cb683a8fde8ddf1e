"""The few files in an image that say what it holds, read without starting anything of it.

A SquashFS is read by ``unsquashfs``, which is where Apptainer is; it prints each file, and unpacks
none, so that no link and no name in the image can lead anywhere. PySquashfsImage would do without
it: it has no lz4 as SquashFS has it, and reads the whole tree of files first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from .. import process
from ..errors import DriftError, MissingToolError, UsageError
from ..machine.host import LocalMachine
from ..target_tools.files import parse_json
from .sif import SifHeader, header_of, no_environment, unreadable

# Below the root inside, by shell patterns; the last two say that a prefix is there.
WANTED = (
    ".envbuild.json",
    "*/.envbuild.json",
    "modulefiles/*/*",
    "modulefiles/*/.*",
    "*/*.build/lock.json",
    "*/*.evidence/*.json",
    "*/*.evidence/*/evidence.json",
    "*/*.evidence/*/ranks/*",
    "*/*/pyvenv.cfg",
    "*/*/conda-meta/history",
)
# In an image, as Apptainer and Singularity write them: a JSON object.
LABELS = ".singularity.d/labels.json"
_OF_PREFIXES = ("pyvenv.cfg", "history")
# As ``unsquashfs -lls`` prints a file: mode, owners, size, time, path.
_NAME = "[A-Za-z0-9._+-]+"
PLAIN_PATH = re.compile(rf"(?:{_NAME}/)*{_NAME}")
_LINE = re.compile(rf"-\S{{9}} \S+ +([0-9]+) \S+ \S+ squashfs-root/({PLAIN_PATH.pattern})")
# Bytes. Manifests are the largest: 100 for each file of a prefix.
LARGEST_FILE, LARGEST = 128 * 2**20, 256 * 2**20
_MOST_FILES = 10_000
# A path of Linux to the file that is standard input.
_STDIN = "/proc/self/fd/0"


def unpack_records(
    image: Path, stream: IO[bytes], inside: Path, folder: Path, host: LocalMachine
) -> tuple[SifHeader, dict[str, str]]:
    """Write the records of the root *inside* a SIF file into *folder*, as they lie there.

    Returns the header and the labels of the image. *stream*: the open file, which alone is read;
    *image*: its name.

    Of a prefix nothing but its folder is made. Raises ValueError for another file,
    MissingToolError, UsageError for an image without such a root, DriftError for one that cannot
    be read.
    """
    header = header_of(stream, image)
    program = host.which("unsquashfs")
    if program is None:
        raise MissingToolError(
            "image.no-unsquashfs",
            "cannot read images: unsquashfs is not on PATH",
            "install the package squashfs-tools, 4.5 or later; Apptainer needs it too",
        )
    read = _SquashReader([program, "-offset", str(header.offset)], image, stream, host.environ)
    below = inside.relative_to("/")
    files = read.listed([LABELS, *(f"{below}/{each}" for each in WANTED)])
    labels = read.text(LABELS) if files.pop(LABELS, None) is not None else None
    if f"{below}/.envbuild.json" not in files:
        raise no_environment(image, inside)
    for name in sorted(files):
        path = folder / Path(name).relative_to(below)
        path.parent.mkdir(parents=True, exist_ok=True)
        if has_content(path):
            path.write_text(read.text(name), encoding="utf-8")
    return header, labels_of(labels)


def has_content(path: Path) -> bool:
    """Whether a record counts for what is in it, and not for being there alone."""
    return path.name not in _OF_PREFIXES


def labels_of(text: str | None) -> dict[str, str]:
    """Return the labels of an image; none where *text*, its LABELS, is no such thing."""
    try:
        found = parse_json(text or "{}")
    except ValueError:
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


class _SquashReader:
    """A SquashFS in a file. Every answer comes from a process of its own, for a limited time."""

    def __init__(
        self, program: list[str], image: Path, stream: IO[bytes], environ: Mapping[str, str]
    ) -> None:
        self._program, self._image, self._environ = program, image, environ
        self._stream = stream

    def _run(self, option: str, names: list[str]) -> str:
        # The open file, not the one that its name leads to by now.
        words = [*self._program, option, _STDIN, *names]
        done = process.run(words, env=self._environ, stdin=self._stream.fileno())
        if done.ok:
            return done.stdout
        if "SYNTAX" in done.stdout + done.stderr:
            raise MissingToolError(
                "image.old-unsquashfs",
                "unsquashfs is too old to print a file of an image",
                "use squashfs-tools 4.5 or later",
            )
        raise unreadable(self._image, done)

    def listed(self, patterns: list[str]) -> dict[str, int]:
        """Return the plain files that fit, with their sizes; no other kind, and no odd names."""
        lines = self._run("-lls", patterns).splitlines()
        files = {each[2]: int(each[1]) for each in map(_LINE.fullmatch, lines) if each}
        files = {
            name: size for name, size in files.items() if not {".", ".."} & set(name.split("/"))
        }
        large = [name for name, size in files.items() if size > LARGEST_FILE]
        if large or sum(files.values()) > LARGEST or len(files) > _MOST_FILES:
            raise DriftError(
                "image.too-many-records",
                f"{self._image} has too many records: {', '.join(large[:3])}",
                "no record was read",
            )
        return files

    def text(self, name: str) -> str:
        return self._run("-cat", [name])


def sandbox_root(folder: Path, inside: Path) -> Path:
    """Return where the root of a sandbox lies. Raises UsageError where a link leads out of it."""
    root = folder / inside.relative_to("/")
    if not root.resolve().is_relative_to(folder.resolve()):
        raise UsageError("image.unsafe-link", f"{root} is a link to outside of the image")
    return root
