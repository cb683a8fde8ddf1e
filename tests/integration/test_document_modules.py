"""The module lines of the seed documents, and ours, by a real Lmod on trees of stand-in modules.

The trees have the modules of the site's snapshot, and what each of them loads.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from module_tools import in_lmod
from taurus_tools import MODULES, modulefile, write_trees
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.cli import app
from envbuilder.model.launch import StartCommand
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Plan
from tests.documents.document_rows import Loads, loads
from tests.render.render_cases import build_files

CORE = "/sw/summit/modulefiles/core"


def write_tree(folder: Path, site: str) -> Path:
    """Write the modulefiles of a site's snapshot; return the tree that a shell starts with."""
    snapshot = data.RECIPES / "sites" / f"{site}.snapshot.json"
    if site != "summit":
        write_trees(folder, str(folder), snapshot)
        return folder / f"{MODULES}/taurus/environment".lstrip("/")
    for module in json.loads(snapshot.read_text(encoding="utf-8"))["modules"]:
        file = folder / CORE.lstrip("/") / f"{module['name']}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(modulefile({"home": CORE, **module}, str(folder)), encoding="utf-8")
    return folder / CORE.lstrip("/")


def planned_lines(recipe: str, site: str) -> list[str]:
    """Return the module lines of the script that loads a plan's modules, in their order."""
    words = ["plan", recipe, "--site", site, "--arch", "ppc64le", "--json"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    plan = Plan.model_validate_json(answer.stdout)
    folders = BuildFolders(prefix=Path("/scratch/1"), build=Path("/scratch/1.build"))
    lock, start = Lock(plan=plan, artifacts=()), StartCommand(1, ("mpirun",))
    script = build_files(lock, folders, start)["environment.sh"]
    body = re.search(r"^load_all_modules\(\) {\n(.*?)^}", script, re.MULTILINE | re.DOTALL)
    assert body
    actions = re.findall(r"^ *(load|unload)_module (\S+)", body[1], re.MULTILINE)
    return [f"module {verb} {shlex.split(name)[0]}" for verb, name in actions]


def run(lines: Sequence[str], tree: Path, folder: Path) -> tuple[list[str], str]:
    """Run module lines in a new shell; return what is loaded at the end, and the output."""
    folder.mkdir()
    checked = [f"{line} || echo failed: '{line}'" for line in lines]
    before = ["unset MODULEPATH", f"module use {tree}"]
    done = in_lmod(
        "bash", [*before, *checked, "echo", "echo === list", "module -t list 2>&1"], folder
    )
    output, _, listed = done.out.partition("=== list\n")
    assert (done.code, "failed: " in output) == (0, False), done.text
    return listed.split(), output + done.err


@pytest.mark.sample(4)
@pytest.mark.parametrize("group", list(loads()), ids=lambda group: group.title)
def test_module_lines(group: Loads, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "machine", group.site)
    theirs, printed = run([*group.before, *dict.fromkeys(group.lines)], tree, tmp_path / "theirs")
    names = [line.split()[-1] for line in group.lines if line.startswith("module load ")]
    assert {name for name in names if not is_loaded(name, theirs)} == set(group.lost)

    lines = planned_lines(group.recipe, group.site)
    ours, _ = run(lines, tree, tmp_path / "ours")
    planned = [line.split()[-1] for line in lines if line.startswith("module load ")]
    assert set(planned) <= set(ours)
    expected = {*names, *(name.split()[-1] for name in group.before)}
    differs = {(each.theirs, each.ours) for each in group.differs}
    assert {name for name in expected if name not in ours} == {one for one, _ in differs if one}
    assert {name for name in planned if name not in expected} == {one for _, one in differs if one}
    for line in group.lines:
        if line.startswith("ml av "):
            assert sorted(re.findall(r"Horovod/\S+", printed)) == sorted(
                f"Horovod/{path.stem}" for path in tree.parents[1].rglob("Horovod/*.lua")
            )


def is_loaded(name: str, listed: Sequence[str]) -> bool:
    """Whether a module is loaded; a bare name means any version of it."""
    return any(each == name or each.startswith(f"{name}/") for each in listed)
