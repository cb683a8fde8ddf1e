"""Agreement between ranks, without MPI."""

import subprocess
import sys

import pytest

from distributed_dl_training import _core

from fakes import Group


@pytest.mark.parametrize(
    "ranks, text",
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([0, 1, 2, 5], "0-2,5"), ([1, 3, 4], "1,3-4")],
)
def test_fold_ranks(ranks, text):
    assert _core.fold_ranks(ranks) == text


def test_describe_tells_requests_apart():
    assert _core.describe("barrier") == "barrier()"
    assert _core.describe("x", "a", root="1") == "x(name='a', root=1)"
    # A name cannot be made to look like another fact.
    assert _core.describe("x", "a', root=1") != _core.describe("x", "a", root="1")
    assert _core.describe("x", "None") != _core.describe("x", None)


def test_fingerprint_fits_and_is_the_same_in_every_process():
    value = _core.fingerprint("allreduce()")
    assert 0 <= value < 2**63
    code = "from distributed_dl_training import _core; print(_core.fingerprint('allreduce()'))"
    assert int(subprocess.check_output([sys.executable, "-c", code])) == value
    assert _core.fingerprint("\udcff") != _core.fingerprint("\udcfe")  # names from the file system


def test_mismatch_text():
    assert _core.mismatch_text(7, ["b()", "a()", "b()", "b()"]) == (
        "the ranks do not agree on collective number 7:\n"
        "  ranks 0,2-3: b()\n"
        "  rank 1: a()\n"
        "\n"
        "hint: all ranks must make the same calls in the same order with equal arguments"
    )


@pytest.mark.parametrize("size", [1, 2, 5])
def test_agreement_costs_one_reduction(size):
    group = Group(size)
    assert group.run(lambda engine: _core.agree(engine, 0, "same")) == [None] * size
    assert {engine.calls for engine in group.engines} == {0 if size == 1 else 1}


@pytest.mark.parametrize("requests", [["a", "b"], ["a", "a", "b"], ["a", "", "ü", "\udcff"]])
def test_disagreement_is_the_same_error_everywhere(requests):
    group = Group(len(requests))
    errors = group.run(lambda engine: _core.agree(engine, 3, requests[engine.rank]))
    assert [type(error) for error in errors] == [_core.MismatchError] * len(requests)
    assert len({str(error) for error in errors}) == 1
    assert [error.requests for error in errors] == [tuple(requests)] * len(requests)
    again = group.run(lambda engine: _core.agree(engine, 4, "same"))
    assert again == [None] * len(requests)
