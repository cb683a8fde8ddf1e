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

import yaml

from envbuilder import data

SITE = data.RECIPES / "sites" / "taurus-ml.yaml"
SNAPSHOT = data.RECIPES / "sites" / "taurus-ml.snapshot.json"
RECIPE = data.RECIPES / "horovod-nccl.yaml"
ALLREDUCE = data.RECIPES / "allreduce.yaml"
# Where the site has its modules and its software.
MODULES = "/sw/modules"
SOFTWARE = "/sw/installed"


def write_trees(root: Path, seen_as: str = "", snapshot: Path = SNAPSHOT) -> None:
    """Write the modulefiles of the snapshot below *root*, which they will see as *seen_as*."""
    modules = json.loads(snapshot.read_text(encoding="utf-8"))["modules"]
    for module in modules:
        environment = module["name"].startswith("modenv/")
        tree = f"{MODULES}/taurus/environment" if environment else f"{MODULES}/ml/all"
        file = root / tree.lstrip("/") / f"{module['name']}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        opens = f'prepend_path("MODULEPATH", "{seen_as}{MODULES}/ml/all")\n'
        file.write_text(opens if environment else modulefile(module, seen_as), encoding="utf-8")


def modulefile(module: Mapping[str, Any], seen_as: str) -> str:
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
        recipe = replaced(recipe, "name: horovod-nccl", "name: copied-nccl")
        recipe = replaced(recipe, "documented-for: {ppc64le: taurus-ml}\n", "")
        recipe = replaced(recipe, ">=3.6,<3.8", ">=3.6")
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
            text = replaced(text, old, new)
        self.site.write_text(text, encoding="utf-8")
        snapshot = SNAPSHOT.read_text(encoding="utf-8")
        for path in (MODULES, SOFTWARE):
            snapshot = replaced(snapshot, f'"{path}', f'"{self.seen_as}{path}')
        (self.site.parent / SNAPSHOT.name).write_text(snapshot, encoding="utf-8")
        return self


@dataclass(frozen=True)
class RealCopy:
    """A copy of the site whose Python and Open MPI are those that the modules really bring.

    Its modules, their trees and what loads what are the site's. What differs: these two carry the
    versions that are there, it has no Slurm, and its compilers are the system's.

    ``provides``: what the Python module brings, by component. ``arch``, ``lmod``, ``seen_as``: see
    ``Copy``.
    """

    folder: Path
    arch: str
    lmod: str
    provides: Mapping[str, str]
    openmpi: str
    seen_as: str = ""

    @property
    def python_module(self) -> str:
        return f"Python/{self.provides['python']}-fosscuda-2018b"

    @property
    def openmpi_module(self) -> str:
        return f"OpenMPI/{self.openmpi}-gcccuda-2018b"

    @property
    def site(self) -> Path:
        return self.folder / "sites" / "copied.yaml"

    @property
    def trees(self) -> Path:
        """What ``write_trees`` writes the copy's modulefiles from."""
        return self.folder / "trees.json"

    def recipe(self, **stack: str) -> Path:
        """Write allreduce with the stack that it has on ppc64le, of these two; return its file.

        *stack*: what else is asked for, by component.
        """
        recipe = yaml.safe_load(ALLREDUCE.read_text(encoding="utf-8"))
        del recipe["documented-for"]
        recipe |= recipe.pop("for-arch")["ppc64le"]
        own = {"python": f"=={self.provides['python']}", "openmpi": f"=={self.openmpi}"}
        recipe["stack"] |= {**own, **stack}
        recipe |= {"arch": [self.arch], "smoke": {"ranks": 2, "max-bytes": 65536}}
        file = self.folder / "allreduce.yaml"
        file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
        return file

    def write(self) -> RealCopy:
        """Write site and snapshot."""
        self.site.parent.mkdir()
        series = self.openmpi.rpartition(".")[0]
        renamed = {
            "Python/3.6.6-fosscuda-2018b": self.python_module,
            "OpenMPI/3.1.4-gcccuda-2018b": self.openmpi_module,
            # The toolchain's own, whose place that one takes: of the same ABI series.
            "OpenMPI/3.1.1-gcccuda-2018b": f"OpenMPI/{series}.0-gcccuda-2018b",
        }
        text, snapshot = (path.read_text(encoding="utf-8") for path in (SITE, SNAPSHOT))
        brings = ", ".join(f'{name}: "{version}"' for name, version in self.provides.items())
        hides = [name for name in ("numpy", "mpi4py") if name in self.provides]
        for old, new in {
            "name: taurus-ml": "name: copied",
            "arch: [ppc64le]": f"arch: [{self.arch}]",
            "/usr/share/lmod/lmod/init/bash": self.lmod,
            'glibc: "2.17"': 'glibc: "2.28"',
            "{python: 3.6.6, numpy: 1.15.0, mpi4py: 3.0.0}": f"{{{brings}}}",
            "shadowable: [numpy, mpi4py]": f"shadowable: [{', '.join(hides)}]",
        }.items():
            text = replaced(text, old, new)
        text = replaced(text, MODULES, self.seen_as + MODULES)
        for old, new in renamed.items():
            snapshot, text = replaced(snapshot, old, new), text.replace(old, new)
        text = text[: text.index("scheduler: slurm")]
        self.site.write_text(text, encoding="utf-8")
        self.trees.write_text(snapshot, encoding="utf-8")
        for path in (MODULES, SOFTWARE):
            snapshot = replaced(snapshot, f'"{path}', f'"{self.seen_as}{path}')
        self.site.with_name(SNAPSHOT.name).write_text(snapshot, encoding="utf-8")
        return self


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"{old!r} is no longer there: the copy would be another site"
    return text.replace(old, new)
