"""Options of programs that take a password under a name that does not say so: ``curl -u``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .names import one_of, table

_QUOTED = r"\"(?:[^\"\\\n]|\\.){1,1024}\"|'[^'\n]{1,1024}'"
# Words and quoted parts that stand together, as a shell joins them.
_VALUE = rf"(?P<secret>(?:{_QUOTED}|[^\s\"']{{1,1024}}){{1,4}})"

# The names of programs, and what stands before a password that is given to one of them.
_OPTIONS = tuple((programs.split(), pattern) for programs, pattern in table("options"))
_NAMES = sorted({name for programs, _ in _OPTIONS for name in programs})
_PROGRAM = re.compile(rf"(?:{one_of(_NAMES)})(?=[ \t])")
_BY_PROGRAM = {
    name: tuple(
        re.compile(rf"(?<=\s){pattern}{_VALUE}")
        for programs, pattern in _OPTIONS
        if name in programs
    )
    for name in _NAMES
}
# A variable of the shell, another option, what stands for a value in a manual.
_NO_VALUE = re.compile(r"[\"']?(?:\$\{?\w+\}?:?)*[\"']?|[\"']?:[\"']?|-.*|<.*")
_COOKIE = re.compile(r"MIT-MAGIC-COOKIE-1[ \t]{1,20}(?P<secret>[0-9a-fA-F]{16,})")


def of_programs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where passwords lie that a program is started with."""
    for cookie in _COOKIE.finditer(text):
        yield cookie.span("secret")
    begin = end = -1
    programs: set[str] = set()
    for found in _PROGRAM.finditer(text):
        before = text[found.start() - 1 : found.start()]
        if before.isalnum() or before in ("_", ".", "-"):
            continue
        if found.start() >= end:
            yield from _in_line(text, begin, end, programs)
            begin, end, programs = found.end(), _line_end(text, found.start()), set()
        programs.add(found.group())
    yield from _in_line(text, begin, end, programs)


def _line_end(text: str, at: int) -> int:
    """Return where a command ends that may go on behind a backslash at a line's end."""
    end = at
    while (end := text.find("\n", end)) > 0 and text[end - 1] == "\\":
        end += 1
    return end if end >= 0 else len(text)


def _in_line(text: str, begin: int, end: int, programs: set[str]) -> Iterator[tuple[int, int]]:
    for program in sorted(programs):
        for pattern in _BY_PROGRAM[program]:
            for found in pattern.finditer(text, begin, end):
                if not _NO_VALUE.fullmatch(found["secret"]):
                    yield found.span("secret")
