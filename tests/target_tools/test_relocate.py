"""A prefix that was packed is made elsewhere just as one that was linked there."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from envbuilder import data
from envbuilder.target_tools import relocate
from tests.conda_channel import PLACEHOLDER, File, Package, locked, write_channel
from tests.golden_texts import Golden

pytest.importorskip("rattler")

P = PLACEHOLDER.encode()


def script(text: bytes) -> File:
    return File(text, executable=True, mode="text")


# Two placeholders in one string, one with more behind it, and none.
BINARY = b"\x7fELF" + P + b"/lib\0rest\0" + P + b"/a:" + P + b"/b\0end\0" + bytes(9)
LINK = {"noarch": {"type": "python", "entry_points": ["tool = tool:main"]}}
# As conda-build writes it for a package without commands.
WITHOUT_COMMANDS = {"noarch": {"type": "python"}, "package_metadata_version": 1}


def packages(subdir: str) -> list[Package]:
    """Return packages with each way of naming the prefix."""
    return [
        Package(
            "python",
            "3.11.7",
            {
                "bin/python3.11": File(BINARY, executable=True, mode="binary"),
                "bin/python": File(b"", link="python3.11"),
            },
            build="0_cpython",
            subdir=subdir,
        ),
        Package(
            "tool",
            "1.0",
            {
                "site-packages/tool/__init__.py": File(b"x = 1\n"),
                "site-packages/tool/cfg.py": File(b"P = '" + P + b"'\n", mode="text"),
                "python-scripts/tool2": File(
                    b"#!" + P + b"/bin/python\n1\n", executable=True, mode="text"
                ),
            },
            ["python"],
            subdir="noarch",
            noarch="python",
            info={"link.json": json.dumps({**LINK, "package_metadata_version": 1})},
        ),
        Package(
            "plain",
            "1.0",
            {"site-packages/plain.py": File(b"x = 1\n")},
            ["python"],
            subdir="noarch",
            noarch="python",
            info={"link.json": json.dumps(WITHOUT_COMMANDS)},
        ),
        Package(
            "sh",
            "1.0",
            {
                "bin/sh1": File(
                    b"#!" + P + b"/bin/python -E\necho " + P + b"/x\n", executable=True, mode="text"
                ),
                "bin/perl1": script(b"#! " + P + b"/bin/perl -w\n"),
                "bin/deep": script(b"#!/bin/sh\n#!" + P + b"/x\n"),
                "etc/empty": File(b""),
            },
            subdir=subdir,
        ),
    ]


def tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", data.TARGET_TOOLS, *words]
    return subprocess.run([str(each) for each in command], capture_output=True, text=True)


class Channel:
    """What is fetched of a channel: the list of its packages, and the folder that they lie in."""

    def __init__(self, folder: Path, subdir: str) -> None:
        self.folder, self.files, self.list = folder, folder / "files", folder / "conda.json"
        archives = locked(write_channel(folder / "channel", packages(subdir)))
        self.files.mkdir()
        for path in (folder / "channel").glob("*/*.conda"):
            shutil.copy(path, self.files)
        keys = ("name", "version", "build", "url", "channel", "sha256", "md5", "size")
        said = [
            {**{key: getattr(each, key) for key in keys}, "filename": each.filename}
            for each in archives
        ]
        self.list.write_text(json.dumps({"platform": subdir, "packages": said}))

    def link(self, prefix: Path, cache: Path, *words: str) -> None:
        done = tool("conda-engine", "link", *words, prefix, cache, self.list, self.files)
        assert (done.returncode, done.stderr) == (0, "")

    def pack(self, name: str = "packed") -> tuple[Path, Path]:
        folder = self.folder / name
        folder.mkdir()
        prefix, cache = folder / "prefix", folder / "cache"
        self.link(prefix, cache, "--as", relocate.PLACEHOLDER)
        archive, table = folder / "p.tar.gz", folder / "p.json"
        done = tool("relocate", "pack", prefix, cache, archive, table)
        assert (done.returncode, done.stderr) == (0, "")
        return archive, table


@pytest.fixture(scope="module", params=["linux-64", "linux-ppc64le"])
def channel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Channel:
    return Channel(tmp_path_factory.mktemp("channel"), request.param)


@pytest.fixture(scope="module")
def packed(channel: Channel) -> tuple[Path, Path]:
    return channel.pack()


def runs(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def contents(prefix: Path) -> dict[str, Any]:
    """Return what a prefix holds, outside the records of who made it."""
    return {
        name: str(path.readlink()) if path.is_symlink() else (path.read_bytes(), runs(path))
        for path in sorted(prefix.rglob("*"))
        if not (name := str(path.relative_to(prefix))).startswith("conda-meta")
        and name != "CACHEDIR.TAG"
        and (path.is_symlink() or path.is_file())
    }


@pytest.mark.parametrize("name", ["prefix", "p" * 120, "a b"], ids=["short", "long", "space"])
@pytest.mark.sample(2)
def test_it_is_just_what_the_engine_would_have_made_there(
    channel: Channel, packed: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    prefix = tmp_path / name
    channel.link(prefix, tmp_path / "cache")
    linked = contents(prefix)
    shutil.rmtree(prefix)
    done = tool("relocate", "unpack", *packed, prefix)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("7 files ")
    assert contents(prefix) == linked
    # Its records are those of the lock, with the hashes that the files have here.
    assert tool("conda-packages", "check", prefix, channel.list).returncode == 0
    record = json.loads((prefix / "conda-meta" / "sh-1.0-0.json").read_text())
    (sh1,) = (each for each in record["paths_data"]["paths"] if each["_path"] == "bin/sh1")
    assert sh1["sha256_in_prefix"] == sha256((prefix / "bin" / "sh1").read_bytes()).hexdigest()


def test_the_same_packages_give_the_same_archive(
    channel: Channel, packed: tuple[Path, Path]
) -> None:
    again = channel.pack("again")
    assert [each.read_bytes() for each in again] == [each.read_bytes() for each in packed]


def test_a_path_that_is_too_long_for_a_binary_is_refused_and_nothing_left(
    golden: Golden, packed: tuple[Path, Path], tmp_path: Path
) -> None:
    prefix = tmp_path / ("p" * 200) / ("q" * 60)
    done = tool("relocate", "unpack", *packed, prefix)
    assert done.returncode == 1
    length = len(str(prefix))
    golden(done.stderr, length=length)
    assert not prefix.exists()


def test_a_file_that_is_not_as_packed_is_refused(packed: tuple[Path, Path], tmp_path: Path) -> None:
    archive, table = packed
    said = json.loads(table.read_text())
    said["files"]["bin/sh1"]["sha256"] = "0" * 64
    other = tmp_path / "table.json"
    other.write_text(json.dumps(said))
    done = tool("relocate", "unpack", archive, other, tmp_path / "prefix")
    assert done.returncode == 1
    assert done.stderr.startswith("error: bin/sh1: ")
    assert not (tmp_path / "prefix").exists()


def test_what_is_there_already_stays(packed: tuple[Path, Path], tmp_path: Path) -> None:
    done = tool("relocate", "unpack", *packed, tmp_path)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr


def member(name: str, **said: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in said.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    "members",
    [
        [member("../out")],
        [member("/out")],
        [member("a/./b")],
        [member("pipe", type=tarfile.FIFOTYPE)],
        [member("hard", type=tarfile.LNKTYPE, linkname="/etc/passwd")],
        [member("link", type=tarfile.SYMTYPE, linkname="."), member("link/x")],
    ],
    ids=lambda each: each[0].name,
)
def test_an_archive_that_leads_out_of_its_folder_is_refused(
    members: list[tarfile.TarInfo], tmp_path: Path
) -> None:
    archive, table = tmp_path / "p.tar.gz", tmp_path / "p.json"
    with tarfile.open(archive, "w:gz") as written:
        for each in members:
            written.addfile(each, io.BytesIO())
    table.write_text('{"files": {}}')
    done = tool("relocate", "unpack", archive, table, tmp_path / "prefix")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the archive ")
    assert not (tmp_path / "prefix").exists()


def test_a_link_leads_where_its_package_has_it_lead(tmp_path: Path) -> None:
    """As one to /usr/share/terminfo: where packages are linked without a bundle it is so too."""
    archive, table, prefix = tmp_path / "p.tar.gz", tmp_path / "p.json", tmp_path / "prefix"
    links = {"share/terminfo": "/usr/share/terminfo", "a/above": "../../.."}
    with tarfile.open(archive, "w:gz") as written:
        for name, leads in links.items():
            written.addfile(member(name, type=tarfile.SYMTYPE, linkname=leads))
    table.write_text('{"files": {}}')
    done = tool("relocate", "unpack", archive, table, prefix)
    assert (done.returncode, done.stderr) == (0, "")
    assert {name: str((prefix / name).readlink()) for name in links} == links


def test_nothing_is_filled_in_through_a_link(tmp_path: Path) -> None:
    archive, table, prefix = tmp_path / "p.tar.gz", tmp_path / "p.json", tmp_path / "prefix"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_bytes(b"/old\n")
    for name, filled in (("a", "a/mine"), ("a", "../other/mine"), ("conda-meta", None)):
        with tarfile.open(archive, "w:gz") as written:
            written.addfile(member(name, type=tarfile.SYMTYPE, linkname=str(tmp_path / "other")))
        entry = {"mode": "text", "placeholder": "/old", "sha256": sha256(b"/old\n").hexdigest()}
        table.write_text(json.dumps({"files": {filled: entry} if filled else {}}))
        done = tool("relocate", "unpack", archive, table, prefix)
        assert done.returncode == 1
        assert "in the archive" in done.stderr
        assert not prefix.exists()
        assert (tmp_path / "other" / "mine").read_bytes() == b"/old\n"


def test_scripts_that_conda_lets_look_for_a_python_start_their_own(tmp_path: Path) -> None:
    prefix, cache, old = tmp_path / "a prefix", tmp_path / "cache", "/placeholder"
    packed = {name: f"#!{old}/bin/python\n{name}\n".encode() for name in ("tool", "mine", "gone")}
    entries = []
    for name, content in packed.items():
        entry = {"_path": f"bin/{name}", "path_type": "hardlink", "file_mode": "text"}
        sums = {"sha256": sha256(content).hexdigest(), "sha256_in_prefix": "0" * 64}
        entries.append({**entry, **sums, "prefix_placeholder": old})
        for folder in (prefix, cache / "one-1.0-0"):
            (folder / "bin").mkdir(parents=True, exist_ok=True)
        if name != "gone":
            (cache / "one-1.0-0" / "bin" / name).write_bytes(content)
        (prefix / "bin" / name).write_bytes(b"#!/usr/bin/env python\n" + name.encode() + b"\n")
    (prefix / "bin" / "mine").write_bytes(b"#!/bin/sh\nmine\n")
    (prefix / "bin" / "tool").chmod(0o755)
    meta = prefix / "conda-meta"
    meta.mkdir()
    said = {"fn": "one-1.0-0.conda", "files": [each["_path"] for each in entries]}
    (meta / "one.json").write_text(json.dumps({**said, "paths_data": {"paths": entries}}))
    words = [sys.executable, "-I", data.TARGET_TOOLS, "relocate", "respell", prefix, cache]
    subprocess.run([str(each) for each in words], check=True)
    tool = prefix / "bin" / "tool"
    start = f"#!/bin/sh\n'''exec' \"{prefix}/bin/python\" \"$0\" \"$@\" #'''\ntool\n"
    assert tool.read_text() == start
    assert tool.stat().st_mode & 0o777 == 0o755
    # What is no such script, or has no file of its package, stays.
    assert (prefix / "bin" / "mine").read_text() == "#!/bin/sh\nmine\n"
    assert (prefix / "bin" / "gone").read_text() == "#!/usr/bin/env python\ngone\n"
    kept = json.loads((meta / "one.json").read_text())["paths_data"]["paths"]
    own = sha256(start.encode()).hexdigest()
    assert [each["sha256_in_prefix"] for each in kept] == [own, "0" * 64, "0" * 64]
