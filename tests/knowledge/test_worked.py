"""What shipped and worked is not refused; what the documents stumble over is."""

from __future__ import annotations

import pytest

from envbuilder.knowledge.rows import Knowledge

from .stacks import Part, Reader, Stack
from .worked import EXCEPTIONS, documents, everything

STACKS = everything()
BY_NAME = {stack.name: stack for stack in STACKS}


def excepted(stack: Stack) -> set[str]:
    return {row for name, row, _ in EXCEPTIONS if name in stack.name}


def test_every_stack_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(STACKS)


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.name)
def test_what_worked_is_not_refused(known: Knowledge, stack: Stack) -> None:
    assert set(Reader(known).refusals(stack)) == excepted(stack)


def test_every_exception_is_needed() -> None:
    for name, _, why in EXCEPTIONS:
        assert why
        assert any(name in stack.name for stack in STACKS)


def nccl_001() -> Stack:
    return BY_NAME["001: NCCL, with the Open MPI that the toolchain brings"]


def mpi_001() -> Stack:
    return BY_NAME["001: MPI"]


def nccl_002() -> Stack:
    return BY_NAME["002: NCCL"]


def run_of(name: str) -> Stack:
    return next(stack for stack in STACKS if stack.name.startswith(f"Horovod 0.28.1{name}"))


def bare(**parts: Part) -> Stack:
    return Stack("bare", "", {}).changed(**parts)


PIP_TENSORFLOW = Part("1.14.0", "pip")
TOLD = {
    "001 with the Open MPI that it warns of": (
        mpi_001().changed(openmpi=Part("3.1.3")),
        {"OMPI-001"},
    ),
    "001 with the Open MPI that Horovod's advice leads to": (
        mpi_001().changed(openmpi=Part("3.1.2")),
        {"OMPI-005"},
    ),
    "001 with the Open MPI of its toolchain and MPI for the GPU": (
        mpi_001().changed(openmpi=Part("3.1.1")),
        {"OMPI-005"},
    ),
    "001 on an MPI that is known not to read GPU buffers": (
        mpi_001().changed(openmpi=Part("3.1.4", facts={"cuda_aware": False})),
        {"HVD-056"},
    ),
    "001 as 'pip install horovod' would build it today": (
        nccl_001().changed(horovod=Part("0.28.1", "build")),
        {"HVD-026", "HVD-101"},
    ),
    "001 without an MPI": (nccl_001().changed(openmpi=None), {"HVD-120"}),
    "001 without NCCL": (nccl_001().changed(nccl=None), {"HVD-119"}),
    "001 with DDL, off WMLCE": (
        nccl_001().flagged(HOROVOD_GPU_ALLREDUCE="DDL"),
        {"HVD-124"},
    ),
    "001 with the wrapper of PowerAI's MPI": (
        nccl_001().changed(openmpi=None, spectrum_mpi=Part("10.3", facts={"cxx": "xlC_r"})),
        set(),
    ),
    "001 with TensorFlow's wheel and the toolchain's compiler": (
        nccl_001().changed(tensorflow=PIP_TENSORFLOW),
        {"HVD-054"},
    ),
    "001 with TensorFlow's wheel on a Python that has none": (
        nccl_001().changed(tensorflow=PIP_TENSORFLOW, python=Part("3.8.2"), gcc=Part("4.9.4")),
        {"TF-102"},
    ),
    "002 with the Horovod that it would get today": (
        nccl_002().changed(horovod=Part("0.28.1", "build")),
        {"HVD-026"},
    ),
    "002 with a Horovod of before its PyTorch": (
        nccl_002().changed(horovod=Part("0.19.5", "build")),
        {"HVD-009"},
    ),
    "alltoall on an NCCL that cannot": (
        nccl_002().flagged(HOROVOD_GPU_ALLTOALL="NCCL").stated(uses=frozenset({"alltoall"})),
        {"NCCL-002"},
    ),
    "alltoall on the NCCL that hangs": (
        nccl_002()
        .changed(nccl=Part("2.8.3"))
        .flagged(HOROVOD_GPU_ALLTOALL="NCCL")
        .stated(uses=frozenset({"alltoall"})),
        {"NCCL-004"},
    ),
    "alltoall on that NCCL with EasyBuild's patch": (
        nccl_002()
        .changed(nccl=Part("2.8.3", facts={"isend_irecv_patched": True}))
        .flagged(HOROVOD_GPU_ALLTOALL="NCCL")
        .stated(uses=frozenset({"alltoall"})),
        set(),
    ),
    "PyTorch 2.13 with a Horovod that no patch helps": (
        run_of(", torch").changed(horovod=Part("0.24.3", "build")).flagged(HOROVOD_WITH_MPI="1"),
        {"HVD-002"},
    ),
    "a compiler that no patch helps with": (
        mpi_001().changed(gcc=Part("13.2.0"), cuda=Part("12.4.0")),
        {"HVD-003"},
    ),
    "alpha's GPUs with a CUDA from before them": (
        run_of(" compiled").stated(gpu=frozenset({"sm_70"})),
        {"CUDA-004"},
    ),
    "NCCL 2.12 linked into an older Horovod on purpose": (
        nccl_002().changed(nccl=Part("2.12.12")).flagged(HOROVOD_NCCL_LINK="STATIC"),
        {"NCCL-020"},
    ),
    "UCX 1.8.0 over TCP": (
        BY_NAME["2020a with CUDA 11.0.2 on x86_64"].stated(network=frozenset()),
        {"OMPI-013"},
    ),
    "UCX 1.8.0 over InfiniBand": (
        BY_NAME["2020a with CUDA 11.0.2 on x86_64"].stated(network=frozenset({"infiniband"})),
        set(),
    ),
    "Open MPI 4.0.3 on Power under RHEL 8": (
        BY_NAME["2020a with CUDA 11.0.2 on ppc64le"].stated(os="rhel 8.2"),
        {"OMPI-009"},
    ),
    "GCC 16 with the last CUDA of the source": (
        bare(gcc=Part("16.1.0"), cuda=Part("13.3.0")),
        {"CUDA-015"},
    ),
    "GCC 16 with a CUDA after it": (bare(gcc=Part("16.1.0"), cuda=Part("13.4.1")), set()),
    "Keras 3 beside the wheel of TensorFlow 2.14": (
        bare(tensorflow=Part("2.14.1", "pip"), keras=Part("3.5.0", "pip")),
        {"TF-173"},
    ),
    "Keras 2.14 beside it": (
        bare(tensorflow=Part("2.14.1", "pip"), keras=Part("2.14.0", "pip")),
        set(),
    ),
    "PyTorch 1.13 below Lightning 2.5": (
        bare(pytorch_lightning=Part("2.5.0", "pip"), pytorch=Part("1.13.1")),
        {"TORCH-253"},
    ),
    "NumPy 2 beside pyarrow 15": (
        bare(pyarrow=Part("15.0.2", "pip"), numpy=Part("2.0.1")),
        {"PY-036"},
    ),
    "NumPy 2 beside pyarrow 16": (bare(pyarrow=Part("16.0.0", "pip"), numpy=Part("2.0.1")), set()),
    "mpi4py 3 for Python 3.13": (
        bare(mpi4py=Part("3.1.6", "build"), python=Part("3.13.1")),
        {"PY-037"},
    ),
    "UCX 1.12.0 on ROCm": (bare(ucx=Part("1.12.0"), rocm=Part("4.5.0")), {"UCX-001"}),
    "UCX 1.12.1 on ROCm": (bare(ucx=Part("1.12.1"), rocm=Part("4.5.0")), set()),
    "the MPICH of Ubuntu 24.04": (
        bare(mpich=Part("4.2.0", "system")).stated(os="ubuntu 24.04"),
        {"MPI-003"},
    ),
    "the MPICH of Ubuntu 22.04": (
        bare(mpich=Part("4.2.0", "system")).stated(os="ubuntu 22.04"),
        set(),
    ),
    "Maxwell under the wheel of TensorFlow 2.17": (
        bare(tensorflow=Part("2.17.0", "pip")).stated(arch="x86_64", gpu=frozenset({"sm_52"})),
        {"PY-034"},
    ),
}


