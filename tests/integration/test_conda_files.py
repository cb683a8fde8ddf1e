"""Other tools' files of a conda environment, and a clone of one, by the command line alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from conda_tools import make_channel
from integration_tools import Envbuild

pytest.importorskip("rattler")
pytestmark = pytest.mark.long

RECIPE = """\
schema: 1
name: ours
summary: Collective runtime on numpy and MPI, all of it from one conda channel
arch: [x86_64]
backend: conda
channels: [CHANNEL]
stack: {python: "*", numpy: "*", mpi4py: ">=4", mpich: ">=4.2"}
"""
FORMS = ("explicit", "conda-lock", "pixi", "environment.yml")
# Another tool than ours. Its interpreter may crash at its end.
LINK = """
import asyncio, os, sys
import rattler
async def main(channel, prefix, cache, *names):
    records = await rattler.solve(
        sources=[rattler.Channel(channel)], specs=names, virtual_packages=[],
        platforms=["linux-64", "noarch"],
    )
    await rattler.install(records, target_prefix=prefix, cache_dir=cache, show_progress=False)
asyncio.run(main(*sys.argv[1:]))
os._exit(0)
"""


@pytest.fixture(scope="module")
def channel(index: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_channel(tmp_path_factory)


def written(folder: Path, channel: str) -> Path:
    recipe = folder / "ours.yaml"
    recipe.write_text(RECIPE.replace("CHANNEL", channel), encoding="utf-8")
    return recipe


@pytest.mark.parametrize("form", FORMS)
def test_a_lock_is_exported_imported_and_the_same_lock(
    envbuild: Envbuild, channel: Path, tmp_path: Path, form: str
) -> None:
    recipe, here = written(tmp_path, channel.as_uri()), ("--site", "local")
    lock, file = tmp_path / "lock.json", tmp_path / "exported"
    assert envbuild("lock", recipe, *here, "-o", lock).code == 0
    done = envbuild("render", recipe, *here, "--locked", lock, "--as", form, "-o", file)
    assert done.code == 0, done.text
    (tmp_path / "again").mkdir()
    new = tmp_path / "again" / "ours.yaml"
    imported = envbuild("recipes", "import", file, "-o", new)
    assert imported.code == 0, imported.text
    assert "left out" not in imported.text
    just = () if form == "environment.yml" else ("--from", file)
    for each in [recipe, new] if just else [new]:
        other = tmp_path / "other.json"
        done = envbuild("lock", each, *here, *just, "-o", other)
        assert done.code == 0, done.text
        compared = envbuild("diff", lock, other)
        assert compared.code == 0, compared.text
        one, two = (json.loads(path.read_text())["artifacts"] for path in (lock, other))
        assert one == two


def tree(folder: Path) -> str:
    """Return one hash of every file of a folder, their modes and links."""
    said = [
        (
            str(path.relative_to(folder)),
            path.lstat().st_mode,
            str(path.readlink())
            if path.is_symlink()
            else sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else "",
        )
        for path in sorted(folder.rglob("*"))
    ]
    return sha256(json.dumps(said).encode()).hexdigest()


def test_a_prefix_whose_channel_is_gone_is_cloned_and_its_clone_again(
    envbuild: Envbuild, channel: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a place"
    gone = folder / "gone"
    shutil.copytree(channel, gone)
    module, names = folder / "module" / "env", ("python", "numpy", "mpi4py", "mpich", "pip")
    words = [gone.as_uri(), str(module), str(folder / "cache"), *names]
    subprocess.run([sys.executable, "-c", LINK, *words], check=True)
    shutil.rmtree(gone)
    shutil.rmtree(folder / "cache")
    for path in (module, *module.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    before = tree(module)
    to = ("--root", folder / "root", "--site", "local", "--json")
    done = envbuild("clone", module, "--name", "first", *to, cwd=folder)
    assert done.code == 0, done.text
    assert tree(module) == before
    said = json.loads(done.out)
    (proof,) = said["proofs"]
    assert (proof["result"]["tier"], proof["result"]["verdict"]) == ("several ranks", "passed")
    for verb in (("info", "--verify"), ("validate",)):
        checked = envbuild(verb[0], "first", *verb[1:], "--root", folder / "root")
        assert checked.code == 0, checked.text
    # Nothing in it names the one that it was made from.
    for path in Path(said["prefix"]).rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert str(module).encode() not in path.read_bytes(), path
    published = tree(Path(said["prefix"]))
    again = envbuild("clone", "first", "--name", "second", *to, cwd=folder)
    assert again.code == 0, again.text
    assert tree(Path(said["prefix"])) == published
    assert not (folder / "second.packages").exists()
    locks = (folder / "root" / name / "lock.json" for name in ("first", "second"))
    one, two = (json.loads(path.read_text())["artifacts"] for path in locks)
    assert one == two
