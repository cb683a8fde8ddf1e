"""Every parser of what others wrote, each as a function over bytes, with inputs to begin with.

A parser may refuse: it raises what it says it raises. Anything else is a fault, and so is one that
takes longer than a file of that size may. Hypothesis draws changes of the inputs in
``tests/inspect/test_parsers.py``; ``fuzz.py`` looks for more of them by what they make run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from envbuilder import data as shipped
from envbuilder.diagnosis.conclusion import conclude
from envbuilder.diagnosis.index import SymptomIndex
from envbuilder.diagnosis.search import search
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.errors import DriftError
from envbuilder.images.sif import read_header
from envbuilder.inspect.conda import conda_packages
from envbuilder.inspect.reading import read_environment
from envbuilder.knowledge.conda_order import spec_admits
from envbuilder.machine.modules.modulefile_effects import of_lmod, of_tcl
from envbuilder.target_tools import manifest
from envbuilder.target_tools.distributions import parse_fields, parse_record
from envbuilder.target_tools.elf import ElfError, read_library
from envbuilder.target_tools.ld_so import MAGIC, read_cache
from envbuilder.validate import checks
from tests.images.image_files import sif

# Between the files of one input.
SEPARATOR = b"\n%%\n"


@dataclass(frozen=True)
class Parser:
    """A parser, and inputs that it reads.

    ``words``: what its format is made of. ``slow``: it starts processes.
    """

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()
    slow: bool = False


@contextlib.contextmanager
def file_of(data: bytes) -> Iterator[Path]:
    """Give the path of a file that lies in memory."""
    number = os.memfd_create("fuzzed")
    try:
        os.write(number, data)
        yield Path(f"/proc/self/fd/{number}")
    finally:
        os.close(number)


@cache
def scratch() -> Path:
    """Return an environment with one distribution, whose files are written again and again.

    Whoever calls it removes what lies in ``tempfile.gettempdir()``.
    """
    folder = Path(tempfile.mkdtemp(prefix="envbuild-fuzz-"))
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to("/usr/bin/env")
    (folder / "conda-meta").mkdir()
    (folder / "lib" / "python3.11" / "site-packages" / "one-1.dist-info").mkdir(parents=True)
    return folder


def read_elf(data: bytes) -> object:
    with file_of(data) as path, contextlib.suppress(ElfError):
        return read_library(str(path))
    return None


def read_ld_cache(data: bytes) -> object:
    with file_of(MAGIC + data) as path:
        return read_cache(str(path))


def read_metadata(data: bytes) -> object:
    return parse_fields(data.decode("utf-8", "replace"))


def read_rows(data: bytes) -> object:
    with contextlib.suppress(ValueError):
        return parse_record(data.decode("utf-8", "surrogateescape"))
    return None


def read_distribution(data: bytes) -> object:
    """A whole environment: METADATA, RECORD, WHEEL and pyvenv.cfg, and every check over them."""
    prefix = scratch()
    info = prefix / "lib" / "python3.11" / "site-packages" / "one-1.dist-info"
    files = (info / "METADATA", info / "RECORD", info / "WHEEL", prefix / "pyvenv.cfg")
    parts = data.split(SEPARATOR)
    for path, part in zip(files, [*parts, b"", b"", b"", b""], strict=False):
        path.write_bytes(part)
    return [each.plain() for each in checks.run(read_environment(prefix, {}), hashes=True).findings]


def read_conda_record(data: bytes) -> object:
    prefix = scratch()
    (prefix / "conda-meta" / "one-1-0.json").write_bytes(data)
    return conda_packages(prefix)


def read_conda_spec(data: bytes) -> object:
    version, _, spec = data.decode("utf-8", "replace").partition("\n")
    return spec_admits(version, spec)


def read_manifest(data: bytes) -> object:
    with file_of(data) as path, contextlib.suppress(ValueError):
        found = manifest.read(path)
        return manifest.compare(scratch() / "bin", found, run_python=False)
    return None


def read_sif(data: bytes) -> object:
    with file_of(data) as path, contextlib.suppress(ValueError, DriftError):
        return read_header(path)
    return None


def read_lmod(data: bytes) -> object:
    return of_lmod(data.decode("utf-8", "replace"))


def read_tcl(data: bytes) -> object:
    return of_tcl(data.decode("utf-8", "replace"))


@cache
def symptom_index() -> SymptomIndex:
    return SymptomIndex(load_knowledge([shipped.RECIPES]).value)


def read_log(data: bytes) -> object:
    index = symptom_index()
    found = [search(io.BytesIO(part), index.signs) for part in data.split(SEPARATOR)[:4]]
    names = [f"rank{number}.log" for number in range(len(found))]
    return conclude(names, found, index)


def _sif() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return sif(Path(folder, "a.sif"), bytes(64)).read_bytes()


def _small_elf() -> bytes:
    """Return an ELF file with a dynamic section that needs one library."""
    strings = b"\0libc.so.6\0libone.so\0$ORIGIN\0"
    base = 64 + 2 * 56
    entries = [(5, base), (1, 1), (14, 11), (29, 21), (0, 0)]
    dynamic = b"".join(t.to_bytes(8, "little") + v.to_bytes(8, "little") for t, v in entries)
    size = base + len(strings) + len(dynamic)

    def words(*values: tuple[int, int]) -> bytes:
        return b"".join(value.to_bytes(length, "little") for value, length in values)

    head = b"\x7fELF\2\1\1" + bytes(9)
    head += words((3, 2), (62, 2), (1, 4), (0, 8), (64, 8), (0, 8), (0, 4), (64, 2), (56, 2))
    head += words((2, 2), (0, 2), (0, 2), (0, 2))
    load = words((1, 4), (5, 4), (0, 8), (0, 8), (0, 8), (size, 8), (size, 8), (4096, 8))
    at = base + len(strings)
    seen = words((2, 4), (6, 4), (at, 8), (at, 8), (at, 8), (len(dynamic), 8), (0, 8), (8, 8))
    return head + load + seen + strings + dynamic


_CONDA = {
    "name": "one",
    "version": "1.0",
    "depends": ["python >=3.6,<4", "conda-forge::numpy[version='>9']"],
    "paths_data": {
        "paths": [
            {"_path": "lib/a", "path_type": "hardlink", "sha256": "ab" * 32, "size_in_bytes": 3},
            {"_path": "../x", "path_type": "softlink", "prefix_placeholder": "/p"},
        ]
    },
}
_FILES = {"a": {"mode": 420, "sha256": "ab" * 32, "size": 1, "times": [1, 2]}, "b": {"link": "a"}}

PARSERS: dict[str, Parser] = {
    "elf": Parser(read_elf, (_small_elf(),)),
    "ld-cache": Parser(read_ld_cache, (bytes(28) + b"\1" + bytes(60) + b"libm.so.6\0/lib\0",)),
    "metadata": Parser(read_metadata, (b"Name: one\nVersion: 1\n more\n\nText\n",)),
    "record": Parser(read_rows, (b'one/a.py,sha256=AAAA,3\n"a,""b",,\n',)),
    "distribution": Parser(
        read_distribution,
        (
            SEPARATOR.join(
                (
                    b"Name: one\nVersion: 1.0\nRequires-Python: >=3.6\n"
                    b"Requires-Dist: two[a,b]>=1; python_version < '4' and extra == 'c'\n",
                    b"one/a.py,sha256=AAAA,3\n../../../bin/one,sha256=B,1\n",
                    b"Wheel-Version: 1.0\nTag: cp311-abi3-manylinux_2_17_x86_64\n",
                    b"home = /usr/bin\ninclude-system-site-packages = true\nversion = 3.11.2\n",
                )
            ),
        ),
        (b"Requires-Dist: ", b" @ file:///x", b"===", b"extra == 'c'", b"cp27", SEPARATOR),
    ),
    "conda-meta": Parser(
        read_conda_record,
        (json.dumps(_CONDA).encode(),),
        (b'"_path"', b'"prefix_placeholder"', b'"path_type"', b'"sha256_in_prefix"', b"null"),
    ),
    "conda-spec": Parser(read_conda_spec, (b"1.0\n>=1,<2|3.*", b"1!2.0.post1\n~=1.4|*")),
    "manifest": Parser(
        read_manifest,
        (json.dumps({"schema": 1, "recorded": "later", "files": _FILES}).encode(),),
        (b'"times"', b'"link"', b'"kind": "other"', b"1e999", b"[[["),
    ),
    "sif": Parser(read_sif, (_sif(),), (b"SIF_MAGIC\0", b"\xff" * 8, b"\1" + bytes(7))),
    "lmod": Parser(
        read_lmod,
        (
            b'---\n   /mods/a/1.lua:\n---\nload("gcc/9","b")\nprepend_path("PATH","/a")\n'
            b'setenv("X","a\\"b")\nconflict("c")\nwhatis([[d]])\n',
        ),
        (b'load("', b"prepend_path(", b"[[", b"]]", b"\\\\", b'"'),
    ),
    "tcl": Parser(
        read_tcl,
        (
            b"---\n/mods/a/1:\n\nmodule-whatis {a}\nmodule load gcc/9\nprepend-path PATH /a\n"
            b'setenv X "a b"\nconflict c\n---\n',
        ),
        (b"prepend-path ", b"module load ", b"{", b"}", b"\\", b'"'),
    ),
    "log": Parser(
        read_log,
        (
            b"[1,0]<stderr>:ImportError: libnccl.so.2: cannot open shared object file\n",
            b"rank0: NCCL WARN Call to connect failed\n" + SEPARATOR + b"srun: error: task 1\n",
        ),
        (b"[1,1]<stderr>:", b"Traceback (most recent call last):", b"\r", b"\x1b[31m", SEPARATOR),
    ),
}
