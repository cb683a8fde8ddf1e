"""The files that an environment is made of, by their kind: what each is known by, and no more.

Patches are decided with the plan, which knows their hash without a network; the other kinds are
what a lock adds to it.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from ..base import Document, GitCommit, Line, Name, Sha256, spelt
from ..redaction.secret_queries import without_secret_query
from ..target_tools.files import file_name
from .entries import entries_of
from .urls import LockGitUrl, LockUrl

T = TypeVar("T")

UNKNOWN_INDEX = "unknown"


class _IndexFile(Document):
    name: Name = Field(description="Normalised distribution name.")
    version: Line
    filename: Line
    url: Line
    sha256: Sha256
    size: int | None = Field(default=None, description="Size in bytes, if the index states it.")
    build_only: bool = Field(default=False, description="Whether only builds use it.")
    imports: Line | None = Field(default=None, description="Name of its Python module.")
    needs: tuple[Name, ...] | None = Field(
        default=None,
        description="Other files that a wheel requires; None: locked by a release that did not "
        "record them.",
    )
    index: Annotated[Line, AfterValidator(without_secret_query)] | None = Field(
        default=None,
        description="If the link to the file contains a secret: the index or page with the link. "
        "The URL is without its query. unknown: in an earlier lock.",
    )

    @model_validator(mode="after")
    def _leave_secret_out(self) -> "_IndexFile":
        """Take a query that holds a secret out of the URL, whoever wrote it there."""
        url = without_secret_query(self.url)
        if url != self.url:
            # Frozen for everybody else.
            object.__setattr__(self, "url", url)
            object.__setattr__(self, "index", self.index or UNKNOWN_INDEX)
        return self


class Wheel(_IndexFile):
    """A wheel of the package index, which is installed as it is."""

    kind: Literal["wheel"] = "wheel"


class Sdist(_IndexFile):
    """The sources of what the plan builds, from the package index."""

    kind: Literal["sdist"] = "sdist"


PackageName = Annotated[
    str, spelt(r"^[a-z0-9_][a-z0-9._+-]*$", "a conda package's name such as _libgcc_mutex", 100)
]
Md5 = Annotated[str, spelt(r"^[0-9a-f]{32}$", "an md5: 32 hex digits")]
BuildString = Annotated[str, spelt(r"^[A-Za-z0-9._+]+$", "a build string such as py36h2de5eaf_0")]
Subdir = Annotated[str, spelt(r"^(noarch|linux-[a-z0-9]+)$", "a subdir such as linux-64 or noarch")]


STAND_IN = "envbuild-stand-in"
"""The package that a stand-in depends on: one with the name, version and dependencies of a package
that cannot be had, and not its content. Locks and conda's own records keep what a package needs.
A module that stands in loads a module of this name: see ``plan.Modules``."""


def no_content_trust(value: T, info: ValidationInfo) -> T:
    """Refuse keys of conda's content trust in a lock that a user gives.

    The record of a published environment keeps them. Raises ValueError.
    """
    if value and entries_of(info):
        raise ValueError(
            "the lock asks for conda's content trust, which envbuild does not verify: lock the "
            "recipe again without channel-keys"
        )
    return value


class CondaArchive(Document):
    """A package of a conda channel, which is unpacked as it is."""

    kind: Literal["conda-package"] = "conda-package"
    name: PackageName
    version: Line
    build: BuildString = Field(description="The build string: py36h2de5eaf_0.")
    url: LockUrl
    sha256: Sha256
    md5: Md5 | None = Field(default=None, description="The hash in conda's explicit lists.")
    size: int | None = Field(default=None, description="Bytes.")
    channel: LockUrl | None = None
    subdir: Subdir | None = None
    depends: tuple[Line, ...] = Field(default=(), description="MatchSpecs of its dependencies.")
    constrains: tuple[Line, ...] = Field(
        default=(), description="MatchSpecs that packages must satisfy if they are installed."
    )
    distribution: Name | None = Field(
        default=None, description="Name in Python's package metadata; None: unknown."
    )
    imports: Line | None = Field(default=None, description="Name of its Python module.")
    signed_by: tuple[Line, ...] | None = Field(
        default=None, exclude=True, description="In earlier locks: keys of the channel."
    )
    verified_by: Annotated[Line | None, AfterValidator(no_content_trust)] = Field(
        default=None, exclude=True, description="In earlier locks: the verified key."
    )

    @property
    def filename(self) -> str:
        """Its name in a channel's folder."""
        return file_name(self.url)

    @property
    def stands_in(self) -> bool:
        """Whether it says that it only stands in for the package of its name."""
        return any(each.split(" ")[0] == STAND_IN for each in self.depends)


class GitRevision(Document):
    """A commit of a git repository, and the tag that meant it when it was recorded."""

    url: LockGitUrl
    tag: Line
    commit: GitCommit


class Submodule(Document):
    """A git tree inside another one, at the commit that its parent pins.

    ``url``: as its parent says, without credentials; ssh's USER@HOST:PATH is one as well.
    """

    path: Line = Field(description="Path relative to the complete tree.")
    url: Annotated[Line, AfterValidator(without_secret_query)]
    commit: GitCommit


class GitTree(GitRevision):
    """The sources of what the plan builds, with all submodules, as one archive.

    ``sha256`` is that of the archive, whose bytes follow from the tree: target_tools/tree_archive.
    """

    kind: Literal["git-tree"] = "git-tree"
    name: Name = Field(description="Normalised distribution name of the build.")
    version: Line
    filename: Line
    tree: GitCommit = Field(description="The id of the tree in git, without submodules.")
    submodules: tuple[Submodule, ...] = ()
    sha256: Sha256
    size: int = Field(description="Size of the archive in bytes.")
    build_only: bool = Field(default=False, description="Whether only builds use it.")
    imports: Line | None = Field(default=None, description="Name of its Python module.")


class Patch(Document):
    """A file of recipes/patches that the plan applies."""

    kind: Literal["patch"] = "patch"
    name: Name
    sha256: Sha256


def tree_file(name: str, version: str) -> str:
    """Return the file name of a git tree's archive; its members lie below that without the end."""
    return f"{name}-{version}.tar"


IndexFile = Wheel | Sdist
"""What the package index has."""

Artifact = Annotated[Wheel | Sdist | GitTree | CondaArchive, Field(discriminator="kind")]
"""What a lock adds to its plan."""
