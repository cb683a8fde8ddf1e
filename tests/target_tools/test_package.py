"""target_tools as a whole: what it needs, how its tools start, on the oldest Python as well."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from target_environments import TOOLS, elftools_folder

from envbuilder.target_tools.__main__ import TOOLS as NAMED_TOOLS
from tests.pythons import NAMED, find_python

PYTHONS = list(
    dict.fromkeys([sys.executable, *NAMED, *map(str, filter(None, [find_python("3.6")]))])
)
MODULES = sorted(
    ".".join(path.relative_to(TOOLS.parent).with_suffix("").parts)
    for path in TOOLS.rglob("*.py")
    if path.name not in ("__main__.py", "__init__.py")
)

IMPORT_ALL = """
import importlib, json, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
new = (name.partition(".")[0] for name in set(sys.modules) - before)
files = {name: getattr(sys.modules[name], "__file__", None) for name in new if name in sys.modules}
print(json.dumps({name: file for name, file in files.items() if file}))
"""


# Whoever calls them may have said it for them.
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A folder that has the tools and nothing else of envbuild."""
    shutil.copytree(TOOLS, tmp_path / "target_tools", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("python", PYTHONS)
def test_they_need_the_standard_library_and_pyelftools_alone(python: str, alone: Path) -> None:
    elftools = alone / "tools"
    shutil.copytree(elftools_folder() / "elftools", elftools / "elftools")
    program = f"import sys; sys.path[:0] = [{str(alone)!r}, {str(elftools)!r}]\n{IMPORT_ALL}"
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", program, *MODULES],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    base = subprocess.run(
        [python, "-I", "-c", "import os; print(os.path.dirname(os.__file__))"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    others = {name for name, file in found.items() if not file.startswith(base)}
    assert others == {"target_tools", "elftools"}


def test_the_syntax_is_that_of_python_3_6() -> None:
    for path in TOOLS.rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 6))


@pytest.mark.parametrize("python", PYTHONS)
def test_each_tool_starts_and_says_how_it_is_called(python: str, alone: Path) -> None:
    env = {"PYTHONPATH": str(elftools_folder())}
    for name in NAMED_TOOLS:
        words = [python, *(() if name == "verify" else ("-I",)), "target_tools", name]
        more = ["--help"] if name in ("check", "fetch", "smoke", "verify", "wheel-cache") else []
        words += more or (["too", "many", "words"] if name == "install-pip" else [])
        if name in ("verify", "wheel-cache"):
            words = [word for word in words if word != "-I"]
        if name == "load-libraries":
            continue  # it is started by verify alone
        done = subprocess.run(
            words, cwd=alone, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == (0 if more else 2), (name, done.stderr)
        assert f"target_tools {name}" in done.stdout + done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_without_a_tool_they_are_listed(python: str, alone: Path) -> None:
    for words in ([], ["no-such-tool"]):
        done = subprocess.run(
            [python, "-I", alone / "target_tools", *words],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert [line.split()[0] for line in done.stderr.splitlines()[2:]] == list(NAMED_TOOLS)


@pytest.mark.parametrize("python", PYTHONS)
def test_a_tool_sees_no_module_of_the_folder_it_lies_in(python: str, alone: Path) -> None:
    """Of what lies beside the package, or in it, nothing stands in for a library."""
    for name in ("argparse.py", "json.py", "hashlib.py"):
        (alone / name).write_text("raise SystemExit('the wrong one')\n")
    (alone / "fetch.txt").touch()
    done = subprocess.run(
        [python, "-I", "target_tools", "fetch", "--missing", "fetch.txt", "wheelhouse"],
        cwd=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_those_that_may_leave_nothing_leave_nothing(alone: Path) -> None:
    for words in (["install-pip", "x"], ["smoke", "--help"]):
        subprocess.run(
            [sys.executable, "target_tools", *words],
            cwd=alone,
            env={name: value for name, value in os.environ.items() if name not in NO_BYTECODE},
            capture_output=True,
            check=False,
        )
    # Python compiles the program of a folder before it runs any of it.
    left = {path.name.partition(".")[0] for path in alone.rglob("*.pyc")}
    assert left <= {"__main__"}
