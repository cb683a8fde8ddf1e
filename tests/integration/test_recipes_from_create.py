"""recipes from, then create: another environment of the same, which validates alike."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conda_tools import make_channel
from integration_tools import COMMAND, SMALL_BYTES, Done, Envbuild, run
from module_tools import AS_ROOT, in_lmod, lmod_init, make_cluster, path_without_mpi

from envbuilder.target_tools.manifest import look

# What create puts into every environment: see docs/validating.md.
BUNDLED = {"pip", "distributed-dl-training"}
# Older than what a recipe without versions would take, and one that no knowledge is kept about.
WHEELS = ("numpy==2.2.6", "mpi4py==4.1.0", "mpich==4.3.2", "sortedcontainers==2.3.0")

INSTALL = """
import asyncio, os, sys
import rattler

async def main(channel, prefix, cache, *specs):
    gateway = rattler.Gateway(cache_dir=cache)
    records = await rattler.solve(
        sources=[rattler.Channel(channel)],
        specs=[*specs],
        gateway=gateway,
        platforms=["linux-64", "noarch"],
        virtual_packages=[],
    )
    await rattler.install(records, target_prefix=prefix, cache_dir=cache, show_progress=False)

asyncio.run(main(*sys.argv[1:]))
os._exit(0)  # without the clean-up in which rattler may crash
"""


def recipe_of(said: str) -> dict[str, Any]:
    """Return a recipe without what its name and its environment's place have to do with."""
    recipe: dict[str, Any] = yaml.safe_load(said)
    return {key: value for key, value in recipe.items() if key not in ("name", "summary")}


def distributions(prefix: Path) -> set[str]:
    """Return what pip would list: names and versions of the dist-infos."""
    found = prefix.glob("lib/python*/site-packages/*.dist-info")
    names = (path.name.removesuffix(".dist-info").lower().replace("_", "-") for path in found)
    return {name for name in names if name.rpartition("-")[0] not in BUNDLED}


def small(recipe: Path) -> None:
    """Let a recipe's smoke test be short."""
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text + f"smoke: {{ranks: 2, max-bytes: {SMALL_BYTES}}}\n", encoding="utf-8")


def findings(done: Done) -> list[str]:
    assert done.code in (0, 4), done.text
    return [each["id"] for each in json.loads(done.out)["findings"]]


def prefix_of(done: Done) -> Path:
    assert done.code == 0, done.text
    return Path(json.loads(done.out)["prefix"])


