"""``info`` of an image in OCI's layout: what its layer holds, read as a stream; nothing is run."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.images.oci import OciConfig, pack_layout
from tests.images.image_files import system
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

HOME = "opt/envbuild/allreduce"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return system(tmp_path_factory.mktemp("image") / "system")


@pytest.fixture
def layout(sandbox: Path, tmp_path: Path) -> Path:
    pack_layout(sandbox, tmp_path / "image.oci", OciConfig("aarch64", "tag", (), {}))
    return tmp_path / "image.oci"


def info(*words: object) -> Result:
    done = CliRunner().invoke(app, ["info", *map(str, words)])
    assert "Traceback" not in done.output
    return done


def test_it_says_what_the_sandbox_says(sandbox: Path, layout: Path) -> None:
    inside, told = (json.loads(info(each, "--json").stdout) for each in (sandbox, layout))
    assert {**told, "image": None} == {**inside, "image": None}
    [layer] = (each for each in blobs(layout) if each.read_bytes()[:2] == b"\x1f\x8b")
    assert told["image"] == {
        "file": str(layout),
        "format": "oci",
        "arch": "aarch64",
        "bytes": layer.stat().st_size,
        "binds": [],
    }
    for form in ("cyclonedx", "provenance"):
        assert info(layout, "--as", form).stdout == info(sandbox, "--as", form).stdout != ""
    verified = info(layout, "--verify")
    assert verified.exit_code == 2
    words = ["launch", str(layout), "--site", "local", "--", "python", "x.py"]
    refused = CliRunner().invoke(app, words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "SIF file" in refused.stderr


def blobs(layout: Path) -> list[Path]:
    return sorted((layout / "blobs" / "sha256").iterdir())


def cut(layout: Path) -> None:
    for each in blobs(layout):
        each.write_bytes(each.read_bytes()[:-20])


def other_layer(layout: Path) -> None:
    """A layer that is whole, and not what its name says."""
    [layer] = (each for each in blobs(layout) if each.read_bytes()[:2] == b"\x1f\x8b")
    with gzip.open(layer) as stream:
        data = stream.read()
    layer.write_bytes(gzip.compress(data, 1))


def cut_layer(layout: Path) -> None:
    [layer] = (each for each in blobs(layout) if each.read_bytes()[:2] == b"\x1f\x8b")
    layer.write_bytes(layer.read_bytes()[:-3000])


def index(text: str) -> Callable[[Path], None]:
    def change(layout: Path) -> None:
        (layout / "index.json").write_text(text)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        cut_layer,
        other_layer,
        index("{"),
        index("[]"),
        index('{"manifests": [{"digest": "sha256:../../../../etc/passwd"}]}'),
        index('{"manifests": [{"digest": "sha256:' + "0" * 64 + '"}]}'),
        index(" " * (5 * 2**20)),
    ],
)
def test_a_damaged_one_is_refused(layout: Path, damage: Callable[[Path], None]) -> None:
    damage(layout)
    done = info(layout)
    assert done.exit_code == 8, done.output
    assert problem_ids(info(layout, "--json").stdout) == ["image.damaged"]


def test_what_is_no_image_of_ours(tmp_path: Path) -> None:
    (tmp_path / "system" / "etc").mkdir(parents=True)
    (tmp_path / "system" / "etc" / "passwd").touch()
    pack_layout(tmp_path / "system", tmp_path / "x.oci", OciConfig("x86_64", "tag", (), {}))
    done = info(tmp_path / "x.oci")
    assert done.exit_code == 2
    assert problem_ids(info(tmp_path / "x.oci", "--json").stdout) == ["image.no-environment"]
    for count, said in ((0, "contains 0 images"), (2, "contains 2 images")):
        listed = json.dumps({"manifests": [{}] * count})
        (tmp_path / "x.oci" / "index.json").write_text(listed)
        assert said in info(tmp_path / "x.oci").stderr
    assert info(tmp_path / "none.oci").exit_code == 2


def repacked(layout: Path, *more: tuple[tarfile.TarInfo, bytes]) -> None:
    """Put further members into the layer, with all hashes right."""
    [layer] = (each for each in blobs(layout) if each.read_bytes()[:2] == b"\x1f\x8b")
    data = io.BytesIO(gzip.decompress(layer.read_bytes()))
    with tarfile.open(fileobj=data, mode="a") as archive:
        for member, content in more:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    names = {layer.name: put(layout, gzip.compress(data.getvalue(), 1))}
    manifest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"][7:]
    text = (layout / "blobs/sha256" / manifest).read_text()
    names[manifest] = put(layout, text.replace(layer.name, names[layer.name]).encode())
    listed = (layout / "index.json").read_text().replace(manifest, names[manifest])
    (layout / "index.json").write_text(listed)


def put(layout: Path, data: bytes) -> str:
    name = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256" / name).write_bytes(data)
    return name


def test_links_and_odd_names_lead_nowhere(layout: Path, tmp_path: Path) -> None:
    before: dict[str, Any] = json.loads(info(layout, "--json").stdout)
    link = tarfile.TarInfo(f"{HOME}/other.evidence/manifest.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard = tarfile.TarInfo(f"{HOME}/hard.evidence/manifest.json")
    hard.type, hard.linkname = tarfile.LNKTYPE, "etc/passwd"
    names = (f"{HOME}/../../../../{tmp_path}/out.json", f"{HOME}/a b.evidence/x.json")
    odd = [(tarfile.TarInfo(name), b"{}") for name in (*names, f"/{HOME}/y.evidence/x.json")]
    repacked(layout, (link, b""), (hard, b""), *odd)
    after = json.loads(info(layout, "--json").stdout)
    assert {**after, "image": None} == {**before, "image": None}
    assert not (tmp_path / "out.json").exists()


def test_one_of_two_layers(layout: Path) -> None:
    digest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"][7:]
    manifest = json.loads((layout / "blobs/sha256" / digest).read_text())
    manifest["layers"] *= 2
    name = put(layout, json.dumps(manifest).encode())
    listed = (layout / "index.json").read_text().replace(digest, name)
    (layout / "index.json").write_text(listed)
    done = info(layout)
    assert done.exit_code == 2
    assert "has 2 layers" in done.stderr


def test_a_layout_that_was_copied_says_the_same(layout: Path, tmp_path: Path) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not on PATH")
    words = ["skopeo", "--insecure-policy", "copy", "-q", f"oci:{layout}:tag"]
    subprocess.run([*words, f"oci:{tmp_path}/copy.oci:tag"], check=True)
    told, copied = (
        json.loads(info(each, "--json").stdout) for each in (layout, tmp_path / "copy.oci")
    )
    assert {**told, "image": None} == {**copied, "image": None}
