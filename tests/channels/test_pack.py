"""A build folder of a bundle: its conda packages become a prefix that needs no engine any more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from channel_tools import GLIBC, engine, package, pip, plan
from render_cases import build_files

from envbuilder import data
from envbuilder.build.backends import BACKENDS
from envbuilder.build.scripts import prepare
from envbuilder.commands.bundle import of_conda_packages
from envbuilder.conda.pack import pack_prefix
from envbuilder.conda.solve import solve
from envbuilder.errors import BuildError
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock
from envbuilder.render.requirements import conda_files
from tests.conda_channel import PLACEHOLDER, File, Package, write_channel

NAMES = PLACEHOLDER.encode() + b"/share\n"
# For another machine: what it holds is never run here.
TOOL = Package("tool", "1.0", {"etc/tool": File(NAMES, mode="text")}, subdir="linux-ppc64le")


def write_build(folder: Path, channel: Path) -> Path:
    """Write a build folder with its packages, as they are fetched; return its prefix."""
    planned = plan([channel], python="3.9.1", tool="1.0")
    steps = BACKENDS["conda"].TRAITS.steps
    planned = planned.model_copy(update={"arch": "ppc64le", "steps": steps})
    lock = Lock(plan=planned, artifacts=solve(planned, GLIBC, {}, engine(folder.parent)))
    prefix = folder.parent / "the prefix"
    prepare(folder, build_files(lock, BuildFolders(prefix, folder)), data.RUNTIME)
    fetched = folder / "conda-packages"
    fetched.mkdir()
    for path in channel.glob("*/*.conda"):
        shutil.copy(path, fetched)
    return prefix


def bare_python(folder: Path) -> Path:
    """Return a Python that sees no packages, and so no py-rattler."""
    program = folder / "python3"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


def test_it_is_made_without_network_and_engine(tmp_path: Path) -> None:
    ppc64le = {"subdir": "linux-ppc64le"}
    packages = [package("python", "3.9.1", **ppc64le), TOOL, pip()]
    channel = write_channel(tmp_path / "channel", packages)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    build = tmp_path / "build"
    prefix = write_build(build, channel)
    said: list[str] = []
    pack_prefix(build, environ, said.append)
    shutil.rmtree(channel)
    assert said == []
    assert not (build / "conda-packages").exists()
    assert [path.name for path in build.iterdir() if path.name.startswith(".linked")] == []
    sums = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=build,
        capture_output=True,
        text=True,
    )
    assert sums.stdout.splitlines() == ["conda-prefix.tar.gz: OK", "conda-prefix.json: OK"]
    steps = ["bash", "build.sh", "packages", "conda"]
    environ["ENVBUILD_PYTHON"] = str(bare_python(tmp_path))
    done = subprocess.run(steps, cwd=build, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "3 packages are" in done.stdout
    assert (prefix / "etc" / "tool").read_text() == f"{prefix}/share\n"


def test_a_package_that_wants_to_run_a_script_makes_no_bundle(tmp_path: Path) -> None:
    script = {"bin/.tool-post-link.sh": File(b"rm -rf /\n")}
    bad = Package("tool", "1.0", script, subdir="linux-ppc64le")
    packages = [package("python", "3.9.1", subdir="linux-ppc64le"), bad, pip()]
    channel = write_channel(tmp_path / "channel", packages)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    write_build(tmp_path / "build", channel)
    with pytest.raises(BuildError) as raised:
        pack_prefix(tmp_path / "build", environ, lambda _: None)
    assert raised.value.id == "conda.link-failed"
    assert "bin/.tool-post-link.sh" in str(raised.value)
    assert not (tmp_path / "build" / "conda-prefix.tar.gz").exists()


def test_a_bundle_whose_list_or_packages_are_not_those_of_its_lock_is_told(tmp_path: Path) -> None:
    channel = write_channel(tmp_path / "channel", [package("python", "3.9.1"), pip()])
    planned = plan([channel], python="3.9.1")
    lock = Lock(plan=planned, artifacts=solve(planned, GLIBC, {}, engine(tmp_path)))
    listed = sha256(conda_files(lock)["conda.json"].encode()).hexdigest()
    whole: dict[str, str | None] = {"build/conda.json": listed}
    whole |= {f"build/conda-packages/{each.filename}": each.sha256 for each in lock.conda_packages}
    prefix = {"build/conda-prefix.tar.gz": "a", "build/conda-prefix.json": "b"}
    linked = {"build/conda.json": listed, **prefix}
    python = "build/conda-packages/python-3.9.1-0.conda"

    def told(files: dict[str, str | None]) -> list[str]:
        return list(of_conda_packages(files, lock))

    assert told(whole) == told(linked) == []
    (fault,) = told({**linked, "build/conda.json": "0" * 64})
    assert fault.startswith("build/conda.json ")
    assert told(prefix) == told({**linked, "build/conda.json": "0" * 64})
    (fault,) = told({**whole, python: "0" * 64})
    assert fault.startswith(f"{python} ")
    gone = {name: each for name, each in whole.items() if name != python}
    (fault,) = told({**gone, "build/conda-prefix.json": "b"})
    assert fault.startswith(f"{python} ")
    assert "conda-prefix.tar.gz" in fault
    more = "build/conda-packages/other-1-0.conda"
    (fault,) = told({**linked, more: "c"})
    assert fault.startswith(f"{more} ")
    assert list(of_conda_packages({}, lock.model_copy(update={"artifacts": ()}))) == []
