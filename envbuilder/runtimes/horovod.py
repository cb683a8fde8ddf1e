"""Horovod, built from its sources or provided by the site's module.

Read from setup.py, CMakeLists.txt and cmake/ of the releases 0.16 to 0.28;
``tests/runtimes/horovod_flags.yaml`` has the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import cast, get_args

from ..knowledge.components import Component, HorovodPart
from ..knowledge.terms import Api, Transport
from ..model.plan import Proof
from ..model.runtime import BuildTraces, FlagMeaning, ProofInputs, RuntimeTraits
from ..target_tools.horovod_build import CLASSES, FRAMEWORKS
from ..target_tools.names import release as numbers

NAME = "horovod"
TRAITS = RuntimeTraits(
    summary="built from source; with `origin: module`, the module of the site is loaded and proved",
    from_module=True,
    instrumented=True,
    launcher="horovodrun",
    apis=("horovod.tensorflow", "horovod.torch"),
    gloo_with=NAME,
)

_WITHOUT = "HOROVOD_WITHOUT_"
_GPU = "HOROVOD_GPU_"
_OPERATIONS = ("Allreduce", "Allgather", "Broadcast", "Alltoall", "Reducescatter")

# From these releases on: Gloo is there and MPI can be left out; oneCCL is there; MLSL is gone;
# CMake builds it, compares WITH and WITHOUT with 1 and reads HOROVOD_GPU_OPERATIONS and ALLTOALL;
# there is a reducescatter.
_GLOO, _CCL, _NO_MLSL, _CMAKE, _REDUCESCATTER = (0, 17), (0, 19), (0, 19, 2), (0, 20), (0, 25)
_NEWEST = (1,)


def meaning(flags: Mapping[str, str], release: str | None) -> FlagMeaning:
    """Return what the build variables mean to a release; None: one that reads all of them.

    A value that the release refuses is not one that it takes in capitals: it names no library.
    """
    this = numbers(release) if release else _NEWEST
    by_cmake = this >= _CMAKE
    without = {
        name.removeprefix(_WITHOUT)
        for name, value in flags.items()
        if name.startswith(_WITHOUT) and (value == "1" if by_cmake else value)
    }
    every = flags.get(f"{_GPU}OPERATIONS") if by_cmake else None
    count = 3 if not by_cmake else 4 if this < _REDUCESCATTER else 5
    values = {each.lower(): flags.get(_GPU + each.upper()) or every for each in _OPERATIONS[:count]}
    operations = {name: value for name, value in values.items() if value}
    on_cpus = flags.get("HOROVOD_CPU_OPERATIONS", "")
    libraries = {"MPI", "GLOO", *(["CCL"] * (this >= _CCL)), *(["MLSL"] * (this < _NO_MLSL))}
    on_cpus = on_cpus if by_cmake else on_cpus.upper()
    cpu_operations = on_cpus if this >= _GLOO and on_cpus in libraries else None
    parts = {
        "mpi": this < _GLOO or "MPI" not in without,
        "gloo": this >= _GLOO and "GLOO" not in without,
        # setup.py looks for NCCL for the allreduce alone.
        "nccl": "NCCL" in (operations.values() if by_cmake else [operations.get("allreduce")]),
        "ddl": "DDL" in operations.values(),
        **({"ccl": True} if cpu_operations == "CCL" else {}),
    }
    words = {"mpi": {"WITH_MPI", "WITHOUT_MPI"}, "gloo": {"WITH_GLOO", "WITHOUT_GLOO"}}
    named = {flag.removeprefix("HOROVOD_") for flag in flags}
    stated = {"ccl", *(part for part, those in words.items() if those & named)}
    stated |= {"nccl", "ddl"} if any(flag.startswith(_GPU) for flag in flags) else set()
    return FlagMeaning(parts, stated, operations, without - {"MPI", "GLOO"}, cpu_operations)


def bindings(known: Mapping[str, Component]) -> dict[str, HorovodPart]:
    """Return the parts of Horovod by the framework that each is for, sorted by their names."""
    parts = {name: each.horovod for name, each in known.items() if each.horovod}
    return dict(sorted(parts.items(), key=lambda item: item[1].name))


def proofs(inputs: ProofInputs) -> Iterator[Proof]:
    """Yield the proofs of the Horovod that the environment has."""
    for build in inputs.builds:
        if build.component == NAME:
            flags = meaning(build.flags, build.version)
            yield from framework_proofs(build.frameworks, flags, inputs)


def framework_proofs(
    names: Collection[str], flags: FlagMeaning, inputs: ProofInputs
) -> Iterator[Proof]:
    """Yield the proofs of each framework: over MPI or NCCL, then over Gloo by its own launcher."""
    transport: Transport = "nccl" if flags.operations.get("allreduce") == "NCCL" else "mpi"
    tested = (f"{NAME}.{name}" for name in names)
    for api in (cast("Api", each) for each in tested if each in get_args(Api)):
        if flags.parts["mpi"] and inputs.launcher:
            yield Proof(api=api, transport=transport, launcher=inputs.launcher)
        by_gloo = inputs.api_launcher(api)
        if flags.parts["gloo"] and by_gloo:
            yield Proof(api=api, transport="gloo", launcher=by_gloo)


# ---------------------------------------------------------------- what an installed one shows

# The classes of the operations of each library on GPUs: NCCLAllreduce, MPI_GPUAllgather.
_PREFIXES = {"NCCL": "NCCL", "MPI": "MPI_GPU", "DDL": "DDL"}


def traces(
    start: str, libraries: Sequence[str], holds: Callable[[str, bytes], bool]
) -> BuildTraces | None:
    """Return what the native libraries in ``start/horovod/`` show; None: there is none."""
    folder = f"{start}/{NAME}/"
    paths = [each for each in libraries if each.startswith(folder) and "mpi_lib" in each]
    if not paths:
        return None

    def contains(mark: bytes) -> bool:
        return any(holds(path, mark) for path in paths)

    parts = {part.upper(): contains(_symbol(CLASSES[part])) for part in ("mpi", "gloo")}
    for package, (flag, _) in FRAMEWORKS.items():
        parts[flag] = any(path.startswith(f"{folder}{package}/") for path in paths)
    flags = {
        f"HOROVOD_{'WITH' if built else 'WITHOUT'}_{name}": "1" for name, built in parts.items()
    }
    unset = {f"HOROVOD_{'WITHOUT' if built else 'WITH'}_{n}": "0" for n, built in parts.items()}
    if contains(_symbol(CLASSES["ccl"])):
        flags["HOROVOD_CPU_OPERATIONS"] = "CCL"
    on_gpus = {
        _GPU + operation.upper(): library
        for operation in _OPERATIONS
        for library, prefix in _PREFIXES.items()
        # All classes of a library are there as soon as one operation uses it. Only for those in
        # use does CreateOperationManager of operations.cc make a shared pointer.
        if contains(b"_Sp_counted_ptrIPN" + _symbol(prefix + operation))
    }
    unset |= {_GPU + operation.upper(): "none" for operation in _OPERATIONS}
    unset[f"{_GPU}OPERATIONS"] = "/".join(sorted({*on_gpus.values()})) or "none"
    unknown = ["HOROVOD_CPU_OPERATIONS, the default transport for CPU operations"]
    if on_gpus:
        unknown.append("HOROVOD_NCCL_LINK and the folders of the linked NCCL")
    return BuildTraces(flags | on_gpus, unset, tuple(unknown))


def _symbol(name: str) -> bytes:
    """Return a class of Horovod's as the compiler writes it in the names of symbols."""
    return f"7horovod6common{len(name)}{name}E".encode()
