"""The shape of the code, held by reading its imports and calls.

pyproject.toml states the layers; import-linter compares the imports of every file with them.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .layers import CHECKOUT, INSIDE, imports, lacking, sources

tomllib = pytest.importorskip("tomllib")  # from 3.11 on
pytest.importorskip("importlinter", reason="import-linter is not installed")

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

FILES = sources("envbuilder")
RUNTIME = sources("runtime")
LAYERS = "A core and its tools"
CYCLES = "No cycle at any depth"


def broken(checkout: Path) -> set[str]:
    """Return the contracts of import-linter that the files of a checkout break."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    contracts = {line.removesuffix(" BROKEN") for line in lines if line.endswith(" BROKEN")}
    kept = {line for line in lines if line.endswith(" KEPT")}
    assert contracts or (done.returncode == 0 and kept), done.stdout + done.stderr
    return contracts


def test_no_contract_is_broken() -> None:
    assert broken(CHECKOUT) == set()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources in which lines are planted."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        CHECKOUT / "envbuilder", folder / "envbuilder", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(CHECKOUT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("file", "line", "contracts"),
    [
        ("resolve/names.py", "from .resolver import resolve", {CYCLES}),
        ("target_tools/root/layout.py", "def f():\n    from . import publish", {CYCLES}),
        ("diagnosis/search.py", "from ..validate import options", {LAYERS}),
        ("workflow/lock.py", "from ..diagnosis import command", {LAYERS, CYCLES}),
        ("machine/host.py", "from ..documents import load", {LAYERS, CYCLES}),
        ("launching/launchers/srun.py", "from ...resolve import names", {LAYERS}),
        ("runtimes/horovod.py", "from ..workflow import load", {LAYERS, CYCLES}),
        ("target_tools/elf.py", "from .. import files", {LAYERS, CYCLES}),
        ("new_package/__init__.py", "", {LAYERS}),
    ],
)
@pytest.mark.sample(3)
def test_a_planted_import_is_found(copy: Path, file: str, line: str, contracts: set[str]) -> None:
    path = copy / "envbuilder" / file
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        assert broken(copy) == contracts
    finally:
        if before is None:
            shutil.rmtree(path.parent)
        else:
            path.write_text(before, encoding="utf-8")


def test_programs_inside_a_target_import_what_it_has() -> None:
    assert lacking(FILES) == []


@pytest.mark.parametrize(
    "line",
    ["import envbuilder", "import requests", "from packaging.version import Version"],
)
def test_an_import_that_a_target_lacks_is_found(line: str) -> None:
    path = f"{INSIDE}elf.py"
    [found] = lacking({**FILES, path: f"{FILES[path]}\n{line}\n"})
    assert found.startswith(f"{path}: ")


def test_the_runtime_does_not_know_the_tool() -> None:
    assert reaching(RUNTIME, "envbuilder") == []


def test_the_tool_does_not_know_the_runtime() -> None:
    assert reaching(FILES, "distributed_dl_training") == []


# What brings a module, where it is not called so.
_DISTRIBUTIONS = {
    "ClusterShell": "clustershell",
    "cyclonedx": "cyclonedx-python-lib",
    "elftools": "pyelftools",
    "packageurl": "cyclonedx-python-lib",  # needs it
    "pydantic_core": "pydantic",  # needs just one release of it
    "rattler": "py-rattler",
    "yaml": "pyyaml",
}
# In a target, whose plan has it; in pip's own process; for type checkers alone.
_ELSEWHERE = {"mpi4py", "pip", "_typeshed"}


