"""``bundle verify``: what was packed, and only that; of anything else it names what is wrong."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.build import bundle_archive
from envbuilder.cli import app
from tests.cli.bundles import seal, write_bundle
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder and the archive of one bundle."""
    return write_bundle(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copy(made: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(made[0], tmp_path / made[0].name))


def verify(file: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["bundle", "verify", str(file), *words])


def told(file: Path) -> dict[str, Any]:
    done = verify(file, "--json")
    assert done.exit_code in (0, 8), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.exit_code == 0) == (found["changed"] == found.get("contradictions", []) == [])
    return found


def pack(folder: Path) -> Path:
    """Pack a folder as it is."""
    archive = folder.with_name("again.tar.gz")
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, folder.name)
    return archive


def test_what_was_packed_is_whole_as_folder_and_as_archive(made: tuple[Path, Path]) -> None:
    lock = json.loads((made[0] / "build" / "lock.json").read_text())
    for file in made:
        found = told(file)
        assert (found["changed"], found["contradictions"]) == ([], [])
        assert (found["environment"], found["arch"]) == ("allreduce", lock["plan"]["arch"])
        assert made[0].name == f"allreduce-{found['id']}-{found['arch']}"
        assert found["files"] == sum(path.is_file() for path in made[0].rglob("*")) - 1
        assert f" {found['files']} files" in verify(file).stdout


def test_what_cannot_be_compared_with_the_lock_is_named(copy: Path) -> None:
    assert told(copy).get("unchecked", []) == []
    (copy / "build" / "sbom.cdx.json").unlink()
    (copy / "build" / "conda-prefix.tar.gz").touch()
    seal(copy)
    found = told(copy)
    assert [each.partition(":")[0] for each in found["unchecked"]] == [
        "build/sbom.cdx.json",
        "build/conda-prefix.tar.gz",
    ]
    assert "build/sbom.cdx.json" in verify(copy).stdout


def change_a_wheel(bundle: Path) -> str:
    next((bundle / "build" / "wheelhouse").glob("numpy*.whl")).write_text("mine")
    return "other content"


def change_a_script(bundle: Path) -> str:
    with (bundle / "build" / "build.sh").open("a") as script:
        script.write("touch /tmp/it-ran\n")
    return "build/build.sh: other content"


def take_a_file(bundle: Path) -> str:
    (bundle / "build" / "lock.json").unlink()
    return "build/lock.json: missing"


def add_a_file(bundle: Path) -> str:
    (bundle / "build" / "target_tools" / "json.py").write_text("raise SystemExit('mine')\n")
    return "build/target_tools/json.py: added"


def change_the_sums(bundle: Path) -> str:
    sums = bundle / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("  install.sh", "  ../install.sh"))
    return "SHA256SUMS: unexpected line: "


def take_the_sums(bundle: Path) -> str:
    (bundle / "SHA256SUMS").unlink()
    return "SHA256SUMS: missing"


