"""A bundle that is installed is an environment like any other: verified, proved, numbered, removed.

Nothing is stood in for: the bundle's own Python, MPI and ranks, and no network.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import (
    MARK,
    Done,
    Envbuild,
    finish,
    read_until,
    run,
    small_recipe,
    start,
    unpack_bundle,
    without_network,
)

from envbuilder.files import remove_tree
from envbuilder.target_tools import proc

NAME = "bundled"


@dataclass(frozen=True)
class Bundles:
    """Two bundles of one name, unpacked, and how they are installed."""

    first: Path
    second: Path

    @property
    def archives(self) -> list[Path]:
        """As they came."""
        return sorted(self.first.parent.parent.glob("*.tar.gz"))

    @staticmethod
    def install(bundle: Path, root: Path, *options: str) -> Done:
        words = ["bash", bundle / "install.sh", *options, root]
        return run([*without_network(), *words])


@pytest.fixture(scope="module")
def bundles(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    folder = tmp_path_factory.mktemp("bundles")
    found = []
    for summary in ("A first bundle", "A second bundle"):
        recipe = small_recipe(folder, NAME, summary=summary)
        words = ("create", recipe, "--site", "local", "--bundle", "--output", folder, "--json")
        done = envbuild(*words)
        assert done.code == 0, done.text
        told = json.loads(done.out)
        shutil.rmtree(told["folder"])
        unpack_bundle(told["archive"], folder / "there")
        found.append(folder / "there" / Path(told["folder"]).name)
    return Bundles(*found)


@pytest.fixture
def copied(bundles: Bundles, tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the first bundle, to be changed."""
    copy = tmp_path / "copy"
    shutil.copytree(bundles.first, copy)
    yield copy
    remove_tree(tmp_path)


@dataclass(frozen=True)
class Site:
    """A root in which the first bundle is installed and the second one built, and what was said."""

    root: Path
    ended: Done
    left: list[int]
    both: tuple[Done, Done]
    published: list[str]
    built: Done


