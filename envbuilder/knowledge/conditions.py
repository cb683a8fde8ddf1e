"""Conditions of knowledge rows: an expression over facts of a plan, with three values.

``flags.HOROVOD_WITH_MPI == '1' and not mpi.cuda_aware`` is parsed once, when its document is read,
and evaluated against whatever is known. A fact that is not stated makes what depends on it unknown
rather than false (Kleene's logic), so that a row is never dropped for lack of knowledge.

Operators: ``and  or  not  ==  !=  <  <=  >  >=  in  not in`` and brackets. Values: text in quotes,
``true``, ``false`` and lists of text. Order is that of versions: ``glibc >= '2.28'``.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Literal, NamedTuple

from packaging.version import InvalidVersion, Version

from ..base import Line, checked_once

Value = str | bool | frozenset[str]
"""Text (also a version), a yes or no, or a set such as the networks of a site."""

Lookup = Callable[[str], Value | None]
"""Gives the value of a fact by its full name; None: it is not stated."""

FactType = Literal["text", "version", "bool", "set"]


class FactKind(NamedTuple):
    """A fact that conditions may name, its type, and how a user states it."""

    type: FactType
    how: str


FACTS: Mapping[str, FactKind] = {
    "arch": FactKind("text", "always known"),
    "backend": FactKind("text", "always known"),
    "container": FactKind("bool", "always known: whether it is built in an image"),
    "system_site_packages": FactKind("bool", "always known: the recipe's key"),
    "os": FactKind("text", "facts: {os: 'rhel 7.6'} in the site file"),
    "glibc": FactKind("version", "facts: {glibc: '2.17'} in the site file"),
    "kernel": FactKind("version", "facts: {kernel: '4.18'} in the site file"),
    "driver": FactKind("version", "facts: {driver: '440.33'} in the site file"),
    "network": FactKind("set", "facts: {network: [infiniband]} in the site file; [] for none"),
    "gpu": FactKind("set", "facts: {gpu: [sm_70]} in the site file; [] for none"),
    "uses_gpu": FactKind("bool", "always known: whether the recipe asks for GPUs"),
    "peer_memory": FactKind(
        "set", "facts: {peer-memory: [nvidia_peermem]} in the site file; [] for none"
    ),
    "gpudirect": FactKind("bool", "facts: {gpudirect: true} in the site file"),
    "pmi": FactKind("set", "facts: {pmi: [pmi2, pmix]} in the site file: srun --mpi=list"),
    "scheduler": FactKind("text", "scheduler: slurm in the site file"),
    "offline": FactKind("bool", "facts: {offline: true} in the site file"),
    "uses": FactKind("set", "uses: [alltoall] in the recipe; [] for nothing special"),
    "channels": FactKind("set", "always known: the recipe's channels, [] for none"),
}
"""Facts of recipe and site. Beside them there are ``flags.NAME`` (text, '' where it is not set),
``ops.allreduce`` and its like (which library does that operation on GPUs, 'CPU' for none), and
``COMPONENT.fact`` (what is stated of the module that provides it, such as ``mpi.cuda_aware``)."""

NO_LIBRARY = "CPU"
OPERATION_LIBRARIES = (NO_LIBRARY, "MPI", "NCCL", "DDL")
"""What does an operation on GPUs: the values of ``ops.``."""

OPERATIONS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter")
"""What ``ops.`` may be followed by."""

_ORDERS: Mapping[type[ast.cmpop], Callable[[Version, Version], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LONGEST = 500


@dataclass(frozen=True)
class Condition:
    """A parsed condition. ``text`` is what was written."""

    text: str

    def names(self) -> frozenset[str]:
        """Return the full names of all facts that it looks at."""
        return _parsed(self.text).names

    def compared_with(self, name: str) -> frozenset[str]:
        """Return the texts that it compares a fact with, by its full name."""
        return frozenset(text for fact, text in _parsed(self.text).compared if fact == name)

    def evaluate(self, lookup: Lookup) -> bool | None:
        """Return whether it holds; None: that depends on a fact that is not stated."""
        return _truth(_parsed(self.text).value(lookup))

    def unknown(self, lookup: Lookup) -> tuple[str, ...]:
        """Return the facts that are not stated and on which the answer depends, sorted."""
        if self.evaluate(lookup) is not None:
            return ()
        return tuple(sorted(name for name in self.names() if lookup(name) is None))


def parse(text: str) -> Condition:
    """Return the condition. Raises ValueError that says what is wrong, and at which character."""
    if len(text) > _LONGEST:
        raise ValueError(f"the condition has more than {_LONGEST} characters: split the row in two")
    _parsed(text)
    return Condition(text)


ConditionText = Annotated[Line, checked_once(lambda text: parse(text).text)]


@dataclass(frozen=True)
class _Term:
    """A part of a condition: the facts that it looks at, and what gives its value.

    ``compared``: facts with the texts that they are compared with.
    """

    names: frozenset[str]
    value: Callable[[Lookup], Value | None]
    compared: frozenset[tuple[str, str]] = frozenset()


@lru_cache(maxsize=4096)
def _parsed(text: str) -> _Term:
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = getattr(error, "offset", None) or 1
        raise ValueError(f"not a condition, at character {at}: {text!r}") from error
    return _term(tree, text)


def _term(node: ast.expr, text: str) -> _Term:
    """Return the meaning of a part; ValueError at the first one that is none of the language's."""
    if isinstance(node, ast.BoolOp):
        parts = [_term(part, text) for part in node.values]
        names = frozenset().union(*(part.names for part in parts))
        compared = frozenset().union(*(part.compared for part in parts))
        return _Term(names, partial(_combine, parts, isinstance(node.op, ast.Or)), compared)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        part = _term(node.operand, text)
        return _Term(part.names, partial(_negate, part), part.compared)
    if isinstance(node, ast.Compare):
        return _comparison(node, text)
    return _operand(node, text)


