"""Bases that are fetched, with programs that stand for skopeo and Apptainer.

With the real ones and a real registry: tests/integration/test_image_bases.py.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from envbuilder.errors import BuildError, EnvbuildError, MissingToolError, UsageError
from envbuilder.images import obtain
from envbuilder.images.built import obtain_base
from envbuilder.images.obtain import BaseRequest, UnpackedBase
from envbuilder.images.oci import OciConfig, pack_layout
from envbuilder.images.reference import parse_base
from envbuilder.machine.host import LocalMachine
from tests.debian_system import system

# What it is asked is kept. It has one image, at one place, and refuses at others as skopeo does.
SKOPEO = r"""#!/bin/sh
echo "$*" >>"$STUB/asked"
case "$*" in
*" docker://$ALLOWED"* | *":source"*) ;;
*)
    why='reading \"1\": unauthorized: who asks? me:pass99word@y'
    printf '%s\n' "time=\"x\" level=fatal msg=\"$why\"" >&2
    exit 1
    ;;
esac
case "$*" in
*"inspect --raw"*) /bin/cat "$STUB/raw" ;;
*) /bin/cp -R "$STUB/layout" layout ;;
esac
"""
# Options, the folder to make, oci:LAYOUT.
APPTAINER = """#!/bin/sh
for last; do folder=$before; before=$last; done
echo "unpacking $last, cache ${APPTAINER_DISABLE_CACHE:-kept}" >>"$STUB/asked"
if [ -e "$STUB/full" ]; then
    /bin/mkdir "$folder"
    echo "no space left on device"
    exit 255
