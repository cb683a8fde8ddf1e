"""Synthetic sites and knowledge of any size, in the shape of EasyBuild's flat trees.

Each generation has a toolchain whose modules load one another and bring an Open MPI, and two more
releases of that series beside it; NCCL, cuDNN, CMake, Python and TensorFlow on top; and as much
other software as it takes to reach the size that is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GENERATIONS = tuple(f"{year}{half}" for year in range(2010, 2030) for half in "ab")
# So many modules of a generation are those that a stack may hold; the rest is other software.
OWN = 15

RECIPE = """schema: 1
name: synthetic
summary: A stack of a synthetic site
arch: [x86_64]
stack:
  python: "*"
  tensorflow: "*"
  nccl: "*"
  openmpi: "*"
  cudnn: "*"
  cmake: "*"
"""

SITE = """schema: 1
name: synthetic-site
summary: A synthetic site
arch: [x86_64]
module-system: lmod
module-init: /opt/lmod/init/bash
module-trees: [/opt/modules]
snapshot: synthetic-site.snapshot.json
toolchain: {preferred}
origins: [module, pip]
"""


def _module(name: str, generation: str, *loads: str, **more: Any) -> dict[str, Any]:
    home = f"/opt/software/{name}"
    return {"name": name, "toolchain": generation, "loads": list(loads), "home": home, **more}


def _stack(number: int, generation: str) -> Iterator[dict[str, Any]]:
    """Yield the modules of one generation that a deep-learning stack may hold."""
    gcc, mpi = f"{number + 4}.3.0", f"{number // 4 + 1}.{number % 4}"
    core, compiler = f"GCCcore/{gcc}", f"GCC/{gcc}"
    cuda, below = f"CUDA/{number + 5}.1-GCC-{gcc}", f"gcccuda/{generation}"
    whole = f"fosscuda/{generation}"
    yield _module(core, generation)
    yield _module(compiler, generation, core)
    yield _module(cuda, generation, compiler)
    yield _module(below, generation, compiler, cuda)
    for patch in (1, 3, 4):
        yield _module(f"OpenMPI/{mpi}.{patch}-gcccuda-{generation}", generation, below)
    yield _module(whole, generation, below, f"OpenMPI/{mpi}.1-gcccuda-{generation}")
    for minor in (1, 2):
        yield _module(f"NCCL/2.{number}.{minor}-{whole.replace('/', '-')}", generation, whole)
    yield _module(f"cuDNN/7.{number}.1-{whole.replace('/', '-')}", generation, whole)
    for minor in (1, 2):
        yield _module(f"CMake/3.{number}.{minor}-GCCcore-{gcc}", generation, core)
    python = f"Python/3.{number % 6 + 8}.{number}-{whole.replace('/', '-')}"
    yield _module(python, generation, whole)
    name = f"TensorFlow/2.{number}.0-{whole.replace('/', '-')}"
    yield _module(name, generation, python)


def modules(count: int) -> list[dict[str, Any]]:
    """Return so many modules, spread over as many generations as there is room for."""
    generations = GENERATIONS[: max(1, min(len(GENERATIONS), count // (2 * OWN)))]
    found = [each for n, name in enumerate(generations) for each in _stack(n, name)]
    number = 0
    while len(found) < count:
        generation = generations[number % len(generations)]
        name = f"Software{number // 7}/1.{number % 7}-fosscuda-{generation}"
        found.append(_module(name, generation, f"fosscuda/{generation}"))
        number += 1
    return found[:count]


def dense_modules(count: int) -> list[dict[str, Any]]:
    """Return so many modules, all but those of one generation of one name: NCCL's releases."""
    (generation,) = GENERATIONS[:1]
    found = list(_stack(0, generation))
    for number in range(count - len(found)):
        name = f"NCCL/2.{number // 100 + 5}.{number % 100}-fosscuda-{generation}"
        found.append(_module(name, generation, f"fosscuda/{generation}"))
    return found


def write_dense_site(folder: Path, count: int, satisfiable: bool) -> Path:
    """Write a site with thousands of modules of one name, and a recipe that it meets or not."""
    nccl = "*" if satisfiable else ">=9000"
    recipe = RECIPE.replace('nccl: "*"', f'nccl: "{nccl}"')
    return _write(folder, dense_modules(count), recipe)


def write_site(folder: Path, count: int) -> Path:
    """Write recipe, site and snapshot; return the folder, which goes to ``--recipes``."""
    return _write(folder, modules(count), RECIPE)


def _write(folder: Path, own: list[dict[str, Any]], recipe: str) -> Path:
    (folder / "sites").mkdir(parents=True)
    preferred = own[-1]["toolchain"]
    snapshot = {"schema": 1, "kind": "live", "taken": "2026-01-01", "modules": own}
    (folder / "synthetic.yaml").write_text(recipe)
    (folder / "sites/synthetic-site.yaml").write_text(SITE.format(preferred=preferred))
    (folder / "sites/synthetic-site.snapshot.json").write_text(json.dumps(snapshot, indent=1))
    return folder


def write_advisories(folder: Path, count: int) -> None:
    """Write so many advisories, on components that the synthetic stack holds, in turn."""
    (folder / "knowledge").mkdir(parents=True, exist_ok=True)
    # Each range holds some releases that exist and not all of them, else it is refused.
    ranges = {
        "openmpi": lambda n: f"<{n % 3 + 2}.{n % 2 + 1}",
        "nccl": lambda n: f"<2.{n % 20 + 4}",
        "cmake": lambda n: f"<3.{n % 20 + 5}",
        "tensorflow": lambda n: f"<2.{n % 14 + 1}",
    }
    components = tuple(ranges)
    rows = [
        {
            "id": f"SYN-{n}",
            "severity": "warning",
            "summary": "a synthetic advisory",
            "component": components[n % len(components)],
            "affected": ranges[components[n % len(components)]](n),
            "evidence": "derived",
            "sources": ["benchmarks/synthetic.py"],
        }
        for n in range(count)
    ]
    document = {"schema": 1, "advisories": rows}
    # JSON is YAML, and quicker to write.
    (folder / "knowledge/advisories.yaml").write_text(json.dumps(document, indent=1))
