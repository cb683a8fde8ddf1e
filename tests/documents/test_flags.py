"""Horovod's build variables: each rule on the flags that break it, on those that do not, and on
the releases around its range; the table against what single releases were seen to take."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from envbuilder.knowledge.conditions import Condition, Value
from envbuilder.knowledge.ranges import matches
from envbuilder.knowledge.rows import FlagRule, Knowledge
from envbuilder.resolve.facts import Facts
from envbuilder.resolve.flag_table import reads, takes
from envbuilder.runtimes import RUNTIMES

Flags = Mapping[str, str]

MIXED = {"HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_GPU_BROADCAST": "MPI"}
NOTHING: Flags = {}
EVERYTHING_OUT = {
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def without(flags: Flags, name: str) -> Flags:
    return {key: value for key, value in flags.items() if key != name}


# By id: flags that break the rule, flags that are close and do not, a release in its range, one
# outside (None: it holds for all).
RULES: dict[str, tuple[Flags, Flags, str, str | None]] = {
    "FLAG-001": (
        {"HOROVOD_GPU_OPERATIONS": "NCCL", "HOROVOD_GPU_ALLTOALL": "NCCL"},
        {"HOROVOD_GPU_OPERATIONS": "NCCL"},
        *("0.20.0", "0.19.5"),
    ),
    "FLAG-007": (
        MIXED,
        {**MIXED, "HOROVOD_ALLOW_MIXED_GPU_IMPL": "1"},
        *("0.14.0", None),
    ),
    "FLAG-008": ({**MIXED, "HOROVOD_ALLOW_MIXED_GPU_IMPL": "1"}, MIXED, "0.14.0", "0.13.11"),
    "FLAG-009": (
        {"HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_ALLOW_MIXED_GPU_IMPL": "1"},
        {**MIXED, "HOROVOD_ALLOW_MIXED_GPU_IMPL": "1"},
        *("0.14.0", "0.13.11"),
    ),
    "FLAG-010": (
        {"HOROVOD_GPU_ALLREDUCE": "MPI", "HOROVOD_GPU_ALLGATHER": "NCCL"},
        {"HOROVOD_GPU_ALLREDUCE": "MPI", "HOROVOD_GPU_ALLGATHER": "MPI"},
        *("0.20.0", "0.19.5"),
    ),
    "FLAG-011": ({"HOROVOD_GPU_OPERATIONS": "NCCL"}, NOTHING, "0.19.5", "0.20.0"),
    "FLAG-012": ({"HOROVOD_GPU_ALLTOALL": "MPI"}, NOTHING, "0.19.5", "0.20.0"),
    "FLAG-041": ({"HOROVOD_GPU_REDUCESCATTER": "MPI"}, NOTHING, "0.24.3", "0.25.0"),
    "FLAG-043": (
        {"HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_GPU_BROADCAST": "NCCL"},
        {"HOROVOD_GPU_OPERATIONS": "NCCL"},
        *("0.19.5", None),
    ),
    "FLAG-014": (
        {"HOROVOD_GPU": "CUDA"},
        {"HOROVOD_GPU": "CUDA", "HOROVOD_GPU_OPERATIONS": "NCCL"},
        *("0.19.1", "0.19.0"),
    ),
    **{
        f"FLAG-015-{part}": (
            {f"HOROVOD_WITH_{part}": "1", f"HOROVOD_WITHOUT_{part}": "1"},
            {f"HOROVOD_WITHOUT_{part}": "1"},
            *(inside, outside),
        )
        for part, inside, outside in (
            ("MPI", "0.17.0", "0.16.4"),
            ("GLOO", "0.17.0", "0.16.4"),
            ("TENSORFLOW", "0.13.0", "0.12.1"),
            ("PYTORCH", "0.13.0", "0.12.1"),
            ("MXNET", "0.16.0", "0.15.2"),
            ("NVTX", "0.22.0", "0.21.3"),
        )
    },
    "FLAG-016": ({"HOROVOD_WITH_GLOO": "1"}, {"HOROVOD_WITH_MPI": "1"}, "0.20.0", "0.19.5"),
    "FLAG-017": (
        {"HOROVOD_WITHOUT_MPI": "1", "HOROVOD_WITHOUT_GLOO": "1"},
        {"HOROVOD_WITHOUT_MPI": "1"},
        *("0.17.0", None),
    ),
    "FLAG-018": (
        EVERYTHING_OUT,
        without(EVERYTHING_OUT, "HOROVOD_WITHOUT_PYTORCH"),
        *("0.16.0", None),
    ),
    "FLAG-019": (
        {"HOROVOD_CPU_OPERATIONS": "MPI", "HOROVOD_WITHOUT_MPI": "1"},
        {"HOROVOD_CPU_OPERATIONS": "GLOO", "HOROVOD_WITHOUT_MPI": "1"},
        *("0.17.0", None),
    ),
    "FLAG-020": (
        {"HOROVOD_CPU_OPERATIONS": "GLOO", "HOROVOD_WITHOUT_GLOO": "1"},
        {"HOROVOD_CPU_OPERATIONS": "MPI", "HOROVOD_WITHOUT_GLOO": "1"},
        *("0.17.0", None),
    ),
    "FLAG-021": (
        {"HOROVOD_CPU_OPERATIONS": "CCL"},
        {"HOROVOD_CPU_OPERATIONS": "CCL", "CCL_ROOT": "/opt/ccl"},
        *("0.19.0", "0.18.2"),
    ),
    "FLAG-024": (
        {"HOROVOD_GPU_ALLREDUCE": "MPI", "HOROVOD_WITHOUT_MPI": "1"},
        {"HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_WITHOUT_MPI": "1"},
        *("0.28.1", None),
    ),
    "FLAG-025": (
        {"HOROVOD_GPU_ALLREDUCE": "DDL"},
        {"HOROVOD_GPU_ALLREDUCE": "NCCL"},
        *("0.19.0", "0.18.2"),
    ),
    "FLAG-028": (
        {"HOROVOD_GPU_ALLREDUCE": "MPI", "HOROVOD_NCCL_HOME": "/opt/nccl"},
        {"HOROVOD_GPU_BROADCAST": "NCCL", "HOROVOD_NCCL_HOME": "/opt/nccl"},
        *("0.18.2", None),
    ),
    "FLAG-029": (
        {"HOROVOD_NCCL_HOME": "/opt/nccl", "HOROVOD_NCCL_LIB": "/opt/nccl/lib"},
        {"HOROVOD_NCCL_HOME": "/opt/nccl"},
        *("0.20.0", "0.19.5"),
    ),
    "FLAG-030": (
        {"HOROVOD_NCCL_LINK": "STATIC", "HOROVOD_GPU": "ROCM"},
        {"HOROVOD_NCCL_LINK": "SHARED", "HOROVOD_GPU": "ROCM"},
        *("0.19.5", "0.20.0"),
    ),
    "FLAG-038": (
        {"HOROVOD_WITHOUT_GLOO": "1"},
        {"HOROVOD_WITHOUT_MPI": "1"},
        *("0.20.0", None),
    ),
}
USES: dict[str, Value] = {"uses": frozenset({"elastic"})}

# What a build takes without a word and does not do: never less than an error.
SILENT = {"FLAG-011", "FLAG-012", "FLAG-016", "FLAG-017", "FLAG-018", "FLAG-024", "FLAG-041"}


def rule(known: Knowledge, name: str) -> FlagRule:
    return next(each for each in known.flag_rules if each.id == name)


def holds(row: FlagRule, flags: Flags) -> bool | None:
    return Condition(row.when).evaluate(Facts(USES, flags, RUNTIMES["horovod"]).lookup)


def test_every_rule_has_a_case(known: Knowledge) -> None:
    assert {row.id for row in known.flag_rules} == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_rule(name: str, known: Knowledge) -> None:
    breaking, close, inside, outside = RULES[name]
    row = rule(known, name)
    assert holds(row, breaking) is True
    assert holds(row, close) is False
    assert holds(row, NOTHING) is False
    ranges = (row.range,) if isinstance(row.range, str) else row.range
    assert any(matches(inside, each) for each in ranges)
    assert outside is None or not any(matches(outside, each) for each in ranges)


@pytest.mark.parametrize("name", RULES)
def test_the_flags_of_a_case_are_recorded(name: str, known: Knowledge) -> None:
    breaking, close, _, _ = RULES[name]
    assert {*breaking, *close} <= set(known.flags)


def test_what_is_taken_silently_is_an_error(known: Knowledge) -> None:
    silent = SILENT | {each for each in RULES if each.startswith("FLAG-015")}
    assert {rule(known, name).severity for name in silent} == {"error"}


@pytest.mark.parametrize(
    ("release", "read", "unread"),
    [
        (
            "0.16.4",
            "GPU_ALLREDUCE ALLOW_MIXED_GPU_IMPL CUDA_LIB DDL_HOME NCCL_LINK WITHOUT_MXNET",
            "WITH_MPI WITHOUT_GLOO CPU_OPERATIONS GPU GPU_OPERATIONS",
        ),
        (
            "0.18.2",
            "WITH_MPI WITHOUT_GLOO CPU_OPERATIONS DDL_LIB MPICXX_SHOW WITH_GLOO",
            "GPU ROCM_HOME BUILD_ARCH_FLAGS CMAKE GPU_OPERATIONS",
        ),
        (
            "0.19.5",
            "GPU ROCM_HOME BUILD_ARCH_FLAGS CUDA_INCLUDE WITH_GLOO LOCAL_VERSION",
            "GPU_OPERATIONS GPU_ALLTOALL BUILD_CUDA_CC_LIST DEBUG",
        ),
        (
            "0.20.0",
            "GPU_OPERATIONS GPU_ALLTOALL BUILD_CUDA_CC_LIST NCCL_HOME",
            "CUDA_INCLUDE CUDA_LIB DDL_HOME MPICXX_SHOW WITH_GLOO GPU_REDUCESCATTER",
        ),
        ("0.28.1", "GPU_REDUCESCATTER WITH_NVTX DEBUG SKIP_COMPILE", "WITH_OPENMP DDL_LIB"),
    ],
)
def test_what_a_release_reads(release: str, read: str, unread: str, known: Knowledge) -> None:
    for name in read.split():
        assert reads(known.flags[f"HOROVOD_{name}"], release), name
    for name in unread.split():
        assert not reads(known.flags[f"HOROVOD_{name}"], release), name


@pytest.mark.parametrize(
    ("name", "release", "taken", "refused"),
    [
        ("GPU_ALLREDUCE", "0.13.9", "MPI NCCL", "DDL"),
        ("GPU_ALLREDUCE", "0.13.10", "MPI NCCL DDL", "GLOO nccl"),
        ("GPU_ALLGATHER", "0.19.5", "MPI", "NCCL"),
        ("GPU_ALLGATHER", "0.20.0", "MPI NCCL", "DDL"),
        ("GPU_BROADCAST", "0.18.2", "MPI", "NCCL"),
        ("GPU_BROADCAST", "0.19.0", "MPI NCCL", "DDL"),
        ("GPU_OPERATIONS", "0.28.1", "MPI NCCL", "DDL"),
        ("CPU_OPERATIONS", "0.18.2", "MPI MLSL GLOO gloo", "CCL BOGUS"),
        ("CPU_OPERATIONS", "0.19.1", "MPI MLSL CCL GLOO", "BOGUS"),
        ("CPU_OPERATIONS", "0.19.5", "MPI CCL GLOO mpi", "MLSL"),
        ("CPU_OPERATIONS", "0.28.1", "MPI CCL GLOO", "MLSL NCCL mpi BOGUS"),
        ("WITH_MPI", "0.28.1", "1", "0 true yes"),
        ("NCCL_LINK", "0.28.1", "SHARED static", "DYNAMIC"),
        ("BUILD_CUDA_CC_LIST", "0.28.1", "70 60,70,75", "8.0 90a 60;70"),
        ("GPU", "0.19.1", "CUDA ROCM", "HIP"),
    ],
)
def test_what_a_release_takes(
    name: str, release: str, taken: str, refused: str, known: Knowledge
) -> None:
    flag = known.flags[f"HOROVOD_{name}"]
    for value in taken.split():
        assert takes(flag, release, value), value
    for value in refused.split():
        assert not takes(flag, release, value), value


def test_the_values_of_every_release_are_recorded(known: Knowledge) -> None:
    for name, flag in known.flags.items():
        for release in known.releases[flag.runtime]:
            said = [each for each in flag.values if matches(release.version, each.range)]
            wanted = 1 if flag.kind == "choice" and reads(flag, release.version) else len(said)
            assert len(said) == wanted <= 1, (name, release.version)


def test_homes_are_derived_where_they_are_needed(known: Knowledge) -> None:
    homes = {flag.home_of: flag.derived for flag in known.flags.values() if flag.home_of}
    assert set(homes) == {"nccl", "cuda", "ddl"}

    def derived(of: str, flags: Flags) -> bool | None:
        return Condition(homes[of] or "false").evaluate(
            Facts({}, flags, RUNTIMES["horovod"]).lookup
        )

    assert derived("nccl", {"HOROVOD_GPU_OPERATIONS": "NCCL"})
    assert not derived("nccl", {"HOROVOD_GPU_ALLREDUCE": "MPI"})
    assert derived("cuda", {"HOROVOD_GPU_ALLREDUCE": "MPI"})
    assert not derived("cuda", {"HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_GPU": "ROCM"})
    assert not derived("cuda", NOTHING)
    assert derived("ddl", {"HOROVOD_GPU_ALLREDUCE": "DDL"})
