"""An OCI layout of a folder: what it holds, always the same, and read by others' programs."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from envbuilder.errors import BuildError
from envbuilder.images.oci import OciConfig, check_layer, pack_layout
from envbuilder.model.plan import Edit
from envbuilder.render.container import variables
from envbuilder.target_tools import manifest
from tests.render.render_cases import make_plan

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

PREFIX = "opt/envbuild/demo/0123456789ab"
CONFIG = OciConfig("ppc64le", "0123456789ab", ("A=b c", "PATH=/x:/bin"), {"of": "ours"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A system with a prefix, links of both kinds, odd modes and times."""
    prefix = tmp_path / "root" / PREFIX
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib" / "module.py").write_text("VALUE = 1\n")
    (prefix / "lib" / "größe.py").write_text("VALUE = 2\n")
    os.link(prefix / "lib" / "module.py", prefix / "lib" / "twin.py")
    (prefix / "python").symlink_to("/usr/bin/python3")
    (prefix / "lib" / "module.py").chmod(0o555)
    os.utime(prefix / "lib" / "module.py", ns=(0, 1_234_567_890_123_456_789))
    (tmp_path / "root" / "lib").symlink_to("usr/lib")
    return tmp_path / "root"


def blob(folder: Path, descriptor: dict[str, Any]) -> bytes:
    data = (folder / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
    assert (hashlib.sha256(data).hexdigest(), len(data)) == (
        descriptor["digest"].removeprefix("sha256:"),
        descriptor["size"],
    )
    return data


def test_every_blob_is_what_its_name_says(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "image"
    digest = pack_layout(root, folder, CONFIG)
    [listed] = json.loads((folder / "index.json").read_text())["manifests"]
    assert listed["digest"] == f"sha256:{digest}"
    about = json.loads(blob(folder, listed))
    settings = json.loads(blob(folder, about["config"]))
    assert settings["architecture"] == listed["platform"]["architecture"] == "ppc64le"
    assert settings["config"]["Env"] == ["A=b c", "PATH=/x:/bin"]
    [layer] = about["layers"]
    unpacked = gzip.decompress(blob(folder, layer))
    assert settings["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(unpacked).hexdigest()}"]
    assert len(list((folder / "blobs" / "sha256").iterdir())) == 3


def test_it_holds_the_folder_and_is_always_the_same(root: Path, tmp_path: Path) -> None:
    digests = {pack_layout(root, tmp_path / name, CONFIG) for name in ("one", "two")}
    assert len(digests) == 1
    [layer] = (each for each in (tmp_path / "one" / "blobs" / "sha256").iterdir() if gzipped(each))
    with tarfile.open(layer) as archive:
        members = {each.name: each for each in archive}
    assert members["lib"].linkname == "usr/lib"
    module = members[f"{PREFIX}/lib/module.py"]
    assert (module.mode, float(module.pax_headers["mtime"])) == (0o555, 1234567890.1234567)
    assert members[f"{PREFIX}/lib/twin.py"].linkname == module.name
    assert f"{PREFIX}/lib/größe.py" in members
    assert list(members) == sorted(members, key=lambda name: name.split("/"))


def gzipped(path: Path) -> bool:
    return path.read_bytes()[:2] == b"\x1f\x8b"


def test_what_was_packed_is_compared_with_the_manifest(root: Path, tmp_path: Path) -> None:
    recorded = manifest.record(root / PREFIX, "published")["files"]
    assert set(recorded) == {"python", "lib/module.py", "lib/twin.py", "lib/größe.py"}
    pack_layout(root, tmp_path / "image", CONFIG)
    check_layer(tmp_path / "image", PREFIX, recorded)
    changed = {**recorded["lib/größe.py"], "sha256": "0" * 64}
    for each in (
        {**recorded, "lib/größe.py": changed},
        {**recorded, "gone.py": changed},
        {**recorded, "python": {"link": "/usr/bin/python2"}},
        {name: recorded[name] for name in recorded if name != "python"},
    ):
        with pytest.raises(BuildError) as raised:
            check_layer(tmp_path / "image", PREFIX, each)
        assert raised.value.id == "image.files-changed"


@pytest.mark.long  # skopeo is there where images are built
def test_skopeo_reads_and_copies_it(root: Path, tmp_path: Path) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not on PATH: it is Debian's package of that name")
    digest = pack_layout(root, tmp_path / "image", CONFIG)
    source, copy = f"oci:{tmp_path}/image:{CONFIG.tag}", f"oci:{tmp_path}/copy:again"
    words = ["skopeo", "--insecure-policy", "copy", "--preserve-digests", "-q", source, copy]
    subprocess.run(words, check=True)
    told = json.loads(
        subprocess.run(["skopeo", "inspect", copy], check=True, capture_output=True).stdout
    )
    assert told["Digest"] == f"sha256:{digest}"
    assert (told["Architecture"], told["Labels"]) == ("ppc64le", {"of": "ours"})
    check_layer(tmp_path / "copy", PREFIX, manifest.record(root / PREFIX, "published")["files"])


def test_edits_become_the_variables_of_an_image() -> None:
    edits = (
        Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        Edit(kind="set", name="A", value="one $two"),
        Edit(kind="append", name="A", value="three"),
        Edit(kind="prepend", name="B", value="lib", in_prefix=True),
        Edit(kind="set", name="C", value="x"),
        Edit(kind="unset", name="C"),
    )
    found = variables(make_plan(environment=edits), Path("/p"))
    assert found.pop("PATH").startswith("/p/bin:/usr/local/sbin:")
    assert found == {"A": "one $two:three", "B": "/p/lib"}
