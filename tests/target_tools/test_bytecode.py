"""bytecode: what one environment compiled serves the next, unless it is not what it says."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from target_environments import TOOLS, install

from tests.small_disk import fill, small_disk

__all__ = ["small_disk"]

SOURCES = {
    "demo/__init__.py": "",
    "demo/deep/__init__.py": "",
    "demo/deep/module.py": "VALUE = 'one'\n\n\ndef where():\n    pass\n",
    "demo/template.py": "{{ no python }}\n",
}
COMPILED = sorted(name for name in SOURCES if "template" not in name)
LOOK = (
    "import json; from demo.deep import module as m; "
    "print(json.dumps([m.VALUE, m.where.__code__.co_filename, m.__cached__]))"
)


@dataclass(frozen=True)
class Place:
    """A virtualenv with packages, and a cache that it shares with others."""

    path: Path
    python: Path
    packages: Path
    cache: Path

    def run(self, *words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        settings = {"ENVBUILD_BYTECODE_CACHE": str(self.cache), **env}
        return subprocess.run(
            [self.python, "-I", "-W", "ignore", *words],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, name: str = "demo", **sources: str) -> None:
        """Write a package; its metadata lists what lies in the folder of its name."""
        for each, text in {**SOURCES, **sources}.items():
            (self.packages / each).parent.mkdir(parents=True, exist_ok=True)
            (self.packages / each).write_text(text, encoding="utf-8")
        install(self.packages, name, "1.0")

    def settle(self, *wheels: str, **env: str) -> str:
        """Compile what is installed of these, or of demo; return what was said."""
        lines = [f"{name}==1.0 --hash=sha256:{digest(name)}\n" for name in wheels or ["demo"]]
        listing = self.path / "requirements.txt"
        listing.write_text("".join(lines), encoding="utf-8")
        done = self.run(TOOLS, "bytecode", listing, **env)
        assert (done.returncode, done.stdout) == (0, "")
        return done.stderr

    def compiled(self) -> list[str]:
        """Return the sources that have bytecode."""
        found = self.packages.rglob("__pycache__/*.pyc")
        names = (each.parent.parent / f"{each.name.partition('.')[0]}.py" for each in found)
        return sorted(str(each.relative_to(self.packages)) for each in names)

    def look(self) -> tuple[str, str, str]:
        """Return a module's value, the file its code says it is from, and its bytecode's."""
        done = self.run("-B", "-c", LOOK)
        value, file, cached = json.loads(done.stdout)
        return value, file, cached

    def archive(self) -> Path:
        (found,) = self.cache.glob(f"{digest('demo')}-*.zip")
        return found


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def place(folder: Path, name: str, python: str = sys.executable) -> Place:
    path = folder / name
    subprocess.run([python, "-m", "venv", "--without-pip", path], check=True)
    (packages,) = path.glob("lib/python*/site-packages")
    return Place(path, path / "bin" / "python", packages, folder / "cache")


def rewrite(archive: Path, **members: bytes) -> None:
    """Replace members of an archive."""
    with zipfile.ZipFile(archive) as old:
        kept = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(archive, "w") as new:
        for name, data in {**kept, **members}.items():
            new.writestr(name, data)


def code_of(where: Place, text: str) -> bytes:
    """Return the bytecode of a source."""
    dumped = f"marshal.dumps(compile({text!r}, '', 'exec'))"
    code = f"import marshal, sys; sys.stdout.buffer.write({dumped})"
    return subprocess.run([where.python, "-c", code], check=True, capture_output=True).stdout


def check_second(tmp_path: Path, python: str) -> None:
    one, two = place(tmp_path, "one", python), place(tmp_path, "two", python)
    one.install()
    assert one.settle() == ""
    assert one.compiled() == COMPILED
    two.install()
    # So that what is found is seen to come from there.
    other = "VALUE = 'kept'\n\n\ndef where():\n    pass\n"
    rewrite(one.archive(), **{"demo/deep/module.py": code_of(one, other)})
    assert two.settle() == ""
    assert two.compiled() == COMPILED
    source = str(two.packages / "demo" / "deep" / "module.py")
    value, file, cached = two.look()
    assert (value, file) == ("kept", source)
    assert Path(cached).exists()


def test_the_second_environment_is_not_compiled(tmp_path: Path) -> None:
    check_second(tmp_path, sys.executable)


def test_nor_is_one_of_an_old_python(tmp_path: Path, old_python: str) -> None:
    check_second(tmp_path, old_python)


def test_a_source_that_changes_later_is_what_counts(tmp_path: Path) -> None:
    one, two = place(tmp_path, "one"), place(tmp_path, "two")
    one.install()
    one.settle()
    two.install()
    two.settle()
    module = two.packages / "demo" / "deep" / "module.py"
    module.write_text(SOURCES["demo/deep/module.py"].replace("one", "changed"), encoding="utf-8")
    assert two.look()[0] == "changed"


def damaged(archive: Path) -> str:
    data = bytearray(archive.read_bytes())
    data[len(data) // 4] ^= 0xFF
    archive.write_bytes(data)
    return ""


def cut_off(archive: Path) -> str:
    archive.write_bytes(archive.read_bytes()[:-50])
    return "File is not a zip file"


def of_another_wheel(archive: Path) -> str:
    index = {"wheel": "0" * 64, "kind": "cpython-399-0000", "sizes": {}}
    rewrite(archive, **{"index.json": json.dumps(index).encode()})
    return f"it belongs to wheel {'0' * 64} and cpython-399-0000"


def without_index(archive: Path) -> str:
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("demo/__init__.py", b"")
    return "\"There is no item named 'index.json' in the archive\""


def with_a_list_as_index(archive: Path) -> str:
    rewrite(archive, **{"index.json": b"[]"})
    return ""


@pytest.mark.parametrize(
    "harm", [damaged, cut_off, of_another_wheel, without_index, with_a_list_as_index]
)
def test_what_is_not_what_it_says_is_refused_and_replaced(tmp_path: Path, harm: object) -> None:
    one, two, three = (place(tmp_path, name) for name in ("one", "two", "three"))
    for each in (one, two, three):
        each.install()
    one.settle()
    assert callable(harm)
    reason = harm(one.archive())
    said = two.settle()
    assert said.startswith("warning: ")
    assert f"refused: {one.archive()}: {reason}" in said
    assert (two.compiled(), two.look()[0]) == (COMPILED, "one")
    assert (three.settle(), three.compiled()) == ("", COMPILED)


def test_a_full_disk_ends_it_and_nothing_cut_off_is_kept(small_disk: Path, tmp_path: Path) -> None:
    """Python's own compiler says nothing, and leaves a file that no other environment can read."""
    one, two = place(small_disk, "one"), place(small_disk, "two")
    long = "".join(f"VALUE_{number} = {number}\n" for number in range(20_000))
    cache = {"ENVBUILD_BYTECODE_CACHE": str(tmp_path / "cache")}
    for each in (one, two):
        each.install(**{"demo/long.py": long})
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - (64 << 10))
    listing = one.path / "requirements.txt"
    listing.write_text(f"demo==1.0 --hash=sha256:{digest('demo')}\n", encoding="utf-8")
    done = one.run(TOOLS, "bytecode", listing, **cache)
    compiled = importlib.util.cache_from_source(one.packages / "demo" / "long.py")
    expected = f"error: No space left on device: {compiled}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    assert not Path(compiled).exists()
    assert not (tmp_path / "cache").exists()
    filler.unlink()
    for each in (one, two):
        assert each.settle(**cache) == ""
        assert each.compiled() == sorted([*COMPILED, "demo/long.py"])
        assert each.run("-c", "import demo.long").stderr == ""


