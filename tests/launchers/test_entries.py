"""What every launcher's module is: traits of one piece, words that are pure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envbuilder.errors import UsageError
from envbuilder.launching.launchers import LAUNCHERS, launch_line, launch_words, own_launcher
from envbuilder.launching.schedulers import SCHEDULERS
from envbuilder.model.launch import Host, JobHosts, LaunchRequest, Mpi, Shape
from tests.shipped import read_shipped

SHAPE = Shape(gpus_per_node=2, cores_per_node=8)
PROGRAM = ("bash", "-c", "echo $1", "it's $HOME", "")


def asked(kind: str) -> LaunchRequest:
    """Return a request for two ranks on one node that the launcher can start."""
    traits = LAUNCHERS[kind].TRAITS
    mpi = next(iter(traits.mpi.own_of), None)
    return LaunchRequest(
        kind,
        PROGRAM,
        2,
        scheduler=traits.job.scheduler,
        mpi=Mpi(mpi, "4.1.4") if mpi else None,
        command=() if LAUNCHERS[kind].COMMAND else ("start",),
        shape=SHAPE,
    )


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_traits_are_of_one_piece(kind: str) -> None:
    traits = LAUNCHERS[kind].TRAITS
    assert traits.job.scheduler is None or traits.job.scheduler in SCHEDULERS
    assert not traits.job.job_only or traits.job.scheduler
    assert {*traits.mpi.own_of, *traits.mpi.not_of} <= {*read_shipped().value.fulfilling("mpi")}
    assert not traits.mpi.not_of & set(traits.mpi.own_of)
    assert not traits.line.rdma or traits.mpi.own_of
    # One that belongs to a scheduler is not to be had inside an image.
    assert traits.job.outside_image or traits.job.scheduler is None
    for mpi, command in traits.mpi.own_of.items():
        own = own_launcher(mpi)
        assert own is not None
        assert (own.kind, own.command) == (kind, command)


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_the_program_comes_last_and_as_it_is(kind: str) -> None:
    request = asked(kind)
    line = launch_line(request)
    assert line[-len(PROGRAM) :] == PROGRAM
    assert line == launch_line(request) == (*launch_words(request), *PROGRAM)
    assert line[0] == (LAUNCHERS[kind].COMMAND or ("start",))[0]
    assert all(word and "\n" not in word for word in launch_words(request))


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_the_sites_own_words_take_the_place_of_its_name(kind: str) -> None:
    own = ("/opt/site/start", "--quiet")
    assert launch_line(replace(asked(kind), command=own))[:2] == own


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_values_reach_the_ranks_by_one_way(kind: str) -> None:
    """By ``env`` in front, or by an option."""
    line = launch_words(replace(asked(kind), exports=("X=a b", "PATH")))
    assert sum("X=a b" in word for word in line) == 1
    assert (line[:2] == ("env", "X=a b")) is not LAUNCHERS[kind].TRAITS.line.exports


def line_or_hints(request: LaunchRequest) -> tuple[str, tuple[str, ...]]:
    """Return the line, or what to do where there is none."""
    try:
        return " ".join(launch_words(request)), ()
    except UsageError as error:
        return "", error.problems[0].hints


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_a_number_of_nodes_is_right_or_refused(kind: str) -> None:
    """With several nodes every launcher says how many ranks there are, or why it cannot."""
    hosts = tuple(Host(f"n{number}", 2) for number in range(3))
    for where in (hosts, JobHosts(3, 2), JobHosts(3, 2, "HOSTS", "FIRST:1")):
        request = replace(asked(kind), ranks=6, hosts=where)
        line, hints = line_or_hints(request)
        # ddlrun counts GPUs itself, and is told hosts or nothing.
        assert hints or any(digit in line for digit in "236") or kind == "ddlrun"


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_only_one_that_starts_ranks_anywhere_is_in_an_image(kind: str) -> None:
    request = replace(asked(kind), in_image=True)
    if LAUNCHERS[kind].TRAITS.job.outside_image:
        with pytest.raises(UsageError) as raised:
            launch_line(request)
        assert raised.value.id == "launch.launcher-outside-image"
    else:
        assert launch_line(request)


def test_every_mpi_has_one_launcher_of_its_own() -> None:
    owned = [mpi for each in LAUNCHERS.values() for mpi in each.TRAITS.mpi.own_of]
    assert len(owned) == len(set(owned))
