"""``--base docker://...`` of a real registry, through copies and proxies; and what is refused.

What is pulled has the records of a Debian and no program. That an image is built from one of a
registry, the last test shows. It takes a minute; the others are quick, and need Apptainer too.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Done, Envbuild, run
from place_tools import small_disk
from registry_tools import PASSWORD, USER, http_proxy, needed, push, registry

from tests.debian_system import PACKAGES, system

pytestmark = [pytest.mark.long]

NAME = "lab/debian"


class Lab(NamedTuple):
    """A registry with two small systems: NAME:12 for x86_64, NAME:arm for aarch64."""

    place: str
    store: Path
    digest: str


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    needed("apptainer", "skopeo", "docker-registry")
    folder = tmp_path_factory.mktemp("registry")
    packages = {**PACKAGES, "libnccl-dev": "2.23.4-1+cuda12.6"}
    with registry(folder / "run") as place:
        made = system(folder / "system", packages)
        digest = push(made, f"{place}/{NAME}:12", folder / "layout")
        arm = system(folder / "arm", packages, arch="arm64")
        push(arm, f"{place}/{NAME}:arm", folder / "arm-layout", arch="aarch64")
        yield Lab(place, folder / "run" / "store", digest)


class Asked(NamedTuple):
    """Runs the verb with a cache of its own, and shows what is kept there."""

    envbuild: Envbuild
    folder: Path

    def __call__(self, base: str, *words: str | Path, **variables: str) -> Done:
        """Ask for a form that needs a lock, so that all ends once the base is there and read."""
        env = {"XDG_CACHE_HOME": str(self.folder), **variables}
        return self.envbuild("render", "allreduce", "--as", "def", "--base", base, *words, env=env)

    def kept(self) -> list[str]:
        found = (self.folder / "envbuild" / "bases").glob("*")
        return sorted(each.name for each in found if each.suffix != ".log")


@pytest.fixture
def asked(envbuild: Envbuild, tmp_path: Path) -> Asked:
    return Asked(envbuild, tmp_path / "cache")


def pulled(done: Done) -> bool:
    """Whether the base was there and read, and a plan made for it."""
    return done.code == 2 and "needs a lock" in done.err


def site(folder: Path, copies: dict[str, str | list[str]]) -> Path:
    path = folder / "ours.yaml"
    values = {"schema": 1, "name": "ours", "summary": "With copies", "arch": ["x86_64"]}
    path.write_text(yaml.safe_dump({**values, "registries": copies}))
    return path


def test_by_tag_and_by_digest(lab: Lab, asked: Asked) -> None:
    done = asked(f"docker://{lab.place}/{NAME}:12")
    assert pulled(done), done.text
    pinned = f"{lab.place}/{NAME}@sha256:{lab.digest}"
    assert f"--base docker://{pinned}" in done.err
    assert f"fetching {pinned} for x86_64, once" in done.err
    assert asked.kept() == [f"{lab.digest}-x86_64"]
    again = asked(f"docker://{pinned}")
    assert pulled(again), again.text
    assert "fetching" not in again.err


def test_through_a_copy_and_a_proxy_of_registries(lab: Lab, asked: Asked, tmp_path: Path) -> None:
    base = f"docker://{NAME}@sha256:{lab.digest}"
    with registry(tmp_path / "proxy", of=lab.place) as proxy:
        # The first is not there; the second fetches from the registry what it is asked for.
        copies = site(tmp_path, {"docker.io": ["http://127.0.0.1:1", f"http://{proxy}"]})
        done = asked(base, "--site", copies)
        assert pulled(done), done.text
        assert (tmp_path / "proxy/store/docker/registry/v2/blobs/sha256").is_dir()
    shutil.rmtree(asked.folder)
    gone = asked(base, "--site", copies)
    assert gone.code == 5
    assert [line.split(":")[:2] for line in gone.err.splitlines() if line.startswith("  127")] == [
        ["  127.0.0.1", "1"],
        ["  127.0.0.1", proxy.partition(":")[2]],
    ]
    assert asked.kept() == []


def test_through_a_proxy_of_http(lab: Lab, asked: Asked, tmp_path: Path) -> None:
    copies = site(tmp_path, {"registry.invalid": "http://registry.invalid"})
    base = f"docker://registry.invalid/{NAME}:12"
    with http_proxy(lab.place) as (url, requests):
        secret = url.replace("//", f"//me:{PASSWORD}@")
        done = asked(base, "--site", copies, http_proxy=secret)
    assert pulled(done), done.text
    assert f"http://registry.invalid/v2/{NAME}/manifests/12" in requests
    shutil.rmtree(asked.folder)
    refused = asked(base, "--site", copies, http_proxy=secret)
    assert refused.code == 5
    assert PASSWORD not in done.text + refused.text


@pytest.mark.parametrize(
    ("version", "words", "code", "says"),
    [
        (f"@sha256:{'0' * 64}", (), 5, "manifest unknown"),
        (":none", (), 5, "manifest unknown"),
        (":arm", (), 2, "is an image for aarch64, not for x86_64"),
        (":12", ("--arch", "ppc64le"), 2, "is an image for x86_64, not for ppc64le"),
        (":12", ("--arch", "riscv64"), 2, "riscv64"),
    ],
)
def test_what_is_not_there_or_for_others(
    version: str, words: tuple[str, ...], code: int, says: str, lab: Lab, asked: Asked
) -> None:
    done = asked(f"docker://{lab.place}/{NAME}{version}", *words)
    assert (done.code, says in done.err) == (code, True), done.text
    assert asked.kept() == []


def test_one_for_another_architecture_that_is_asked_for(lab: Lab, asked: Asked) -> None:
    done = asked(f"docker://{lab.place}/{NAME}:arm", "--arch", "aarch64")
    assert pulled(done), done.text
    [kept] = asked.kept()
    assert kept.endswith("-aarch64")


def test_a_layer_of_other_bytes_than_those_of_its_digest(
    lab: Lab, asked: Asked, tmp_path: Path
) -> None:
    blobs, store = Path("docker/registry/v2/blobs/sha256"), tmp_path / "store"
    shutil.copytree(lab.store, store)
    manifest = (store / blobs / lab.digest[:2] / lab.digest / "data").read_text()
    layer = json.loads(manifest)["layers"][0]["digest"].partition(":")[2]
    file = store / blobs / layer[:2] / layer / "data"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with registry(tmp_path / "run", store=store) as place:
        copies = site(tmp_path, {"docker.io": f"http://{place}"})
        done = asked(f"docker://{NAME}@sha256:{lab.digest}", "--site", copies)
    assert done.code == 5, done.text
    assert f"Digest did not match, expected sha256:{layer}" in done.err
    assert asked.kept() == []


def test_a_manifest_that_another_is_put_in_the_place_of(
    lab: Lab, asked: Asked, tmp_path: Path
) -> None:
    with http_proxy(lab.place, (b'"schemaVersion": 2', b'"schemaVersion" :2')) as (url, _):
        copies = site(tmp_path, {"docker.io": url})
        done = asked(f"docker://{NAME}@sha256:{lab.digest}", "--site", copies)
    assert done.code == 5, done.text
    assert f"does not match provided manifest digest sha256:{lab.digest}" in done.err
    assert asked.kept() == []


@pytest.mark.parametrize("kind", ["oci", "oci-archive", "docker-archive", "tar"])
def test_layouts_and_archives(kind: str, lab: Lab, asked: Asked, tmp_path: Path) -> None:
    file = tmp_path / "file"
    if kind == "tar":
        root = system(tmp_path / "system", {**PACKAGES, "libnccl-dev": "2.23.4-1+cuda12.6"})
        made, base = run(["tar", "-C", root, "-czf", file, "."]), str(file)
    else:
        source, tag = f"docker://{lab.place}/{NAME}:12", ":lab/debian:12" * (kind[0] == "d")
        words = ["skopeo", "--insecure-policy", "copy", "--src-tls-verify=false", source]
        made, base = run([*words, f"{kind}:{file}{tag}"]), f"{kind}:{file}"
    assert made.code == 0, made.text
    done = asked(base)
    assert pulled(done), done.text
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else lab.digest
    assert asked.kept() == [f"{sha256}-x86_64"]


def test_a_full_disk_keeps_no_base(lab: Lab, asked: Asked, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    script = 'cache=$1; shift; "$@"; code=$?; find "$cache" -type f -o -name "*-x86_64"; exit $code'
    words = ["render", "allreduce", "--as", "def", "--base", f"docker://{lab.place}/{NAME}:12"]
    through = [*small_disk(cache, 64), "bash", "-c", script, "show", str(cache)]
    done = asked.envbuild(*words, env={"XDG_CACHE_HOME": str(cache)}, through=through)
    assert done.code == 5, done.text
    assert "no space left on device" in done.err.lower()
    left = [each for each in done.out.splitlines() if not each.endswith(".log")]
    assert left == [], done.text


def test_who_may_not_read_and_who_may(lab: Lab, asked: Asked, tmp_path: Path) -> None:
    with registry(tmp_path / "closed", store=lab.store, closed=True) as place:
        base = f"docker://{place}/{NAME}:12"
        refused = asked(base)
        assert refused.code == 5
        assert "unauthorized" in refused.err
        assert "skopeo login" in refused.err
        auth = tmp_path / "auth.json"
        words = ["skopeo", "login", "--tls-verify=false", "--authfile", str(auth)]
        done = run([*words, "--username", USER, "--password", PASSWORD, place])
        assert done.code == 0, done.text
        done = asked(base, REGISTRY_AUTH_FILE=str(auth))
    assert pulled(done), done.text
    named = asked(f"docker://{USER}:{PASSWORD}@{place}/{NAME}:12")
    assert named.code == 2
    kept = [each for each in asked.folder.rglob("*") if each.is_file() and not each.is_symlink()]
    told = [each.read_text(errors="replace") for each in kept]
    assert PASSWORD not in "".join([refused.text, done.text, named.text, *told])


def test_an_image_is_built_from_one_of_a_registry(
    lab: Lab, envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    debian = debian_base(tmp_path_factory)
    digest = push(debian, f"{lab.place}/lab/whole:12", tmp_path / "layout")
    base, env = f"docker://{lab.place}/lab/whole:12", {**QUICK, "XDG_CACHE_HOME": str(tmp_path)}
    words = ("image", "allreduce", "--base", base, "--output", tmp_path / "images")
    done = envbuild(*words, env=env, timeout=SECONDS)
    assert done.code == 0, done.text
    [image] = (tmp_path / "images").glob("*.sif")
    [lock] = (tmp_path / "images").glob("*.evidence/lock.json")
    inputs = {each["kind"]: each for each in json.loads(lock.read_text())["plan"]["inputs"]}
    assert inputs["base"] == {"kind": "base", "name": f"{lab.place}/lab/whole", "sha256": digest}
    found = run(["apptainer", "inspect", "--json", image])
    labels = json.loads(found.out)["data"]["attributes"]["labels"]
    assert labels["org.opencontainers.image.base.digest"] == f"sha256:{digest}"
    inside = run(["apptainer", "exec", image, "sh", "-c", "echo $BASE_SAYS $(command -v python)"])
    assert inside.out.startswith("hello /opt/envbuild/allreduce/"), inside.text