@pytest.fixture(scope="module")
def site(bundles: Bundles, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Install the first bundle, which is ended once; then build the second, and do not prove it."""
    root = tmp_path_factory.mktemp("site") / "root"
    words = ["bash", bundles.first / "install.sh", root]
    mark = f"{MARK}={root}".encode()
    running = start([*words, "--skip-smoke"], env={MARK: str(root)})
    read_until("== tools", running)
    running.send_signal(signal.SIGTERM)
    ended = finish(running)
    left = [pid for pid in proc.pids() if mark in proc.read_words(pid, "environ")]
    assert not (root / NAME / "in-use.lock").exists()
    # Two at once: one waits for the other, and finds what that has published.
    first, second = start(words), start(words)
    both = (finish(first), finish(second))
    there = [path.name for path in published(root)]
    return Site(
        root, ended, left, both, there, bundles.install(bundles.second, root, "--skip-smoke")
    )


def evidence(prefix: Path) -> list[dict[str, Any]]:
    paths = sorted(prefix.with_name(f"{prefix.name}.evidence").glob("*/evidence.json"))
    return [json.loads(path.read_text()) for path in paths]


def published(root: Path) -> list[Path]:
    return sorted((root / "modulefiles").glob("*/*"))


def change_a_wheel(bundle: Path) -> str:
    wheel = next((bundle / "build" / "wheelhouse").glob("numpy*.whl"))
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.write_bytes(data)
    return f"build/wheelhouse/{wheel.name}"


def change_a_script(bundle: Path) -> str:
    with (bundle / "build" / "build.sh").open("a") as script:
        script.write("touch /tmp/it-ran\n")
    return "build/build.sh"


def take_a_file(bundle: Path) -> str:
    (bundle / "build" / "lock.json").unlink()
    return "build/lock.json"


def add_a_file(bundle: Path) -> str:
    (bundle / "build" / "target_tools" / "json.py").write_text("raise SystemExit('mine')\n")
    return "build/target_tools/json.py"


def add_a_link(bundle: Path) -> str:
    (bundle / "build" / "wheels").symlink_to("/tmp")
    return "build/wheels"


@pytest.mark.parametrize(
    "change", [change_a_wheel, change_a_script, take_a_file, add_a_file, add_a_link]
)
@pytest.mark.sample(1)
def test_what_was_changed_on_the_way_is_named_and_nothing_is_done(
    bundles: Bundles, copied: Path, tmp_path: Path, change: Callable[[Path], str]
) -> None:
    name = change(copied)
    done = bundles.install(copied, tmp_path / "root")
    assert done.code == 2, done.text
    assert f": {name}\nhint: " in done.err
    assert not (tmp_path / "root").exists()


def test_both_are_as_they_were_packed(bundles: Bundles, envbuild: Envbuild) -> None:
    assert len(bundles.archives) == 2
    for file in (*bundles.archives, bundles.first):
        done = envbuild("bundle", "verify", file)
        assert done.code == 0, done.text
        assert "files are unchanged; " in done.out


def prove(prefix: Path, records: Path) -> Done:
    """Run the judge by hand on what was built, as the test of an image does."""
    build = prefix.with_name(f"{prefix.name}.build")
    shutil.copyfile(build / "smoke-1.sh", build / "smoke.sh")
    options = ["--prefix", prefix, "--ranks", "2", "--max-bytes", "65536", "--mpi-from", "prefix"]
    options += ["--api", "numpy", "--transport", "mpi", build, records]
    return run([prefix / "bin" / "python", "-I", "-B", build / "target_tools", "prove", *options])


@pytest.mark.long
def test_what_is_ended_leaves_nothing_running_and_goes_on_when_run_again(site: Site) -> None:
    assert site.ended.code == 128 + signal.SIGTERM, site.ended.text
    assert site.left == []
    assert [each.code for each in site.both] == [0, 0], site.both
    told = site.both[0].err + site.both[1].err
    assert "== install: done before" in told
    assert "waiting for " in told
    assert "exactly this" in told
    assert [name for name in site.published if name[0] != "."] == ["1.lua"]


@pytest.fixture(scope="module")
def refused(site: Site, bundles: Bundles, tmp_path_factory: pytest.TempPathFactory) -> list[Done]:
    """Prove what was built, by hand and by the bundle, with a launcher that starts nothing.

    Before that with its own one, which is there again afterwards.
    """
    assert site.built.code == 0, site.built.text
    records = tmp_path_factory.mktemp("records")
    [prefix] = {path.with_suffix("") for path in site.root.glob(f"{NAME}/*.build")} - {
        path.with_suffix("") for path in site.root.glob(f"{NAME}/*.evidence")
    }
    good = prove(prefix, records / "good")
    launcher = prefix / "bin" / "mpiexec"
    launcher.rename(launcher.with_name("kept"))
    launcher.write_text("#!/bin/sh\nexit 0\n")
    launcher.chmod(0o755)
    bad = prove(prefix, records / "bad")
    done = bundles.install(bundles.second, site.root)
    launcher.with_name("kept").rename(launcher)
    assert len(list((records / "good" / "ranks").glob("rank-*.jsonl"))) == 2
    assert published(site.root) == [
        site.root / "modulefiles" / NAME / name for name in site.published
    ]
    (failed,) = evidence(prefix)
    assert failed["result"]["verdict"] == "failed"
    return [good, bad, done]


def test_a_launcher_that_starts_nothing_publishes_nothing(site: Site, refused: list[Done]) -> None:
    assert "built, but not published" in site.built.err
    good, bad, done = refused
    assert (good.code, good.out.splitlines()[0]) == (0, "passed: several ranks, native"), good.text
    assert bad.code == 6, bad.text
    assert done.code == 6, done.text
    assert "none of 2 reported" in done.err


@pytest.mark.usefixtures("refused")
@pytest.mark.long
def test_two_versions_in_one_root_are_environments_like_any_other(
    bundles: Bundles, site: Site, envbuild: Envbuild
) -> None:
    root = site.root
    done = bundles.install(bundles.second, root)
    assert done.code == 0, done.text
    again = bundles.install(bundles.first, root)
    assert again.code == 0, again.text
    assert "exactly this" in again.err

    told = json.loads(envbuild("list", "--root", root, "--json").out)
    assert [(each["number"], each["tier"]) for each in told["environments"]] == [
        (1, "several ranks"),
        (2, "several ranks"),
    ]
    # What was installed last is what is meant, be it there already.
    assert [each["default"] for each in told["environments"]] == [True, False]
    info = json.loads(envbuild("info", f"{NAME}/1", "--root", root, "--json").out)
    [proof] = info["evidence"]
    assert (proof["execution"], proof["result"]["verdict"]) == ("native", "passed")
    text = (root / "modulefiles" / NAME / "1.lua").read_text()
    assert f'"{NAME}/1: ' in text
    assert f"ranks, native, {proof['time']}" in text
    assert "@NUMBER@" not in text + done.text

    smoke = envbuild("smoke", f"{NAME}/2", "--root", root)
    assert smoke.code == 0, smoke.text
    line = envbuild("launch", f"{NAME}/2", "--root", root, "--", "python", "x.py")
    assert "mpiexec -n" in line.out, line.text
    diff = envbuild("diff", f"{NAME}/1", f"{NAME}/2", "--root", root)
    assert "A second bundle" in diff.out, diff.text
    assert envbuild("rollback", NAME, "--to", "2", "--root", root).code == 0
    removed = envbuild("remove", f"{NAME}/1", "--root", root)
    assert removed.code == 0, removed.text
    told = json.loads(envbuild("list", "--root", root, "--json").out)
    assert [(each["number"], each["default"]) for each in told["environments"]] == [(2, True)]
