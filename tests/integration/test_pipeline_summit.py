"""The pipeline of Summit on a runner: gitlab-ci-local runs each job, images included, emulated.

What the site documents of its pipeline, its jobs and its images is Summit's. A Debian for ppc64le
stands in for its machines: its PyTorch and Open MPI are modules, and WMLCE's channel is a local one
of stand-ins (tests/power_stand_ins.py). It takes long, so it runs when asked for: ``bash ci/test.sh
-m long``.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration_tools import Envbuild, run
from power_tools import RECIPE, SITE, write_documents, write_modules
from runner_tools import commit, ended, load_image, run_pipeline, runner_program
from wmlce_recipes import LICENCE, recipes, write_power_channels

from envbuilder import data
from envbuilder.images.sif import arch_of
from tests.debian_channel import SERIES

pytest.importorskip("rattler")
pytestmark = [pytest.mark.long, pytest.mark.network]

SUMMIT = data.RECIPES / "sites" / "summit.yaml"
# What a site has on its own machines alone.
MACHINE = (
    *("facts", "modules", "module-system", "module-trees", "module-init", "snapshot", "origins"),
    *("launcher", "scheduler"),
)
HOROVOD, REPAIRED = "horovod-power", "repaired"
# Of the channel: what was proved with stand-ins is an image, and is not published in the root of
# the site; and TensorFlow has no headers.
PROVED_WITH_STAND_INS, WITHOUT_HEADERS = "ibm-wml-ce", "horovod-nccl-wmlce"
NO_PACKAGE = "envbuild-has-no-such-package==1"
STAGES = ("plan", "lock", "build", "prove", "scan", "publish", "image")
REASON = "the channel's PyTorch is of another release, without Spectrum MPI"


@dataclass(frozen=True)
class Project:
    """A repository with recipes, site and pipeline. ``system``: the Debian, with its modules."""

    folder: Path
    base: Path
    images: Path
    system: Path
    program: Path

    def recipe(self, name: str, **changes: object) -> None:
        """Write a copy of the recipe of Horovod whose images use the modules."""
        text = {**RECIPE, "name": name, "image": {"stack": "modules"}, **changes}
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")

    def run(self) -> tuple[dict[str, bool], str]:
        """Run the pipeline; return the jobs that ended, whether they passed, and its output."""
        env = {**LICENCE, "ENVBUILD_EMULATED_SYSTEM": str(self.system)}
        done = run_pipeline(self.program, self.folder, env)
        return ended(done), done.text

    def log(self, name: str, stage: str) -> str:
        """Return what a job of a row has printed."""
        folder = self.folder / "envbuild-ci" / f"{name}-ppc64le"
        return (folder / f"{stage}.log").read_text(encoding="utf-8")

    def number(self, envbuild: Envbuild, name: str, root: Path) -> dict[str, Any]:
        done = envbuild("info", name, "--root", root, "--json")
        assert done.code == 0, done.text
        value: dict[str, Any] = json.loads(done.out)
        return value


def write_channel_recipes(folder: Path, channels: dict[str, Path]) -> Path:
    """Write both recipes of the channel, and what the channel calls its packages."""
    stack, allow = (
        {"python": f"=={SERIES}.*", "mpi4py": "*"},
        {"WML-111": REASON, "WML-116": REASON},
    )
    for name in (PROVED_WITH_STAND_INS, WITHOUT_HEADERS):
        more = {f"HVD-00{n}": REASON for n in (5, 6, 7, 9)} if name == WITHOUT_HEADERS else {}
        own = recipes(folder / name, channels, name, "ppc64le", stack=stack, allow=allow | more)
        shutil.copytree(own, folder / "recipes", dirs_exist_ok=True)
    return folder / "recipes"


@pytest.fixture(scope="module")
def project(
    envbuild: Envbuild, index: None, ppc64el_devel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """Return a project with the pipeline of four rows, of which one is broken."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != SERIES:
        pytest.skip(f"a module of the Debian's Python is that of a Python {SERIES}")
    program = runner_program(tmp_path_factory)
    folder = tmp_path_factory.mktemp("summit")
    system, repository = folder / "system", folder / "project"
    repository.mkdir()
    # The Debian's own files are shared with it, and only read.
    done = run(["cp", "-al", ppc64el_devel, system])
    assert done.code == 0, done.text
    write_modules(system, system)
    channels = write_power_channels(ppc64el_devel, folder / "channels")
    shutil.copytree(write_channel_recipes(folder / "own", channels), repository / "recipes")

    write_documents(repository)
    documented = yaml.safe_load(SUMMIT.read_text(encoding="utf-8"))
    kept = {key: value for key, value in documented.items() if key not in MACHINE}
    site = SITE | kept | {"channels": {name: path.as_uri() for name, path in channels.items()}}
    site["image"] = {"base": str(system), "binds": [f"{system}/sw:/sw"]}
    setup = f"export PATH={Path(sys.executable).parent}:$PATH"
    site["ci"] = {"setup": [setup], "image": {"to": str(folder / "images")}}
    # Of its texts some are numbers to some readers of YAML: 0:30.
    (repository / "summit.yaml").write_text(json.dumps(site), encoding="utf-8")
    project = Project(repository, folder / "base", folder / "images", system, program)
    project.recipe(HOROVOD)
    project.recipe(REPAIRED, packages=[NO_PACKAGE])
    names = (f"{HOROVOD}.yaml", f"{REPAIRED}.yaml", PROVED_WITH_STAND_INS, WITHOUT_HEADERS)
    words = ("ci", "render", *names, "--site", "summit.yaml", "--recipes", "recipes", "--emulate")
    done = envbuild(*words, "--base", project.base, "-o", ".gitlab-ci.yml", cwd=repository)
    assert done.code == 0, done.text
    commit(repository)
    return project


