"""An environment whose modules bring another MPI than the chosen one: built, proved, loaded.

The tree is that of test_modules_site.py, with an NCCL that loads an older Open MPI of the same
series, as a toolchain does whose MPI was replaced later.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import Envbuild
from module_tools import (
    AS_ROOT,
    MY_ALLREDUCE,
    Cluster,
    in_lmod,
    lmod_init,
    make_cluster,
    path_without_mpi,
)

pytestmark = pytest.mark.long

# By its name it would be loaded behind OpenMPI, and its MPI would stay.
NCCL = "nccl/2.18.3-GCC-12.2.0"

# A row of knowledge that forbids the chosen MPI, which the tests take the risk of.
KNOWN_BAD = """\
schema: 1
advisories:
  - id: TEST-100
    severity: error
    summary: hangs on Tuesdays
    component: openmpi
    affected: "==@OPENMPI@"
    evidence: run
    sources: ["https://example.org/tuesdays"]
"""
REASON = 'it\'s "never" $(Tuesday) here'
NO_AUTOSWAP = {"LMOD_DISABLE_SAME_NAME_AUTOSWAP": "yes"}
AUTOSWAPS = pytest.mark.parametrize("site", [{}, NO_AUTOSWAP], ids=["autoswap", "no-autoswap"])


@dataclass(frozen=True)
class Swapped:
    """The environment, its site, and the module that the chosen MPI takes the place of."""

    cluster: Cluster
    root: Path
    old: str
    info: dict[str, Any]

    @property
    def mine(self) -> str:
        return self.cluster.module("OpenMPI")

    @property
    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = self.info["lock"]["plan"]
        return plan


def older(version: str) -> str:
    """Return another release of the same series."""
    major, minor, patch = version.split(".")[:3]
    return f"{major}.{minor}.{0 if int(patch) else 1}"


def write_modules(cluster: Cluster, old: str) -> None:
    """Write the older Open MPI, which has no software behind it, and what brings it."""
    module = cluster.tree / "OpenMPI" / "3.1.4-GCC-12.2.0.lua"
    version = old.removeprefix("OpenMPI/").removesuffix("-GCC-12.2.0")
    text = module.read_text(encoding="utf-8").replace("3.1.4", version)
    (cluster.tree / f"{old}.lua").write_text(text, encoding="utf-8")
    loads = f'if not isloaded("{old}") then\n  load("{old}")\nend\n'
    text = f'conflict("nccl")\n{loads}setenv("EBROOTNCCL", "/apps/nccl")\n'
    (cluster.tree / f"{NCCL}.lua").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def swapped(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Swapped:
    folder = tmp_path_factory.mktemp("swapped")
    cluster = make_cluster(folder, "lua", lmod_init("bash"))
    version = cluster.openmpi.version
    old = f"OpenMPI/{older(version)}-GCC-12.2.0"
    write_modules(cluster, old)
    site = cluster.stating(
        "swapping",
        f'{{name: {old}, provides: {{openmpi: "{older(version)}"}}, loads: [GCC/12.2.0]}}',
        f'{{name: {NCCL}, provides: {{nccl: "2.18.3"}}, loads: [{old}]}}',
        "{name: GCC/12.2.0, loads: [GCCcore/12.2.0]}",
        "{name: GCCcore/12.2.0}",
    )
    recipe = cluster.recipe("swap", nccl="*")
    known = folder / "own" / "knowledge" / "advisories.yaml"
    known.parent.mkdir(parents=True)
    known.write_text(KNOWN_BAD.replace("@OPENMPI@", version), encoding="utf-8")
    hidden = {"PATH": path_without_mpi(folder / "bin")}
    words = ("create", recipe, "--site", site, "--root", folder / "root")
    words = (*words, "--recipes", known.parent.parent)
    refused = envbuild(*words, env={**hidden, **NO_AUTOSWAP})
    assert refused.code == 4, refused.text
    assert "TEST-100" in refused.err
    done = envbuild(*words, "--allow", f"TEST-100={REASON}", env={**hidden, **NO_AUTOSWAP})
    assert done.code == 0, done.text
    assert "waived advisories: TEST-100\n" in done.out
    told = json.loads(envbuild("info", "swap", "--root", folder / "root", "--json").out)
    return Swapped(cluster, folder / "root", old, told)


def test_the_plan_says_what_takes_whose_place(swapped: Swapped) -> None:
    modules = swapped.plan["modules"]
    assert modules["replaced"] == [{"module": swapped.old, "by": swapped.mine}]
    assert modules["loads"].index(NCCL) < modules["loads"].index(swapped.mine)
    assert {NCCL, swapped.mine} <= set(modules["final"])
    assert swapped.old not in modules["final"]


def test_the_ranks_ran_on_the_chosen_mpi(swapped: Swapped) -> None:
    result = swapped.info["evidence"][0]["result"]
    assert (result["verdict"], result["mpi"]) == (
        "passed",
        f"Open MPI {swapped.cluster.openmpi.version}",
    )


def test_the_risk_that_was_taken_shows_everywhere(
    swapped: Swapped, envbuild: Envbuild, tmp_path: Path
) -> None:
    (mine,) = [each for each in swapped.plan["findings"] if each["id"] == "TEST-100"]
    assert (mine["status"], mine["reason"]) == ("waived", REASON)
    noted = [{"id": each["id"], "status": each["status"]} for each in swapped.plan["findings"]]
    assert swapped.info["evidence"][0]["findings"] == noted
    (listed,) = json.loads(envbuild("list", "--root", swapped.root, "--json").out)["environments"]
    assert listed["waived"] == ["TEST-100"]
    assert "    ! waived: TEST-100" in envbuild("list", "--root", swapped.root).out
    assert f"waived: {REASON}" in " ".join(
        envbuild("info", "swap", "--root", swapped.root).out.split()
    )
    lines = [f"module use '{swapped.root}/modulefiles'", "module help swap", "module whatis swap"]
    told = in_lmod("bash", lines, tmp_path).text
    head = "Waived advisories:\n  TEST-100: hangs on Tuesdays"
    assert head in told
    assert f"    waived: {REASON}\n    https://example.org/tuesdays\n" in told
    assert ": Waived: TEST-100\n" in told


@AUTOSWAPS
def test_its_module_loads_exactly_the_plan(
    site: dict[str, str], swapped: Swapped, tmp_path: Path
) -> None:
    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    lines = [f"module use '{swapped.cluster.tree}' '{swapped.root}/modulefiles'"]
    lines += ["module load swap", 'echo "loaded:$LOADEDMODULES"']
    lines += ["mpiexec --oversubscribe -n 2 python my_allreduce.py", "module load swap"]
    lines += ['echo "again:$LOADEDMODULES"', "module unload swap", 'echo "left:$LOADEDMODULES"']
    lines += ["module help swap"]
    done = in_lmod("bash", lines, tmp_path, {**AS_ROOT, **site})
    rows = dict(line.split(":", 1) for line in done.out.splitlines() if line[0] in "la")
    final = {*swapped.plan["modules"]["final"], "swap/1"}
    assert set(rows["loaded"].split(":")) == final, done.text
    assert set(rows["again"].split(":")) == final
    assert not {"swap/1", swapped.old, swapped.mine} & set(rows["left"].split(":"))
    library = swapped.cluster.openmpi.library.resolve()
    assert done.out.count(f" ['{library}']") == 2
    assert f"  unload {swapped.old}\n  load {swapped.mine}\n" in done.text
    assert "Unloading this module does not restore it" in done.text


def test_the_swap_is_a_difference_to_a_site_that_does_not_need_it(
    swapped: Swapped, envbuild: Envbuild, tmp_path: Path
) -> None:
    """Diff and --check see that the site states its modules otherwise now."""
    site = swapped.cluster.folder / "swapping.yaml"
    text = site.read_text(encoding="utf-8")
    calm = text.replace(f"loads: [{swapped.old}]", "loads: [GCC/12.2.0]")
    lock = swapped.root / "swap" / "lock.json"
    recipe = swapped.cluster.folder / "swap.yaml"
    words = ("--site", site)
    try:
        site.write_text(calm, encoding="utf-8")
        own = swapped.cluster.folder / "own"
        live = ("--recipe", recipe, "--recipes", own, "--allow", f"TEST-100={REASON}", *words)
        told = envbuild("diff", "swap", "live", "--root", swapped.root, *live)
        checked = envbuild("lock", recipe, "--check", lock, *words)
    finally:
        site.write_text(text, encoding="utf-8")
    assert told.code == 8, told.text
    assert f"  - replaced {swapped.old}: by {swapped.mine}\n" in told.out
    assert "  site swapping: changed\n" in told.out
    assert checked.code == 8
    assert "  site swapping\n" in checked.out
