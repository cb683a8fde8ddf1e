"""Public failure reports of 2017 to 2026, recreated small: right first, wrong, or a false alarm."""

from __future__ import annotations

from collections import Counter

import pytest
from corpus import diagnosed
from field_cases import LOGS, cases


def test_the_logs_are_those_of_the_index() -> None:
    assert {f"{case.name}.log" for case in cases()} == {path.name for path in LOGS.glob("*.log")}


def test_causes_are_first_and_none_is_wrong() -> None:
    grades = {case.name: case.grade for case in cases()}
    counts = Counter(grades.values())
    assert counts["right"] >= 38, grades
    assert not counts["wrong"], grades


def test_what_is_certain_is_right() -> None:
    """At least 95 % of the first causes that are certain, 75 % of those that are likely."""
    broken = [case for case in cases() if case.first]
    for confidence, share in (("certain", 0.95), ("likely", 0.75)):
        stated = [case for case in broken if case.result.findings[0].confidence == confidence]
        assert len(stated) > 8
        assert sum(case.grade == "right" for case in stated) >= share * len(stated)


def test_a_certain_cause_has_a_second_fact() -> None:
    for finding in (finding for case in cases() for finding in case.result.findings):
        assert finding.confidence != "certain" or finding.confirmed, finding


def test_outcomes() -> None:
    outcomes = {case.name: case.result.outcome for case in cases()}
    assert {outcomes[case.name] for case in cases() if case.first} == {"known"}
    assert {outcomes[case.name] for case in cases() if not case.first} == {"clean", "open"}


def test_a_release_is_read_from_the_log() -> None:
    by_name = {case.name: case.result.facts for case in cases()}
    assert by_name["14-nccl-2283-no-kernel"]["nccl"] == "2.28.3"
    assert by_name["47-aarch64-cpu-wheel"]["arch"] == "aarch64"
    assert by_name["45-conda-cuda-virtual"]["glibc"] == "2.35"
    assert by_name["35-rocm-wheel-vs-system"]["rocm"] == "6.0.1"


def test_an_error_without_a_symptom_is_quoted() -> None:
    result = diagnosed(b"node01:12:34 [0] misc/gen.cc:7 NCCL WARN a thing that nobody knows 0x1f\n")
    (finding,) = result.findings
    assert (result.outcome, finding.id, finding.places[0].line) == ("unexplained", "unexplained", 1)
    assert finding.source == "NCCL or RCCL"
    assert finding.search_words == "thing that nobody knows"


@pytest.mark.parametrize(
    ("text", "title", "words"),
    [
        ("ERROR: Not enough of it\n", "the program", "Not enough of it"),
        ("Collecting x==1\nERROR: Not enough of it\n", "pip or uv", "Not enough of it"),
        ("InternalError: bad thing\n", "the program", "InternalError bad thing"),
        ("import jax\nInternalError: bad thing\n", "TensorFlow, XLA or JAX", "bad thing"),
        (
            "(Worker TP0 pid=7, ip=192.0.2.1) ERROR 04-07 00:57:46 [core.py:45] "
            "n1:1:2 [0] x.cc:9 NCCL WARN bad thing\n",
            "NCCL or RCCL",
            "bad thing",
        ),
    ],
)
def test_an_error_in_a_general_form_has_the_program_of_the_log(
    text: str, title: str, words: str
) -> None:
    (finding,) = diagnosed(text.encode()).findings
    assert (finding.source, finding.id) == (title, "unexplained")
    assert words in (finding.search_words or "")


@pytest.mark.parametrize(
    ("before", "first"), [("", "unexplained"), ("pip install horovod\n", "HVD-020")]
)
def test_an_advisory_needs_the_name_of_its_framework(before: str, first: str) -> None:
    text = f"{before}AttributeError: 'Variable' object has no attribute 'ref'\n"
    assert diagnosed(text.encode()).findings[0].id == first


def test_a_stack_in_which_a_symptom_counts_is_explained_as_a_whole() -> None:
    text = (
        "Fatal error in PMPI_Init: Other MPI error, error stack:\n"
        "MPIR_Init_thread(176)........:\n"
        "MPIDI_OFI_mpi_init_hook(1473): OFI addrinfo() failed\n"
    )
    assert [finding.id for finding in diagnosed(text.encode()).findings] == ["ofi-no-provider"]


def test_a_reason_stands_before_the_failure_that_follows_from_it() -> None:
    text = (
        "Collecting x\nTraceback (most recent call last):\n  File 'setup.py'\n"
        "RuntimeError: nvcc was not found\nFailed building wheel for x\n"
    )
    first, second = diagnosed(text.encode()).findings
    assert (first.id, second.id) == ("unexplained", "pip-build-failed")


@pytest.mark.parametrize(
    "text",
    [
        "error: 0.125\nloss: 0.3\n",
        "pip install horovod\n-- Could NOT find NCCL (missing: NCCL_LIBRARY)\n"
        "-- Could NOT find MPI (missing: MPI_CXX_FOUND)\nSuccessfully built horovod\n",
        "CMake, Apptainer, enroot and Slurm: an error of one of them is no error here\n",
        "an unknown option, a malformed value: these are described in the manual\n",
        "epoch 1/3 error 0.2 loss: 0.5\n",
        "[2026-01-01 10:00:00] [INFO] 3 errors corrected\n",
        "n1:1:2 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : "
        "libnccl-net.so: cannot open shared object file: No such file or directory\n",
        "srun: Job step creation temporarily disabled, retrying (Requested nodes are busy)\n"
        "rank 0 of 4: all done\n",
        "libfabric:1:2::core:core:cuda_hmem_dl_init():499<warn> Failed to dlopen libcuda.so\n",
        "[n1:7] mca_base_component_repository_open: unable to open mca_btl_openib: "
        "librdmacm.so.1: cannot open shared object file: No such file or directory (ignored)\n",
        "ERROR: pip's dependency resolver does not currently take into account all packages.\n",
        "/etc/profile.d/lang.sh: line 19: warning: setlocale: LC_CTYPE: cannot change locale\n",
        "--------------------------------------------------------------------------\n"
        "A deprecated MCA variable value was specified in the environment.\n"
        "--------------------------------------------------------------------------\n",
    ],
)
def test_harmless_lines_raise_no_alarm(text: str) -> None:
    result = diagnosed(text.encode())
    assert not [finding for finding in result.findings if finding.severity == "error"]
    assert result.outcome in ("clean", "open")