def _comparison(node: ast.Compare, text: str) -> _Term:
    if len(node.ops) != 1 or isinstance(node.ops[0], ast.Is | ast.IsNot):
        raise _wrong(node, text, "write one comparison at a time, with == != < <= > >= in")
    sides = (node.left, node.comparators[0])
    left, right = (_operand(side, text) for side in sides)
    for side in sides if type(node.ops[0]) in _ORDERS else ():
        literal = _literal(side)
        if literal is not None and not (isinstance(literal, str) and _version(literal)):
            raise _wrong(side, text, "only versions have an order, such as '2.28'")
    names = left.names | right.names
    texts = frozenset().union(*(_texts(_literal(side)) for side in sides))
    compared = frozenset((name, text) for name in names for text in texts)
    return _Term(names, partial(_compare, left, node.ops[0], right), compared)


def _texts(literal: Value | None) -> frozenset[str]:
    if isinstance(literal, str):
        return frozenset({literal})
    return frozenset() if literal is None or isinstance(literal, bool) else literal


def _operand(node: ast.expr, text: str) -> _Term:
    literal = _literal(node)
    if literal is not None:
        return _Term(frozenset(), lambda _: literal)
    name = _name(node)
    if name is None:
        raise _wrong(node, text, "write a fact, a text in quotes, true, false or a list of texts")
    first, dot, rest = name.partition(".")
    if not dot and first not in FACTS:
        raise _wrong(node, text, f"unknown fact {name}; valid: {', '.join(FACTS)}")
    if dot and (not rest or "." in rest):
        raise _wrong(node, text, f"{name} is not flags.X, ops.X or COMPONENT.fact")
    return _Term(frozenset({name}), lambda lookup: lookup(name))


def _wrong(node: ast.expr, text: str, why: str) -> ValueError:
    return ValueError(f"not a condition, at character {node.col_offset + 1}: {text!r}: {why}")


_LITERALS: Mapping[str, bool] = {"true": True, "false": False}


def _literal(node: ast.expr) -> Value | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return _LITERALS.get(node.id)
    if isinstance(node, ast.List | ast.Tuple):
        parts = [part.value for part in node.elts if isinstance(part, ast.Constant)]
        if len(parts) == len(node.elts) and all(isinstance(part, str) for part in parts):
            return frozenset(str(part) for part in parts)
    return None


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        # A component's hyphen cannot stand in a name: spectrum_mpi.cuda_aware.
        owner = node.value.id
        return f"{owner if owner in ('flags', 'ops') else owner.replace('_', '-')}.{node.attr}"
    return None


def _truth(value: Value | None) -> bool | None:
    return None if value is None else bool(value)


def _negate(part: _Term, lookup: Lookup) -> bool | None:
    truth = _truth(part.value(lookup))
    return None if truth is None else not truth


def _combine(parts: Sequence[_Term], decisive: bool, lookup: Lookup) -> bool | None:
    """Return ``or`` of the parts where True decides, ``and`` where False does."""
    unknown = False
    for part in parts:
        truth = _truth(part.value(lookup))
        if truth is decisive:
            return decisive
        unknown = unknown or truth is None
    return None if unknown else not decisive


def _compare(one: _Term, by: ast.cmpop, other: _Term, lookup: Lookup) -> bool | None:
    left, right = one.value(lookup), other.value(lookup)
    if left is None or right is None:
        return None
    if isinstance(by, ast.Eq | ast.NotEq):
        return (left == right) is isinstance(by, ast.Eq)
    if isinstance(by, ast.In | ast.NotIn):
        if isinstance(left, bool) or isinstance(right, bool):
            return None
        return _contained(left, right) is isinstance(by, ast.In)
    low, high = (_version(each) if isinstance(each, str) else None for each in (left, right))
    return None if low is None or high is None else _ORDERS[type(by)](low, high)


def _contained(left: str | frozenset[str], right: str | frozenset[str]) -> bool:
    if isinstance(left, str):
        return left in right
    # A set in a set: do they share anything ("gpu in ['sm_35', 'sm_37']").
    return isinstance(right, frozenset) and not left.isdisjoint(right)


_LEADING = re.compile(r"\d+(\.\d+)*")


def _version(text: str) -> Version | None:
    """Return the leading number (4.18.0 of a kernel's 4.18.0-193.el8); None: there is none."""
    leading = _LEADING.match(text)
    try:
        return Version(leading[0]) if leading else None
    except InvalidVersion:
        return None
