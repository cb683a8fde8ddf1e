"""The tool install-wheels: several pips install what one would."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from target_environments import TOOLS

from envbuilder.target_tools import install_wheels

FILES = {
    "one": {"one.py": "", "shared/who.txt": "one"},
    "two": {"two.py": ""},
    "three": {"three.py": "", "shared/who.txt": "three"},
    "four-more": {"four_more/__init__.py": "", "four_more/data": "x" * 100000},
}


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """Return a folder of wheels beside the requirements that name them."""
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    lines = [f"{name}==1.0 --hash=sha256:{wheel(folder, name)}\n" for name in FILES]
    (tmp_path / "requirements.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def wheel(folder: Path, name: str) -> str:
    """Write a wheel; return its sha256."""
    written = name.replace("-", "_")
    info = f"{written}-1.0.dist-info"
    path = folder / f"{written}-1.0-py3-none-any.whl"
    texts = {
        **FILES[name],
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in texts.items():
            archive.writestr(each, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{each},,\n" for each in texts))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def venv(path: Path, python: str = sys.executable) -> tuple[Path, Path]:
    """Make a virtualenv as build.sh does; return its Python and where packages go."""
    subprocess.run([python, "-m", "venv", "--without-pip", path], check=True)
    program = path / "bin" / "python"
    # What ensurepip would do too, in a tenth of its time.
    subprocess.run([program, "-I", TOOLS, "install-pip"], check=True)
    (packages,) = path.glob("lib/python*/site-packages")
    return program, packages


def run(python: Path, wheelhouse: Path) -> subprocess.CompletedProcess[str]:
    pip = [python, "-I", "-m", "pip", "--isolated", "install", "--no-index", "--no-deps"]
    places = ["--find-links", wheelhouse, "--require-hashes"]
    requirements = wheelhouse.with_name("requirements.txt")
    return subprocess.run(
        [python, "-I", TOOLS, "install-wheels", requirements, wheelhouse, *pip, *places],
        capture_output=True,
        text=True,
        check=False,
    )


def check_all(wheelhouse: Path, python: str) -> None:
    program, packages = venv(wheelhouse.with_name("venv"), python)
    done = run(program, wheelhouse)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, files in FILES.items():
        assert f"{name}-1.0" in done.stdout
        for each, text in files.items():
            if each != "shared/who.txt":
                assert (packages / each).read_text(encoding="utf-8") == text
    one_pip, alone = venv(wheelhouse.with_name("alone"), python)
    listing = wheelhouse.with_name("requirements.txt")
    words = ["install", "--no-index", "--no-deps", "--find-links", wheelhouse, "-r", listing]
    subprocess.run([one_pip, "-I", "-m", "pip", "--isolated", *words], check=True)
    who = [(folder / "shared" / "who.txt").read_text("utf-8") for folder in (packages, alone)]
    assert who[0] == who[1]


def test_all_are_installed_as_by_one(wheelhouse: Path) -> None:
    check_all(wheelhouse, sys.executable)


@pytest.mark.long
def test_by_an_old_python_as_well(wheelhouse: Path, old_python: str) -> None:
    check_all(wheelhouse, old_python)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.sample(2)
def test_one_that_is_not_what_was_locked(wheelhouse: Path, name: str) -> None:
    python, _ = venv(wheelhouse.with_name("venv"))
    requirements = wheelhouse.with_name("requirements.txt")
    lines = requirements.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = [x[:-9] + "00000000\n" if x.startswith(f"{name}==") else x for x in lines]
    requirements.write_text("".join(changed), encoding="utf-8")
    done = run(python, wheelhouse)
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stdout + done.stderr
    assert f"{name}==1.0 from file://" in done.stdout + done.stderr


def test_wheels_that_share_a_file_stay_together(wheelhouse: Path) -> None:
    lines = wheelhouse.with_name("requirements.txt").read_text("utf-8").splitlines(keepends=True)
    groups = install_wheels.together(install_wheels.find(lines, wheelhouse))
    names = [[each.line.partition("==")[0] for each in group] for group in groups]
    assert names == [["one", "three"], ["two"], ["four-more"]]
    shares = install_wheels.share(groups, 2)
    assert sorted(len(each) for each in shares) == [1, 3]
    assert [each.line.partition("==")[0] for each in shares[0]] == ["four-more"]
    assert len(install_wheels.share(groups, 9)) == 3


@pytest.mark.parametrize("line", ["pip==26.0 --hash=sha256:00\n", "unknown==1.0\n", "odd\n"])
def test_one_pip_for_all(wheelhouse: Path, line: str) -> None:
    (wheelhouse / "pip-26.0-py3-none-any.whl").touch()
    lines = wheelhouse.with_name("requirements.txt").read_text("utf-8").splitlines(keepends=True)
    assert install_wheels.find([*lines, line], wheelhouse) == []
