"""py-rattler and a program of conda's family make the same prefix of the same packages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from channel_tools import GLIBC, engine, pip, plan
from render_cases import build_files

from envbuilder import data
from envbuilder.build.backends import BACKENDS
from envbuilder.build.scripts import prepare
from envbuilder.conda.solve import solve
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock
from tests.conda_channel import PLACEHOLDER, File, Package, change_record, write_channel
from tests.small_disk import fill, small_disk

__all__ = ["small_disk"]

P = PLACEHOLDER.encode()
FILES = {
    "bin/tool": File(b"#!" + P + b"/bin/python\n", executable=True, mode="text"),
    "lib/tool.so": File(b"\x7fELF" + P + b"/lib\0more\0", mode="binary"),
}
PACKAGES = [Package("python", "3.9.1"), Package("tool", "1.0", FILES), pip()]


class Build:
    """A build folder with its packages, as they are fetched."""

    def __init__(
        self,
        folder: Path,
        packages: Sequence[Package] = PACKAGES,
        patch: Callable[[Path], None] = lambda _: None,
    ) -> None:
        """Write it. *patch*: what the channel's keeper does to it."""
        channel = write_channel(folder / "channel", packages)
        patch(channel)
        pins = {each.name: each.version for each in packages if each.name != "pip"}
        planned = plan([channel], **pins)
        steps = BACKENDS["conda"].TRAITS.steps
        planned = planned.model_copy(update={"steps": steps})
        lock = Lock(plan=planned, artifacts=solve(planned, GLIBC, {}, engine(folder)))
        # conda takes a space in a path, and none in the last part of it.
        self.prefix, self.folder = folder / "a root" / "prefix", folder / "a build"
        prepare(
            self.folder, build_files(lock, BuildFolders(self.prefix, self.folder)), data.RUNTIME
        )
        self.home = folder

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), **env}
        environ.setdefault("ENVBUILD_PYTHON", sys.executable)
        steps = ["bash", "build.sh", "packages", "conda"]
        return subprocess.run(steps, cwd=self.folder, env=environ, capture_output=True, text=True)

    def contents(self) -> dict[str, str]:
        files = (path for path in sorted(self.prefix.rglob("*")) if path.is_file())
        names = {str(path.relative_to(self.prefix)): path for path in files}
        own = ("conda-meta/", "CACHEDIR.TAG", "made-by")
        return {
            name: sha256(path.read_bytes()).hexdigest()
            for name, path in names.items()
            if not name.startswith(own)
        }


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return Build(tmp_path_factory.mktemp("engines"))


def program(folder: Path, name: str) -> Path:
    """Write the stand-in for a program of conda's family into a folder."""
    folder.mkdir()
    path = folder / name
    script, checkout = Path(__file__).with_name("fake_conda.py"), Path(data.__file__).parents[1]
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{checkout}" exec "{sys.executable}" "{script}" "$@"\n')
    path.chmod(0o755)
    return path


def test_both_engines_make_the_same_files_of_the_same_packages(
    build: Build, tmp_path: Path
) -> None:
    done = build.run()
    assert done.returncode == 0, done.stderr
    assert "linked by py-rattler" in done.stderr
    first = build.contents()
    assert {"bin/tool", "lib/tool.so", "share/pip"} <= first.keys()
    conda = program(tmp_path / "bin", "micromamba")
    named = build.run(ENVBUILD_CONDA=str(conda))
    assert named.returncode == 0, named.stderr
    assert f"linked by {conda}" in named.stderr
    assert (build.prefix / "made-by").is_file()
    assert build.contents() == first
    # Where the Python has no py-rattler, what is on PATH is taken.
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    found = build.run(ENVBUILD_PYTHON=str(bare), PATH=f"{conda.parent}:/usr/bin:/bin")
    assert found.returncode == 0, found.stderr
    assert f"linked by {conda}" in found.stderr
    assert build.contents() == first


def test_what_an_engine_made_otherwise_is_refused(build: Build, tmp_path: Path) -> None:
    conda = program(tmp_path / "bin", "conda")
    broken = tmp_path / "broken"
    broken.write_text(
        f'#!/bin/sh\n"{conda}" "$@" || exit\necho more >>"{build.prefix}/lib/tool.so"\n'
    )
    broken.chmod(0o755)
    done = build.run(ENVBUILD_CONDA=str(broken))
    assert done.returncode == 1
    assert "lib/tool.so of tool: " in done.stderr
    shutil.rmtree(build.prefix)


