"""The pipeline of Taurus on a runner: gitlab-ci-local runs each job, images included.

The site is a copy of the documented one for this machine: its module trees, and what loads what,
are the site's; its Python and its Open MPI are those of Debian 12, on the machine and in the base
of the images. NumPy, mpi4py and PyTorch are the index's. It takes long, so it runs when asked for:
``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from image_tools import COMPILERS, debian_base
from integration_tools import Envbuild, run
from module_tools import lmod_init, machine_openmpi
from runner_tools import commit, ended, load_image, run_pipeline, runner_program
from taurus_tools import RealCopy, bring, write_trees

pytestmark = [pytest.mark.long, pytest.mark.network]

PROGRAMS = ("mpiexec", "mpirun", "mpicc", "mpicxx")
NO_PACKAGE = "envbuild-has-no-such-package==1"
ROWS = ("allreduce", "repaired", "torch-cpu")
STAGES = ("plan", "lock", "build", "prove", "scan", "publish", "image")
ARCH = platform.machine()


@pytest.fixture(scope="module")
def gitlab_ci_local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runner_program(tmp_path_factory)


@dataclass(frozen=True)
class Project:
    """A repository with recipes, site and pipeline. ``bases``: where its roots are."""

    folder: Path
    base: Path
    images: Path
    program: Path

    def recipe(self, name: str, stack: dict[str, str], packages: tuple[str, ...] = ()) -> None:
        """Write a recipe whose images use the modules of the site."""
        text = {
            "schema": 1,
            "name": name,
            "summary": f"Row {name} of the pipeline",
            "arch": [ARCH],
            "system-site-packages": True,
            "stack": stack,
            "packages": list(packages),
            "runtime": {"package": "distributed-dl-training"},
            "image": {"stack": "modules"},
            "smoke": {"ranks": 2, "max-bytes": 65536},
        }
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")

    def published(self, envbuild: Envbuild, name: str, root: Path) -> dict[str, Any]:
        done = envbuild("info", name, "--root", root, "--json")
        assert done.code == 0, done.text
        value: dict[str, Any] = json.loads(done.out)
        return value

    def lock_id(self, name: str) -> str:
        """Return the id of the lock of a row's last pipeline."""
        file = self.folder / "envbuild-ci" / f"{name}-{ARCH}" / "image.json"
        return str(json.loads(file.read_text(encoding="utf-8"))["id"])


@pytest.fixture(scope="module")
def project(
    envbuild: Envbuild, gitlab_ci_local: Path, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """Return a project with the pipeline of three rows, of which one is broken."""
    folder = tmp_path_factory.mktemp("pipeline")
    base = debian_base(tmp_path_factory, f"{COMPILERS},lmod", "ENVBUILD_IMAGE_STACKS_BASE")
    machine, repository = folder / "machine", folder / "project"
    repository.mkdir()
    version = run(["/usr/bin/python3", "-c", "import platform; print(platform.python_version())"])
    openmpi = machine_openmpi().version
    provides = {"python": version.out.strip()}
    copy = RealCopy(repository, ARCH, lmod_init("bash"), provides, openmpi, str(machine)).write()
    write_trees(machine, str(machine), copy.trees)
    bring(machine, copy.python_module, {"python3": Path("/usr/bin/python3")})
    bring(
        machine,
        copy.openmpi_module,
        {name: Path(f"/usr/bin/{name}.openmpi") for name in PROGRAMS},
    )
    site = yaml.safe_load(copy.site.read_text(encoding="utf-8"))
    site["image"] = {"base": str(base), "binds": [f"{machine}/sw"]}
    program = f"export PATH={Path(sys.executable).parent}:$PATH"
    site["ci"] = {"setup": [program], "image": {"to": str(folder / "images")}}
    copy.site.write_text(json.dumps(site), encoding="utf-8")
    project = Project(repository, folder / "base", folder / "images", gitlab_ci_local)
    stack = {"python": f"=={provides['python']}", "openmpi": f"=={openmpi}"}
    stack |= {"numpy": "*", "mpi4py": "*"}
    project.recipe("allreduce", stack)
    project.recipe("torch-cpu", {**stack, "pytorch": "==2.13.*"})
    project.recipe("repaired", stack, (NO_PACKAGE,))
    words = ("ci", "render", *(f"{name}.yaml" for name in ROWS), "--site", "sites/copied.yaml")
    done = envbuild(*words, "--base", project.base, "-o", ".gitlab-ci.yml", cwd=repository)
    assert done.code == 0, done.text
    commit(repository)
    return project


def test_rows_end_in_proved_images_and_are_not_built_again(
    envbuild: Envbuild, project: Project
) -> None:
    first = run_pipeline(project.program, project.folder)
    jobs = ended(first)
    good = {f"{stage}-{name}-{ARCH}" for stage in STAGES for name in ("allreduce", "torch-cpu")}
    assert {job for job, passed in jobs.items() if passed} == {
        *good,
        f"plan-repaired-{ARCH}",
    }, first.text
    assert {job for job, passed in jobs.items() if not passed} == {f"lock-repaired-{ARCH}"}
    root = project.base / "copied" / ARCH
    before = {}
    for name in ("allreduce", "torch-cpu"):
        image = project.images / name / f"1-{ARCH}.sif"
        inside = json.loads(envbuild("info", image, "--json").out)
        assert {each["result"]["tier"] for each in inside["evidence"]} == {"several ranks"}
        number = project.published(envbuild, name, root)
        before[name] = (project.lock_id(name), number["id"], image.resolve().stat().st_ino)

    allreduce = yaml.safe_load((project.folder / "allreduce.yaml").read_text(encoding="utf-8"))
    project.recipe("repaired", allreduce["stack"])
    commit(project.folder)
    second = run_pipeline(project.program, project.folder)
    jobs = ended(second)
    every = {f"{stage}-{name}-{ARCH}" for stage in STAGES for name in ROWS}
    assert {job for job, passed in jobs.items() if passed} == every, second.text
    for name, found in before.items():
        image = project.images / name / f"1-{ARCH}.sif"
        number = project.published(envbuild, name, root)
        again = (project.lock_id(name), number["id"], image.resolve().stat().st_ino)
        assert again == found
        for folder in (root, project.images):
            listed = json.loads(envbuild("list", "--root", folder, "--json").out)["environments"]
            assert [each["number"] for each in listed if each["environment"] == name] == [1]
    assert (project.images / "repaired" / f"1-{ARCH}.sif").exists()

    for name in ROWS:
        number = project.published(envbuild, name, project.images)
        assert {each["result"]["tier"] for each in number["evidence"]} == {"several ranks"}
        for system in ("lmod", "environment-modules"):
            for shell in ("bash", "tcsh"):
                load_image(project.images, number, system, shell)
