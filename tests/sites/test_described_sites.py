"""From a machine with modules to a site that plans use: detect, snapshot, check, show, plan."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app

from .site_tools import lmod_init, modulefiles

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the shipped recipes are for x86_64"),
]

RECIPE = """\
schema: 1
name: ours
summary: A recipe of the tests
arch: [x86_64, ppc64le, aarch64]
documented-for: {x86_64: taurus-alpha, ppc64le: taurus-ml}
stack: {python: "*", openmpi: "<5", cuda: "*", cudnn: "*"}
"""

SITE = """\
schema: 1
name: ours
summary: A site of the tests  # as its author wrote it
arch: [x86_64]
module-system: lmod
module-init: {init}
module-trees: [{tree}]
{more}facts: {{glibc: "2.28"}}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree of four modules, one of them behind another."""
    lmod_init()
    python = tmp_path / "sw" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/python3")
    return modulefiles(
        tmp_path / "tree",
        {
            "Python/3.11.2.lua": f'prepend_path("PATH", "{python.parent}")\n',
            "CUDA/12.1.1.lua": f'prepend_path("MODULEPATH", "{tmp_path}/behind")\n',
            "cuDNN/8.9.2.lua": 'load("CUDA/12.1.1")\n',
            "../behind/OpenMPI/4.1.5.lua": "",
        },
    )


@pytest.fixture
def run(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs envbuild in a shell that sees the tree."""
    monkeypatch.chdir(tmp_path)

    def invoke(*words: str | Path, **env: str) -> Result:
        environ = {"PATH": "/usr/bin:/bin", "MODULEPATH": str(tree), "COLUMNS": "80"}
        environ |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), **env}
        return CliRunner().invoke(app, [str(word) for word in words], env=environ)

    return invoke


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "ours-recipe" / "ours.yaml"
    path.parent.mkdir()
    path.write_text(RECIPE)
    return path


def written(folder: Path, tree: Path, more: str = "") -> Path:
    path = folder / "ours.yaml"
    path.write_text(SITE.format(init=lmod_init(), tree=tree, more=more))
    return path


def planned(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def origins(plan: dict[str, Any]) -> dict[str, str]:
    return {each["component"]: f"{each['origin']}:{each['locator']}" for each in plan["pins"]}


def kinds(plan: dict[str, Any]) -> list[str]:
    return [each["kind"] for each in plan.get("site-findings", ())]


BY_MODULES = {"cudnn": "module:cuDNN/8.9.2", "openmpi": "module:OpenMPI/4.1.5"}


def test_a_draft_is_used_once_its_modules_are_recorded_and_not_before(
    run: Any, tmp_path: Path, recipe: Path
) -> None:
    site, snapshot = tmp_path / "our-site.yaml", tmp_path / "our-site.snapshot.json"
    command = f"envbuild sites snapshot {site} --output {snapshot}"
    detected = run("sites", "detect", "--output", site)
    assert detected.exit_code == 0
    assert command in detected.stderr
    for words in (("sites", "check", site), ("plan", recipe, "--site", site)):
        done = run(*words)
        assert done.exit_code == 2
        assert command in done.stderr
    done = run("sites", "snapshot", site, "--output", snapshot, "--json")
    assert json.loads(done.stdout)["site_file"] == str(site)
    done = run("sites", "check", site, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["good"] == [str(site)]
    shown = json.loads(run("sites", "show", site, "--json").stdout)
    assert shown["snapshot"] == snapshot.name
    plan = planned(run("plan", recipe, "--site", site, "--json", MODULEPATH=""))
    assert plan["site"] == "our-site"
    assert origins(plan).items() >= BY_MODULES.items()
    assert kinds(plan) == []


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", marks=pytest.mark.long),
        "# snapshot: ours.snapshot.json  # envbuild sites snapshot ours.yaml\n",
    ],
)
def test_a_snapshot_is_attached_when_it_is_written(
    run: Any, tmp_path: Path, tree: Path, recipe: Path, more: str
) -> None:
    """To a file that its author wrote, and to a draft of before."""
    site, snapshot = written(tmp_path, tree, more), tmp_path / "ours.snapshot.json"
    done = run("sites", "snapshot", site, "--output", "ours.snapshot.json", "--json")
    assert json.loads(done.stdout)["site_file"] == str(site)
    assert "# as its author wrote it" in site.read_text()
    assert site.read_text().count("snapshot:") == 1
    assert json.loads(run("sites", "show", site, "--json").stdout)["snapshot"] == snapshot.name
    plan = planned(run("plan", recipe, "--site", site, "--json"))
    assert origins(plan).items() >= BY_MODULES.items()
    before = site.read_text()
    assert run("sites", "snapshot", site, "--output", snapshot).exit_code == 0
    assert site.read_text() == before


