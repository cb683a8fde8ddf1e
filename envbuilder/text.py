"""Putting words that somebody else wrote into a message: safe, short, with the nearest name."""

from __future__ import annotations

from collections.abc import Iterable

# How much of a document's text a message repeats, in characters.
SHORT = 60
LONG = 240

# So many lines of a log's end a message repeats.
LAST_LINES = 12

# Columns of a terminal.
WIDTH = 80

# Longer texts are no misspelt names, and comparing them is slow.
_COMPARABLE = 64


def shown(text: str, limit: int = SHORT) -> str:
    """Return *text* on one line: what cannot be printed is escaped, what is too long is cut."""
    cut = text[: limit + 1]
    safe = "".join(c if c.isprintable() else _escaped(c) for c in cut[:limit])
    return safe + "..." if len(cut) > limit else safe


def printable(text: str) -> str:
    """Return lines of text in which what cannot be printed, such as a terminal's codes, is escaped.

    Ends of lines and tabs stay.
    """
    if all(line.isprintable() for line in text.split("\n")):
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def nearest(word: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the one of *names* that *word* most likely stands for, or None.

    *cutoff*: how alike they must be, from 0 to 1 for the same.
    """
    from difflib import get_close_matches

    if len(word) > _COMPARABLE:
        return None
    # Case and the kind of hyphen are the most common slips and count for nothing here.
    spelt = {_folded(name): name for name in sorted(names, reverse=True)}
    close = get_close_matches(_folded(word), spelt, n=1, cutoff=cutoff)
    return spelt[close[0]] if close else None


def _folded(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def unknown(what: str, word: str, names: Iterable[str]) -> str:
    """Return ``unknown key 'runtim': did you mean 'runtime'?``, without the question if none is."""
    near = nearest(word, names)
    message = f"unknown {what} '{shown(word)}'"
    return f"{message}: did you mean '{near}'?" if near else message


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Return ``1 node``, ``2 nodes``; *things*: the plural where it has no s alone."""
    return f"{number} {thing}" if number == 1 else f"{number} {things or thing + 's'}"


def filled(begin: str, text: str, indent: int | None = None) -> list[str]:
    """Return *text* behind *begin* in lines of 80 columns; *indent*: of the later lines.

    Longer words, such as paths and links, stay whole to be copied.
    """
    import textwrap

    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=begin,
        subsequent_indent=" " * (len(begin) if indent is None else indent),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [begin.rstrip()]


def last_lines(text: str, number: int = LAST_LINES) -> list[str]:
    """Return the last lines of a log that are not empty, marked as somebody else's words."""
    return [f"  | {line}" for line in text.splitlines() if line.strip()][-number:]
