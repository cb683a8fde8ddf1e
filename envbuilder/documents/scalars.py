"""What a scalar without quotes means, and what kind of thing a node is in a user's words.

Only ``true``, ``false``, ``null`` and plain decimal integers are read as anything but text. What
YAML 1.1 or 1.2 readers would take for something else (3.10, yes, 2026-11-21, 0x1f) is neither text
nor usable: it is named, with the advice to quote it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from .tree import Items, Node, Pairs, RefusedValue, Scalar

Kind = Literal["text", "null", "bool", "int", "number", "switch", "date"]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
# YAML 1.1 reads these as true and false, YAML 1.2 does not.
_SWITCH = frozenset(
    spelling
    for word in ("yes", "no", "on", "off")
    for spelling in (word, word.capitalize(), word.upper())
)
# 18 digits fit 64 bits; no document needs more.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(
    r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    r"|[-+]?0[xob][0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")

# Stands for a value that no field accepts; the check then asks the node what it is.
_UNUSABLE = object()


def kind(scalar: Scalar) -> Kind:
    """Return what *scalar* is."""
    text = scalar.text
    if not scalar.plain:
        return "text"
    if text in _NULL:
        return "null"
    if text in _BOOL:
        return "bool"
    if text in _SWITCH:
        return "switch"
    if _INT.fullmatch(text):
        return "int"
    if _NUMBER.fullmatch(text):
        return "number"
    return "date" if _DATE.fullmatch(text) else "text"


def value(node: Node) -> Any:
    """Return *node* as what the models take: text, int, bool, None, tuple or dict."""
    if isinstance(node, Items):
        return tuple(value(item) for item in node.items)
    if isinstance(node, Pairs):
        return {key.text: value(child) for key, child in node.pairs}
    what = kind(node) if isinstance(node, Scalar) else None
    if what == "null" or not isinstance(node, Scalar):
        return None if what else _UNUSABLE
    if what == "bool":
        return node.text.lower() == "true"
    if what == "int":
        return int(node.text)
    return node.text if what == "text" else _UNUSABLE


def in_words(node: Node) -> str:
    """Return what *node* is, as it reads after "not"."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Pairs):
        return "a mapping"
    if isinstance(node, RefusedValue):
        return "something that is not allowed"
    words: dict[Kind, str] = {
        "text": "text",
        "null": "empty",
        "bool": "true or false",
        "int": "a number",
        "number": "a number",
        "switch": "yes or no",
        "date": "a date",
    }
    return words[kind(node)]
