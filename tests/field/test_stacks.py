"""Plans of recipes made of easyconfigs and spack.yaml files, at a site with their modules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app

FOLDER = Path(__file__).parent / "files"
PYTHON = "/apps/python/bin/python3"
# What the toolchains of the easyconfigs bring; the truth states what their own modules are.
TOOLCHAINS = (
    "OpenMPI/4.1.5-GCC-12.3.0",
    "OpenMPI/4.1.4-GCC-11.3.0",
    "OpenMPI/4.0.5-gcccuda-2020b",
    "Python/3.11.3-GCCcore-12.3.0",
)
# Releases that the spack.yaml files leave open.
RELEASES = {"python": "3.11.6", "openmpi": "4.1.6", "pytorch": "2.1.2", "cuda": "12.1.1"}
RELEASES |= {"cmake": "3.26.3", "gcc": "13.2.0", "impi": "2021.12.0", "tensorflow": "2.15.0"}
RELEASES |= {"mxnet": "1.9.1", "keras": "2.15.0", "xgboost": "1.7.6", "llvm": "17.0.6"}
RELEASES |= {"intel-compilers": "2024.2.0", "nvhpc": "24.7", "aocc": "4.1.0"}


def run(*words: str | Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def plan(folder: Path, file: Path, modules: list[dict[str, Any]]) -> dict[str, str]:
    """Return the module of each component in the plan of a file's recipe."""
    run("recipes", "import", file, "-o", folder / "stack.yaml", "--arch", "x86_64")
    site = {"schema": 1, "name": "matching", "summary": "A site with the modules of the file"}
    site |= {"arch": ["x86_64"], "module-system": "lmod", "module-init": "/apps/lmod/init/bash"}
    site |= {"facts": {"glibc": "2.34"}, "origins": ["module", "pip"], "modules": modules}
    if any("cray-mpich" in module["name"] for module in modules):
        site["launcher"] = {"command": ["srun", "--mpi=cray_shasta"]}  # of Cray's own Slurm
    (folder / "matching.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
    words = ("plan", folder / "stack.yaml", "--site", folder / "matching.yaml")
    pins = run(*words)["pins"]
    return {pin["component"]: pin["locator"] for pin in pins if pin["origin"] == "module"}


def modules_of_truths() -> list[dict[str, Any]]:
    names = dict.fromkeys(TOOLCHAINS)
    for file in sorted(FOLDER.glob("*-easyconfig/truth.yaml")):
        names |= dict.fromkeys(yaml.safe_load(file.read_text())["recipe"].get("modules", ()))
    pythons = {name: {"python": PYTHON} for name in names if name.startswith("Python/")}
    return [{"name": name, **pythons.get(name, {})} for name in names]


EASYCONFIGS = sorted(FOLDER.glob("*-easyconfig/*.eb"))
# Of these nothing is left for a recipe.
ROWS = map(str.split, (FOLDER.parent / "outcomes.tsv").read_text().splitlines())
REFUSED = {case for case, _, outcome in ROWS if outcome == "refused"}
# 085 asks for Horovod with three frameworks at once: no module's name states that.
SPACK = sorted(
    each
    for each in FOLDER.glob("*-spack/spack.yaml")
    if "085-" not in str(each) and each.parent.name not in REFUSED
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("file", EASYCONFIGS, ids=lambda file: file.parent.name)
def test_an_easyconfig_is_planned_with_its_modules(file: Path, tmp_path: Path) -> None:
    modules = plan(tmp_path, file, modules_of_truths())
    truth = yaml.safe_load((file.parent / "truth.yaml").read_text())["recipe"]
    stack = yaml.safe_load((tmp_path / "stack.yaml").read_text())["stack"]
    own = {component for component in truth["components"] if component in stack}
    assert own
    # GCC and GCCcore are one compiler.
    names = {name.replace("GCCcore", "GCC") for name in truth["modules"]}
    chosen = {each: modules[each].replace("GCCcore", "GCC") for each in own}
    assert set(chosen.values()) <= names


@pytest.mark.sample(4)
@pytest.mark.parametrize("file", SPACK, ids=lambda file: file.parent.name)
def test_a_spack_yaml_is_planned_with_its_modules(file: Path, tmp_path: Path) -> None:
    run("recipes", "import", file, "-o", tmp_path / "first.yaml", "--arch", "x86_64")
    recipe = yaml.safe_load((tmp_path / "first.yaml").read_text())
    versions = {"openmpi": "*", **recipe["stack"]}
    modules = []
    for component, bounds in versions.items():
        number = re.search(r"\d[\d.]*\d", bounds)
        version = number[0] if number else RELEASES.get(component)
        if version:
            python = {"python": PYTHON} if component == "python" else {}
            modules.append({"name": f"{component}/{version}", **python})
    planned = plan(tmp_path, file, modules)
    assert {name for name in recipe["stack"] if name in planned} >= {
        module["name"].partition("/")[0] for module in modules
    } & recipe["stack"].keys()
