"""Every stack that the resolver's cases expect, loaded by real Lmod: it ends as planned.

With automatic swapping of modules of one name, and with LMOD_DISABLE_SAME_NAME_AUTOSWAP=yes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from test_cases import CASES, asked, knowledge, read

from envbuilder.machine.local_site import local_site
from envbuilder.model.plan import Modules
from envbuilder.resolve.resolver import resolve

# Whether Lmod swaps modules of a name: LMOD_DISABLE_SAME_NAME_AUTOSWAP.
SWAPPING = {"autoswap": "no", "no autoswap": "yes"}

TREES = Path(__file__).parents[1] / "integration/trees"

pytestmark = pytest.mark.integration


@cache
def lmod_init() -> str:
    """Return the file with which bash gets Lmod's module command; skip if there is none."""
    site = local_site(dict(os.environ))
    if site.module_system != "lmod" or site.module_init is None:
        pytest.skip("needs Lmod")
    return str(Path(site.module_init).with_name("bash"))


def tree_of(site: object) -> Path | None:
    """Return the tree of a shipped site that the tests have, None where they have none."""
    folder = TREES / site / "modules/taurus/environment" if isinstance(site, str) else None
    return folder if folder and folder.is_dir() else None


def loadable() -> list[Path]:
    cases = {path: read(path) for path in CASES}
    return [
        path
        for path, case in cases.items()
        if "expect" in case and tree_of(case["site"]) and not case.get("site-change")
    ]


def loaded(modules: Modules, tree: Path, folder: Path) -> dict[str, list[str]]:
    """Return what is loaded at the end where Lmod swaps modules of a name, and where it may not.

    Each in a process of its own of one shell.
    """
    lines = ["set -e", f"source {shlex.quote(lmod_init())}", "module --force purge >/dev/null 2>&1"]
    for no_autoswap in SWAPPING.values():
        lines += ["(", f"export LMOD_DISABLE_SAME_NAME_AUTOSWAP={no_autoswap}"]
        lines += [f"module {action} {shlex.quote(name)}" for action, name in modules.actions()]
        lines += ["echo $LOADEDMODULES", ")"]
    environ = {"PATH": "/usr/bin:/bin", "MODULEPATH": str(tree), "HOME": str(folder)}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ends = [sorted(filter(None, line.split(":"))) for line in done.stdout.splitlines()]
    return dict(zip(SWAPPING, ends, strict=True))


@pytest.mark.parametrize("path", loadable(), ids=lambda path: path.stem)
@pytest.mark.sample(8)
def test_the_plan_loads_as_planned(path: Path, tmp_path: Path) -> None:
    case = read(path)
    found = resolve(asked(case, tmp_path, knowledge()))
    modules = Modules(loads=found.loads, final=found.final, replaced=found.replaced)
    tree = tree_of(case["site"])
    assert tree is not None
    planned = sorted(found.final)
    assert loaded(modules, tree, tmp_path) == dict.fromkeys(SWAPPING, planned)


def test_enough_plans_are_loaded() -> None:
    assert len(loadable()) >= 15
