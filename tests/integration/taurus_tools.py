"""The module trees of site taurus-ml, made from its snapshot, wherever a test wants them.

Lmod is real and so are the trees; what the modules bring is this machine's, or nothing.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envbuilder import data

SITE = data.RECIPES / "sites" / "taurus-ml.yaml"
SNAPSHOT = data.RECIPES / "sites" / "taurus-ml.snapshot.json"
RECIPE = data.RECIPES / "horovod-nccl.yaml"
# Where the site has its modules and its software.
MODULES = "/sw/modules"
SOFTWARE = "/sw/installed"


def write_trees(root: Path, seen_as: str = "") -> None:
    """Write the modulefiles of the snapshot below *root*, which they will see as *seen_as*."""
    modules = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["modules"]
    for module in modules:
        environment = module["name"].startswith("modenv/")
        tree = f"{MODULES}/taurus/environment" if environment else f"{MODULES}/ml/all"
        file = root / tree.lstrip("/") / f"{module['name']}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        opens = f'prepend_path("MODULEPATH", "{seen_as}{MODULES}/ml/all")\n'
        file.write_text(opens if environment else _modulefile(module, seen_as), encoding="utf-8")


def _modulefile(module: Mapping[str, Any], seen_as: str) -> str:
    """Return a module as EasyBuild writes it: it loads what is not loaded yet."""
    home = seen_as + module["home"]
    lines = [f'conflict("{each}")' for each in module.get("conflicts", ())]
    for each in module.get("loads", ()):
        lines.append(f'if not isloaded("{each}") then load("{each}") end')
    for name, folder in (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib"), ("CPATH", "include")):
        lines.append(f'prepend_path("{name}", "{home}/{folder}")')
    lines.append(f'prepend_path("PYTHONPATH", "{home}/site-packages")')
    return "\n".join(lines) + "\n"


def bring(root: Path, module: str, programs: Mapping[str, Path]) -> Path:
    """Let a module bring programs, by name; return its folder."""
    home = root / SOFTWARE.lstrip("/") / module
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        (home / "bin" / name).symlink_to(program)
    return home


def bring_package(home: Path, package: str, version: str, text: str = "") -> None:
    """Let a module bring a Python package of its own."""
    folder = home / "site-packages" / package
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f"__version__ = {version!r}\n{text}", encoding="utf-8")
    (home / "lib").mkdir(exist_ok=True)


@dataclass(frozen=True)
class Copy:
    """A copy of the site for another place: where it lies, its Python, how a shell gets Lmod.

    ``seen_as``: what stands before the site's own paths, for those who will build there.
    """

    folder: Path
    python: str
    lmod: str
    arch: str = platform.machine()
    seen_as: str = ""

    @property
    def recipe(self) -> Path:
        return self.folder / "copied-nccl.yaml"

    @property
    def site(self) -> Path:
        return self.folder / "sites" / "copied.yaml"

    def write(self) -> Copy:
        """Write recipe, site and snapshot; the recipe takes the Python that there is."""
        self.site.parent.mkdir()
        recipe = RECIPE.read_text(encoding="utf-8")
        recipe = _replaced(recipe, "name: horovod-nccl", "name: copied-nccl")
        recipe = _replaced(recipe, "documented-for: {ppc64le: taurus-ml}\n", "")
        recipe = _replaced(recipe, ">=3.6,<3.8", ">=3.6")
        self.recipe.write_text(recipe, encoding="utf-8")
        text = SITE.read_text(encoding="utf-8")
        for old, new in {
            "name: taurus-ml": "name: copied",
            "ppc64le": self.arch,
            MODULES: self.seen_as + MODULES,
            "/usr/share/lmod/lmod/init/bash": self.lmod,
            "\nmodules:\n": f"\nmodules:\n  - name: PythonAnaconda/3.6\n    "
            f"provides: {{python: {self.python}}}\n",
            # What wheels are taken for: those that install on today's systems.
            'glibc: "2.17"': 'glibc: "2.28"',
        }.items():
            text = _replaced(text, old, new)
        self.site.write_text(text, encoding="utf-8")
        snapshot = SNAPSHOT.read_text(encoding="utf-8")
        for path in (MODULES, SOFTWARE):
            snapshot = _replaced(snapshot, f'"{path}', f'"{self.seen_as}{path}')
        (self.site.parent / SNAPSHOT.name).write_text(snapshot, encoding="utf-8")
        return self


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"{old!r} is no longer there: the copy would be another site"
    return text.replace(old, new)
