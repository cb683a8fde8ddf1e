"""The shape of the code, held by reading its imports and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

PACKAGE = Path(__file__).resolve().parent.parent / "envbuilder"
STAGES = {
    "documents",
    "detect",
    "resolve",
    "planning",
    "locking",
    "launching",
    "render",
    "build",
    "smoke",
    "record",
    "root",
}
# Importable by every layer.
GROUND = {"model", "errors", "data", "sources", "process", "text", "__init__"}
# Runs inside the environment that is built; data of the tool, not code of it.
PROGRAMS = PACKAGE / "smoke" / "program"

FILES = sorted(path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PROGRAMS))


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Yield the layer of envbuilder, or the outside module, of every import of a file."""
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            if node.module:
                yield "envbuilder." + node.module.split(".")[0]
            else:
                yield from ("envbuilder." + alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_stage_is_known() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders == STAGES | {"model", "commands", "cli"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_stage_imports_another(path: Path) -> None:
    if layer(path) not in STAGES | GROUND:
        return
    inner = {name.removeprefix("envbuilder.") for name in imports(path) if "envbuilder." in name}
    allowed = GROUND | ({layer(path)} if layer(path) in STAGES else set())
    assert inner <= allowed, f"{path.name} reaches into {inner - allowed}"


def test_the_model_starts_nothing_and_touches_no_file() -> None:
    for path in FILES:
        if layer(path) == "model":
            outside = {name.split(".")[0] for name in imports(path)}
            assert not outside & {"os", "subprocess", "shutil", "socket", "requests", "tempfile"}


STARTERS = {"subprocess", "multiprocessing", "pty", "asyncio"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_processes_start_in_one_module(path: Path) -> None:
    if path.name == "process.py" and path.parent == PACKAGE:
        return
    assert not {name.split(".")[0] for name in imports(path)} & STARTERS
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            starts = node.attr.startswith(
                ("exec", "spawn", "fork", "popen", "system", "posix_spawn")
            )
            assert not (node.value.id == "os" and starts), f"os.{node.attr} in {path.name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_text_is_printed_in_one_module(path: Path) -> None:
    if path.name == "report.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"print in {path.name}:{node.lineno}"
        if isinstance(node, ast.Attribute) and node.attr in {"write", "writelines"}:
            assert ast.unparse(node.value) not in {"sys.stdout", "sys.stderr"}
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"typer.echo", "typer.secho"}:
            # The version is printed before anything heavy is imported, the report included.
            assert path.parent.name == "cli"


def test_only_the_verbs_know_the_stages() -> None:
    for path in FILES:
        if layer(path) in {"cli", "report", "views"}:
            inner = {n.removeprefix("envbuilder.") for n in imports(path) if "envbuilder." in n}
            # Completion of a recipe's name must be quick: it asks the catalogue itself.
            assert not inner & (STAGES - {"root", "build", "detect", "documents"}), path.name


def test_the_tool_and_its_runtime_do_not_import_each_other() -> None:
    assert not any("distributed_dl_training" in set(imports(path)) for path in FILES)
    runtime = PACKAGE.parent / "runtime" / "distributed_dl_training"
    for path in runtime.glob("*.py"):
        assert "envbuilder" not in path.read_text()
