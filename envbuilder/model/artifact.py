"""The files that an environment is made of, by their kind: what each is known by, and no more.

Patches and git trees are decided with the plan, which knows their hash without a network; the other
kinds are what a lock adds to it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import Document, GitCommit, Line, Name, Sha256
from .recipe import CleanUrl


class _IndexFile(Document):
    name: Name = Field(description="Normalised distribution name.")
    version: Line
    filename: Line
    url: Line
    sha256: Sha256
    size: int | None = Field(default=None, description="Bytes, where the index says so.")
    build_only: bool = Field(default=False, description="Used to build, not installed.")
    imports: Line | None = Field(default=None, description="What Python imports it as.")
    needs: tuple[Name, ...] | None = Field(
        default=None,
        description="What a wheel requires of the other files; None: locked before that was kept.",
    )


class Wheel(_IndexFile):
    """A wheel of the package index, which is installed as it is."""

    kind: Literal["wheel"] = "wheel"


class Sdist(_IndexFile):
    """The sources of what the plan builds, from the package index."""

    kind: Literal["sdist"] = "sdist"


class CondaArchive(Document):
    """A package of a conda channel, which is unpacked as it is."""

    kind: Literal["conda-package"] = "conda-package"
    name: Name
    version: Line
    build: Line = Field(description="Its build string: py36h2de5eaf_0.")
    url: CleanUrl
    sha256: Sha256


class GitTree(Document):
    """Sources that are cloned, with their submodules, at one commit."""

    kind: Literal["git-tree"] = "git-tree"
    url: CleanUrl
    tag: Line
    commit: GitCommit


class Patch(Document):
    """A file of recipes/patches that the plan applies."""

    kind: Literal["patch"] = "patch"
    name: Name
    sha256: Sha256


IndexFile = Wheel | Sdist
"""What the package index has."""

Artifact = Annotated[Wheel | Sdist | CondaArchive, Field(discriminator="kind")]
"""What a lock adds to its plan."""