def undeclared(files: dict[str, str]) -> list[str]:
    """Return what files import that an install of envbuild, with all extras for users, lacks."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [each for name, of in extras.items() if name != "test" for each in of]
    brought = {
        canonicalize_name(Requirement(text).name) for text in [*project["dependencies"], *texts]
    }
    own = {"envbuilder", *sys.stdlib_module_names, *_ELSEWHERE}
    own |= {path.rpartition("/")[2].removesuffix(".py") for path in files}
    return [
        f"{path}: {top}"
        for path, text in files.items()
        for top in sorted({name.partition(".")[0] for name in imports(path, text)} - own)
        if canonicalize_name(_DISTRIBUTIONS.get(top, top)) not in brought
    ]


def test_what_is_imported_is_what_an_install_brings() -> None:
    assert undeclared(FILES) == []


def test_an_import_that_no_install_brings_is_found() -> None:
    path = "envbuilder/images/host_mpi.py"
    assert undeclared({path: "import numpy"}) == [f"{path}: numpy"]
    assert undeclared({path: "from elftools.elf import elffile\nimport rattler"}) == []


def reaching(files: dict[str, str], package: str) -> list[str]:
    """Return the files that import a package, wherever in them."""
    return [
        path
        for path, text in files.items()
        if any(name.partition(".")[0] == package for name in imports(path, text))
    ]


@pytest.mark.parametrize(
    "path",
    [
        "runtime/distributed_dl_training/__init__.py",
        "runtime/distributed_dl_training/torch/_compression.py",
        "runtime/distributed_dl_training/launch/_hosts.py",
    ],
)
@pytest.mark.parametrize("line", ["import envbuilder", "from envbuilder.model import plan"])
def test_a_planted_import_in_the_runtime_is_found(path: str, line: str) -> None:
    assert reaching({**RUNTIME, path: f"{RUNTIME[path]}\n{line}\n"}, "envbuilder") == [path]


def test_the_model_starts_nothing_and_touches_no_file() -> None:
    for path, text in FILES.items():
        if path.startswith("envbuilder/model/"):
            outside = {name.split(".")[0] for name in imports(path, text)}
            assert not outside & {"os", "subprocess", "shutil", "socket", "requests", "tempfile"}


STARTERS = {"subprocess", "multiprocessing", "pty", "asyncio"}
STARTING = ("os.exec", "os.spawn", "os.fork", "os.popen", "os.system", "os.posix_spawn")
WRITERS = {f"sys.{stream}.{f}" for stream in ("stdout", "stderr") for f in ("write", "writelines")}
# Programs that run inside a target have no process.py beside them, and print to a log there.
TOOL = {path: text for path, text in FILES.items() if not path.startswith(INSIDE)}


def test_processes_start_in_one_module() -> None:
    assert starting(TOOL) == {"envbuilder/process.py"}


def starting(files: dict[str, str]) -> set[str]:
    """Return the files that start processes by themselves."""
    return {
        path
        for path, text in files.items()
        if {name.split(".")[0] for name in imports(path, text)} & STARTERS
        or any(written.startswith(STARTING) for written in attributes(text))
    }


def attributes(text: str) -> set[str]:
    """Return every attribute that a file names, as it is written: ``os.path.join``."""
    return {
        ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("line", ["import subprocess", "os.execv('ls', [])", "os.system('ls')"])
def test_a_planted_start_is_found(line: str) -> None:
    assert starting({"envbuilder/x.py": line}) == {"envbuilder/x.py"}


def test_text_is_printed_in_one_module() -> None:
    assert printing(TOOL) == set()


def printing(files: dict[str, str]) -> set[str]:
    """Return the files that print by themselves."""
    found = set()
    for path, text in files.items():
        calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
        # The version is printed before anything heavy is imported, the report included.
        echoes = set() if path.startswith("envbuilder/cli/") else {"typer.echo", "typer.secho"}
        if {ast.unparse(call.func) for call in calls} & {"print", *echoes}:
            found.add(path)
        if attributes(text) & WRITERS:
            found.add(path)
    return found


@pytest.mark.parametrize("line", ["print('x')", "sys.stdout.write('x')", "typer.echo('x')"])
def test_a_planted_print_is_found(line: str) -> None:
    assert printing({"envbuilder/views/x.py": line}) == {"envbuilder/views/x.py"}
