"""A prefix is compared with the conda packages that it was to be made of."""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from envbuilder import data
from tests.golden_texts import Golden

FILES = {"one": {"lib/one.so": b"one", "share/one": b"text"}, "two": {"bin/two": b"two"}}


def tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", data.TARGET_TOOLS, "conda-packages", *words]
    return subprocess.run([str(each) for each in command], capture_output=True, text=True)


def package(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.0",
        "build": "0",
        "filename": f"{name}-1.0-0.conda",
        "url": f"https://conda.example/linux-64/{name}-1.0-0.conda",
        "channel": "https://conda.example",
        "sha256": "5" * 64,
        "md5": "6" * 32,
        "size": 9,
    }


def record(name: str, files: dict[str, bytes]) -> dict[str, Any]:
    paths = [
        {"_path": path, "path_type": "hardlink", "sha256": sha256(content).hexdigest()}
        for path, content in files.items()
    ]
    # A file whose prefix was filled in has another hash than it was packed with.
    paths[0] |= {"sha256_in_prefix": paths[0]["sha256"], "sha256": "0" * 64}
    return {
        **{key: package(name)[key] for key in ("name", "version", "build")},
        "url": f"file:///build/{name}-1.0-0.conda",
        "channel": None,
        "extracted_package_dir": "/build/conda-cache",
        "files": [*files],
        "paths_data": {"paths": paths},
    }


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "the prefix"
    for name, files in FILES.items():
        write(folder, f"conda-meta/{name}-1.0-0.json", json.dumps(record(name, files)).encode())
        for path, content in files.items():
            write(folder, path, content)
    write(folder, "conda-meta/history", b"")
    return folder


