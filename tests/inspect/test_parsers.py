"""Parsers of what others wrote, over inputs that were changed: they read them or refuse them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.parsers import PARSERS, Parser, scratch


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the parsers write where pytest removes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("parsers")))
        scratch.cache_clear()
        yield
    scratch.cache_clear()


@st.composite
def changed(draw: st.DrawFn, parser: Parser) -> bytes:
    """Return an input that begins as one of a parser's, with pieces put into it and cut out."""
    data = draw(st.sampled_from(parser.seeds))
    pieces = st.one_of(
        st.binary(max_size=9), st.sampled_from((*parser.words, b"", b"\0", b"9" * 9))
    )
    for place, length, piece in draw(
        st.lists(st.tuples(st.integers(0, 4096), st.integers(0, 9), pieces), max_size=6)
    ):
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + length :]
    return data


@pytest.mark.parametrize("name", PARSERS)
@given(draw=st.data())
@settings(max_examples=12, deadline=None)
def test_a_changed_input_is_read_or_refused(name: str, draw: st.DataObject) -> None:
    parser = PARSERS[name]
    parser.read(draw.draw(changed(parser)))


@pytest.mark.parametrize("name", PARSERS)
def test_each_begins_with_what_it_reads(name: str) -> None:
    parser = PARSERS[name]
    assert all(parser.read(seed) is not None for seed in parser.seeds)
