"""The shape of the code, held by reading its imports and calls; layers.py has the table."""

from __future__ import annotations

import ast
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .layers import (
    CHECKOUT,
    INSIDE,
    ROOMS,
    STAGES,
    UNITS,
    circles,
    imports,
    module_name,
    sources,
    unit_of,
    violations,
)

tomllib = pytest.importorskip("tomllib")  # from 3.11 on

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

FILES = sources("envbuilder")
RUNTIME = sources("runtime")


def test_every_file_imports_what_its_unit_may() -> None:
    assert violations(FILES) == []


def test_the_table_has_no_unit_that_is_gone() -> None:
    assert {unit_of(module_name(path)) for path in FILES} == UNITS


def test_no_two_units_import_each_other() -> None:
    assert circles(FILES) == []


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


def some_file(unit: str) -> str:
    """Return the deepest file of a unit: a check that sees only the first folder misses it."""
    own = [path for path in FILES if unit_of(module_name(path)) == unit]
    made_up = f"envbuilder/{unit.replace('.', '/')}/made_up.py"
    return max(own, key=lambda path: (path.count("/"), path), default=made_up)


def planted(path: str, line: str) -> list[str]:
    """Return what the check says of the checkout with one more line in one file."""
    return violations({**FILES, path: f"{FILES.get(path, '')}\n{line}\n"})


FORBIDDEN = [
    # Every stage: a sibling, what is above it, and a room.
    *(
        (some_file(stage), f"from envbuilder.{name} import x")
        for stage in STAGES
        for name in (
            "planning" if stage != "planning" else "resolve",
            "commands",
            "cli",
            *sorted(ROOMS),
        )
    ),
    # Every room: any stage, the order of the stages, another room.
    *(
        (some_file(room), f"from envbuilder.{name} import x")
        for room in sorted(ROOMS)
        for name in ("planning", "process", "commands", *sorted(ROOMS - {room}))
    ),
    *(
        (f"envbuilder/{room.replace('.', '/')}/made_up.py", "import envbuilder.resolve")
        for room in sorted(ROOMS)
    ),
    # What the user sees: neither a stage nor a room.
    *(
        (some_file(top), f"import envbuilder.{name}")
        for top in ("views", "report", "cli")
        for name in ("resolve", "planning", "render.forms", "launchers", "target_tools")
    ),
    ("envbuilder/views/plan.py", "from ..resolve import resolve"),
    ("envbuilder/views/made_up/deeper.py", "from ...resolve import resolve"),
    ("envbuilder/documents/made_up/deeper/still.py", "from .... import resolve"),
    # However it is written.
    ("envbuilder/render/quoting.py", "def f():\n    from ..resolve.engine import solve"),
    ("envbuilder/render/quoting.py", "from .. import resolve"),
    (
        "envbuilder/render/quoting.py",
        "import importlib as i; i.import_module('envbuilder.resolve')",
    ),
    ("envbuilder/model/plan.py", "from .. import process"),
    ("envbuilder/render/quoting.py", "__import__('envbuilder.resolve')"),
    ("envbuilder/errors.py", "from .model.plan import Plan"),
    # A circle between stages that may use one another.
    ("envbuilder/machine/interpreters/__init__.py", "from ..doctor import doctor"),
    # What runs inside a target has a Python and pyelftools.
    *(
        (some_file(unit), line)
        for unit in sorted(INSIDE)
        for line in (
            "from envbuilder.model.plan import Plan",
            "import envbuilder",
            "import requests",
            "from packaging.version import Version",
        )
    ),
    # A folder or module that the table does not name.
    ("envbuilder/made_up/__init__.py", ""),
    ("envbuilder/views_plan.py", "from .resolve import resolve"),
]


@pytest.mark.parametrize(("path", "line"), FORBIDDEN, ids=lambda value: value.replace("\n", " "))
def test_a_planted_import_is_found(path: str, line: str) -> None:
    found = planted(path, line)
    assert found, f"{line!r} in {path} passes"
    assert all(each.startswith(f"{path}: ") for each in found)


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


def test_a_planted_circle_is_found() -> None:
    files = {
        "envbuilder/build/one.py": "from ..record import two",
        "envbuilder/record/two.py": "from ..root.three import x",
        "envbuilder/root/three.py": "import envbuilder.build.one",
    }
    assert circles(files) == ["build <-> record", "build <-> root", "record <-> root"]


def test_what_a_unit_may_import_passes() -> None:
    assert planted("envbuilder/render/quoting.py", "from ..model.plan import Plan") == []
    assert planted("envbuilder/doctor/__init__.py", "from ..interpreters import x") == []
    assert planted(some_file("target_tools"), "import hashlib, elftools.elf") == []
    assert planted("envbuilder/commands/create.py", "from ..launchers import LAUNCHERS") == []


def test_the_model_starts_nothing_and_touches_no_file() -> None:
    for path, text in FILES.items():
        if unit_of(module_name(path)) == "model":
            outside = {name.split(".")[0] for name in imports(path, text)}
            assert not outside & {"os", "subprocess", "shutil", "socket", "requests", "tempfile"}


STARTERS = {"subprocess", "multiprocessing", "pty", "asyncio"}
STARTING = ("os.exec", "os.spawn", "os.fork", "os.popen", "os.system", "os.posix_spawn")
WRITERS = {f"sys.{stream}.{f}" for stream in ("stdout", "stderr") for f in ("write", "writelines")}
# Programs that run inside a target have no process.py beside them, and print to a log there.
TOOL = {path: text for path, text in FILES.items() if unit_of(module_name(path)) not in INSIDE}


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
        echoes = set() if unit_of(module_name(path)) == "cli" else {"typer.echo", "typer.secho"}
        if {ast.unparse(call.func) for call in calls} & {"print", *echoes}:
            found.add(path)
        if attributes(text) & WRITERS:
            found.add(path)
    return found


@pytest.mark.parametrize("line", ["print('x')", "sys.stdout.write('x')", "typer.echo('x')"])
def test_a_planted_print_is_found(line: str) -> None:
    assert printing({"envbuilder/views/x.py": line}) == {"envbuilder/views/x.py"}
