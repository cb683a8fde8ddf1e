"""Which rank is said to have died first, and when nobody can say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from smoke_ranks import LARGE, NONCE, SMALL, Rank

from envbuilder.target_tools import proc
from envbuilder.target_tools.proving.records import RankRecord, read_rank
from envbuilder.target_tools.proving.runner import failed_before, first_death

Record = Callable[[Rank], RankRecord]


@pytest.fixture
def recorded(tmp_path: Path) -> Record:
    def record(rank: Rank) -> RankRecord:
        rank.write(tmp_path)
        found = read_rank(tmp_path / rank.source, NONCE)
        assert isinstance(found, RankRecord), found
        return found

    return record


def test_the_only_one_that_is_lost(recorded: Record) -> None:
    ahead = recorded(Rank(0, stop_in=LARGE))
    assert first_death([ahead], [ahead]) is ahead
    assert first_death([], [ahead]) is ahead


def test_one_is_gone_and_those_that_waited_for_it_are_about_to_be(recorded: Record) -> None:
    waited, behind = recorded(Rank(0, stop_in=LARGE)), recorded(Rank(1, stop_in=SMALL))
    assert first_death([behind], [waited, behind]) is behind


def test_one_that_waited_for_another_did_not_die_first(recorded: Record) -> None:
    """Its end was only seen sooner: the launcher ended it when the other's files were closed."""
    waited, behind = recorded(Rank(0, stop_in=LARGE)), recorded(Rank(1, stop_in=SMALL))
    assert first_death([waited], [waited, behind]) is None


def test_ranks_at_the_same_place(recorded: Record) -> None:
    first, second = recorded(Rank(0, stop_in=LARGE)), recorded(Rank(1, stop_in=LARGE))
    assert first_death([first], [first, second]) is None


def test_several_gone_at_one_look(recorded: Record) -> None:
    first, second = recorded(Rank(0, stop_in=LARGE)), recorded(Rank(1, stop_in=SMALL))
    assert first_death([first, second], [first, second]) is None
    assert first_death([], [first, second]) is None
    assert first_death([], []) is None


def test_what_a_rank_that_failed_takes_with_it_did_not_die_first(recorded: Record) -> None:
    """Its own end may be seen later than that of the others, which the launcher ended."""
    waited = recorded(Rank(0, stop_in=LARGE))
    failed = recorded(Rank(1, stop_in=LARGE, error=("OSError", "no route to host")))
    assert failed.failure is not None
    assert failed_before([waited, failed], failed.failure.time + 0.5)


def test_a_rank_that_fails_as_its_peer_is_gone_failed_later(recorded: Record) -> None:
    lost = recorded(Rank(0, stop_in=LARGE))
    failed = recorded(Rank(1, stop_in=LARGE, error=("RuntimeError", "Connection reset by peer")))
    assert failed.failure is not None
    assert not failed_before([lost, failed], failed.failure.time + 0.1)
    assert not failed_before([lost], 100.0)


def test_a_living_process_is_not_exiting() -> None:
    assert not proc.is_exiting(os.getpid())
    assert not proc.is_exiting(2**22 + 1)
