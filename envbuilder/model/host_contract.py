"""What an image needs of the machine that it runs on, what that has, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..base import Document, Line, Name
from .launch import Mpi
from .site import SiteLauncher

Fit = Literal["fits", "broken", "unknown"]
Subject = Literal["architecture", "mpi", "pmi", "cuda", "mpi library", "mpi symbols", "glibc"]


class ContractRow(Document):
    """One thing that image and host must agree on."""

    subject: Literal["architecture", "mpi", "pmi", "cuda", "mpi library", "mpi symbols", "glibc"]
    image: Line  # What the image contains or needs.
    host: Line  # What the host has.
    fit: Fit
    why: Line | None = None  # The consequence; None if it fits.


class HostMpi(Document):
    """Which MPIs of a host start ranks of an image's MPI, in the hybrid model.

    ``starts``: by component, how many leading numbers of the two versions must be the same.
    """

    called: Line
    starts: dict[Name, int]


class HostLibraries(Document):
    """Which libraries an image that takes the host's MPI has from whom; names without ``.so``.

    ``c_library``: always the image's, as its loader is. ``newer``: the image's where they are new
    enough. ``plug_ins``: folders that a library looks for beside itself; ``compiled_in``: that it
    looks for where they were when it was built, which is beside it on the host, or absolute.
    """

    c_library: tuple[Line, ...]
    newer: tuple[Line, ...]
    plug_ins: dict[Line, tuple[Line, ...]]
    compiled_in: dict[Line, tuple[Line, ...]]


@dataclass(frozen=True)
class ImageNeeds:
    """What an image holds that its host must fit.

    ``cuda``: its release; None: not stated, and with ``gpus`` its packages bring one.
    """

    arch: str | None
    mpi: Mpi | None
    cuda: str | None
    gpus: bool = False


@dataclass(frozen=True)
class HostedMpi:
    """An MPI of a host: a module, or what is on its path."""

    mpi: Mpi
    locator: str


@dataclass(frozen=True)
class HostOffer:
    """What a host has. ``pmi``, ``driver_cuda``: None where nothing says it.

    ``launcher``: what the site starts ranks by, where it states that; ``speaks``: the protocol that
    a launcher of a scheduler must be told for each MPI; None for any other launcher.
    """

    name: str
    arches: tuple[str, ...]
    mpis: tuple[HostedMpi, ...]
    launcher: SiteLauncher | None = None
    speaks: Mapping[str, str] | None = None
    pmi: tuple[str, ...] | None = None
    driver_cuda: str | None = None