def test_bytecode_that_is_cut_off_is_not_kept(tmp_path: Path) -> None:
    """As another program may leave it: what one environment has, all later ones would get."""
    one = place(tmp_path, "one")
    one.install()
    one.settle()
    one.archive().unlink()
    compiled = Path(importlib.util.cache_from_source(one.packages / "demo/deep/module.py"))
    compiled.write_bytes(compiled.read_bytes()[:-20])
    ask = (
        f"import sys; sys.path[:0] = [{str(TOOLS.parent)!r}]; from pathlib import Path; "
        "from target_tools import bytecode; "
        f"wheel = bytecode.WheelSources({digest('demo')!r}, {str(one.packages)!r}, {COMPILED!r}); "
        f"bytecode.keep(wheel, {str(one.cache)!r})"
    )
    done = one.run("-B", "-c", ask)
    assert done.stderr.startswith("note: ")
    assert f"{one.cache}: marshal data" in done.stderr
    assert list(one.cache.iterdir()) == []


def test_what_others_may_have_written_is_left_out(tmp_path: Path) -> None:
    """Bytecode runs instead of its source, which nobody would read again."""
    one, two = place(tmp_path, "one"), place(tmp_path, "two")
    one.install()
    one.settle()
    two.install()
    rewrite(one.archive(), **{"demo/deep/module.py": code_of(one, "VALUE = 'poisoned'\n")})
    one.cache.chmod(0o777)
    said = two.settle()
    assert said.startswith("warning: ")
    assert str(one.archive()) in said
    assert two.compiled() == COMPILED
    assert two.look()[0] == "one"


