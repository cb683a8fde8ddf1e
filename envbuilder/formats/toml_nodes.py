"""TOML with the place of each key, as nodes like those of YAML."""

from __future__ import annotations

import re
import sys
from typing import Any

from ..documents.source import Source
from ..documents.tree import Items, Node, Pairs, Scalar
from ..errors import DocumentError, Place, Problem
from ..text import shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_HEADER = re.compile(r"\[(\[?)\s*([^\]]+?)\s*\]")
# A text or comment of TOML, or a mark that opens or closes an inline table or a list.
_MARK = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*|,(?:\s|#[^\n]*\n)*(?=\})|[{}\[\]\n]",
    re.DOTALL,
)


def load(source: Source) -> dict[str, Any]:
    """Return the tables. Raises DocumentError.

    A line break or a comma at the end of an inline table, as in TOML 1.1, is no fault.
    """
    try:
        root: dict[str, Any] = tomllib.loads(_in_one_line(source.text))
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        place = Place(source.file, getattr(error, "lineno", 1), getattr(error, "colno", 1))
        problem = Problem("package-list.not-toml", f"not TOML: {shown(str(error))}", place)
        raise DocumentError((problem,)) from error
    return root


def _in_one_line(text: str) -> str:
    """Return a text whose inline tables have no line breaks and no comma at their end."""
    depth = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal depth
        mark = found[0]
        depth = max(0, depth + (mark == "{") - (mark == "}"))
        return "" if depth and mark[0] in "#,\n" else mark

    return _MARK.sub(replaced, text) if re.search(r"\{[^}\n]*\n", text) else text


def nodes(source: Source, root: dict[str, Any]) -> Pairs:
    """Return the tables as nodes: what stands in one value has the place of its key."""
    places = _places(source)

    def node(value: object, path: str, place: Place) -> Node:
        place = places.get(path, place)
        if isinstance(value, list):
            rows = (node(each, f"{path}[{index}]", place) for index, each in enumerate(value))
            return Items(place, tuple(rows))
        if isinstance(value, dict):
            return pairs(value, path, place)
        return Scalar(place, str(value), plain=False)

    def pairs(table: dict[str, object], path: str, place: Place) -> Pairs:
        below = {key: _path(path, key) for key in table}
        return Pairs(
            place,
            tuple(
                (Scalar(places.get(at, place), key, plain=False), node(table[key], at, place))
                for key, at in below.items()
            ),
        )

    return pairs(root, "", Place(source.file, 1, 1))


def _places(source: Source) -> dict[str, Place]:
    """Return the place of each key and header by its path: packages[3].wheels."""
    places: dict[str, Place] = {}
    rows: dict[str, int] = {}

    def in_last_row(path: str) -> str:
        return f"{path}[{rows[path]}]" if path in rows else path

    header = ""
    for number, line in enumerate(source.text.splitlines(), start=1):
        if table := _HEADER.match(line):
            header, place = "", Place(source.file, number, 1)
            *above, last = _path("", table[2]).split(".")
            for part in above:
                header = in_last_row(_path(header, part))
                places.setdefault(header, place)
            path = _path(header, last)
            if table[1]:
                rows[path] = rows.get(path, -1) + 1
            header = in_last_row(path)
            places.setdefault(path, place)
            places.setdefault(header, place)
        elif key := _KEY.match(line):
            places.setdefault(_path(header, key[1]), Place(source.file, number, key.start(1) + 1))
    return places


def _path(above: str, key: str) -> str:
    return f"{above}.{key}".lstrip(".").translate(str.maketrans("", "", "\"' "))
