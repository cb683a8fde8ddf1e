"""Combinations that shipped and worked, or that were run: none of them may be refused.

Versions and sources are public; where a source names no version of something, it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from envbuilder.knowledge.conditions import Value

from .generations import EASYCONFIGS, generations
from .stacks import Part, Stack, modules

_TAURUS = "ZIH compendium, frozen 2021-12: module lists of Taurus"
_OLCF = "https://github.com/olcf/olcf-user-docs (software/analytics)"
_WMLCE = "https://github.com/olcf/olcf-user-docs/blob/5eb3c01/software/analytics/ibm-wml-ce.rst"
_OPEN_CE = "https://github.com/open-ce/open-ce (envs/conda_build_config.yaml at each tag)"
_RUN = "run on Debian 12 x86_64: GCC 12.2, CMake 3.25.1, Open MPI 4.1.4, Python 3.11"

_NO_OTHERS = {"HOROVOD_WITHOUT_MXNET": "1"}
TENSORFLOW_ONLY = {**_NO_OTHERS, "HOROVOD_WITH_TENSORFLOW": "1", "HOROVOD_WITHOUT_PYTORCH": "1"}
TORCH_ONLY = {**_NO_OTHERS, "HOROVOD_WITH_PYTORCH": "1", "HOROVOD_WITHOUT_TENSORFLOW": "1"}
MPI_OPERATIONS = {
    "HOROVOD_GPU_ALLREDUCE": "MPI",
    "HOROVOD_GPU_ALLGATHER": "MPI",
    "HOROVOD_GPU_BROADCAST": "MPI",
}
_POWER9: dict[str, Value] = {"arch": "ppc64le", "os": "rhel 7.6", "glibc": "2.17"}
POWER9 = {**_POWER9, "gpu": frozenset({"sm_70"}), "network": frozenset({"infiniband"})}
_SUMMIT = {**POWER9, "os": "rhel 8.2", "glibc": "2.28", "uses": frozenset({"multi-node"})}
_ALPHA: dict[str, Value] = {"arch": "x86_64", "gpu": frozenset({"sm_80"})}


def site_modules() -> Iterator[Stack]:
    """The modules that a site lists, each with the toolchain that its name says."""
    foss = modules(gcc="8.3.0", openmpi="3.1.4", cuda="10.1.243", python="3.7.4")
    alpha = modules(gcc="10.2.0", openmpi="4.0.5", cuda="11.1.1", python="3.8.6", nccl="2.8.3")
    for name, facts, parts in (
        (
            "Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4",
            POWER9,
            {**foss, **modules(horovod="0.19.5", tensorflow="2.2.0")},
        ),
        (
            "Horovod/0.18.2-fosscuda-2019b-TensorFlow-2.0.0-Python-3.7.4",
            POWER9,
            {**foss, **modules(horovod="0.18.2", tensorflow="2.0.0")},
        ),
        (
            "torchvision/0.7.0-fosscuda-2019b-Python-3.7.4-PyTorch-1.6.0",
            POWER9,
            {**foss, **modules(pytorch="1.6.0")},
        ),
        (
            "Horovod/0.21.1-TensorFlow-2.4.1",
            _ALPHA,
            {**alpha, **modules(horovod="0.21.1", tensorflow="2.4.1")},
        ),
        ("PyTorch/1.7.1", _ALPHA, {**alpha, **modules(pytorch="1.7.1")}),
        ("PyTorch/1.9.0", _ALPHA, {**alpha, **modules(pytorch="1.9.0")}),
    ):
        yield Stack(name, _TAURUS, parts, facts)


def easybuild_modules() -> Iterator[Stack]:
    """Pairs that EasyBuild released and that other sources speak against."""
    for name, parts in (
        (
            "Horovod 0.21.1 with TensorFlow 2.4.1 in fosscuda-2019b",
            modules(horovod="0.21.1", tensorflow="2.4.1", gcc="8.3.0", cuda="10.1.243"),
        ),
        (
            "Horovod 0.23.0 with PyTorch 1.10.0",
            modules(horovod="0.23.0", pytorch="1.10.0", gcc="10.3.0", cuda="11.3.1"),
        ),
        (
            "Horovod 0.28.1 with NCCL 2.12.12",
            modules(horovod="0.28.1", nccl="2.12.12", gcc="11.3.0", cuda="11.7.0"),
        ),
        (
            "Horovod 0.28.1 with TensorFlow 2.11 and its flatbuffers",
            modules(horovod="0.28.1", tensorflow="2.11.0", flatbuffers="2.0.7", gcc="11.3.0"),
        ),
        ("PyTorch 2.3.0 with CUDA 12.4", modules(pytorch="2.3.0", cuda="12.4.0", gcc="13.2.0")),
        (
            "PyTorch 2.7.1 with cuDNN 9.5",
            modules(pytorch="2.7.1", cuda="12.6.0", cudnn="9.5.1.17", gcc="13.3.0"),
        ),
    ):
        yield Stack(name, EASYCONFIGS, parts, {"arch": "x86_64"})
    for torch in ("1.2.0", "1.8.0", "1.9.0"):
        parts = modules(pytorch=torch, gcc="8.3.0", cuda="10.1.243", python="3.7.4")
        yield Stack(f"PyTorch {torch} on ppc64le", EASYCONFIGS, parts, {"arch": "ppc64le"})


def wmlce() -> Iterator[Stack]:
    """Releases of WMLCE: conda packages, here as what they are, built elsewhere."""
    spectrum = modules(spectrum_mpi="10.3.1.2", gcc="7.3.0", python="3.6.9")
    for name, parts in (
        (
            "1.6.0",
            modules(tensorflow="1.13.1", pytorch="1.0.1", cuda="10.1.105", protobuf="3.6.1"),
        ),
        (
            "1.6.1",
            modules(
                tensorflow="1.14.0",
                pytorch="1.1.0",
                horovod="0.16.4",
                ddl="1.4.0",
                cuda="10.1.168",
                nccl="2.4.7",
                protobuf="3.7.1",
            ),
        ),
        (
            "1.6.2",
            modules(
                tensorflow="1.15.0",
                pytorch="1.2.0",
                horovod="0.18.2",
                ddl="1.5.0",
                cuda="10.1.243",
                protobuf="3.8.0",
            ),
        ),
        ("1.7.0", _wmlce_170()),
    ):
        yield Stack(f"WMLCE {name} on Summit", _WMLCE, {**spectrum, **parts}, _SUMMIT)
    yield Stack(
        "WMLCE 1.7.0 on x86_64",
        "https://github.com/IBM/powerai/issues/261",
        {**_wmlce_170(), **modules(openmpi="3.1.3")},
        {"arch": "x86_64"},
    )


def _wmlce_170() -> dict[str, Part]:
    return modules(
        tensorflow="2.1.0",
        pytorch="1.3.1",
        horovod="0.19.0",
        ddl="1.5.1",
        cuda="10.2.89",
        nccl="2.5.6",
        cudnn="7.6.5",
        protobuf="3.8.0",
    )


def open_ce() -> Iterator[Stack]:
    for name, parts in (
        ("1.2.2", modules(tensorflow="2.4", pytorch="1.7", nccl="2.7", cudnn="8.0.4", gcc="7.3")),
        (
            "1.4.0",
            modules(tensorflow="2.6", pytorch="1.9", horovod="0.22.1", nccl="2.8", gcc="7.3"),
        ),
        (
            "1.5.2",
            modules(tensorflow="2.7", pytorch="1.10", horovod="0.23.0", nccl="2.11", gcc="7.3"),
        ),
        ("1.7.0", modules(tensorflow="2.9", pytorch="1.12", nccl="2.12", gcc="11.2")),
        ("1.9.1", modules(tensorflow="2.12", pytorch="2.0", nccl="2.17", cudnn="8.8", gcc="11.2")),
        (
            "1.10.0",
            modules(tensorflow="2.13.0", pytorch="2.0.1", horovod="0.28.0", python="3.9.18"),
        ),
    ):
        source = _OLCF if "horovod" in parts else _OPEN_CE
        yield Stack(f"Open-CE {name}", source, parts, {"arch": "ppc64le"})


def runs() -> Iterator[Stack]:
    """Horovod as it was really built and run, or compiled."""
    system = {
        "gcc": Part("12.2.0", "system"),
        "cmake": Part("3.25.1", "system"),
        "openmpi": Part("4.1.4", "system"),
        "python": Part("3.11.2", "system"),
        "horovod": Part("0.28.1", "build"),
        "packaging": Part("23.2", "pip"),
        "wheel": Part("0.42.0", "pip"),
        "setuptools": Part("66.1.1", "system"),
    }
    mpi = {"HOROVOD_WITH_MPI": "1", "HOROVOD_CPU_OPERATIONS": "MPI"}
    tensorflow = {"tensorflow": Part("2.12.1", "pip"), "numpy": Part("1.23.5", "pip")}
    facts: dict[str, Value] = {"arch": "x86_64", "glibc": "2.36", "os": "debian 12"}
    yield Stack(
        "Horovod 0.28.1, tensorflow-cpu 2.12.1",
        _RUN,
        {**system, **tensorflow},
        facts,
        {**TENSORFLOW_ONLY, **mpi},
    )
    yield Stack(
        "Horovod 0.28.1, torch 2.13.0, C++17",
        _RUN,
        {**system, "pytorch": Part("2.13.0", "pip")},
        facts,
        TORCH_ONLY,
    )
    yield Stack(
        "Horovod 0.28.1 compiled for NCCL",
        _RUN,
        {
            **system,
            **tensorflow,
            "cuda": Part("13.0.0", "system"),
            "nccl": Part("2.27.7", "system"),
        },
        facts,
        {**TENSORFLOW_ONLY, "HOROVOD_GPU_OPERATIONS": "NCCL"},
    )


def documents() -> Iterator[Stack]:
    """What the documents build, with the Horovod of their day where they name none."""
    power = modules(gcc="7.3.0", cuda="9.2.88", python="3.6.6")
    build = {"horovod": Part("0.18.2", "build")}
    yield Stack(
        "000: WMLCE with Horovod on DDL",
        "document 000",
        {
            **modules(tensorflow="1.14.0", pytorch="1.1.0", ddl="1.4.0", spectrum_mpi="10.3"),
            **modules(cudatoolkit="10.1.168", cuda="10.1.168", gcc="7.3.0", python="3.6.9"),
            **build,
        },
        {**_POWER9, "backend": "conda"},
        {"HOROVOD_CUDA_HOME": "/conda", "HOROVOD_GPU_ALLREDUCE": "DDL"},
    )
    yield Stack(
        "001: NCCL, with the Open MPI that the toolchain brings",
        "document 001",
        {
            **power,
            **modules(tensorflow="1.14.0", nccl="2.3.7", openmpi="3.1.1", cmake="3.12.1"),
            **build,
        },
        POWER9,
        {**TENSORFLOW_ONLY, "HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_WITH_MPI": "1"},
    )
    yield Stack(
        "001: MPI",
        "document 001",
        {
            **power,
            **modules(tensorflow="1.14.0", nccl="2.3.7", openmpi="3.1.4", cmake="3.12.1"),
            **build,
        },
        POWER9,
        {**TENSORFLOW_ONLY, **MPI_OPERATIONS, "HOROVOD_WITH_MPI": "1"},
    )
    own_torch = {
        **power,
        **modules(openmpi="3.1.4", cudnn="7.1.4.18", cmake="3.11.4"),
        "pytorch": Part("1.7.1", "build"),
        "horovod": Part("0.21.3", "build"),
    }
    yield Stack(
        "002: MPI",
        "document 002",
        own_torch,
        POWER9,
        {**TORCH_ONLY, "HOROVOD_GPU_ALLREDUCE": "MPI"},
    )
    yield Stack(
        "002: NCCL",
        "document 002",
        {**own_torch, **modules(nccl="2.3.7")},
        POWER9,
        {**TORCH_ONLY, "HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_GPU_BROADCAST": "NCCL"},
    )


def everything() -> tuple[Stack, ...]:
    sources = (generations, site_modules, easybuild_modules, wmlce, open_ce, runs, documents)
    return tuple(stack for source in sources for stack in source())


# Shipped, and refused all the same: (a part of the stack's name, the row, why that is right).
EXCEPTIONS = (
    ("2019a", "OMPI-001", "this generation ships the very release that hangs"),
    (
        "WMLCE 1.7.0 on x86_64",
        "OMPI-001",
        "IBM's x86_64 packages bring the very release that hangs",
    ),
)
