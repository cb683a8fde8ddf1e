"""Sites on the trees of modulefiles that the tests hold, and shells with real module systems."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from envbuilder.machine.detection import DetectionResult, live_snapshot
from envbuilder.machine.local_site import local_site
from envbuilder.machine.modules.site_modules import SiteModules, read_modules
from envbuilder.model.site import Site

TREES = Path(__file__).parents[1] / "integration" / "trees"
TODAY = date(2026, 11, 21)

# Which module opens a site's tree, and which trees of the tests stand for it.
PRELOADS = {"taurus-ml": "modenv/ml", "taurus-alpha": "modenv/hiera"}


def environ(**more: str) -> dict[str, str]:
    """Return an environment without what the caller's module system keeps there.

    The search path is short: every interpreter on it is asked, which these tests are not about.
    """
    keeping = ("LMOD", "MODULE", "LOADEDMODULES", "_LMFILES_", "_ModuleTable", "__LMOD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(keeping)}
    return {**kept, "PATH": "/usr/bin:/bin", **more}


def lmod_init() -> str:
    """Return the file with which bash gets Lmod; skip where there is none."""
    site = local_site(environ())
    if site.module_system != "lmod" or site.module_init is None:
        pytest.skip("needs Lmod")
    return site.module_init


def tcl_init(folder: Path) -> str:
    """Return a file with which bash gets Environment Modules; skip where nobody says where."""
    command = os.environ.get("ENVBUILD_MODULECMD")
    if not command or shutil.which("tclsh") is None:
        pytest.skip("needs tclsh and Environment Modules: ENVBUILD_MODULECMD names modulecmd.tcl")
    path = folder / "init"
    path.write_text(f"eval \"$(tclsh '{command}' bash autoinit)\"\n")
    return str(path)


def make_site(
    init: str,
    *trees: Path,
    preload: tuple[str, ...] = (),
    system: Literal["lmod", "tcl"] = "lmod",
) -> Site:
    """Return a site whose modules lie in these trees."""
    return Site(
        schema_=1,
        name="here",
        summary="A site of the tests",
        arch=("x86_64",),
        module_system=system,
        module_init=init,
        module_trees=tuple(str(tree) for tree in trees),
        preload=preload,
    )


def base_tree(name: str) -> Path:
    """Return the tree that a site of the tests begins with."""
    return TREES / name / "modules" / "taurus" / "environment"


def tree_site(name: str) -> Site:
    """Return a site on one of the trees of the tests."""
    return make_site(lmod_init(), base_tree(name), preload=(PRELOADS[name],))


def take(site: Site, environ: Mapping[str, str], today: date) -> DetectionResult:
    """Take the snapshot of a site that is on this machine."""
    return live_snapshot(site, environ, today, read_modules(site, environ))


@cache
def taken_tree(name: str) -> DetectionResult:
    """Take the snapshot of one of the trees of the tests, once for all tests."""
    return take(tree_site(name), environ(), TODAY)


def take_tree(*trees: Path, init: str | None = None) -> DetectionResult:
    """Take the snapshot of trees without a preload."""
    return take(make_site(init or lmod_init(), *trees), environ(), TODAY)


def read_tree(*trees: Path) -> SiteModules:
    """Read the modules of trees without a preload."""
    return read_modules(make_site(lmod_init(), *trees), environ())


def loaded_after(site: Site, *names: str, **more: str) -> set[str]:
    """Load modules in a new shell, as a user would; return what is loaded then."""
    lines = [
        f". '{site.module_init}'",
        *(f"module use '{tree}'" for tree in site.module_trees),
        *(f"module load {name} || exit 1" for name in (*site.preload, *names)),
        'printf "%s" "$LOADEDMODULES"',
    ]
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", "\n".join(lines)],
        env={**environ(), "LC_ALL": "C", **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split(":"))


def modulefiles(folder: Path, files: Mapping[str, str]) -> Path:
    """Write modulefiles by their names; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
