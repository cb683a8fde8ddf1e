"""Lines nearby: what shows that a program went on, what a general line alone cannot state."""

from __future__ import annotations

import pytest
from corpus import diagnosed

from envbuilder.diagnosis.values import Symptomatic
from envbuilder.diagnosis.view import diagnosis

PMIX = "[node7:4711] PMIX ERROR: PMIX_ERR_NOT_FOUND in file base/a.c at line 7"
SLURMSTEPD = "slurmstepd-node7: error: task/cgroup: task[0] unable to set mask"
PLUGIN = """ERROR:a.b:7: Device plugin configuration error: Exception when calling a.start()
Traceback (most recent call last):
  File "/a/b.py", line 7, in discover
    plugin.start()
RuntimeError: operation cuInit(0) failed: CUDA_ERROR_NO_DEVICE
"""
WHEEL = """Requirement already satisfied: a in /b/site-packages (1.0)
Could not build wheels for a, since package 'wheel' is not installed.
"""
SIZE = "solve: Symbol `limits' has different size in shared object, consider re-linking\n"


def first(text: str) -> Symptomatic:
    return diagnosed(text.encode()).findings[0]


@pytest.mark.parametrize("text", [PMIX, SLURMSTEPD, PLUGIN, SIZE])
def test_a_report_without_an_end_is_a_warning(text: str) -> None:
    result = diagnosed(text.encode())
    assert result.outcome == "open"
    assert {finding.severity for finding in result.findings} == {"warning"}
    assert "Only warnings" in diagnosis(result)


@pytest.mark.parametrize("text", [PMIX, SLURMSTEPD])
def test_a_report_is_an_error_if_the_program_ended_with_one(text: str) -> None:
    result = diagnosed(f"{text}\nsrun: error: node7: task 0: Exited with exit code 1\n".encode())
    assert result.outcome == "unexplained"


def test_a_logged_exception_does_not_hide_the_one_that_ends_the_program() -> None:
    result = diagnosed((PLUGIN + "step\n" + PLUGIN.partition("\n")[2]).encode())
    assert (result.outcome, result.findings[0].places[0].line) == ("known", 10)


def test_nothing_to_build_is_no_failure() -> None:
    assert not diagnosed(WHEEL.encode()).findings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("undefined-symbol", "ImportError: /a/b.so: undefined symbol: abc"),
        ("library-not-found", "a: error while loading shared libraries: libabc.so.7: "
         "cannot open shared object file: No such file or directory"),
        ("module-unknown", 'The following module(s) are unknown: "a/7"'),
        ("gpu-illegal-access", "CUDA error: an illegal memory access was encountered"),
        ("gpu-busy", "CUDA error: all CUDA-capable devices are busy or unavailable"),
        ("gpu-xid", "NVRM: Xid (PCI:0000:07:00): 119, pid=7"),
        ("cxi-resources", "OFI poll failed (a.c:7:b:Input/output error - UNDELIVERABLE)"),
        ("no-gpu", "RuntimeError: No CUDA GPUs are available"),
        ("pip-build-failed", "ERROR: Failed building wheel for a"),
    ],
)  # fmt: skip
def test_a_general_line_alone_is_only_possible(name: str, text: str) -> None:
    finding = first(text)
    assert (finding.id, finding.confidence, finding.confirmed) == (name, "possible", ())


def test_a_second_fact_makes_a_possible_cause_likely() -> None:
    finding = first("OFI poll failed (a.c:7:b:error - UNDELIVERABLE)\nselected provider: cxi0\n")
    assert (finding.id, finding.confidence, len(finding.confirmed)) == (
        "cxi-resources",
        "likely",
        1,
    )


def test_a_line_that_confirms_a_cause_is_no_error_of_its_own() -> None:
    text = (
        "E external/a.cc:7] Loaded runtime CuDNN library: 8.5.0 but source was compiled with: "
        "8.6.0.  CuDNN\njaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library "
        "initialization failed.\n"
    )
    assert [each.id for each in diagnosed(text.encode()).findings] == ["cudnn-older-than-built"]


def test_of_a_long_line_the_end_is_shown_and_searched_for() -> None:
    wrappers = "task: create failed: " * 20
    finding = first(f"docker: {wrappers}volume server answers with odd code\n")
    assert finding.id == "unexplained"
    assert (finding.cause or "").endswith("odd code")
    assert finding.places[0].text[0].endswith("odd code")
    assert "volume server" in (finding.search_words or "")


def test_search_words_contain_no_hash_and_no_quoted_path() -> None:
    finding = first(f'docker: no layer "{"5b1f0c4d" * 8}" below `/home/me/store`: strange\n')
    assert finding.search_words == "docker no layer below strange"


def test_an_advisory_in_an_error_is_an_error() -> None:
    line = "a:544 NCCL WARN NET/OFI Unable to register memory (type = 2) for device 0. RC: -22"
    assert diagnosed(line.encode()).outcome == "known"
