"""Spack's package.py: versions, and what ``depends_on`` and ``conflicts`` say of others.

https://spack.readthedocs.io, "Package Creation Guide". The file is Python; its directives are read
as data, and nothing of it is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..documents.source import Source
from ..knowledge.ranges import ANY_VERSION
from .spack_yaml import spec_bounds

_RELEASE = re.compile(r"(\d[\w.]*?)(?:-\d+)?")
_SPEC = re.compile(r"(?P<version>@=?[\w.,:=-]+)?(?P<rest>.*)", re.DOTALL)
_OTHER = re.compile(r"[%^]?(?P<name>[a-z][\w-]*)(?P<version>@=?[\w.,:=-]+)?(?P<rest>.*)", re.DOTALL)
_DIRECTIVES = frozenset({"depends_on", "conflicts"})


class SpackStatement(NamedTuple):
    """A directive about another package: releases of both, as bounds.

    ``forbids``: conflicts; otherwise the package needs these releases of the other one.
    ``condition``: variants and platforms for which alone it holds, '' for none. ``build``: the
    other one is only used for building.
    """

    bounds: str
    package: str
    package_bounds: str
    forbids: bool
    condition: str
    build: bool
    line: int


class SpackPackage(NamedTuple):
    """The releases of a package, newest first, and its statements."""

    releases: tuple[str, ...]
    statements: tuple[SpackStatement, ...]


def read(source: Source) -> SpackPackage | None:
    """Return what a package.py states; None: it is not Python."""
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    releases = list(_tables(tree))
    statements: list[SpackStatement] = []
    for directive in _calls(tree.body, _Directive(ast.Call(ast.Name(""), [], []))):
        call = directive.call
        name = getattr(call.func, "id", "")
        if name == "version":
            releases += _release(_text(call.args[:1]))
        elif name in _DIRECTIVES:
            statements += _statement(directive, forbids=name == "conflicts")
    return SpackPackage(tuple(dict.fromkeys(releases)), tuple(statements))


def _tables(tree: ast.Module) -> Iterator[str]:
    """Yield the versions of the tables of binary packages such as CUDA: {"13.3.0": {...}}."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == "_versions":
                for key in node.value.keys:
                    yield from _release(_text([key]))


def _release(text: str | None) -> Iterator[str]:
    found = _RELEASE.fullmatch(text or "")
    if found:
        yield found[1]


class _Directive(NamedTuple):
    """A call with the conditions of the blocks around it, and the type that they state."""

    call: ast.Call
    conditions: tuple[str | None, ...] = ()
    type: ast.expr | None = None


def _calls(body: Sequence[ast.stmt], outer: _Directive) -> Iterator[_Directive]:
    """Yield the directives of classes."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield outer._replace(call=node.value)
        elif isinstance(node, ast.ClassDef):
            yield from _calls(node.body, outer)
        elif isinstance(node, ast.With):
            inner = outer
            for item in node.items:
                call = item.context_expr
                name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
                if isinstance(call, ast.Call) and name == "when":
                    conditions = (*inner.conditions, _text(call.args[:1]))
                    inner = inner._replace(conditions=conditions)
                elif isinstance(call, ast.Call) and name == "default_args":
                    inner = inner._replace(type=_keyword(call, "type") or inner.type)
            yield from _calls(node.body, inner)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def _text(nodes: Sequence[ast.expr | None]) -> str | None:
    """Return a text; None: it is computed."""
    node = nodes[0] if nodes else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _statement(directive: _Directive, forbids: bool) -> Iterator[SpackStatement]:
    """Yield the statement of a directive, if its version ranges can be read."""
    call = directive.call
    when = _keyword(call, "when")
    clauses = (*directive.conditions, "" if when is None else _text([when]))
    bounds, conditions = [], []
    for clause in clauses:
        found = _SPEC.fullmatch(clause) if clause is not None else None
        if found is None:
            return
        if found["version"]:
            bounds.append(_bounds(found["version"]))
        conditions.append(found["rest"].strip())
    other = _OTHER.fullmatch(_text(call.args[:1]) or "")
    if other is None or None in bounds:
        return
    of_other = _bounds(other["version"]) if other["version"] else ANY_VERSION
    if of_other is None:
        return
    yield SpackStatement(
        bounds=",".join(filter(None, bounds)) or ANY_VERSION,
        package=other["name"],
        package_bounds=of_other,
        forbids=forbids,
        condition=" ".join(filter(None, [*conditions, other["rest"].strip()])),
        build=_is_for_building(directive, forbids),
        line=call.lineno,
    )


def _is_for_building(directive: _Directive, forbids: bool) -> bool:
    """Whether a dependency has the type build alone, or a conflict is about a compiler."""
    if forbids:
        return (_text(directive.call.args[:1]) or "").startswith("%")
    kind = _keyword(directive.call, "type") or directive.type
    names = kind.elts if isinstance(kind, ast.Tuple | ast.List) else [kind]
    return [_text([each]) for each in names] == ["build"]


def _bounds(version: str) -> str | None:
    """Return a range of Spack without the revisions of its ends: @:2.27.5-1."""
    return spec_bounds(re.sub(r"-\d+(?=:|$)", "", version))
