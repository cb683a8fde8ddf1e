"""What the frameworks and Horovod record about their builds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from ...inspect.facts import OWN, Environment
from ...inspect.observation import seen
from ...machine.host import is_file, is_folder
from ...target_tools.files import read_json, text_or_none
from ...target_tools.horovod_build import FRAMEWORKS
from .protocol import Violation, checks

VERSION_LINE = re.compile(r"^__version__(?:: *\w+)? *= *['\"]([^'\"]+)", re.MULTILINE)
# Files in which packages record the release that they were built as.
_RECORDS = {
    "torch": "torch/version.py",
    "torchvision": "torchvision/version.py",
    "torchaudio": "torchaudio/version.py",
    "jaxlib": "jaxlib/version.py",
    "horovod": "horovod/__init__.py",
    "mpi4py": "mpi4py/__init__.py",
}
# Packages that are compiled for one build of PyTorch: +cpu, +cu121, +rocm6.0.
_OF_TORCH = ("torchvision", "torchaudio")


def _other_record(environment: Environment) -> Iterator[Violation]:
    for name, file in _RECORDS.items():
        folder, each = environment.found.get(name, (None, None))
        if folder is None or each is None or folder.kind not in OWN:
            continue
        path = folder.path / file
        text = text_or_none(environment.real(str(path))) or ""
        recorded = VERSION_LINE.search(text)
        where, metadata = environment.short(path), environment.short(each.path)
        if recorded and _public(recorded[1]) != _public(each.version):
            yield Violation(
                f"{file} is of {name} {recorded[1]}, the metadata of {each.version}",
                (seen(where, "__version__", recorded[1]), seen(metadata, "Version", each.version)),
            )
        elif file.endswith("/version.py") and is_file(path) and "__version__" not in text:
            yield Violation(f"{file} states no version", (seen(where, "__version__", "missing"),))


def _public(version: str) -> str:
    try:
        return Version(version).public
    except InvalidVersion:
        return version


def _other_build(environment: Environment) -> Iterator[Violation]:
    torch = environment.found.get("torch")
    for name in _OF_TORCH if torch else ():
        other = environment.found.get(name)
        one, two = (each[1].version.partition("+")[2] if each else "" for each in (torch, other))
        if torch and other and one and two and one != two:
            yield Violation(
                f"{other[1]} is of another build than {torch[1]}",
                tuple(
                    seen(environment.short(each.path), "Version", each.version)
                    for _, each in (other, torch)
                ),
            )


def _horovod_record(environment: Environment) -> Iterator[Violation]:
    """Compare horovod/metadata.json with the libraries that lie beside it."""
    for folder in environment.folders:
        path = folder.path / "horovod" / "metadata.json"
        if folder.kind not in OWN or not is_file(environment.real(str(path))):
            continue
        where = environment.short(path)
        try:
            value = dict(read_json(environment.real(str(path))))
        except (OSError, ValueError, TypeError) as error:
            yield Violation(f"{where} is damaged: {error}", (seen(where, "JSON", error),))
            continue
        start = f"{path.parent}/"
        libraries = {
            n.path[len(start) :].split("/")[0]
            for n in environment.libraries
            if n.path.startswith(start) and "mpi_lib" in n.path
        }
        for name, (_, key) in FRAMEWORKS.items():
            if key in value and name not in libraries and is_folder(path.parent / name):
                yield Violation(
                    f"{where} names {key}, horovod/{name} has no library",
                    (seen(where, key, value[key]),),
                )
            elif key not in value and name in libraries:
                yield Violation(
                    f"horovod/{name} has a library, {where} does not name {key}",
                    (seen(where, key, "missing"),),
                )


CHECKS = checks(
    {
        "framework.other-record": _other_record,
        "framework.other-build": _other_build,
        "horovod.record-damaged": _horovod_record,
    }
)
