"""Horovod for the PyTorch of a Debian for ppc64el, whose PyTorch and Open MPI are modules."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from taurus_tools import SOFTWARE, bring

LMOD = "/usr/share/lmod/lmod/init/bash"
PROGRAMS = ("mpiexec", "mpirun", "mpicc", "mpicxx", "ompi_info")
TREE = "/sw/modules/all"
PACKAGES = "/usr/lib/python3/dist-packages"

MODULES = {"PyTorch/1.13.1": {"pytorch": "1.13.1"}, "OpenMPI/4.1.4": {"openmpi": "4.1.4"}}
# Debian 12 has them in these releases.
PYTHON = "3.11.2"
SYSTEM = {
    "gcc": ("/usr/bin/g++", "12.2.0"),
    "cmake": ("/usr/bin/cmake", "3.25.1"),
    "numpy": ("/usr/bin/python3", "1.24.2"),
    "mpi4py": ("/usr/bin/python3", "3.1.4"),
    "cloudpickle": ("/usr/bin/python3", "2.2.0"),
    "psutil": ("/usr/bin/python3", "5.9.4"),
    "pyyaml": ("/usr/bin/python3", "6.0"),
}
SITE = {
    "schema": 1,
    "name": "power",
    "summary": "Debian 12 for ppc64le, its PyTorch and Open MPI as modules",
    "arch": ["ppc64le"],
    "module-system": "lmod",
    "module-init": LMOD,
    "module-trees": [TREE],
    "snapshot": "power.snapshot.json",
    "origins": ["module", "system", "pip", "build"],
    "facts": {"os": "debian 12", "glibc": "2.36", "gpu": [], "network": []},
    "modules": [{"name": name, "provides": those} for name, those in MODULES.items()],
}
RECIPE = {
    "schema": 1,
    "name": "horovod-power",
    "summary": "Horovod for the PyTorch of a module over MPI, on CPUs",
    "arch": ["ppc64le"],
    "system-site-packages": True,
    "stack": {
        "python": f"=={PYTHON}",
        "pytorch": "==1.13.*",
        "openmpi": "*",
        "numpy": "*",
        "cmake": ">=3.13,<4",
    },
    "runtime": {
        "package": "horovod",
        "version": "==0.28.1",
        "flags": {
            "HOROVOD_WITH_MPI": 1,
            "HOROVOD_WITHOUT_GLOO": 1,
            "HOROVOD_WITH_PYTORCH": 1,
            "HOROVOD_WITHOUT_TENSORFLOW": 1,
            "HOROVOD_WITHOUT_MXNET": 1,
            "HOROVOD_CPU_OPERATIONS": "MPI",
        },
    },
    "smoke": {"ranks": 2, "max-bytes": 65536},
}


def write_documents(folder: Path) -> tuple[Path, Path]:
    """Write the recipe, and the site with its snapshot; return the files of both."""
    snapshot = {
        "schema": 1,
        "kind": "documented",
        "source": "the package lists of Debian 12 for ppc64el",
        "taken": "2026-11-01",
        "interpreters": [
            {
                "arch": "ppc64le",
                "can-make-venv": True,
                "path": "/usr/bin/python3",
                "version": PYTHON,
            }
        ],
        "modules": [{"name": name, "home": f"{SOFTWARE}/{name}"} for name in MODULES],
        "system": [
            {"component": name, "locator": locator, "version": version}
            for name, (locator, version) in SYSTEM.items()
        ],
    }
    recipe, site = folder / "horovod-power.yaml", folder / "power.yaml"
    recipe.write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    site.write_text(yaml.safe_dump(SITE), encoding="utf-8")
    (folder / "power.snapshot.json").write_text(json.dumps(snapshot), encoding="utf-8")
    return recipe, site


def write_modules(root: Path, system: Path) -> None:
    """Expose the PyTorch and the Open MPI of a system as modules, in what is written over it."""
    bring(root, "OpenMPI/4.1.4", {name: Path(f"/usr/bin/{name}.openmpi") for name in PROGRAMS[:-1]})
    (root / SOFTWARE.lstrip("/") / "OpenMPI/4.1.4/bin/ompi_info").symlink_to("/usr/bin/ompi_info")
    home = bring(root, "PyTorch/1.13.1", {})
    (home / "site-packages").mkdir()
    for path in (system / PACKAGES.lstrip("/")).glob("torch*"):
        (home / "site-packages" / path.name).symlink_to(f"{PACKAGES}/{path.name}")
    for name, variable, folder in (
        ("OpenMPI/4.1.4", "PATH", "bin"),
        ("PyTorch/1.13.1", "PYTHONPATH", "site-packages"),
    ):
        file = root / TREE.lstrip("/") / f"{name}.lua"
        file.parent.mkdir(parents=True)
        file.write_text(f'prepend_path("{variable}", "{SOFTWARE}/{name}/{folder}")\n')
