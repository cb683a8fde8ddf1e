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


def test_what_is_as_packed_is_counted_and_knows_its_channel(prefix: Path, packages: Path) -> None:
    done = tool("check", prefix, packages)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "3 files of 2 packages are as packed\n"
    kept = json.loads((prefix / "conda-meta" / "one-1.0-0.json").read_text())
    wanted = package("one")
    assert (kept["url"], kept["channel"]) == (wanted["url"], wanted["channel"])
    assert (kept["fn"], kept["md5"]) == (wanted["filename"], wanted["md5"])
    assert "/build" not in json.dumps(kept)


def test_a_file_that_is_not_as_packed_is_named_with_both_hashes(
    prefix: Path, packages: Path
) -> None:
    write(prefix, "share/one", b"changed")
    done = tool("check", prefix, packages)
    assert done.returncode == 1
    found, packed = (sha256(each).hexdigest() for each in (b"changed", b"text"))
    assert done.stderr == (
        f"error: share/one of one: its sha256 is {found}, and {packed} was packed\n"
    )


def test_a_file_whose_prefix_was_filled_in_is_compared_as_it_was_filled_in(
    prefix: Path, packages: Path
) -> None:
    write(prefix, "lib/one.so", b"other")
    assert "lib/one.so of one: its sha256 is " in tool("check", prefix, packages).stderr


def test_a_file_that_is_gone_is_named(prefix: Path, packages: Path) -> None:
    (prefix / "bin" / "two").unlink()
    done = tool("check", prefix, packages)
    assert (done.returncode, done.stderr) == (1, "error: bin/two of two is not there\n")


def test_packages_that_are_missing_or_more_are_named(prefix: Path, packages: Path) -> None:
    (prefix / "conda-meta" / "two-1.0-0.json").unlink()
    change(prefix, "one", version="1.1")
    assert tool("check", prefix, packages).stderr.splitlines() == [
        "error: one 1.0 0 is not in the prefix",
        "error: two 1.0 0 is not in the prefix",
        "error: one 1.1 0 is in the prefix, and not in the lock",
    ]


def test_two_packages_with_one_file_are_refused(prefix: Path, packages: Path) -> None:
    change(prefix, "two", files=["bin/two", "share/one"])
    done = tool("check", prefix, packages)
    assert (done.returncode, done.stderr) == (1, "error: share/one is a file of one and two\n")


@pytest.mark.parametrize("kind", ["post-link", "pre-link", "pre-unlink"])
def test_a_package_that_wants_to_run_a_script_is_refused(
    prefix: Path, packages: Path, kind: str
) -> None:
    change(prefix, "two", files=["bin/two", f"bin/.two-{kind}.sh"])
    done = tool("check", prefix, packages)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: package two wants to run bin/.two-{kind}.sh: no script of a package is run\n"
    )


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