@pytest.mark.parametrize(
    "change",
    [change_a_wheel, change_a_script, take_a_file, add_a_file, change_the_sums, take_the_sums],
)
def test_what_was_changed_is_named_as_install_sh_names_it(
    copy: Path, tmp_path: Path, change: Callable[[Path], str]
) -> None:
    said = change(copy)
    for file in (copy, pack(copy)):
        found = told(file)
        assert any(said in line for line in found["changed"]), found
        # Of what was changed nothing is believed.
        assert found["environment"] is None
        assert f"  {found['changed'][0]}\n" in verify(file).stdout
    [line] = found["changed"]
    installed = subprocess.run(
        ["bash", copy / "install.sh", tmp_path / "root"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 2
    assert line.partition(": ")[0] in installed.stderr
    assert not (tmp_path / "root").exists()


def test_a_link_in_a_folder_is_no_file(copy: Path) -> None:
    (copy / "build" / "wheels").symlink_to("/tmp")
    (copy / "notes").symlink_to("/etc/passwd")
    os.mkfifo(copy / "pipe")
    lines = [f"{name}: not a regular file" for name in ("build/wheels", "notes", "pipe")]
    assert told(copy)["changed"] == lines


def edited(bundle: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit a file of JSON, and write the sums anew, as somebody would who can write there."""
    path = bundle / name
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))
    seal(bundle)


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("bundle.json", lambda v: v.update(arch="sparc"), "bundle.json: the proof"),
        ("bundle.json", lambda v: v.update(id="../../etc"), '"../../etc"'),
        ("bundle.json", lambda v: v.update(placed=["/etc/passwd"]), '["/etc/passwd"]'),
        ("bundle.json", lambda v: v.pop("name"), "name is missing"),
        (
            "bundle.json",
            lambda v: v["proving"]["proofs"][0]["request"].update(ranks=1),
            "bundle.json has another smoke",
        ),
        (
            "bundle.json",
            lambda v: v["proving"].update({"max-bytes": 4}),
            "another max-bytes",
        ),
        ("build/lock.json", lambda v: v["artifacts"].pop(), "has no file"),
        ("build/lock.json", lambda v: v["plan"]["steps"].pop(), "without check"),
        ("build/lock.json", lambda v: v["plan"].update(arch="ppc64le"), "has ppc64le"),
        ("build/lock.json", lambda v: v.update(plan=3), "lock.json:1:"),
        (
            "build/sbom.cdx.json",
            lambda v: next(each for each in v["components"] if "hashes" in each).pop("hashes"),
            "build/sbom.cdx.json: its files",
        ),
        (
            "build/sbom.cdx.json",
            lambda v: v.update(components=3),
            "build/sbom.cdx.json: it is",
        ),
        (
            "build/slsa-provenance.json",
            lambda v: v["buildDefinition"]["resolvedDependencies"][0]["digest"].update(sha256="0"),
            "build/slsa-provenance.json: its files",
        ),
        (
            "build/slsa-provenance.json",
            lambda v: v["buildDefinition"]["internalParameters"]["lock"].update(sha256="0"),
            "build/slsa-provenance.json: it belongs",
        ),
    ],
)
@pytest.mark.sample(5)
def test_what_contradicts_itself_is_named_though_its_sums_fit(
    copy: Path, name: str, edit: Callable[[dict[str, Any]], object], said: str
) -> None:
    edited(copy, name, edit)
    for file in (copy, pack(copy)):
        found = told(file)
        assert found["changed"] == []
        assert any(said in line for line in found["contradictions"]), found
        assert "contradictions:\n" in verify(file).stdout


def test_wheels_that_are_not_the_locked_ones_are_named_though_their_sums_fit(copy: Path) -> None:
    wheels = copy / "build" / "wheelhouse"
    wheel = next(wheels.glob("numpy*.whl"))
    wheel.write_text("mine")
    (wheels / "evil-1-py3-none-any.whl").write_text("mine")
    next(wheels.glob("mpi4py*.whl")).unlink()
    seal(copy)
    found = told(copy)
    assert found["changed"] == []
    missing, other, more = found["contradictions"]
    assert missing.startswith("build/wheelhouse/mpi4py")
    assert other.startswith(f"build/wheelhouse/{wheel.name} ")
    assert more.startswith("build/wheelhouse/evil-1-py3-none-any.whl ")


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in more.items():
        setattr(info, key, value)
    return info


HOSTILE: list[tuple[tarfile.TarInfo, str]] = [
    (member("TOP/../../etc/cron.d/x"), "outside of the"),
    (member("/etc/cron.d/x"), "outside of the"),
    (member("TOP//x"), "outside of the"),
    (member("elsewhere/x"), "the single folder"),
    (member("TOP"), "the single folder"),
    (member("TOP/x", tarfile.SYMTYPE, linkname="/etc"), "symbolic link"),
    (member("TOP/x", tarfile.LNKTYPE, linkname="TOP/install.sh"), "is a hard link"),
    (member("TOP/x", tarfile.CHRTYPE, devmajor=1, devminor=5), "is a device"),
    (member("TOP/x", tarfile.BLKTYPE, devmajor=8), "is a device"),
    (member("TOP/x", tarfile.FIFOTYPE), "is a pipe"),
    (member("TOP/x", tarfile.CONTTYPE), "neither a file"),
    (member("TOP/install.sh"), "TOP/install.sh is in the"),
    (member("TOP/build", tarfile.REGTYPE), "TOP/build is in the"),
    (member("TOP/" + "x" * 2**21), "a header has "),
    (member("TOP/x", size=2**50), "archive ends within"),
    (member("TOP/x", size=-(2**40)), "neither a file"),
]


@pytest.mark.parametrize(("more", "said"), HOSTILE, ids=[said for _, said in HOSTILE])
@pytest.mark.sample(5)
def test_an_archive_that_no_bundle_is_packed_as_is_refused(
    made: tuple[Path, Path], tmp_path: Path, more: tarfile.TarInfo, said: str
) -> None:
    archive, top = tmp_path / "hostile.tar.gz", made[0].name
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(made[0], top)
        info = member(more.name.replace("TOP", top), more.type)
        info.linkname, info.size = more.linkname.replace("TOP", top), more.size
        info.devmajor, info.devminor = more.devmajor, more.devminor
        assert packed.fileobj is not None
        packed.fileobj.write(info.tobuf())
    refused(archive, said.replace("TOP", top))


def refused(archive: Path, said: str) -> None:
    before = sorted(archive.parent.iterdir())
    done = verify(archive, "--json")
    assert done.exit_code == 8, (done.stdout, done.stderr)
    assert problem_ids(done.stdout) == ["bundle.archive-damaged"]
    assert str(archive) in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(archive.parent.iterdir()) == before


def zeros(size: int) -> Iterator[bytes]:
    for _ in range(size >> 20):
        yield bytes(2**20)


def test_what_unpacks_to_far_more_than_it_is_is_refused(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_archive, "FREE_BYTES", 2**20)
    archive, size = tmp_path / "bomb.tar.gz", 2**26
    with gzip.open(archive, "wb", compresslevel=1) as packed:
        packed.write(member(f"{made[0].name}/x", size=size).tobuf())
        for chunk in zeros(size):
            packed.write(chunk)
    assert archive.stat().st_size < size / 100
    refused(archive, "unpacks to more")


def test_an_archive_with_more_members_than_a_bundle_has_is_refused(
    made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_archive, "MOST_MEMBERS", 20)
    done = verify(made[1], "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (8, ["bundle.archive-damaged"])
    assert " 20 " in done.stderr


def test_a_damaged_archive_and_what_follows_its_end_are_refused(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    data = made[1].read_bytes()
    archive = tmp_path / "damaged.tar.gz"
    whole = gzip.decompress(data)
    for text, said in (
        (data[:-9], "archive is damaged"),
        (data[: len(data) // 2], "archive is damaged"),
        (data[:-6] + b"\0\0\0" + data[-3:], "archive is damaged"),
        (gzip.compress(whole + whole), "after the end"),
        (data + b"more", "archive is damaged"),
    ):
        archive.write_bytes(text)
        refused(archive, said)


@pytest.mark.parametrize("name", ["nope", "nope.tar.gz"])
def test_what_is_not_there_is_said(name: str, tmp_path: Path) -> None:
    done = verify(tmp_path / name, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["bundle.not-found"])
    assert f"'{tmp_path / name}'" in done.stderr


def test_what_is_no_bundle_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("my notes")
    for file in (text, tmp_path, Path("/dev/null")):
        done = verify(file, "--json")
        assert (done.exit_code, problem_ids(done.stdout)) == (2, ["bundle.not-a-bundle"])
        assert str(file) in done.stderr
    done = verify(tmp_path / "nowhere.tar.gz", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["bundle.not-found"])


def test_one_that_is_signed_with_the_key_is_taken(made: tuple[Path, Path], tmp_path: Path) -> None:
    """Other signatures and keys: test_signed_files.py."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key, public, beside = Ed25519PrivateKey.generate(), tmp_path / "key.pub", tmp_path / "sig"
    form = PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, form))
    words = ["--key", str(public), "--signature", str(beside)]
    for of, code in ((made[1], 0), (made[0] / "SHA256SUMS", 8)):
        beside.write_bytes(base64.b64encode(key.sign(of.read_bytes())))
        assert verify(made[1], *words).exit_code == code
    assert verify(made[0], *words).exit_code == 2
