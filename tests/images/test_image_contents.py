"""``info`` of an image: what is in it is read, and nothing of it is run or believed."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.errors import DriftError
from envbuilder.images import contents
from envbuilder.images.sif import read_header
from tests.images.image_files import DATA, DESCRIPTORS, sif, squashfs, system
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


def info(image: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["info", str(image), *words], env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return system(tmp_path_factory.mktemp("image") / "system")


@pytest.fixture(scope="module")
def packed(sandbox: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return squashfs(sandbox, tmp_path_factory.mktemp("packed") / "image.squashfs")


def test_a_packed_image_says_it_too(sandbox: Path, packed: bytes, tmp_path: Path) -> None:
    image = sif(tmp_path / "image.sif", packed)
    inside, told = (
        json.loads(done.stdout)
        for done in (info(sandbox, "--json"), info(image, "--json"))
        if done.exit_code == 0
    )
    assert told["image"] == {
        "file": str(image),
        "format": "sif",
        "arch": "x86_64",
        "bytes": image.stat().st_size,
        "binds": [],
    }
    assert inside["image"]["format"] == "sandbox"
    assert {**told, "image": None} == {**inside, "image": None}
    assert told["prefix"] == f"/opt/envbuild/allreduce/{told['id']}"
    assert told["manifest"] == "published"
    shown = info(image).stdout
    size = image.stat().st_size // 1024
    assert f"x86_64, {size} KiB" in shown.replace("\n", "")
    for form in ("cyclonedx", "provenance"):
        assert info(image, "--as", form).stdout == info(sandbox, "--as", form).stdout != ""


def test_files_of_a_sandbox_are_compared(sandbox: Path, packed: bytes, tmp_path: Path) -> None:
    changed = shutil.copytree(sandbox, tmp_path / "changed", symlinks=True)
    assert info(changed, "--verify").exit_code == 0
    [config] = changed.glob("opt/envbuild/allreduce/*/pyvenv.cfg")
    config.chmod(0o644)
    config.write_text("home = /tmp\n")
    assert info(changed, "--verify").exit_code == 8
    done = info(sif(tmp_path / "image.sif", packed), "--verify")
    assert done.exit_code == 2
    assert "apptainer test" in done.stderr


def test_a_candidate_is_no_default_and_shown(sandbox: Path, tmp_path: Path) -> None:
    candidate = shutil.copytree(sandbox, tmp_path / "candidate", symlinks=True)
    defaults = (".modulerc.lua", ".version")
    for path in (candidate / "opt/envbuild/modulefiles/allreduce").iterdir():
        if path.name in defaults:
            path.unlink()
    told = json.loads(info(candidate, "--json").stdout)
    assert (told["number"], told["default"]) == (1, False)


def test_one_for_another_architecture(packed: bytes, tmp_path: Path) -> None:
    image = sif(tmp_path / "image.sif", packed, b"06")
    assert json.loads(info(image, "--json").stdout)["image"]["arch"] == "ppc64le"


def test_a_cut_image_is_told_by_its_header_and_a_damaged_one_by_its_reader(
    packed: bytes, tmp_path: Path
) -> None:
    image = sif(tmp_path / "image.sif", packed)
    image.write_bytes(image.read_bytes()[:-100])
    done = info(image)
    assert done.exit_code == 8
    assert problem_ids(info(image, "--json").stdout) == ["image.damaged"]
    # As long as it says, and nothing but noise where its tables were.
    for noise in (packed[:200] + b"\xa5" * (len(packed) - 200), b"\0" * len(packed)):
        done = info(sif(tmp_path / "image.sif", noise))
        assert done.exit_code == 8
        assert "error: cannot read " in done.stderr


def test_what_is_no_image_of_ours(tmp_path: Path) -> None:
    for name, says in (("none.sif", "there is no image"), ("text.sif", "a SIF file")):
        (tmp_path / "text.sif").write_text("#!/bin/sh\nexit 1\n" * 20)
        done = info(tmp_path / name)
        assert done.exit_code == 2
        assert says in done.stderr
    other = tmp_path / "other"
    (other / "etc").mkdir(parents=True)
    done = info(sif(tmp_path / "o.sif", squashfs(other, tmp_path / "other.squashfs")))
    assert done.exit_code == 2
    ids = problem_ids(info(tmp_path / "o.sif", "--json").stdout)
    assert ids == ["image.no-environment"]


def _linked(root: Path) -> None:
    [manifest] = root.glob("allreduce/*.evidence/manifest.json")
    manifest.unlink()
    manifest.symlink_to("/etc/passwd")


def _odd(root: Path) -> None:
    (root / "allreduce" / "a b.evidence").mkdir()
    (root / "allreduce" / "a b.evidence" / "x\n.json").write_text("{}")


@pytest.mark.parametrize("edit", [_linked, _odd])
def test_links_and_odd_names_lead_nowhere(
    sandbox: Path, tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    changed = shutil.copytree(sandbox, tmp_path / "changed", symlinks=True)
    edit(changed / "opt" / "envbuild")
    done = info(sif(tmp_path / "i.sif", squashfs(changed, tmp_path / "i.squashfs")), "--json")
    assert done.exit_code == 0, done.stderr
    assert (json.loads(done.stdout)["manifest"] is None) == (edit is _linked)


def test_a_sandbox_whose_root_is_a_link_out_of_it(sandbox: Path, tmp_path: Path) -> None:
    (tmp_path / "image" / "opt").mkdir(parents=True)
    (tmp_path / "image" / "opt" / "envbuild").symlink_to(sandbox / "opt" / "envbuild")
    done = info(tmp_path / "image")
    assert done.exit_code == 2
    assert problem_ids(info(tmp_path / "image", "--json").stdout) == ["image.unsafe-link"]


def test_records_that_are_too_large(
    packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "LARGEST_FILE", 100)
    done = info(sif(tmp_path / "image.sif", packed))
    assert done.exit_code == 8
    ids = problem_ids(info(tmp_path / "image.sif", "--json").stdout)
    assert ids == ["image.too-many-records"]


def test_without_the_program_that_reads_one(
    packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = sif(tmp_path / "image.sif", packed)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert info(image).exit_code == 9
    old = tmp_path / "unsquashfs"
    old.write_text("#!/bin/sh\necho 'SYNTAX: unsquashfs [options] filesystem' >&2\nexit 1\n")
    old.chmod(0o755)
    done = info(image)
    assert done.exit_code == 9
    assert "squashfs-tools 4.5 or later" in done.stderr


EDITS = st.lists(
    st.tuples(
        st.integers(32, 130) | st.integers(DESCRIPTORS, DESCRIPTORS + 3 * 585),
        st.binary(min_size=1, max_size=9),
    ),
    max_size=4,
)


@given(edits=EDITS, end=st.integers(0, DATA + 64))
@settings(max_examples=40, deadline=None)
def test_any_header_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, bytes]], end: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "edited.sif"
    whole = bytearray(sif(file, bytes(64)).read_bytes())
    for at, data in edits:
        whole[at : at + len(data)] = data
    file.write_bytes(bytes(whole[:end]))
    with contextlib.suppress(ValueError, DriftError):
        header = read_header(file)
        assert 0 <= header.offset <= header.offset + header.size <= end
