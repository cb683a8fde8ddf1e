"""Parsers of what others wrote, over inputs that were changed: they read them or refuse them.

Everything that others wrote and envbuild reads is in PARSERS.
"""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from types import FrameType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import foreign
from tests.fuzz.parsers import PARSERS as INSTALLED
from tests.fuzz.parsers import Parser, scratch

PARSERS = {**INSTALLED, **foreign.FOREIGN}
# Seconds after which a parser hangs.
SECONDS = 60
# A word, a text in quotes or a sign: what a format is made of.
TOKEN = re.compile(rb'"[^"\n]*"|[\w./+-]+|[^\w\s]')


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the parsers write where pytest removes it."""
    caches = (scratch, foreign.folder, foreign.engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("parsers")))
        for each in caches:
            each.cache_clear()
        yield
    if foreign.engine.cache_info().currsize:
        foreign.engine().close()
    for each in caches:
        each.cache_clear()


@st.composite
def changed(draw: st.DrawFn, parser: Parser) -> bytes:
    """Return an input that begins as one of a parser's, with pieces put into it and cut out."""
    data = draw(st.sampled_from(parser.seeds))
    pieces = st.one_of(
        st.binary(max_size=9), st.sampled_from((*parser.words, b"", b"\0", b"9" * 9))
    )
    for whole, place, length, piece in draw(
        st.lists(
            st.tuples(st.booleans(), st.integers(0, 4096), st.integers(0, 9), pieces), max_size=6
        )
    ):
        tokens = [match.span() for match in TOKEN.finditer(data)] if whole else []
        at = place % (len(data) + 1)
        begin, end = tokens[place % len(tokens)] if tokens else (at, at + length)
        data = data[:begin] + piece + data[end:]
    return data


def limited(read: Callable[[bytes], object], data: bytes) -> object:
    """Return what a parser returns. Raises TimeoutError if it hangs."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"did not end within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return read(data)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read_changed(parser: Parser, count: int) -> None:
    @given(changed(parser))
    @settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[*HealthCheck],
        phases=(Phase.reuse, Phase.generate),
    )
    def run(data: bytes) -> None:
        limited(parser.read, data)

    run()


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.sample(10)
def test_a_changed_input_is_read_or_refused(name: str) -> None:
    parser = PARSERS[name]
    read_changed(parser, 3 if parser.slow else 12)


@pytest.mark.long
@pytest.mark.parametrize("name", PARSERS)
def test_300_changed_inputs_are_read_or_refused(name: str) -> None:
    read_changed(PARSERS[name], 300)


@pytest.mark.parametrize("name", PARSERS)
def test_each_begins_with_what_it_reads(name: str) -> None:
    parser = PARSERS[name]
    assert all(limited(parser.read, seed) is not None for seed in parser.seeds)
