"""Which rank is said to have died first, and when nobody can say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from smoke_ranks import LARGE, NONCE, SMALL, Rank

from envbuilder import process
from envbuilder.smoke.records import RankRecord, read_rank
from envbuilder.smoke.watch import first_death

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


def test_a_living_process_is_not_exiting() -> None:
    assert not process.is_exiting(os.getpid())
    assert not process.is_exiting(2**22 + 1)
