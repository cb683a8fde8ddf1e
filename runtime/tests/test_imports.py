"""Modules of the core import each other without a circle, imports for types included."""

import ast
from pathlib import Path
from typing import Dict, List, Set

import distributed_dl_training

_HOME = Path(distributed_dl_training.__file__).parent
_PACKAGE = "distributed_dl_training"


def _imports() -> Dict[str, Set[str]]:
    """Return what each module imports at its top, by their names in the package."""
    names = {
        ".".join(path.relative_to(_HOME.parent).with_suffix("").parts): path
        for path in _HOME.rglob("*.py")
        if "_alias" not in path.parts
    }
    found: Dict[str, Set[str]] = {}
    for name, path in names.items():
        short = name[: -len(".__init__")] if name.endswith(".__init__") else name
        wanted = found.setdefault(short, set())
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or (
                node.col_offset and not _for_types(tree, node)
            ):
                continue
            module = node.module or ""
            for each in node.names:
                whole = f"{module}.{each.name}"
                wanted.add(whole if whole in names or f"{whole}.__init__" in names else module)
    return {
        name: {one for one in wanted if one in found and one not in (name, _PACKAGE)}
        for name, wanted in found.items()
    }


def _for_types(tree: ast.Module, node: ast.AST) -> bool:
    """Tell whether a node stands under ``if TYPE_CHECKING``."""
    for top in tree.body:
        if isinstance(top, ast.If) and node in ast.walk(top):
            return True
    return False


def _circle(imports: Dict[str, Set[str]]) -> List[str]:
    """Return a circle of imports, empty if there is none."""
    done: Set[str] = set()

    def visit(name: str, path: List[str]) -> List[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        for each in sorted(imports[name]):
            found = visit(each, [*path, name])
            if found:
                return found
        done.add(name)
        return []

    for name in sorted(imports):
        found = visit(name, [])
        if found:
            return found
    return []


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_there_is_no_circle() -> None:
    imports = _imports()
    assert f"{_PACKAGE}._core" in imports[f"{_PACKAGE}._handle"]
    assert _circle(imports) == []
