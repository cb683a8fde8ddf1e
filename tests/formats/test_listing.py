"""``conda list``: the channel of each row."""

from __future__ import annotations

from envbuilder.documents.source import source_of
from envbuilder.formats import listing

HEADING = "# Name  Version  Build  Channel\n"


def rows(*lines: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the channels, and the line of each note with the packages before its colon."""
    text = HEADING + "".join(f"{line}\n" for line in lines)
    asked, notes = listing.read(source_of(text.encode(), "list.txt"))
    parts = [note.split(":") for note in notes]
    return asked.channels, [f"{line} {text.strip()}" for _, line, _, text, *_ in parts]


def test_the_channels_of_rows_are_noted() -> None:
    lines = ("a 1 0 one", "b 1 0", "c 1 py_0 two", "d 1 0", "e 1 pypi_0 pypi")
    channels, notes = rows(*lines)
    assert channels == ("one", "defaults", "two")
    # First their order, then the packages of each channel but the first.
    assert notes[0].startswith("2 ")
    assert notes[1:] == ["3 b, d", "4 c"]


def test_one_channel_needs_no_note() -> None:
    assert rows("a 1 0 one", "b 1 0 one") == (("one",), [])