fi
/bin/cp -R "$STUB/system" "$folder"
"""


@dataclass(frozen=True)
class Stubs:
    """Programs, what they give, and what they were asked."""

    folder: Path

    def obtain(
        self,
        base: str = "docker://reg.example/debian:12",
        allowed: str = "reg.example/debian",
        arch: str = "x86_64",
        copies: Mapping[str, Sequence[str]] | None = None,
        path: str = "{}/tools:/usr/bin:/bin",
    ) -> tuple[UnpackedBase, list[str]]:
        said: list[str] = []
        image = parse_base(base, self.folder)
        assert not isinstance(image, Path)
        environ = {
            "PATH": path.format(self.folder),
            "STUB": str(self.folder),
            "ALLOWED": allowed,
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "SECRET_TOKEN": "pass99word",
        }
        request = BaseRequest(image, arch, LocalMachine(environ), copies or {})
        return obtain_base(request, said.append, said.append), said

    def refused(
        self, error: type[EnvbuildError], **words: str | Mapping[str, Sequence[str]]
    ) -> str:
        with pytest.raises(error) as raised:
            self.obtain(**words)  # type: ignore[arg-type]
        assert self.kept() == []
        return "\n".join(map(str, raised.value.problems))

    def kept(self) -> list[str]:
        """Return what is left in the cache, hidden files too; logs aside."""
        found = (self.folder / "cache/envbuild/bases").glob("*")
        return sorted(each.name for each in found if each.suffix != ".log")

    def asked(self) -> list[str]:
        file = self.folder / "asked"
        # Asked for where no policy of signatures is on the machine.
        text = file.read_text().replace("--insecure-policy ", "") if file.exists() else ""
        file.unlink(missing_ok=True)
        return text.splitlines()

    @property
    def digest(self) -> str:
        return hashlib.sha256((self.folder / "raw").read_bytes()).hexdigest()


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    for name, text in (("skopeo", SKOPEO), ("apptainer", APPTAINER)):
        for folder in ("tools", name):
            program = tmp_path / folder / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
    made = system(tmp_path / "system")
    config = OciConfig("x86_64", "base", ("PATH=/opt/bin:/bin", "CUDA_VERSION=12.6"), {})
    digest = pack_layout(made, tmp_path / "layout", config)
    raw = (tmp_path / "layout/blobs/sha256" / digest).read_bytes()
    (tmp_path / "raw").write_bytes(raw)
    return Stubs(tmp_path)


def test_a_tag_is_looked_up_once_and_its_digest_is_what_is_fetched(stubs: Stubs) -> None:
    found, said = stubs.obtain()
    pinned = f"reg.example/debian@sha256:{stubs.digest}"
    first, second = said
    assert first.endswith(f"--base docker://{pinned}")
    assert f"{pinned} for x86_64" in second
    assert (found.folder / "var/lib/dpkg/status").is_file()
    assert found.source.name == "reg.example/debian"
    assert found.source.sha256 == stubs.digest
    assert found.source.variables == ("PATH=/opt/bin:/bin", "CUDA_VERSION=12.6")
    options = "--override-os linux --override-arch amd64"
    assert stubs.asked() == [
        f"{options} inspect --raw docker://reg.example/debian:12",
        f"{options} copy docker://{pinned} oci:layout",
        "unpacking oci:layout, cache 1",
    ]
    assert stubs.kept() == [f"{stubs.digest}-x86_64"]


def test_what_is_pinned_is_fetched_once_and_then_needs_no_program(stubs: Stubs) -> None:
    base = f"docker://reg.example/debian@sha256:{stubs.digest}"
    first, said = stubs.obtain(base)
    assert len(said) == 1
    assert len(stubs.asked()) == 2
    again, said = stubs.obtain(base, path="{}/none")
    assert (again, said, stubs.asked()) == (first, [], [])


def test_the_copies_of_a_site_are_asked_in_order_and_the_registry_is_not(
    stubs: Stubs,
) -> None:
    copies = {"docker.io": ["https://down.example/hub", "http://near.example:5000/hub/"]}
    there = "near.example:5000/hub/library/debian"
    _, said = stubs.obtain("docker://debian:12", there, copies=copies)
    assert said[0].startswith("docker.io/library/debian:12 is sha256:")
    first, second, copy, _ = stubs.asked()
    assert first.endswith("inspect --raw docker://down.example/hub/library/debian:12")
    name = "docker://near.example:5000/hub/library/debian"
    assert second.endswith(f"inspect --raw --tls-verify=false {name}:12")
    assert f"copy --src-tls-verify=false {name}@sha256:{stubs.digest} " in copy


def test_who_refuses_is_named_with_its_reason_and_no_password(stubs: Stubs) -> None:
    copies = {"docker.io": ["https://one.example", "https://two.example"]}
    said = stubs.refused(BuildError, base="docker://debian:12", copies=copies)
    assert "docker.io/library/debian:12" in said
    for host in ("one", "two"):
        assert f'{host}.example: reading "1": unauthorized:' in said
    assert "skopeo login" in said
    assert "pass99word" not in said
    pinned = f"docker://reg.example/other@sha256:{stubs.digest}"
    assert "reg.example/other@sha256:" in stubs.refused(BuildError, base=pinned)


def test_an_image_for_another_architecture(stubs: Stubs) -> None:
    said = stubs.refused(UsageError, arch="ppc64le")
    assert "reg.example/debian:12" in said
    assert "x86_64, not for ppc64le" in said
    assert "--arch x86_64" in said


def test_a_disk_that_is_full_leaves_the_log_and_no_base(stubs: Stubs) -> None:
    (stubs.folder / "full").touch()
    said = stubs.refused(BuildError)
    assert "no space left on device" in said
    (stubs.folder / "full").unlink()
    stubs.obtain()
    assert stubs.kept() == [f"{stubs.digest}-x86_64"]


@pytest.mark.parametrize(("tools", "lacks"), [("apptainer", "skopeo"), ("skopeo", "apptainer")])
def test_a_program_that_is_not_here(stubs: Stubs, tools: str, lacks: str) -> None:
    said = stubs.refused(MissingToolError, path=f"{{}}/{tools}")
    assert lacks in said


def test_a_layout_and_an_archive_of_an_image(stubs: Stubs) -> None:
    found, _ = stubs.obtain("oci:layout:12")
    assert (found.source.name, found.source.sha256) == ("layout:12", stubs.digest)
    inspect, copy, _ = stubs.asked()
    assert inspect.endswith("inspect --raw oci:source:12")
    assert copy.endswith("copy oci:source:12 oci:layout")
    archive = stubs.folder / "image.tar"
    archive.write_bytes(b"an archive of an image")
    found, _ = stubs.obtain("docker-archive:image.tar")
    assert found.source.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    copy, _ = stubs.asked()
    assert copy.endswith("copy docker-archive:source oci:layout")


def test_an_archive_of_a_system(stubs: Stubs) -> None:
    archive = stubs.folder / "debian 12.tar.gz"
    (stubs.folder / "system/dev").mkdir()
    (stubs.folder / "system/dev/null").touch()
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(stubs.folder / "system", ".")
    found, said = stubs.obtain("debian 12.tar.gz")
    (line,) = said
    assert "debian 12.tar.gz for x86_64" in line
    assert (found.folder / "etc/os-release").is_file()
    assert not (found.folder / "dev/null").exists()
    assert found.source.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found.source.variables == ()
    assert stubs.asked() == []
    archive.write_bytes(b"not one")
    with pytest.raises(BuildError) as raised:
        stubs.obtain("debian 12.tar.gz")
    assert raised.value.id == "base.unpack-failed"


@pytest.mark.parametrize("kind", ["file", "layout"])
def test_what_is_unpacked_is_what_was_hashed(
    kind: str, stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base is kept by its hash: another file in its place must not be kept under that."""
    shutil.copytree(stubs.folder / "layout", stubs.folder / "mine")
    archive, index = stubs.folder / "debian.tar", stubs.folder / "mine/index.json"
    with tarfile.open(archive, "w") as tar:
        tar.add(stubs.folder / "system", ".")
    good = index.read_bytes()
    digest = obtain.find_digest

    def swap(*arguments: object) -> object:
        found = digest(*arguments)  # type: ignore[arg-type]
        archive.write_bytes(b"another")
        index.write_bytes(b"another")
        return found

    monkeypatch.setattr(obtain, "find_digest", swap)
    if kind == "file":
        assert "debian.tar" in stubs.refused(BuildError, base="debian.tar")
        return
    # Its skopeo tells what it read.
    program = stubs.folder / "tools/skopeo"
    told = '/bin/cp source/index.json "$STUB/read"; /bin/cp -R'
    program.write_text(program.read_text().replace("/bin/cp -R", told))
    stubs.obtain("oci:mine:12")
    assert (stubs.folder / "read").read_bytes() == good
