"""The Dockerfile that ``render --as image`` writes, built by a real buildah as it is written.

Its base comes from a registry of this machine, and everything else from where it always comes from:
Debian's archive and the package index. It takes minutes.
"""

from __future__ import annotations

import json
import shutil
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Done, Envbuild, run
from registry_tools import needed, push, registry

from envbuilder.target_tools import manifest

pytestmark = [pytest.mark.long]

# The image that the Dockerfile names, and the registry that it is of.
NAME = "amd64/debian:12"
REGISTRIES = """
unqualified-search-registries = ["docker.io"]
[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "{}"
insecure = true
"""
# What this machine trusts, where a base of these tests looks for it.
TRUSTED = "/trusted.crt"
PREFIX = "/opt/envbuild/allreduce"
PROGRAM = """
import distributed_dl_training.numpy as hvd
hvd.init()
print(hvd.rank(), "of", hvd.size(), hvd.allreduce(float(hvd.rank()), op=hvd.Sum))
"""


class Lab(NamedTuple):
    """A registry with the base; what an image is built from; folders that the builds see."""

    place: str
    folder: Path
    seen: tuple[str, ...]


@pytest.fixture(scope="module")
def lab(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    needed("apptainer", "buildah", "skopeo", "docker-registry")
    debian, scratch = debian_base(tmp_path_factory), tmp_path_factory.mktemp("buildah")
    folder = scratch / "rendered"
    words = ("render", "allreduce", "--as", "image", "--site", "local", "--arch", "x86_64")
    done = envbuild(*words, "--output", folder)
    assert done.code == 0, done.text
    if f"FROM {NAME} AS build" not in (folder / "Dockerfile").read_text():
        pytest.skip(f"the Python of this machine is not that of {NAME}")
    lock = json.loads((folder / "build/lock.json").read_text())
    urls = (urlsplit(each["url"]) for each in lock["artifacts"])
    local = {str(Path(each.path).parent) for each in urls if each.scheme == "file"}
    bundle = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    seen = (f"{bundle}:{TRUSTED}", *(f"{each}:{each}" for each in sorted(local)))
    trusting = tuple(f"{name}={TRUSTED}" for name in ("PIP_CERT", "SSL_CERT_FILE"))
    # Apptainer binds only to what is there.
    base = scratch / "base"
    assert run(["cp", "-al", debian, base]).code == 0
    (base / TRUSTED.lstrip("/")).touch()
    for each in local:
        (base / each.lstrip("/")).mkdir(parents=True)
    with registry(scratch / "run") as place:
        push(base, f"{place}/{NAME}", scratch / "layout", variables=trusting)
        yield Lab(place, folder, seen)


def contents(recorded: Mapping[str, Any]) -> dict[str, str]:
    """Return what each file of a manifest holds; bytecode names the time of its source."""
    files = recorded["files"].items()
    return {
        name: "" if name.endswith(".pyc") else str(each.get("sha256") or each.get("link"))
        for name, each in files
    }


def built_by_buildah(lab: Lab, scratch: Path) -> tuple[dict[str, str], Done]:
    """Return what the prefix of the Dockerfile's image holds, and what two ranks in it said."""
    settings = scratch / "registries.conf"
    settings.write_text(REGISTRIES.format(lab.place))
    store = ("--root", str(scratch / "store"), "--runroot", str(scratch / "run"))
    buildah = ("buildah", *store, "--storage-driver", "vfs")
    volumes = [word for each in lab.seen for word in ("-v", f"{each}:ro")]
    words = ("--registries-conf", str(settings), "bud", "--isolation", "chroot", *volumes)
    done = run([*buildah, *words, "-t", "allreduce", str(lab.folder)], timeout=SECONDS)
    assert done.code == 0, done.text
    container = run([*buildah, "from", "localhost/allreduce"]).out.strip()
    root = Path(run([*buildah, "mount", container]).out.strip())
    try:
        found = contents(manifest.record(root / PREFIX.lstrip("/"), "published"))
        (root / "program.py").write_text(PROGRAM)
        ranks = ["mpiexec", "-n", "2", "python", "/program.py"]
        return found, run([*buildah, "run", "--isolation", "chroot", container, "--", *ranks])
    finally:
        run([*buildah, "rm", container])
        run([*buildah, "rmi", "--all", "--force"])
        shutil.rmtree(scratch / "store")


def built_by_apptainer(lab: Lab, scratch: Path) -> dict[str, str]:
    """Return what the prefix of a SIF file from the same folder holds."""
    folder = scratch / "rendered"
    shutil.copytree(lab.folder, folder)
    text = (folder / "allreduce.def").read_text()
    assert text.count(f"From: {NAME}") == 1
    (folder / "allreduce.def").write_text(text.replace(NAME, f"{lab.place}/{NAME}"))
    seen = [word for each in lab.seen for word in ("--bind", each)]
    env = {**QUICK, "APPTAINER_DISABLE_CACHE": "1"}
    words = ["apptainer", "build", "--no-https", *seen, "allreduce.sif", "allreduce.def"]
    done = run(words, env=env, cwd=folder, timeout=SECONDS)
    assert done.code == 0, done.text
    tools = f"{PREFIX}.build/target_tools"
    record = ["python", "-B", "-I", tools, "manifest", "record", PREFIX, "/out/manifest.json"]
    inside = ["apptainer", "exec", "--bind", f"{scratch}:/out", str(folder / "allreduce.sif")]
    done = run([*inside, *record], timeout=SECONDS)
    assert done.code == 0, done.text
    recorded: Mapping[str, Any] = manifest.read(scratch / "manifest.json")
    return contents(recorded)


def test_the_dockerfile_and_the_definition_file_make_one_prefix(lab: Lab, tmp_path: Path) -> None:
    docker, ranks = built_by_buildah(lab, tmp_path)
    assert sorted(ranks.out.splitlines()) == ["0 of 2 1.0", "1 of 2 1.0"], ranks.text
    assert docker["bin/mpiexec"]
    assert docker == built_by_apptainer(lab, tmp_path)
