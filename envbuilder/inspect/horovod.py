"""With which build variables a Horovod was made, by its native libraries. Nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..target_tools.horovod_build import CLASSES, FRAMEWORKS
from .facts import Environment, PackageFolder
from .mpi import holds

# HOROVOD_GPU_ALLREDUCE is of the operation Allreduce: CreateOperationManager of Horovod's
# operations.cc makes an object of one class for each operation and library that are compiled in.
_GPU = "HOROVOD_GPU_"
_OPERATIONS = ("Allreduce", "Allgather", "Broadcast", "Alltoall", "Reducescatter")
_BY = {"NCCL": "NCCL", "MPI": "MPI_GPU", "DDL": "DDL"}


@dataclass(frozen=True)
class HorovodBuild:
    """What is compiled in, as the variables that ask for it; and what no library says."""

    flags: Mapping[str, str]
    unknown: tuple[str, ...]

    def says(self, name: str) -> str | None:
        """Return the value that a variable has had, '0' for what is not there; None: unknown."""
        gpu = {value for flag, value in self.flags.items() if flag.startswith(_GPU)}
        if name == f"{_GPU}OPERATIONS":
            return "/".join(sorted(gpu)) or "none"
        if name in (f"{_GPU}{operation.upper()}" for operation in _OPERATIONS):
            return self.flags.get(name, "none")
        if "_WITH_" in name:
            other = name.replace("_WITH_", "_WITHOUT_")
        else:
            other = name.replace("_WITHOUT_", "_WITH_")
        return self.flags.get(name) or ("0" if other != name and other in self.flags else None)


def horovod_build(environment: Environment, folder: PackageFolder) -> HorovodBuild | None:
    """Return how the Horovod in a folder of packages was built; None: it has no native library."""
    start = f"{folder.path}/horovod/"
    every = (*environment.libraries, *environment.outer)
    paths = [e.path for e in every if e.path.startswith(start) and "mpi_lib" in e.path]
    if not paths:
        return None
    flags = {
        **dict(_parts(paths)),
        **dict(_frameworks(paths, start)),
        **dict(_operations(paths)),
    }
    unknown = ["HOROVOD_CPU_OPERATIONS, what carries operations on CPUs by default"]
    if any("GPU" in name for name in flags):
        unknown.append("HOROVOD_NCCL_LINK and the folders that it was linked from")
    return HorovodBuild(flags, tuple(unknown))


def _class(name: str) -> bytes:
    """Return a class of Horovod's as the compiler writes it in the names of symbols."""
    return f"7horovod6common{len(name)}{name}E".encode()


def _parts(paths: list[str]) -> Iterator[tuple[str, str]]:
    for part in ("mpi", "gloo"):
        there = any(holds(path, _class(CLASSES[part])) for path in paths)
        yield f"HOROVOD_{'WITH' if there else 'WITHOUT'}_{part.upper()}", "1"
    if any(holds(path, _class(CLASSES["ccl"])) for path in paths):
        yield "HOROVOD_CPU_OPERATIONS", "CCL"


def _frameworks(paths: list[str], start: str) -> Iterator[tuple[str, str]]:
    for package, (flag, _) in FRAMEWORKS.items():
        there = any(path.startswith(f"{start}{package}/") for path in paths)
        yield f"HOROVOD_{'WITH' if there else 'WITHOUT'}_{flag}", "1"


def _operations(paths: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what carries each operation on GPUs.

    All classes of a library are there as soon as one operation goes by it. Only of those that are
    used is there the code of a shared pointer to them.
    """
    for operation in _OPERATIONS:
        for library, prefix in _BY.items():
            used = b"_Sp_counted_ptrIPN" + _class(f"{prefix}{operation}")
            if any(holds(path, used) for path in paths):
                yield f"{_GPU}{operation.upper()}", library
