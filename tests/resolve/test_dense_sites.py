"""Sites with thousands of modules of one name end with a plan or a refusal."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SYNTHETIC = Path(__file__).parents[2] / "benchmarks" / "synthetic.py"

pytestmark = pytest.mark.thorough


def synthetic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("synthetic", SYNTHETIC)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plan(folder: Path) -> tuple[int, str]:
    """Return exit code and errors of a plan. benchmarks/plan.py measures its time and memory."""
    command = [sys.executable, "-m", "envbuilder", "plan", "synthetic", "--recipes", str(folder)]
    command += ["--site", "synthetic-site", "--arch", "x86_64"]
    # Pairs instead of classes of modules took over five minutes and gigabytes.
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("satisfiable", [True, False], ids=["met", "refused"])
@pytest.mark.long
def test_five_thousand_modules_of_one_name(satisfiable: bool, tmp_path: Path) -> None:
    folder = synthetic().write_dense_site(tmp_path / "site", 5000, satisfiable)
    code, errors = plan(folder)
    assert code == (0 if satisfiable else 3), errors
    if not satisfiable:
        assert "nccl >=9000" in errors
        assert "nccl 2.54.84 (NCCL/2.54.84-fosscuda-2010a)" in errors


@pytest.mark.long
def test_modules_of_one_name_that_each_load_a_library_of_their_own(tmp_path: Path) -> None:
    """Of libraries that nothing else speaks of it does not matter which one is loaded."""
    made = synthetic()
    generation = made.GENERATIONS[0]
    own = list(made._stack(0, generation))
    for n in range(2500):
        own.append(made._module(f"lib{n}/1", generation))
        name = f"NCCL/2.{n // 100 + 5}.{n % 100}-fosscuda-{generation}"
        own.append(made._module(name, generation, f"fosscuda/{generation}", f"lib{n}/1"))
    recipe = made.RECIPE.replace('nccl: "*"', 'nccl: ">=9000"')
    code, errors = plan(made._write(tmp_path / "site", own, recipe))
    assert code == 3, errors
    assert "nccl 2.29.99 (NCCL/2.29.99-fosscuda-2010a)" in errors


def test_a_chain_of_a_thousand_loads(tmp_path: Path) -> None:
    made = synthetic()
    generation = made.GENERATIONS[0]
    chain = [
        made._module(f"lib{n}/1", generation, *([f"lib{n + 1}/1"] if n < 999 else []))
        for n in range(1000)
    ]
    own = [*made._stack(0, generation), *chain]
    own.append(made._module(f"NCCL/2.99.1-fosscuda-{generation}", generation, "lib0/1"))
    code, errors = plan(made._write(tmp_path / "site", own, made.RECIPE))
    assert code == 0, errors