@pytest.mark.parametrize(("stack", "rows"), TOLD.values(), ids=TOLD)
def test_what_is_known_to_fail_is_refused_unless_cured(
    known: Knowledge, stack: Stack, rows: set[str]
) -> None:
    told = set(Reader(known).refusals(stack))
    flag_rules = {rule.id for rule in known.flag_rules}
    assert told - flag_rules == rows


def test_the_documents_would_be_refused_without_the_choices_that_were_made(
    known: Knowledge,
) -> None:
    """Were a demoted row an error again, a document's stack would be refused: they are needed."""
    demoted = [
        row.id for row in known.advisories if row.demoted and row.id in {"OMPI-003", "CUDA-017"}
    ]
    assert sorted(demoted) == ["CUDA-017", "OMPI-003"]
    harder = tuple(
        row.model_copy(update={"severity": "error"}) if row.id in demoted else row
        for row in known.advisories
    )
    reader = Reader(known.model_copy(update={"advisories": harder}))
    refused = [set(reader.refusals(stack)) & set(demoted) for stack in documents()]
    assert {"OMPI-003", "CUDA-017"} in refused


@pytest.mark.parametrize("component", ["tensorflow", "pytorch"])
def test_no_wheel_that_there_is_is_refused_for_its_python(known: Knowledge, component: str) -> None:
    """The index says for which Pythons a release has wheels: no row may know better."""
    reader = Reader(known)
    refused = []
    seen = 0
    for release in known.releases.get(component, ()):
        for series in release.pythons:
            parts = {component: Part(release.version, "pip"), "python": Part(f"{series}.1")}
            seen += 1
            refused += [
                f"{row}: {component} {release.version}, Python {series}"
                for row in reader.refusals(Stack("wheel", "the index", parts))
            ]
    assert refused == []
    assert seen > 50