def write(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def change(prefix: Path, name: str, **said: Any) -> None:
    path = prefix / "conda-meta" / f"{name}-1.0-0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    file = tmp_path / "conda.json"
    said = {"platform": "linux-64", "packages": [package(name) for name in FILES]}
    file.write_text(json.dumps(said))
    return file


def test_what_is_as_packed_is_counted_and_knows_its_channel(
    golden: Golden, prefix: Path, packages: Path
) -> None:
    done = tool("check", prefix, packages)
    assert (done.returncode, done.stderr) == (0, "")
    golden(done.stdout)
    kept = json.loads((prefix / "conda-meta" / "one-1.0-0.json").read_text())
    wanted = package("one")
    assert (kept["url"], kept["channel"]) == (wanted["url"], wanted["channel"])
    assert (kept["fn"], kept["md5"]) == (wanted["filename"], wanted["md5"])
    assert "/build" not in json.dumps(kept)


def test_a_file_that_is_not_as_packed_is_named_with_both_hashes(
    golden: Golden, prefix: Path, packages: Path
) -> None:
    write(prefix, "share/one", b"changed")
    done = tool("check", prefix, packages)
    assert done.returncode == 1
    found, packed = (sha256(each).hexdigest() for each in (b"changed", b"text"))
    golden(done.stderr, found=found, packed=packed)


def test_a_file_whose_prefix_was_filled_in_is_compared_as_it_was_filled_in(
    prefix: Path, packages: Path
) -> None:
    write(prefix, "lib/one.so", b"other")
    assert "lib/one.so of one: " in tool("check", prefix, packages).stderr


@pytest.mark.parametrize("said", [{"path_type": "hardlink"}, {"path_type": "socket"}, {}], ids=str)
def test_a_file_of_which_too_little_is_recorded_is_counted_apart(
    prefix: Path, packages: Path, said: dict[str, str]
) -> None:
    paths = record("one", FILES["one"])["paths_data"]["paths"]
    change(prefix, "one", paths_data={"paths": [paths[0], {"_path": "share/one", **said}]})
    done = tool("check", prefix, packages)
    assert (done.returncode, done.stderr) == (0, "")
    compared, undecided = done.stdout.splitlines()
    assert (compared.split()[0], undecided.split()[0]) == ("2", "1")


def test_a_file_that_is_gone_is_named(golden: Golden, prefix: Path, packages: Path) -> None:
    (prefix / "bin" / "two").unlink()
    done = tool("check", prefix, packages)
    assert done.returncode == 1
    golden(done.stderr)


def test_packages_that_are_missing_or_more_are_named(
    golden: Golden, prefix: Path, packages: Path
) -> None:
    (prefix / "conda-meta" / "two-1.0-0.json").unlink()
    change(prefix, "one", version="1.1")
    golden(*tool("check", prefix, packages).stderr.splitlines())


def test_two_packages_with_one_file_are_refused(
    golden: Golden, prefix: Path, packages: Path
) -> None:
    change(prefix, "two", files=["bin/two", "share/one"])
    done = tool("check", prefix, packages)
    assert done.returncode == 1
    golden(done.stderr)


@pytest.mark.parametrize("kind", ["post-link", "pre-link", "pre-unlink"])
def test_a_package_that_wants_to_run_a_script_is_refused(
    golden: Golden, prefix: Path, packages: Path, kind: str
) -> None:
    change(prefix, "two", files=["bin/two", f"bin/.two-{kind}.sh"])
    done = tool("check", prefix, packages)
    assert done.returncode == 1
    golden(done.stderr, kind=kind)


def test_the_explicit_list_names_the_files_that_were_fetched(
    packages: Path, tmp_path: Path
) -> None:
    done = tool("list", packages, tmp_path / "a folder")
    folder = (tmp_path / "a folder").as_uri()
    assert done.stdout.splitlines() == [
        "@EXPLICIT",
        f"{folder}/one-1.0-0.conda",
        f"{folder}/two-1.0-0.conda",
    ]


FOR_ANY_PYTHON = {
    "site-packages/three/__init__.py": "lib/python3.11/site-packages/three/__init__.py",
    "python-scripts/three": "bin/three",
    "share/three": "share/three",
    "bin/start": "bin/start",
}
START = b"import sys\n\nif __name__ == '__main__':\n\tsys.exit(main())\n"


@pytest.fixture
def conda_made(prefix: Path, packages: Path) -> Path:
    """Return a prefix with a package for any Python, as conda 26.7 records one."""
    said = record("three", dict.fromkeys(FOR_ANY_PYTHON, b"three"))
    *paths, start = said["paths_data"]["paths"]
    paths[0] |= {"sha256": sha256(b"three").hexdigest(), "sha256_in_prefix": None}
    start |= {"path_type": "unix_python_entry_point"}
    del start["sha256"]
    link = {"_path": "lib/link", "path_type": "softlink", "sha256_in_prefix": "7" * 64}
    said["paths_data"]["paths"].append(link)
    said |= {"files": [*FOR_ANY_PYTHON.values(), "lib/link"], "noarch": "python"}
    write(prefix, "conda-meta/three-1.0-0.json", json.dumps(said).encode())
    for name in FOR_ANY_PYTHON.values():
        write(prefix, name, b"three")
    write(prefix, "bin/start", START)
    (prefix / "bin" / "start").chmod(0o775)
    (prefix / "lib" / "link").symlink_to("../share/three")
    listed = json.loads(packages.read_text())
    listed["packages"].append(package("three"))
    packages.write_text(json.dumps(listed))
    return prefix


def test_a_package_for_any_python_is_found_where_it_lies(conda_made: Path, packages: Path) -> None:
    done = tool("check", conda_made, packages)
    assert (done.returncode, done.stderr) == (0, "")
    kept = json.loads((conda_made / "conda-meta" / "three-1.0-0.json").read_text())
    paths = {each["_path"]: each for each in kept["paths_data"]["paths"]}
    assert [*paths] == [*FOR_ANY_PYTHON.values(), "lib/link"]
    # conda's doctor would compare the file that a link leads to with rattler's hash of the link.
    assert "sha256_in_prefix" not in paths["lib/link"]
    again = tool("check", conda_made, packages)
    assert (again.returncode, again.stderr) == (0, "")


def test_what_starts_a_function_is_spelt_as_conda_spells_it(
    conda_made: Path, packages: Path
) -> None:
    assert tool("check", conda_made, packages).returncode == 0
    start = conda_made / "bin" / "start"
    assert start.read_bytes() == START.replace(b"\t", b"    ")
    assert start.stat().st_mode & 0o777 == 0o755
    kept = json.loads((conda_made / "conda-meta" / "three-1.0-0.json").read_text())
    (said,) = (each for each in kept["paths_data"]["paths"] if each["_path"] == "bin/start")
    assert said["sha256"] == sha256(start.read_bytes()).hexdigest()


def test_a_changed_file_of_a_package_for_any_python_is_named_by_its_place(
    conda_made: Path, packages: Path
) -> None:
    write(conda_made, FOR_ANY_PYTHON["site-packages/three/__init__.py"], b"changed")
    (conda_made / "bin" / "three").unlink()
    lines = tool("check", conda_made, packages).stderr.splitlines()
    assert "bin/three of three" in lines[0]
    assert "/three/__init__.py of three: " in lines[1]


def test_packages_for_any_python_are_compiled_and_their_records_say_so(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As conda does, and rattler does not; a published prefix cannot be written into later."""
    site = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    said = record("pure", {f"{site}/pure.py": b"x = 1\n", f"{site}/pure.tmpl.py": b"{{ x }}(\n"})
    said |= {"subdir": "noarch", "sha256": "5" * 64}
    cache = tmp_path / "bytecode"
    monkeypatch.setenv("ENVBUILD_BYTECODE_CACHE", str(cache))
    for name, content in ((f"{site}/pure.py", b"x = 1\n"), (f"{site}/pure.tmpl.py", b"{{ x }}(\n")):
        write(prefix, name, content)
    meta = prefix / "conda-meta" / "pure-1.0-0.json"
    write(prefix, "conda-meta/pure-1.0-0.json", json.dumps(said).encode())
    done = tool("compile", prefix)
    assert done.returncode == 0, done.stderr
    compiled = f"{site}/__pycache__/pure.{sys.implementation.cache_tag}.pyc"
    assert (prefix / compiled).is_file()
    new = json.loads(meta.read_text(encoding="utf-8"))
    assert new["files"] == [*said["files"], compiled]
    assert new["paths_data"]["paths"][2:] == [{"_path": compiled, "path_type": "pyc_file"}]
    assert [path.name[:64] for path in cache.iterdir()] == ["5" * 64]
    # What is not for any Python has what its package brought.
    assert not [*prefix.glob("share/__pycache__")]
    text = meta.read_text(encoding="utf-8")
    assert tool("compile", prefix).returncode == 0
    assert meta.read_text(encoding="utf-8") == text