def job_names(name: str, *stages: str) -> dict[str, bool]:
    return {f"{stage}-{name}-ppc64le": True for stage in stages}


# What the rows of the channel end with.
ENDS = {
    **job_names(PROVED_WITH_STAND_INS, *STAGES[:5], "image"),
    f"publish-{PROVED_WITH_STAND_INS}-ppc64le": False,
    **job_names(WITHOUT_HEADERS, "plan", "lock"),
    f"build-{WITHOUT_HEADERS}-ppc64le": False,
}


def test_rows_end_in_a_proved_image_or_at_the_file_that_is_missing(
    envbuild: Envbuild, project: Project
) -> None:
    jobs, text = project.run()
    broken = {f"plan-{REPAIRED}-ppc64le": True, f"lock-{REPAIRED}-ppc64le": False}
    assert jobs == job_names(HOROVOD, *STAGES) | broken | ENDS, text
    assert "used stand-ins" in project.log(PROVED_WITH_STAND_INS, "publish")
    assert "build.headers-missing" in project.log(WITHOUT_HEADERS, "build")
    before = proved(envbuild, project, HOROVOD)

    project.recipe(REPAIRED)
    commit(project.folder)
    jobs, text = project.run()
    assert jobs == job_names(HOROVOD, *STAGES) | job_names(REPAIRED, *STAGES) | ENDS, text
    assert proved(envbuild, project, HOROVOD) == before
    # Of the same sources, flags and compiler: taken from the cache of wheels.
    proved(envbuild, project, REPAIRED)
    for name in (HOROVOD, REPAIRED):
        number = project.number(envbuild, name, project.images)
        for system in ("lmod", "environment-modules"):
            for shell in ("bash", "tcsh"):
                load_image(project.images, number, system, shell)


def proved(envbuild: Envbuild, project: Project, name: str) -> tuple[str, str, int]:
    """Fail unless a row is published and its image is proved; return both ids and the file."""
    root = project.base / "summit" / "ppc64le"
    number = project.number(envbuild, name, root)
    image = project.images / name / "1-ppc64le.sif"
    assert arch_of(image) == "ppc64le"
    inside = json.loads(envbuild("info", image, "--json").out)
    for record in (*number["evidence"], *inside["evidence"]):
        # Of each: emulated, and in the site's own name on a stand-in of its machines.
        assert (record["execution"], record["site"]) == ("emulated", "summit")
        assert (record["result"]["tier"], record["result"]["verdict"]) == (
            "several ranks",
            "passed",
        )
        assert record["stand-ins"] == []
    apis = {record["result"]["api"] for record in inside["evidence"]}
    assert apis == {record["result"]["api"] for record in number["evidence"]}
    assert "horovod.torch" in apis
    for folder in (root, project.images):
        entries = json.loads(envbuild("list", "--root", folder, "--json").out)["environments"]
        assert [each["number"] for each in entries if each["environment"] == name] == [1]
    return number["id"], inside["id"], image.resolve().stat().st_ino