def test_the_recipe_of_what_a_recipe_made_plans_the_same(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "again.yaml"
    done = envbuild("recipes", "from", "allreduce", "--root", built_root, "--output", recipe)
    assert done.code == 0, done.text
    plan = json.loads(envbuild("plan", recipe, "--site", "local", "--json").out)
    lock = json.loads((built_root / "allreduce" / "lock.json").read_text(encoding="utf-8"))

    def pins(plan: dict[str, Any]) -> dict[str, tuple[str, str]]:
        return {p["component"]: (p["version"], p["origin"]) for p in plan["pins"]}

    assert pins(plan) == pins(lock["plan"])


@pytest.mark.long
def test_a_virtualenv(envbuild: Envbuild, tmp_path: Path) -> None:
    old = tmp_path / "old-env"
    assert run([sys.executable, "-m", "venv", old]).code == 0
    done = run([old / "bin" / "pip", "install", "--quiet", *WHEELS])
    assert done.code == 0, done.text
    recipe = tmp_path / "again.yaml"
    done = envbuild("recipes", "from", old, "--output", recipe)
    assert done.code == 0, done.text
    before = recipe_of(recipe.read_text(encoding="utf-8"))
    small(recipe)
    new = prefix_of(envbuild("create", recipe, "--root", tmp_path / "root", "--json"))
    assert distributions(new) >= distributions(old)
    assert distributions(new) - distributions(old) == set()
    assert recipe_of(envbuild("recipes", "from", new).out) == before
    said = [findings(envbuild("validate", each, "--json")) for each in (old, new)]
    assert said == [[], []]
    # The ranks of the one that nobody proved talk as well, and nothing is written into it.
    before = look(old)
    ran = envbuild("validate", old, "--run", "--evidence", tmp_path / "kept", "--json")
    assert findings(ran) == []
    (proof,) = json.loads(ran.out)["proofs"]
    assert (proof["result"]["verdict"], proof["result"]["tier"]) == ("passed", "several ranks")
    assert proof["result"]["api"] == "mpi4py"
    assert f"{old}/lib/libmpi" in json.dumps(proof["result"]["libraries"])
    assert json.loads((tmp_path / "kept" / "0001" / "evidence.json").read_text()) == proof
    assert look(old) == before


@pytest.mark.long
def test_a_conda_environment(
    envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    pytest.importorskip("rattler")
    channel = make_channel(tmp_path_factory).as_uri()
    old, cache = tmp_path / "old-env", tmp_path / "cache"
    specs = ("python", "numpy", "mpi4py", "mpich", "pip")
    done = run([sys.executable, "-c", INSTALL, channel, old, cache, *specs])
    assert done.code == 0, done.text
    recipe = tmp_path / "again.yaml"
    done = envbuild("recipes", "from", old, "--output", recipe)
    assert done.code == 0, done.text
    before = recipe_of(recipe.read_text(encoding="utf-8"))
    assert (before["backend"], before["channels"]) == ("conda", [channel])
    assert set(before["stack"]) == set(specs)
    small(recipe)
    new = prefix_of(envbuild("create", recipe, "--root", tmp_path / "root", "--json"))
    assert recipe_of(envbuild("recipes", "from", new).out) == before
    records = [{p.name for p in each.glob("conda-meta/*.json")} for each in (old, new)]
    assert records[0] == records[1]
    said = [findings(envbuild("validate", each, "--json")) for each in (old, new)]
    assert said == [[], []]


@pytest.mark.long
def test_a_virtualenv_on_the_modules_of_a_site(envbuild: Envbuild, tmp_path: Path) -> None:
    cluster = make_cluster(tmp_path, "lua", lmod_init("bash"))
    hidden = {"PATH": path_without_mpi(tmp_path / "hidden"), **AS_ROOT}
    modules = [cluster.module("Python"), cluster.module("OpenMPI")]
    load = [f"module use '{cluster.tree}'", f"module load {' '.join(modules)}"]
    command = shlex.join(COMMAND)

    def shell(*lines: str) -> Done:
        done = in_lmod("bash", [*load, *lines], tmp_path, hidden)
        assert done.code in (0, 4), done.text
        return done

    shell(
        "python3 -m venv old-env",
        "old-env/bin/pip install --quiet numpy==2.2.6 mpi4py==4.1.0",
        f"{command} recipes from old-env --loaded --output again.yaml",
    )
    recipe = tmp_path / "again.yaml"
    before = recipe_of(recipe.read_text(encoding="utf-8"))
    assert before["stack"] == {
        "python": modules[0],
        "openmpi": modules[1],
        "numpy": "==2.2.6",
        "mpi4py": "==4.1.0",
    }
    small(recipe)
    words = ("--site", cluster.document, "--root", tmp_path / "root", "--json")
    new = prefix_of(envbuild("create", recipe, *words, env=hidden))
    assert distributions(new) == distributions(tmp_path / "old-env")
    again = shell(f"{command} recipes from '{new}' --loaded")
    assert recipe_of(again.out) == before
    said = [findings(shell(f"{command} validate '{e}' --loaded --json")) for e in ("old-env", new)]
    # An advisory may hold for this machine's Open MPI: then for both.
    assert said[0] == said[1]
    assert not any("." in each for each in said[0])
    # The ranks of both run on the module's MPI.
    program = "from mpi4py import MPI; print(MPI.Get_library_version().split(',')[0], flush=True)"
    ran = shell(
        *(
            f"mpiexec --oversubscribe -n 2 '{each}/bin/python' -c \"{program}\""
            for each in ("old-env", new)
        )
    )
    assert set(ran.out.splitlines()) == {f"Open MPI v{cluster.openmpi.version}"}