@pytest.mark.long
def test_a_snapshot_in_another_folder_is_attached_by_its_path(
    run: Any, tmp_path: Path, tree: Path
) -> None:
    site = written(tmp_path, tree)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sub").mkdir()
    for output in (tmp_path / "sub" / "a.json", tmp_path / "elsewhere" / "b.json"):
        assert run("sites", "snapshot", site, "--output", output).exit_code == 0
    assert json.loads(run("sites", "show", site, "--json").stdout)["snapshot"] == "sub/a.json"


def test_a_snapshot_that_is_not_used_is_reported(run: Any, tmp_path: Path, tree: Path) -> None:
    site = written(tmp_path, tree, "snapshot: first.snapshot.json\n")
    text = site.read_text()
    first, second = (tmp_path / f"{name}.snapshot.json" for name in ("first", "second"))
    assert run("sites", "snapshot", site, "--output", first).exit_code == 0
    done = json.loads(run("sites", "snapshot", site, "--output", second, "--json").stdout)
    assert done["site_file"] is None
    assert any(first.name in note for note in done["notes"])
    assert site.read_text() == text
    checked = json.loads(run("sites", "check", site, "--json").stdout)
    assert any(second.name in note for note in checked["warnings"][str(site)])


@pytest.mark.long
def test_what_was_found_in_other_trees_is_not_attached(
    run: Any, tmp_path: Path, tree: Path
) -> None:
    site = written(tmp_path, tree)
    text = site.read_text()
    other = modulefiles(tmp_path / "other", {"NCCL/2.18.3.lua": ""})
    words = ("--tree", other, "--output", tmp_path / "x.json", "--json")
    assert json.loads(run("sites", "snapshot", site, *words).stdout)["site_file"] is None
    assert site.read_text() == text


def test_trees_without_a_snapshot_are_reported_first(
    run: Any, tmp_path: Path, tree: Path, recipe: Path
) -> None:
    site = written(tmp_path, tree)
    command = f"envbuild sites snapshot {site} --output {tmp_path / 'ours.snapshot.json'}"
    checked = json.loads(run("sites", "check", site, "--json").stdout)
    assert command in checked["warnings"][str(site)][0]
    refused = run("plan", recipe, "--site", site)
    assert refused.exit_code == 3
    assert command in refused.stderr.partition("error: ")[0]
    plan = planned(run("plan", "allreduce", "--site", site, "--json"))
    assert kinds(plan)[0] == "no-snapshot"
    assert command in plan["site-findings"][0]["fix"]
    text = run("plan", "allreduce", "--site", site).stdout
    assert " ".join(text.split()).index(command) < text.index("\ncomponents\n")


def test_a_machine_that_no_site_describes_is_planned_with_its_own_modules(
    run: Any, recipe: Path
) -> None:
    """And never with those that another site's documentation lists."""
    done = run("plan", recipe, "--json")
    plan = planned(done)
    assert plan["site"] == "local"
    assert origins(plan).items() >= BY_MODULES.items()
    assert {"Python/3.11.2", "cuDNN/8.9.2"} <= set(plan["modules"]["final"])
    assert kinds(plan) == ["not-described"]
    for where in (plan["site-findings"][0]["fix"], done.stderr.splitlines()[0]):
        assert "envbuild sites detect --output our-site.yaml" in where
    assert planned(run("plan", "horovod-cuda", "--arch", "x86_64", "--json"))["site"] == "local"