def test_what_was_left_half_written_is_made_anew(build: Build) -> None:
    assert build.run().returncode == 0
    whole = build.contents()
    # Killed while it fetched, unpacked and linked.
    (package,) = (build.folder / "conda-packages").glob("tool-*")
    package.write_bytes(package.read_bytes()[:100])
    cache = build.folder / "conda-cache" / "tool-1.0-0"
    (cache / "lib").mkdir(parents=True)
    (cache / "lib" / "tool.so").write_bytes(b"half")
    (build.prefix / "lib" / "tool.so").write_bytes(b"half")
    (build.prefix / "conda-meta" / "tool-1.0-0.json").write_text("{")
    again = build.run()
    assert again.returncode == 0, again.stderr
    assert build.contents() == whole
    assert not (build.folder / "conda-cache").exists()


def test_a_package_that_its_channel_changed_is_refused_with_both_hashes(build: Build) -> None:
    assert build.run().returncode == 0
    (package,) = build.home.glob("channel/*/tool-*")
    (fetched,) = (build.folder / "conda-packages").glob("tool-*")
    good = package.read_bytes()
    wanted, others = sha256(good).hexdigest(), sha256(good[:-9]).hexdigest()
    fetched.unlink()
    package.write_bytes(good[:-9])
    done = build.run()
    package.write_bytes(good)
    assert done.returncode == 1
    said = done.stderr.replace("\n", " ")
    assert package.name in said
    assert f"sha256 is {others}" in said
    assert wanted in said
    assert not fetched.exists()


CLASHES = {
    "a file twice": ({"share/x": File(b"1")}, {"share/x": File(b"2")}, "share/x"),
    "the same file twice": ({"share/x": File(b"1")}, {"share/x": File(b"1")}, "share/x"),
    "a file and a folder": ({"share/x": File(b"1")}, {"share/x/y": File(b"2")}, "share/x"),
    "a folder and a file": ({"share/x/y/z": File(b"1")}, {"share/x": File(b"2")}, "share/x"),
    "a link and a file below it": (
        {"share/x": File(b"", link="y"), "share/y/z": File(b"1")},
        {"share/x/a": File(b"2")},
        "share/x",
    ),
}


@pytest.mark.parametrize("case", CLASHES)
@pytest.mark.sample(2)
def test_a_file_of_two_packages_is_refused(case: str, tmp_path: Path) -> None:
    """rattler moves the one of them away, or both, and says that all is well; or it cannot."""
    first, second, name = CLASHES[case]
    packages = [Package("one", "1.0", first), Package("two", "1.0", second)]
    done = Build(tmp_path, [*PACKAGES, *packages]).run()
    assert done.returncode == 1
    told = {f"error: {name} is a file of {both}\n" for both in ("one and two", "two and one")}
    assert any(each in done.stderr for each in told)


@pytest.mark.parametrize("where", ["../outside", "bin/../../outside", "{}/outside"])
@pytest.mark.sample(1)
def test_a_package_with_a_file_outside_of_the_prefix_is_not_linked(
    where: str, tmp_path: Path
) -> None:
    path, content = where.format(tmp_path), b"written"
    said = {"_path": path, "path_type": "hardlink", "sha256": sha256(content).hexdigest()}
    paths = json.dumps({"paths": [{**said, "size_in_bytes": len(content)}], "paths_version": 1})
    bad = Package("bad", "1.0", {"outside": File(content)}, info={"paths.json": paths})
    own = Build(tmp_path, [*PACKAGES, bad])
    done = own.run()
    assert done.returncode == 1
    assert re.search(rf"bad-1.0-0.conda: .*: {re.escape(path)}", done.stderr)
    # It is extracted into a folder of its own.
    found = [path for path in tmp_path.rglob("outside") if "conda-cache" not in path.parts]
    assert found == []


def test_records_need_what_the_channel_says_and_not_what_was_packed(tmp_path: Path) -> None:
    """A channel mends what a package needs without making it anew."""
    packages = [*PACKAGES[:2], Package("needy", "1.0", depends=["tool <1.0"]), pip()]

    def patch(channel: Path) -> None:
        said = {"depends": ["tool"], "constrains": ["other <2"]}
        change_record(channel, "needy-1.0-0.conda", **said)

    own = Build(tmp_path, packages, patch)
    done = own.run()
    assert done.returncode == 0, done.stderr
    (record,) = (own.prefix / "conda-meta").glob("needy-*.json")
    kept = json.loads(record.read_text(encoding="utf-8"))
    assert (kept["depends"], kept["constrains"]) == (["tool"], ["other <2"])


def test_a_full_disk_ends_it_and_the_next_run_is_whole(build: Build, small_disk: Path) -> None:
    assert build.run().returncode == 0
    own = Build(small_disk)
    filler = fill(small_disk)
    done = own.run()
    assert done.returncode != 0
    assert "No space left on device" in done.stderr
    filler.unlink()
    again = own.run()
    assert again.returncode == 0, again.stderr
    # Its own name is in the files of a prefix.
    assert own.contents().keys() == build.contents().keys()
