"""The launch line: the words that start a program on every rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model.plan import Edit
from ..model.site import Launcher, LauncherKind

# Options of the smoke test, which may start more ranks than there are cores and must end when
# one rank dies.
_OPTIONS: Mapping[LauncherKind, tuple[str, ...]] = {
    "hydra": (),
    # Long options with two dashes: Open MPI 5 takes single-dash ones for the program's name.
    "openmpi": ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"),
    "srun": ("--kill-on-bad-exit=1",),
    "custom": (),
}

# Open MPI refuses to run as root without these, which a container or a test machine needs.
_AS_ROOT: Mapping[LauncherKind, tuple[str, ...]] = {
    "openmpi": ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"),
}


def launch(launcher: Launcher, ranks: str, program: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start *program* on *ranks* ranks for the smoke test."""
    return (*launcher.command, *_OPTIONS[launcher.kind], "-n", ranks, *program)


def launch_by_hand(launcher: Launcher, ranks: str, program: Sequence[str]) -> tuple[str, ...]:
    """Return the words that a user types, without the smoke test's options."""
    return (*launcher.command, "-n", ranks, *program)


def as_root(launcher: Launcher) -> tuple[Edit, ...]:
    """Return what the launcher's environment needs where root starts the ranks."""
    return tuple(Edit(kind="set", name=name, value="1") for name in _AS_ROOT.get(launcher.kind, ()))
