"""The site: where environments are built, and what was found there (the snapshot)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from .base import Document, Line, Name
from .recipe import Arch, CleanUrl

ModuleSystem = Literal["lmod", "tcl", "none"]
Origin = Literal["module", "system", "pip"]
LauncherKind = Literal["hydra", "openmpi", "srun", "custom"]

ModuleName = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$", max_length=200
    ),
]
"""``Name/version`` as it is given to ``module load``."""


def _absolute(path: str) -> str:
    if not PurePosixPath(path).is_absolute():
        raise ValueError(f"must be an absolute path: {path!r}")
    if ".." in PurePosixPath(path).parts:
        raise ValueError(f"must not contain '..': {path!r}")
    return path


AbsolutePath = Annotated[Line, AfterValidator(_absolute)]


def _site_path(path: str) -> str:
    # Its author would expect an expansion that never comes, or break a list such as PATH in two.
    if "$" in path or "`" in path:
        raise ValueError(f"variables and commands are not expanded, write it out: {path!r}")
    if ":" in path:
        raise ValueError(f"a ':' would split it in lists such as PATH: {path!r}")
    return path


SitePath = Annotated[AbsolutePath, AfterValidator(_site_path)]
"""An absolute path that a site's author wrote; spaces and quotes are fine."""

PlainVersion = Annotated[str, StringConstraints(pattern=r"^[0-9][A-Za-z0-9.+_-]*$", max_length=64)]


class StatedModule(Document):
    """What the site says one of its modules provides and brings along."""

    name: ModuleName
    provides: dict[Name, PlainVersion] = Field(min_length=1)
    python: SitePath | None = Field(
        default=None, description="The interpreter, where the module provides python."
    )
    loads: tuple[ModuleName, ...] = Field(
        default=(), description="Modules that are loaded along with it."
    )


class Launcher(Document):
    """How ranks are started. ``command`` is put before ``-n RANKS PROGRAM``."""

    kind: LauncherKind = "custom"
    command: tuple[Line, ...] = Field(min_length=1)


class Site(Document):
    """Where: architectures, module system, interpreters, launcher, places and mirrors."""

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    summary: Line
    arch: tuple[Arch, ...] = Field(min_length=1)
    module_system: ModuleSystem = "none"
    module_init: SitePath | None = Field(
        default=None, description="File that a bash script sources to get the module command."
    )
    module_trees: tuple[SitePath, ...] = ()
    modules: tuple[StatedModule, ...] = ()
    pythons: tuple[SitePath, ...] = Field(
        default=(), description="Interpreters to consider; none given: those found on PATH."
    )
    origins: tuple[Origin, ...] = Field(
        default=("module", "system", "pip"), min_length=1, description="Whom to ask first."
    )
    launcher: Launcher | None = Field(
        default=None, description="None: the launcher of the MPI that the plan holds."
    )
    base: SitePath | None = Field(
        default=None, description="Folder for roots: <base>/<site>/<arch>."
    )
    pip_indexes: tuple[CleanUrl, ...] = ()
    find_links: tuple[CleanUrl, ...] = ()


class Interpreter(Document):
    """A Python that was asked about itself."""

    path: AbsolutePath
    version: PlainVersion
    arch: Line
    can_make_venv: bool


class Snapshot(Document):
    """What a site held when it was looked at. The resolver works from this, never from the site."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    interpreters: tuple[Interpreter, ...] = ()
    modules: tuple[StatedModule, ...] = ()
    glibc: Line | None = None
