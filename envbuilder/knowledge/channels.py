"""Where components come from beside modules and the package index: conda channels, git trees."""

from collections.abc import Mapping

from pydantic import Field

from ..base import Day, Document, GitCommit, Line, Name, VariableName
from .terms import Arch, Origin, PlainVersion
from .urls import ChannelUrl, GitUrl

SUBDIRS: Mapping[Arch, str] = {
    "x86_64": "linux-64",
    "ppc64le": "linux-ppc64le",
    "aarch64": "linux-aarch64",
}
"""Where a channel keeps the packages of an architecture; those for all are in NOARCH."""

NOARCH = "noarch"

VirtualPackage = tuple[str, str, str]
"""Name, version and build of what the target has: ``__glibc``, ``2.28``, ``0``."""

CHANNEL_ORIGINS: frozenset[Origin] = frozenset({"conda"})
"""What comes from a conda channel: its versions are in conda's order, it lies in the prefix."""


def package_name(locator: str) -> str:
    """Return what a channel calls a package, *locator* being CHANNEL/NAME."""
    return locator.rpartition("/")[2]


def channel_name(locator: str) -> str:
    """Return the channel of a package, *locator* being CHANNEL/NAME. A channel may be a URL."""
    return locator.rpartition("/")[0]


def match_spec(locator: str, version: str) -> str:
    """Return the MatchSpec of a package, *locator* being CHANNEL/NAME.

    One '=', as its recorded version may be a series.
    """
    return f"{package_name(locator)}={version}"


def spec_name(spec: str) -> str:
    """Return the package of a MatchSpec as recipes write it: NAME, then a space and the version."""
    return spec.partition(" ")[0]


class CondaPackage(Document):
    """A release of a component in a conda channel. Versions are in the order of conda."""

    version: PlainVersion
    name: Line | None = Field(
        default=None, description="Name in the channel, if it differs from the usual one."
    )
    arch: tuple[Arch, ...] = Field(default=(), description="Architectures (default: all, noarch).")
    pythons: tuple[PlainVersion, ...] = Field(
        default=(), description="Python series that it is built for (default: any)."
    )


class SourceTree(Document):
    """A release as a git tree, for components without a source archive on the index.

    ``commit``: the commit of the tag at the time of recording; a tag can move, a commit cannot.
    """

    version: PlainVersion
    tag: Line
    commit: GitCommit
    environment: dict[VariableName, Line] = Field(
        default_factory=dict, description="Variables that its build needs, such as its own version."
    )


class SourceTrees(Document):
    """The git trees of the sources of a component, with submodules."""

    url: GitUrl
    source: Line
    trees: tuple[SourceTree, ...] = Field(min_length=1)


class Licence(Document):
    """A licence that a user must accept before packages of a channel are installed.

    A package that asks during an installation blocks a script, so the user must set the variable
    with the answer before.
    """

    variable: VariableName
    value: Line
    summary: Line


class Channel(Document):
    """A conda channel and its packages on the date *recorded*.

    ``gone``: the day of the first report that it has no packages any more.
    """

    url: ChannelUrl
    recorded: Day
    gone: Day | None = None
    sources: tuple[Line, ...] = Field(min_length=1)
    licence: Licence | None = None
    packages: dict[Name, tuple[CondaPackage, ...]]


def unrecorded(url: str) -> Channel:
    """Return a channel that a recipe names by its URL, of which nothing is recorded."""
    return Channel(url=url, recorded="0001-01-01", sources=("the recipe",), packages={})
