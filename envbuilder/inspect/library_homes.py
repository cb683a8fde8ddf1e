"""Folders that variables of Horovod's build name, and the releases of the libraries in them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ..machine.host import is_file, names_in
from ..target_tools.files import open_regular

_LARGEST_HEADER = 4 * 1024 * 1024


class LibraryHome(NamedTuple):
    """What a variable of Horovod's build names: a library, and the header with its release."""

    title: str
    library: re.Pattern[str]
    header: str
    release: re.Pattern[str]


# The names are those of Horovod's setup.py; NVIDIA's headers state the release.
NCCL = LibraryHome(
    "NCCL",
    re.compile(r"libnccl\.so\b"),
    "nccl.h",
    re.compile(r"#define NCCL_(?:MAJOR|MINOR|PATCH) +(\d+)"),
)
CUDA = LibraryHome(
    "CUDA runtime",
    re.compile(r"libcudart\.so\b"),
    "cuda_runtime_api.h",
    re.compile(r"#define CUDART_VERSION +(\d+)"),
)
_FOLDERS = ("lib", "lib64", "targets/x86_64-linux/lib", "targets/ppc64le-linux/lib")


def home_library(home: LibraryHome, folder: str) -> str | None:
    """Return the library in a folder, or None."""
    for name in _FOLDERS:
        for file in names_in(Path(folder, name)):
            if home.library.match(file) and is_file(Path(folder, name, file)):
                return f"{folder}/{name}/{file}"
    return None


def release_of(home: LibraryHome, library: str) -> tuple[int, ...] | None:
    """Return the release of a library: of its file's name, else of the header beside it."""
    real = os.path.realpath(library)
    named = re.search(r"\.so\.(\d+(?:\.\d+)+)$", real)
    if named:
        return tuple(map(int, named[1].split(".")[:3]))
    header = Path(real).parent.parent / "include" / home.header
    try:
        with open_regular(header) as stream:
            text = stream.read(_LARGEST_HEADER).decode("utf-8", "replace")
    except OSError:
        return None
    numbers = [int(each) for each in home.release.findall(text)][:3]
    if len(numbers) == 1:  # CUDART_VERSION 12040 is 12.4
        return numbers[0] // 1000, numbers[0] % 1000 // 10
    return tuple(numbers) or None
