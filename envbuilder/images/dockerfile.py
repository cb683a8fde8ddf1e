"""The syntax of a Dockerfile: instructions, here-documents, and words with variables.

https://docs.docker.com/reference/dockerfile/
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..target_tools.files import parse_json

# Instructions whose lines may be followed by here-documents.
_WITH_DOCUMENTS = ("RUN", "COPY", "ADD")
_WITH_FLAGS = ("FROM", *_WITH_DOCUMENTS)
# A word as a shell ends it, its quotes included.
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:\\.|[^"\\])*"|'[^']*')+""", re.DOTALL)
_DOCUMENT = re.compile(r"(\d*)<<(-?)([^<]*)")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = (
    rf"\$(?:(?P<plain>{_NAME})|"
    rf"\{{(?P<name>{_NAME})(?:(?P<operator>:?[-+])(?P<word>[^}}$\"`\\]*))?\}})"
)
_PIECE = re.compile(
    rf"""{_VARIABLE}
    |'(?P<single>[^']*)'
    |"(?P<double>(?:\\.|[^"\\])*)"
    |\\(?P<escaped>.)
    |(?P<text>[^'"\\$]+|\$(?![({{\w]))""",
    re.VERBOSE | re.DOTALL,
)
# Within double quotes and here-documents, other quotes have no meaning.
_RAW_PIECE = re.compile(
    rf"""{_VARIABLE}
    |\\(?P<escaped>[$"\\])
    |(?P<text>[^\\$]+|\$(?![({{\w])|\\(?=[^$"\\]))""",
    re.VERBOSE | re.DOTALL,
)


class HereDocument(NamedTuple):
    """A here-document; ``expands``: variables in it have their values, as its name is unquoted."""

    word: str
    name: str
    text: str
    expands: bool


class Instruction(NamedTuple):
    """An instruction. ``rest``: its joined line, without the keyword and the flags.

    ``lines``: those of its here-documents, with the delimiters.
    """

    number: int
    keyword: str
    flags: tuple[str, ...]
    rest: str
    documents: tuple[HereDocument, ...] = ()
    lines: tuple[str, ...] = ()
    complete: bool = True
    """False if the file ends within a here-document."""

    def words(self) -> list[str] | None:
        """Return the words of an instruction that is written as a list of JSON."""
        try:
            words = parse_json(self.rest)
        except ValueError:
            return None
        return (
            words
            if isinstance(words, list) and words and all(isinstance(word, str) for word in words)
            else None
        )


def read_instructions(text: str) -> Iterator[Instruction]:
    """Yield each instruction, its lines joined as Docker joins them."""
    lines = iter(enumerate(text.splitlines(), start=1))
    parts: list[str] = []
    begin = 0
    for number, line in lines:
        # Docker drops comments and empty lines, also between the lines of an instruction.
        if line.lstrip().startswith("#") or (not line.strip()):
            continue
        begin = begin if parts else number
        continues = line.rstrip().endswith("\\")
        parts.append(line.rstrip().removesuffix("\\") if continues else line)
        if not continues and "".join(parts).strip():
            yield _with_documents(_instruction(begin, parts), lines)
        parts = parts if continues else []
    if "".join(parts).strip():
        yield _with_documents(_instruction(begin, parts), lines)


def _instruction(number: int, parts: list[str]) -> Instruction:
    keyword, *words = "".join(parts).strip().split(maxsplit=1)
    rest, flags = "".join(words), []
    has_flags = keyword.upper() in _WITH_FLAGS
    while has_flags and (match := re.match(r"(--[a-z]\S*)\s*", rest)):
        flags.append(match[1])
        rest = rest[match.end() :]
    return Instruction(number, keyword.upper(), tuple(flags), rest)


def _with_documents(instruction: Instruction, lines: Iterator[tuple[int, str]]) -> Instruction:
    """Return an instruction with the here-documents that follow its line."""
    if instruction.keyword not in _WITH_DOCUMENTS or instruction.words():
        return instruction
    documents, body = [], []
    for word, dash, quoted_name in _delimiters(instruction.rest):
        name = "".join(shlex.split(quoted_name))
        content: list[str] = []
        for _, line in lines:
            body.append(line)
            if (line.lstrip("\t") if dash else line) == name:
                break
            content.append(line.lstrip("\t") if dash else line)
        else:
            return instruction._replace(complete=False)
        text = "".join(f"{line}\n" for line in content)
        expands = not re.search(r"""["'\\]""", quoted_name)
        documents.append(HereDocument(word, name, text, expands))
    return instruction._replace(documents=tuple(documents), lines=tuple(body))


def _delimiters(rest: str) -> Iterator[tuple[str, bool, str]]:
    """Yield of each here-document its word, whether tabs are dropped, and its quoted name."""
    words = iter(shell_words(rest))
    for word in words:
        match = _DOCUMENT.fullmatch(word)
        name = (match[3] or next(words, "")) if match else ""
        if match and name:
            try:
                if len(shlex.split(name)) == 1:
                    yield word, bool(match[2]), name
            except ValueError:
                continue


def shell_words(text: str) -> list[str]:
    """Return the words of a text as a shell parts them, with their quotes."""
    return _WORD.findall(text)


class Piece(NamedTuple):
    """A part of a word: text, or a variable whose ``operator`` applies ``text`` to it."""

    text: str
    name: str = ""
    operator: str = ""


def read_pieces(text: str, *, raw: bool = False) -> Iterator[Piece]:
    """Yield the parts of a word as Docker reads it. *raw*: quotes have no meaning.

    Raises ValueError for other forms of variables than $NAME, ${NAME}, ${NAME:-WORD} and
    ${NAME:+WORD}.
    """
    position = 0
    while position < len(text):
        match = (_RAW_PIECE if raw else _PIECE).match(text, position)
        if match is None:
            raise ValueError(f"{text[position : position + 20]!r} is not supported there")
        position = match.end()
        group = match.groupdict()
        name = group["plain"] or group["name"]
        if name:
            yield Piece(group["word"] or "", name, group["operator"] or "")
        elif group.get("double") is not None:
            yield from read_pieces(group["double"], raw=True)
        else:
            literal = (group.get("single"), group["escaped"], group["text"])
            yield Piece(next(part for part in literal if part is not None))


def bash_word(pieces: Iterable[Piece]) -> str:
    """Return one word of bash, on one line, with the value that Docker gives to *pieces*."""
    parts = [
        f'"${{{piece.name}{piece.operator}{piece.text}}}"' if piece.name else quote(piece.text)
        for piece in pieces
    ]
    return "".join(parts) or "''"


def quote(text: str) -> str:
    """Return *text* as a word of bash on one line: Apptainer reads a file line by line.

    Apptainer also replaces ``{{ NAME }}``.
    """
    if "\n" not in text and "{{" not in text:
        return shlex.quote(text)
    for character, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("{{", "{\\x7b")):
        text = text.replace(character, escaped)
    return f"$'{text}'"


def evaluate(pieces: Iterable[Piece], values: Mapping[str, str]) -> str:
    """Return the value of *pieces*. Raises KeyError with the name of an unset variable."""
    return "".join(_value(piece, values) for piece in pieces)


def _value(piece: Piece, values: Mapping[str, str]) -> str:
    if not piece.name:
        return piece.text
    value = values.get(piece.name)
    present = bool(value) if piece.operator.startswith(":") else value is not None
    if piece.operator.endswith("+"):
        return piece.text if present else ""
    if piece.operator.endswith("-"):
        return str(value) if present else piece.text
    return values[piece.name]
