"""conda environments from a channel that the tests make: locked, linked, proved, published."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from conda_tools import make_channel
from integration_tools import Envbuild, run

from tests.conda_channel import SERIES
from tests.serving import serving_by

pytest.importorskip("rattler")

RECIPE = """\
schema: 1
name: conda-allreduce
summary: Collective runtime on numpy and MPI, all of it from one conda channel
arch: [x86_64]
backend: conda
channels: [tests]
stack: {python: "*", numpy: "*", mpi4py: ">=4", mpich: ">=4.2"}
smoke: {ranks: 2, max-bytes: 65536}
"""
KNOWLEDGE = """\
schema: 1
recorded: "2026-11-01"
source: made by the tests
channels:
  tests: {url: "URL", recorded: "2026-11-01", sources: [made by the tests], packages: {}}
"""


@pytest.fixture(scope="module")
def channel(index: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_channel(tmp_path_factory)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(channel: Path) -> Iterator[str]:
    with serving_by(partial(Quiet, directory=str(channel))) as url:  # type: ignore[arg-type]
        yield url


def recipes(folder: Path, url: str) -> Path:
    """Write the recipe, and what is known of its channel; return their folder."""
    (folder / "knowledge").mkdir(parents=True)
    (folder / "conda-allreduce.yaml").write_text(RECIPE, encoding="utf-8")
    knowledge = KNOWLEDGE.replace("URL", url)
    (folder / "knowledge" / "versions.yaml").write_text(knowledge, encoding="utf-8")
    return folder


def words(verb: str, folder: Path) -> tuple[str | Path, ...]:
    return (verb, "conda-allreduce", "--recipes", folder, "--site", "local")


@pytest.fixture(scope="module")
def created(
    envbuild: Envbuild, address: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, object]]:
    """Return a root with the environment, made from the channel's server, and what was said."""
    root = tmp_path_factory.mktemp("conda") / "a root"
    folder = recipes(tmp_path_factory.mktemp("recipes") / "r", address)
    done = envbuild(*words("create", folder), "--root", root, "--json")
    assert done.code == 0, done.text
    return root, json.loads(done.out)


def test_the_ranks_of_a_conda_environment_talk_and_it_is_published(
    envbuild: Envbuild, created: tuple[Path, dict[str, object]]
) -> None:
    root, said = created
    prefix = Path(str(said["prefix"]))
    assert said["enter"] == f"conda activate '{prefix}'"
    (proof,) = json.loads(json.dumps(said["proofs"]))
    assert (proof["result"]["tier"], proof["result"]["verdict"]) == ("several ranks", "passed")
    # The MPI that carried it lies in the prefix, where the package put it.
    assert f"{prefix}/lib/libmpi" in json.dumps(proof)
    text = (root / "modulefiles" / "conda-allreduce" / "1.lua").read_text(encoding="utf-8")
    assert "CONDA_PREFIX" in text
    assert str(prefix) in text
    verified = envbuild("info", "conda-allreduce", "--verify", "--root", root)
    assert verified.code == 0, verified.text
    logs = [*(root / "conda-allreduce" / f"{said['id']}.build").rglob("*.log")]
    assert logs
    # As root pip warns of every environment that is no virtualenv.
    assert "as the 'root' user" not in "".join(each.read_text() for each in logs)
    healthy = envbuild("validate", "conda-allreduce", "--root", root)
    assert healthy.code == 0, healthy.text


def test_its_lock_and_its_records_say_where_each_package_is_from(
    channel: Path, address: str, created: tuple[Path, dict[str, object]]
) -> None:
    root, said = created
    lock = json.loads((root / "conda-allreduce" / "lock.json").read_text(encoding="utf-8"))
    packages = {each["name"]: each for each in lock["artifacts"] if "subdir" in each}
    assert packages.keys() == {"python", "numpy", "mpi4py", "mpich", "pip"}
    for each in packages.values():
        assert each["url"].startswith(f"{address}/{each['subdir']}/{each['name']}-")
        record = f"{each['name']}-{each['version']}-{each['build']}.json"
        kept = json.loads(Path(str(said["prefix"]), "conda-meta", record).read_text())
        assert {name: kept[name] for name in ("url", "channel", "md5", "sha256")} == {
            name: each[name] for name in ("url", "channel", "md5", "sha256")
        }
        assert str(root) not in json.dumps(kept)
    # Its files name this prefix, where the package named none.
    (data,) = Path(str(said["prefix"]), "lib", f"python{SERIES}").glob("_sysconfigdata*.py")
    assert "/placeholder_" not in data.read_text()
    assert f"'{said['prefix']}'" in data.read_text()
    for name in ("conda-cache", "explicit.txt"):
        assert not (root / "conda-allreduce" / f"{said['id']}.build" / name).exists()


def test_another_package_of_the_same_name_is_refused_with_both_hashes(
    envbuild: Envbuild, channel: Path, created: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    root, _ = created
    other = tmp_path / "channel"
    shutil.copytree(channel, other)
    (package,) = other.glob("linux-64/mpi4py-*")
    package.write_bytes(package.read_bytes() + b"more")
    text = (root / "conda-allreduce" / "lock.json").read_text(encoding="utf-8")
    lock = json.loads(text)
    (was,) = {each["channel"] for each in lock["artifacts"] if "subdir" in each}
    file = tmp_path / "lock.json"
    file.write_text(text.replace(was, other.as_uri()), encoding="utf-8")
    folder = recipes(tmp_path / "recipes", other.as_uri())
    new = tmp_path / "root"
    done = envbuild(*words("create", folder), "--locked", file, "--root", new)
    assert done.code == 5, done.text
    (locked,) = (each["sha256"] for each in lock["artifacts"] if each["name"] == "mpi4py")
    assert package.name in done.err
    assert locked in done.err
    assert json.loads(envbuild("list", "--root", new, "--json").out)["environments"] == []


@pytest.mark.long
def test_a_bundle_needs_neither_conda_nor_py_rattler_where_it_is_installed(
    envbuild: Envbuild, created: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    root, said = created
    lock = root / "conda-allreduce" / "lock.json"
    url = next(
        each["channel"] for each in json.loads(lock.read_text())["artifacts"] if "md5" in each
    )
    folder = recipes(tmp_path / "recipes", url)
    more = ("--locked", lock, "--bundle", "--output", tmp_path, "--json")
    done = envbuild(*words("create", folder), *more)
    assert done.code == 0, done.text
    bundle = Path(json.loads(done.out)["folder"])
    assert not (bundle / "build" / "conda-packages").exists()
    assert envbuild("bundle", "verify", bundle).code == 0
    # A Python that sees no packages, and no program of conda's family.
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python3" -S "$@"\n')
    bare.chmod(0o755)
    new, path = tmp_path / "root", f"{bare.parent}:/usr/bin:/bin"
    installed = run(["bash", bundle / "install.sh", new], env={"PATH": path})
    assert installed.code == 0, installed.text
    assert "linked by" not in installed.text
    listing = json.loads(envbuild("list", "--root", new, "--json").out)["environments"]
    assert [(each["id"], each["tier"]) for each in listing] == [(said["id"], "several ranks")]
    prefix = new / "conda-allreduce" / str(said["id"])
    (data,) = prefix.glob(f"lib/python{SERIES}/_sysconfigdata*.py")
    assert f"'{prefix}'" in data.read_text()
