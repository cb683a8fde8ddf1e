"""The tool manifest: what became of a prefix since it was recorded."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.target_tools import manifest

MODULE = "VALUE = [number * 2 for number in range(3)]\n\n\ndef three():\n    return 3\n"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix with a Python, a module, a link, and a name that is not UTF-8."""
    folder = tmp_path / "prefix"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "lib").mkdir()
    (folder / "lib" / "module.py").write_text(MODULE, encoding="utf-8")
    (folder / "lib" / "other.py").write_text("OTHER = 1\n", encoding="utf-8")
    (folder / "lib64").symlink_to("lib")
    (folder / os.fsdecode(b"caf\xe9")).write_text("x", encoding="utf-8")
    return folder


def recorded(prefix: Path) -> Path:
    path = prefix.with_name("manifest.json")
    manifest.write(path, manifest.record(prefix, "published"))
    return path


def compared(prefix: Path, path: Path, *, hashes: bool = False) -> list[str]:
    return list(manifest.compare(prefix, manifest.read(path), hashes))


def test_what_did_not_change_is_not_named(prefix: Path) -> None:
    path = recorded(prefix)
    assert compared(prefix, path) == []
    os.utime(prefix / "lib" / "module.py")
    assert compared(prefix, path) == [], "another time alone is hashed, and found the same"
    assert compared(prefix, path, hashes=True) == []


def append(file: Path) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write("import evil\n")


def swap_with_the_same_size_and_time(file: Path) -> None:
    before = file.stat()
    file.write_text(MODULE.replace("2", "5"), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def link_elsewhere(file: Path) -> None:
    link = file.parent.parent / "lib64"
    link.unlink()
    link.symlink_to("/tmp")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (append, "lib/module.py: 84 bytes, was 72"),
        (swap_with_the_same_size_and_time, "lib/module.py: other content"),
        (Path.unlink, "lib/module.py: missing"),
        (lambda file: file.with_name("evil.pth").write_text("import os"), "lib/evil.pth: added"),
        (lambda file: file.chmod(0o777), "lib/module.py: mode 777, was 644"),
        (link_elsewhere, "lib64: another link"),
        (lambda file: (file.unlink(), os.mkfifo(file)), "lib/module.py: another kind of file"),
    ],
)
def test_what_changed_is_named(prefix: Path, change: Callable[[Path], object], said: str) -> None:
    (prefix / "lib" / "module.py").chmod(0o644)
    path = recorded(prefix)
    change(prefix / "lib" / "module.py")
    (line,) = compared(prefix, path)
    assert line.startswith(said)


def compiled(source: Path, level: int = -1) -> Path:
    return Path(str(py_compile.compile(str(source), doraise=True, optimize=level)))


def test_bytecode_that_a_run_wrote_is_no_change(prefix: Path) -> None:
    path = recorded(prefix)
    run = [prefix / "bin" / "python", "-S", "-c", "import module, other"]
    subprocess.run(run, env={"PYTHONPATH": str(prefix / "lib")}, check=True)
    written = compiled(prefix / "lib" / "module.py", 2)
    assert written.name.endswith(".opt-2.pyc")
    assert len(list((prefix / "lib" / "__pycache__").iterdir())) == 3
    assert compared(prefix, path, hashes=True) == []


def test_bytecode_of_something_else_is_a_change(prefix: Path, tmp_path: Path) -> None:
    """Python would run it: its header says the time and size of the source."""
    source = prefix / "lib" / "module.py"
    path = recorded(prefix)
    poisoned = compiled(source)
    evil = tmp_path / "module.py"
    evil.write_text(MODULE.replace("3\n", "4\n"), encoding="utf-8")
    poisoned.write_bytes(poisoned.read_bytes()[:16] + compiled(evil).read_bytes()[16:])
    (line,) = compared(prefix, path)
    assert line.endswith(".pyc: added")
    poisoned.write_bytes(b"\xff" * 64)
    assert len(compared(prefix, path)) == 1


def test_with_anything_else_changed_nothing_of_the_prefix_is_run(prefix: Path) -> None:
    path = recorded(prefix)
    canary = prefix.with_name("canary")
    python = prefix / "bin" / "python"
    python.unlink()
    python.write_text(f"#!/bin/sh\ntouch {canary}\necho '[true]'\n", encoding="utf-8")
    python.chmod(0o755)
    compiled(prefix / "lib" / "module.py")
    assert len(compared(prefix, path)) == 2
    assert not canary.exists()


def test_bytecode_without_a_source_or_a_python_is_a_change(prefix: Path) -> None:
    (prefix / "bin" / "python").unlink()
    path = recorded(prefix)
    shutil.copyfile(compiled(prefix / "lib" / "module.py"), prefix / "lib" / "lonely.pyc")
    assert [line.partition(":")[0] for line in compared(prefix, path)][-1] == "lib/lonely.pyc"
    (prefix / "lib" / "lonely.pyc").unlink()
    assert len(compared(prefix, path)) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1, "files": {"a": {}}}'])
def test_a_damaged_manifest_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "m").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="."):
        manifest.read(tmp_path / "m")
    assert manifest.read(tmp_path / "none") is None


def test_the_tool_says_what_changed_by_its_exit_code(prefix: Path, tmp_path: Path) -> None:
    tool = [sys.executable, "-I", str(data.TARGET_TOOLS), "manifest"]
    words = [str(prefix), str(tmp_path / "m.json")]
    assert subprocess.run([*tool, "record", *words], check=True).returncode == 0
    assert subprocess.run([*tool, "compare", *words], check=True).returncode == 0
    append(prefix / "lib" / "module.py")
    done = subprocess.run(
        [*tool, "compare", *words, "--hashes"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "lib/module.py: 84 bytes, was 72\n")