def test_a_source_of_another_size_is_compiled(tmp_path: Path) -> None:
    one, two = place(tmp_path, "one"), place(tmp_path, "two")
    one.install()
    one.settle()
    text = SOURCES["demo/deep/module.py"].replace("'one'", "'another'")
    two.install(**{"demo/deep/module.py": text, "demo/more.py": "MORE = 1\n"})
    two.settle()
    assert two.look()[0] == "another"
    assert "demo/more.py" in two.compiled()


def test_a_source_that_two_wheels_bring_is_compiled(tmp_path: Path) -> None:
    """Which of them was unpacked last, nothing tells."""
    one, two = place(tmp_path, "one"), place(tmp_path, "two")
    for where, value in ((one, "one"), (two, "two")):
        where.install(
            **{"demo/deep/module.py": SOURCES["demo/deep/module.py"].replace("one", value)}
        )
        rows = (where.packages / "demo-1.0.dist-info" / "RECORD").read_text(encoding="utf-8")
        install(where.packages, "other", "1.0")
        (where.packages / "other-1.0.dist-info" / "RECORD").write_text(rows, encoding="utf-8")
        where.settle("demo", "other")
        assert where.compiled() == COMPILED
    assert two.look()[0] == "two"


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    one = place(tmp_path, "one")
    one.install()
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = str(tmp_path / "file" / "cache")
    said = one.settle(ENVBUILD_BYTECODE_CACHE=cache)
    assert f"{cache}: Not a directory\n" in said
    assert one.compiled() == COMPILED


@pytest.mark.parametrize(
    ("env", "where"),
    [
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/envbuild/bytecode"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/envbuild/bytecode"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "None"),
    ],
)
def test_where_it_is_kept(tmp_path: Path, env: dict[str, str], where: str) -> None:
    ask = f"import sys; sys.path[:0] = [{str(TOOLS.parent)!r}]; from target_tools import bytecode; "
    done = place(tmp_path, "one").run(
        "-B", "-c", ask + "print(bytecode.cache_folder())", ENVBUILD_BYTECODE_CACHE="", **env
    )
    assert (done.stdout.strip(), done.stderr) == (where, "")


def test_pip_comes_with_its_bytecode(tmp_path: Path) -> None:
    for name in ("one", "two"):
        made = place(tmp_path, name)
        done = made.run(TOOLS, "install-pip")
        assert (done.returncode, done.stderr) == (0, "")
        assert {"pip/__init__.py", "pip/_internal/cli/main.py"} <= set(made.compiled())
        assert made.run("-m", "pip", "--version").stdout.startswith("pip ")
    kept = {each.stat().st_mtime for each in made.cache.iterdir()}
    assert max(kept) < made.packages.stat().st_mtime  # the second has kept nothing anew
