"""Locks for what this machine cannot ask itself: sources, an old pip, another architecture."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from integration_tools import clean_environ, run

from envbuilder import data, process
from envbuilder.build import sources
from envbuilder.build.backends import prefix_parts
from envbuilder.errors import BuildError
from envbuilder.locking.index import Index
from envbuilder.locking.locker import Distributions, LockEnvironment, make_lock
from envbuilder.locking.settings import read_settings
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Pin, Plan, RuntimePlan, SourceBuild, Step
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import SiteLauncher
from envbuilder.render.build import render_build
from envbuilder.runtimes import RUNTIMES
from tests.pythons import find_python

pytestmark = pytest.mark.usefixtures("index")

STEPS = ("venv", "fetch", "install")


def old_python() -> Path:
    """Return a Python 3.6, whose own pip is 18.1; skip where there is none."""
    return find_python("3.6") or pytest.skip("needs a Python 3.6")


def pin(component: str, version: str, origin: str, locator: str | None = None) -> Pin:
    return Pin(
        component=component,
        version=version,
        origin=origin,  # type: ignore[arg-type]
        locator=locator or component,
        why="the test",
    )


def make_plan(python: str, version: str, *pins: Pin, **changes: object) -> Plan:
    plan = Plan(
        recipe="target",
        summary="For another Python",
        site="local",
        arch="x86_64",
        backend="virtualenv",
        system_site_packages=False,
        python=python,
        pins=(pin("python", version, "system", python), *pins),
        runtime=RuntimePlan(package="runtime", version="0.1.0", source_sha256="a" * 64),
        launcher=SiteLauncher(kind="hydra", command=("mpiexec",)),
        smoke=Smoke(),
        steps=tuple(Step(id=each, title=each) for each in STEPS),
    )
    return plan.model_copy(update=changes)


def runner() -> Callable[[Sequence[str]], process.Finished]:
    environ = clean_environ()
    return lambda words: process.run(words, env=environ, timeout=240)


def locked(
    plan: Plan, scratch: Path, known: Distributions | None = None, **changes: object
) -> Lock:
    values = {"inside": runner(), "outside": runner(), "scratch": scratch, "environ": os.environ}
    return make_lock(plan, LockEnvironment(**{**values, **changes}), known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "sha256"),
    [
        ("0.28.1", "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"),
        ("0.19.5", "428d9ba5ff277467be77e4e707d40b915f7d9e6920a2645f647fcb2cea59c366"),
    ],
)
def test_the_sources_of_horovod(version: str, sha256: str) -> None:
    listing = runner()([sys.executable, "-m", "pip", "config", "list"]).stdout
    asked = Index(read_settings(listing, make_plan("/p", "3.11.7")), os.environ)
    found = asked.sdist("horovod", "horovod", version, exact=False)
    assert (found.filename, found.sha256) == (f"horovod-{version}.tar.gz", sha256)
    assert found.size is not None
    assert found.size > 1_000_000


@pytest.mark.long
def test_tensorflow_for_python_3_6_is_what_its_own_pip_would_take(tmp_path: Path) -> None:
    """Its own pip is too old to say; the newest for it fetches, and this Python is a newer one."""
    python = old_python()
    version = run([python, "-c", "import platform; print(platform.python_version())"]).out.strip()
    plan = make_plan(
        str(python),
        version,
        pin("tensorflow", "1.14.0", "pip"),
        # It has sources alone, of this release.
        pin("termcolor", "1.1.0", "build"),
        builds=(SourceBuild(component="termcolor", version="1.1.0"),),
    )
    glibc = os.confstr("CS_GNU_LIBC_VERSION") or pytest.skip("needs a system with glibc")
    lock = locked(plan, tmp_path, glibc=glibc.split()[1])
    bootstrap = next(each for each in lock.index_files if each.name == "pip")
    assert (bootstrap.version, bootstrap.build_only) == ("21.3.1", True)
    ours = {each.filename for each in lock.index_files} - {bootstrap.filename}
    assert all(each.size for each in lock.index_files)

    own = [tmp_path / "venv" / "bin" / "python", "-m", "pip"]
    upgraded = run([*own, "install", "--quiet", "pip==21.3.1"])
    assert upgraded.code == 0, upgraded.text
    taken = run([*own, "download", "--quiet", "tensorflow==1.14.0", "termcolor==1.1.0",
                 "--dest", tmp_path / "taken"])  # fmt: skip
    assert taken.code == 0, taken.text
    assert ours == {each.name for each in (tmp_path / "taken").iterdir()}


@pytest.mark.long
def test_python_3_6_gets_a_pip_that_takes_todays_wheels_and_untouched_sources(
    tmp_path: Path,
) -> None:
    """cffi 1.15.1 has manylinux2014 wheels alone, which pip 18.1 does not take."""
    python = old_python()
    plan = make_plan(
        str(python),
        "3.6.15",
        pin("cffi", "1.15.1", "pip"),
        pin("pyyaml", "6.0.1", "build"),
        builds=(SourceBuild(component="pyyaml", version="6.0.1"),),
    )
    known = Distributions(names={"pyyaml": "PyYAML"}, imports={"PyYAML": "yaml"})
    lock = locked(plan, tmp_path, known)
    assert [(each.name, each.kind) for each in lock.index_files] == [
        ("cffi", "wheel"),
        ("pip", "wheel"),
        ("pycparser", "wheel"),
        ("pyyaml", "sdist"),
    ]
    lock = lock.model_copy(update={"plan": plan.model_copy(update={"builds": ()})})
    folder, prefix = tmp_path / "build", tmp_path / "prefix"
    folder.mkdir()
    parts = prefix_parts(plan, {})
    for name, text in render_build(lock, BuildFolders(prefix, folder), parts, RUNTIMES).items():
        (folder / name).write_text(text, encoding="utf-8")
    sources.copy(data.TARGET_TOOLS, folder / data.TARGET_TOOLS.name)
    done = run(["bash", folder / "build.sh"])
    assert done.code == 0, done.text
    assert {each.name for each in (folder / "wheelhouse").iterdir()} == {
        each.filename for each in lock.index_files
    }
    inside = run([prefix / "bin" / "python", "-c", "import cffi, pip; print(pip.__version__)"])
    assert inside.out.strip() == "21.3.1", inside.text
    # What a bundle is: all files there, another machine, no network.
    again = run(
        ["bash", folder / "build.sh", "fetch", "install"],
        env={"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "HTTPS_PROXY": "http://127.0.0.1:9"},
    )
    assert again.code == 0, again.text
    assert "all files are in wheelhouse/" in again.err


def test_another_architecture_gets_its_own_wheels_and_its_own_requirements(
    tmp_path: Path,
) -> None:
    """click needs importlib-metadata before Python 3.8, and colorama on Windows alone."""
    tensorflow = pin("tensorflow", "1.14.0", "module", "TensorFlow/1.14.0-PythonAnaconda-3.6")
    plan = make_plan(
        "/sw/installed/PythonAnaconda/3.6/bin/python3",
        "3.6",
        tensorflow,
        pin("cffi", "1.15.1", "pip"),
        arch="ppc64le",
        system_site_packages=True,
        # keras needs tensorflow's neighbours: those of the module are there.
        brought=(
            pin("h5py", "2.8.0", "module", "TensorFlow/1.14.0-PythonAnaconda-3.6"),
            pin("numpy", "1.14.5", "module", "TensorFlow/1.14.0-PythonAnaconda-3.6"),
            pin("scipy", "1.1.0", "module", "TensorFlow/1.14.0-PythonAnaconda-3.6"),
            pin("pyyaml", "3.13", "module", "TensorFlow/1.14.0-PythonAnaconda-3.6"),
        ),
        packages=("click", "keras==2.3.1"),
    )
    there = ("tensorflow", "h5py", "numpy", "scipy", "pyyaml")
    known = Distributions(names={name: name for name in there})
    lock = locked(plan, tmp_path, known, here=False)
    by_name = {each.name: each for each in lock.index_files}
    assert {"click", "keras", "importlib-metadata", "zipp", "cffi", "pycparser"} <= by_name.keys()
    assert not {*there, "colorama"} & by_name.keys()
    assert "ppc64le" in by_name["cffi"].filename
    pure = [each for each in lock.index_files if each.name != "cffi"]
    assert all(each.filename.endswith("-none-any.whl") for each in pure)
    assert by_name["pip"].version == "21.3.1"


def test_what_has_no_wheel_for_that_machine_is_told(tmp_path: Path) -> None:
    plan = make_plan("/p", "3.6", pin("tensorflow", "2.4.0", "pip"), arch="ppc64le")
    with pytest.raises(BuildError) as raised:
        locked(plan, tmp_path, here=False)
    assert raised.value.id == "index.no-file"
    assert "tensorflow" in str(raised.value)


def test_a_pip_that_reads_markers_somewhere_else_gives_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the other Python's markers the answer is this Python's, and is found out."""
    plain = tmp_path / "plain.py"
    plain.write_text(
        "import runpy, sys\ndel sys.path[0]\nsys.argv = ['pip', *sys.argv[3:]]\n"
        "runpy.run_module('pip', run_name='__main__', alter_sys=True)\n"
    )
    monkeypatch.setattr("envbuilder.locking.pip_report._RUN_PIP", str(plain))
    plan = make_plan("/p", "3.7", arch="ppc64le", packages=("click==8.1.3",))
    with pytest.raises(Exception, match="importlib-metadata.* is missing"):
        locked(plan, tmp_path, here=False)