def test_another_architecture_is_planned_for_the_site_that_documents_it(run: Any) -> None:
    plan = planned(run("plan", "horovod-nccl", "--arch", "ppc64le", "--json"))
    assert (plan["site"], kinds(plan)) == ("taurus-ml", [])


def test_local_has_the_modules_that_the_shell_sees(
    run: Any, tmp_path: Path, tree: Path, recipe: Path
) -> None:
    """Read once, and again when a modulefile changes."""
    words = ("plan", recipe, "--site", "local", "--json")
    plan = planned(run(*words))
    assert origins(plan).items() >= BY_MODULES.items()
    assert plan["modules"]["trees"] == [str(tree)]
    assert kinds(plan) == []
    (cached,) = (tmp_path / "cache" / "envbuild" / "modules").iterdir()
    assert cached.stat().st_mode & 0o777 == 0o600
    before = cached.stat().st_mtime_ns
    assert planned(run(*words)) == plan
    assert cached.stat().st_mtime_ns == before
    modulefiles(tmp_path / "behind", {"OpenMPI/4.1.6.lua": ""})
    assert origins(planned(run(*words)))["openmpi"] == "module:OpenMPI/4.1.6"
    cached.write_text("{}")
    assert origins(planned(run(*words)))["openmpi"] == "module:OpenMPI/4.1.6"
    assert run(*words, MODULEPATH="").exit_code == 3


@pytest.mark.long
def test_a_cache_that_others_may_write_is_not_believed(
    run: Any, tmp_path: Path, recipe: Path
) -> None:
    words = ("plan", recipe, "--site", "local", "--json")
    plan = planned(run(*words))
    (cached,) = (tmp_path / "cache" / "envbuild" / "modules").iterdir()
    cached.write_text(cached.read_text().replace("OpenMPI/4.1.5", "OpenMPI/4.1.9"))
    cached.chmod(0o666)
    assert planned(run(*words)) == plan


def test_the_environments_of_a_root_are_no_modules_of_the_site(
    run: Any, tmp_path: Path, tree: Path, recipe: Path
) -> None:
    published = modulefiles(tmp_path / "root" / "modulefiles", {"cuDNN/9.lua": ""})
    (tmp_path / "root" / ".envbuild.json").write_text("{}")
    plan = planned(run("plan", recipe, "--json", MODULEPATH=f"{published}:{tree}"))
    assert origins(plan)["cudnn"] == BY_MODULES["cudnn"]
    assert plan["modules"]["trees"] == [str(tree)]


def test_trees_that_loaded_modules_opened_are_none_of_the_sites(
    run: Any, tmp_path: Path, tree: Path, recipe: Path
) -> None:
    """As in a shell that has loaded CUDA under Lmod."""
    script = f". {lmod_init()}; module use {tree}; module load CUDA; env -0"
    text = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={}).stdout
    loaded = dict(each.partition("=")[::2] for each in text.decode().split("\0") if "=" in each)
    assert f"{tmp_path}/behind" in loaded["MODULEPATH"].split(":")
    state = {k: v for k, v in loaded.items() if k.startswith(("_Module", "__LMOD", "LOADED"))}
    environ = {**state, "MODULEPATH": loaded["MODULEPATH"]}
    plan = planned(run("plan", recipe, "--json", **environ))
    assert str(tmp_path / "behind") not in plan["modules"]["trees"]
    assert origins(plan).items() >= BY_MODULES.items()
    draft = json.loads(run("sites", "detect", "--json", **environ).stdout)["draft"]
    assert str(tmp_path / "behind") not in draft


def test_a_module_system_that_does_not_work_is_reported(run: Any, tmp_path: Path) -> None:
    home = tmp_path / "lmod"
    for name, text in {"libexec/lmod": "", "init/bash": "exit 0\n"}.items():
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(text)
    plan = planned(run("plan", "allreduce", "--json", MODULESHOME=str(home)))
    assert kinds(plan) == ["not-described", "modules-out-of-reach"]
