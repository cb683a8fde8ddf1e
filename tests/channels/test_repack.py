"""Packages of a prefix are put together again as they were packed; what is of none is found."""

from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
from channel_tools import package
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_prefix import link_prefix

from envbuilder.conda.repack import (
    CannotRepackError,
    _in_binary,
    kept,
    repack,
    strangers,
    take,
    write_repodata,
)
from envbuilder.formats.prefix import read_prefix
from envbuilder.target_tools.relocate import in_binary
from tests.conda_channel import PLACEHOLDER, SERIES, File, Package

P = PLACEHOLDER.encode()
FILES = {
    "bin/tool": File(b"#!" + P + b"/bin/python\nprint(1)\n", executable=True, mode="text"),
    "etc/tool.conf": File(b"home=" + P + b"\n", mode="text"),
    "lib/tool.so": File(b"\x7fELF" + P + b"/lib:" + P + b"/share\0\0-L" + P + b"\0", mode="binary"),
    "lib/libtool.so": File(b"", link="tool.so"),
    "share/plain": File(b"plain\n"),
}
PACKAGES = [
    package("python", f"{SERIES}.0"),
    Package("tool", "1.0", FILES, depends=("python",)),
    Package(
        "pure",
        "2.0",
        {"site-packages/pure.py": File(b"x = 1\n")},
        ["python"],
        subdir="noarch",
        noarch="python",
        info={
            "link.json": json.dumps(
                {
                    "noarch": {"type": "python", "entry_points": ["pure = pure:x"]},
                    "package_metadata_version": 1,
                }
            )
        },
    ),
]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a prefix that py-rattler linked of these packages; nobody may write in it."""
    return link_prefix(tmp_path_factory.mktemp("linked"), PACKAGES)


def members(archive: Path) -> dict[str, bytes | str]:
    with tarfile.open(archive) as packed:
        found: dict[str, bytes | str] = {}
        for each in packed:
            stream = packed.extractfile(each) if each.isfile() else None
            found[each.name] = stream.read() if stream else each.linkname
        return found


def test_a_package_is_as_it_was_packed(prefix: Path, tmp_path: Path) -> None:
    record = read_prefix(prefix).records["tool"]
    made = repack(prefix, record, tmp_path)
    assert made.path == tmp_path / "linux-64" / "tool-1.0-0.tar.bz2"
    found = members(made.path)
    for name, each in FILES.items():
        assert found[name] == (each.link or each.content), name
    said = json.loads(found["info/paths.json"])["paths"]
    assert [each["_path"] for each in said if each.get("file_mode") == "binary"] == ["lib/tool.so"]
    assert made.row["sha256"] == sha256(made.path.read_bytes()).hexdigest()
    again = repack(prefix, record, tmp_path / "again")
    assert again.row["depends"] == ["python"]


def test_a_package_for_any_python_is_packed_for_this_one(prefix: Path, tmp_path: Path) -> None:
    made = repack(prefix, read_prefix(prefix).records["pure"], tmp_path)
    assert made.path.parent.name == "noarch"
    found = members(made.path)
    names = {name for name in found if not name.startswith("info/")}
    assert names == {"bin/pure", f"lib/python{SERIES}/site-packages/pure.py"}
    assert json.loads(found["info/index.json"])["noarch"] == "generic"
    (script,) = (
        each for each in json.loads(found["info/paths.json"])["paths"] if "bin" in str(each)
    )
    assert script["prefix_placeholder"] == "/envbuild-conda-prefix"
    assert str(prefix).encode() not in b"".join(
        each for each in found.values() if isinstance(each, bytes)
    )


def test_a_file_that_is_not_as_it_was_packed_is_not_packed(prefix: Path, tmp_path: Path) -> None:
    record = json.loads(json.dumps(read_prefix(prefix).records["tool"]))
    for each in record["paths_data"]["paths"]:
        if each["_path"] == "lib/tool.so":
            each["sha256"] = "0" * 64
    with pytest.raises(CannotRepackError, match="lib/tool.so"):
        repack(prefix, record, tmp_path)


def test_a_first_line_that_was_written_another_way_stays(prefix: Path, tmp_path: Path) -> None:
    """conda writes env where Linux would cut the line; nothing tells what stood there."""
    record = json.loads(json.dumps(read_prefix(prefix).records["tool"]))
    for each in record["paths_data"]["paths"]:
        if each["_path"] == "bin/tool":
            each["sha256"] = "0" * 64
    made = repack(prefix, record, tmp_path)
    line = b"#!/envbuild-conda-prefix/bin/python\n"
    assert members(made.path)["bin/tool"] == line + b"print(1)\n"


def test_the_file_of_conda_s_cache_is_taken_where_it_is_that_one(
    prefix: Path, tmp_path: Path
) -> None:
    record = dict(read_prefix(prefix).records["tool"])
    channel = prefix.parent / "channel" / "linux-64" / "tool-1.0-0.conda"
    cache = tmp_path / "pkgs"
    cache.mkdir()
    record["extracted_package_dir"] = str(cache / "tool-1.0-0")
    record.pop("link", None)
    assert kept(prefix, record) is None
    copy = cache / channel.name
    copy.write_bytes(channel.read_bytes())
    assert kept(prefix, record) == copy
    taken = take(copy, record, tmp_path / "own")
    assert taken.row["sha256"] == record["sha256"]
    write_repodata(tmp_path / "own", [taken])
    said = json.loads((tmp_path / "own" / "linux-64" / "repodata.json").read_text())
    assert [*said["packages.conda"]] == [channel.name]
    assert json.loads((tmp_path / "own" / "noarch" / "repodata.json").read_text())["packages"] == {}
    copy.write_bytes(b"another")
    assert kept(prefix, record) is None


def test_files_of_no_package(prefix: Path, tmp_path: Path) -> None:
    records = [*read_prefix(prefix).records.values()]
    assert [*strangers(prefix, records)] == []
    other = tmp_path / "other"
    for name in ("conda-meta/history", "a/__pycache__/x.pyc", "pkgs/x", "share/mine", "pip/known"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("x")
    assert [*strangers(other, records, ["pip/known"])] == ["pkgs/x", "share/mine"]
    base = [*records, {"name": "conda", "files": ["condabin/conda"], "paths_data": {"paths": []}}]
    assert [*strangers(other, base, ["pip/known"])] == ["share/mine"]


TEXTS = st.lists(
    st.sampled_from([P, P + b"/lib", b"\0", b"\0\0\0", b"x", b":", b"\x7fELF"]), max_size=8
)


@settings(max_examples=200)
@given(parts=TEXTS, own=st.sampled_from([b"/a/prefix", b"/p", b"/" + b"y" * 200]))
def test_what_is_filled_into_binaries_is_taken_out_again(parts: list[bytes], own: bytes) -> None:
    packed = b"".join([*parts, b"\0"])
    linked = in_binary(packed, P, own, "a file")
    assert len(linked) == len(packed)
    assert _in_binary(linked, own, P) == packed
