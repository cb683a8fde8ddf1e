"""The words that start a program on every rank of one smoke test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..model.plan import Edit, Transport
from ..model.site import Launcher, LauncherKind

Words = tuple[str, ...]

# Open MPI refuses to run as root without these, which a container or a test machine needs.
# horovodrun --mpi hands them on to mpirun.
_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
_AS_ROOT: Mapping[LauncherKind, Words] = {"openmpi": _ROOT, "horovodrun": _ROOT}


def launch(
    launcher: Launcher, ranks: str, program: Sequence[str], transport: Transport | None = None
) -> Words:
    """Return the words that start *program* on *ranks* ranks for the smoke test.

    The smoke test may start more ranks than there are cores, on the nodes that the job holds or on
    this one, and must end when one rank dies. *transport*: what is to carry the data, for launchers
    that choose it.
    """
    return (*launcher.command, *_OPTIONS[launcher.kind](ranks, transport), *program)


def _count(ranks: str, _transport: Transport | None) -> Words:
    return ("-n", ranks)


def _openmpi(ranks: str, _transport: Transport | None) -> Words:
    # Long options with two dashes: Open MPI 5 takes single-dash ones for the program's name.
    return ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none", "-n", ranks)


def _srun(ranks: str, _transport: Transport | None) -> Words:
    return ("--kill-on-bad-exit=1", "-n", ranks)


def _jsrun(ranks: str, transport: Transport | None) -> Words:
    # A resource set for each rank: one core, and a GPU where the ranks need one.
    gpu = ("-g", "1") if transport == "nccl" else ()
    return ("-n", ranks, "-a", "1", "-c", "1", *gpu)


def _ddlrun(_ranks: str, _transport: Transport | None) -> Words:
    # It knows the nodes of its job, and takes as many ranks a node as there are GPUs.
    return ()


def _horovodrun(ranks: str, transport: Transport | None) -> Words:
    """Without hosts it takes one slot; those of other nodes it would reach by ssh.

    Its --mpi and --gloo say who starts the ranks and negotiates; NCCL is told apart from them at
    build time, and started by MPI.
    """
    how = "--gloo" if transport == "gloo" else "--mpi"
    return (how, "-np", ranks, "-H", _joined("localhost:", ranks))


def _joined(text: str, ranks: str) -> str:
    # A word that a shell expands (Quoted) must stay one: what stands before it needs no quotes.
    return type(ranks)(text + ranks)


def _torchrun(ranks: str, _transport: Transport | None) -> Words:
    # Underscores: the spelling that all releases take. It starts Python scripts unless told not to.
    return ("--standalone", "--nproc_per_node", ranks, "--no_python")


_OPTIONS: Mapping[LauncherKind, Callable[[str, Transport | None], Words]] = {
    "hydra": _count,
    "openmpi": _openmpi,
    "spectrum-mpi": _openmpi,
    "srun": _srun,
    "jsrun": _jsrun,
    "ddlrun": _ddlrun,
    "horovodrun": _horovodrun,
    "torchrun": _torchrun,
    "custom": _count,
}


def launch_by_hand(
    launcher: Launcher, ranks: str, program: Sequence[str], transport: Transport | None = None
) -> Words:
    """Return the words that a user types, without the smoke test's options."""
    if launcher.kind == "jsrun":
        # It hands out no GPU that it is not asked for, and programs of people want one.
        return (*launcher.command, *_jsrun(ranks, "nccl"), *program)
    if launcher.kind in ("openmpi", "spectrum-mpi", "srun"):
        return (*launcher.command, "-n", ranks, *program)
    return launch(launcher, ranks, program, transport)


def as_root(launcher: Launcher) -> tuple[Edit, ...]:
    """Return what the launcher's environment needs where root starts the ranks."""
    return tuple(Edit(kind="set", name=name, value="1") for name in _AS_ROOT.get(launcher.kind, ()))
