"""What a module of this folder has, and what ``create`` hands to it.

A new target is a module with these names, and its line in TARGETS.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...model.backend import Script
from ...model.evidence import Evidence, Tier
from ...model.outcome import BundleResult, CreateResult, ImageResult
from ...model.places import BuildFolders, Dialect
from ...model.plan import Lock


@dataclass(frozen=True)
class JobFile:
    """A job script: its file, its text, and the words that submit it, to be put before the file."""

    name: str
    text: str
    submit: str


class Stages(Protocol):
    """The stages, bound to one recipe, site and architecture: a target puts them in order.

    One protocol with many methods: each target uses some, and none of them knows the stages.
    """

    @property
    def output(self) -> Path:
        """The folder that the user named for files, or the working folder."""

    def lock(self, downloads: Path) -> Lock:
        """Return the lock that was asked for, or a new one.

        Files that had to be had whole to make it are left in a folder.
        """

    def hold(self, *, here: bool = True) -> AbstractContextManager[Stages]:
        """Open the root and hold the environment's folder: only then for what is in a root.

        *here*: it is built on this machine as it is. Raises UsageError for what cannot be, before
        anything is written.
        """

    def root_lock(self) -> Lock:
        """Return the lock: the one that was asked for, the last one while it fits, or a new one."""

    def published_number(self, lock: Lock) -> int | None:
        """Return the number under which just this is published, or None."""

    def begin(self, lock: Lock) -> None:
        """Put away what an unfinished build of it left, unless it is to be resumed.

        Raises BuildError where just that prefix is published.
        """

    def can_emulate(self) -> bool:
        """Return whether ``emulated_system`` has one, or can make it, on this machine."""

    def emulated_system(self) -> Path:
        """Return the folder of a system of the plan's architecture; may use the network.

        Raises MissingToolError, UsageError or BuildError where there is none.
        """

    def install_emulated(self, lock: Lock, bundle: Path, system: Path) -> int:
        """Run a bundle's installer in a system; return the number that it published.

        Raises BuildError or SmokeError.
        """

    def check_image(self, lock: Lock | None = None) -> None:
        """Raise UsageError or MissingToolError where no image can be built.

        *lock*: what it is to hold; it may be there already.
        """

    def build_image(self, lock: Lock, bundle: Path) -> ImageResult:
        """Install a bundle in an image's base, and pack what came of it.

        *bundle*: in a folder of its own, which is gone afterwards. Raises MissingToolError,
        BuildError or SmokeError; then there is no image.
        """

    def build(self, lock: Lock) -> None:
        """Run every step of the build script. Raises BuildError."""

    def prove(self, lock: Lock) -> tuple[Evidence, ...]:
        """Run the smoke tests and keep their records.

        Raises SmokeError, or BuildError where the tier is lower than required.
        """

    def publish(self, lock: Lock, proofs: tuple[Evidence, ...]) -> int:
        """Write the modulefile of what was built and proved; return its number."""

    def make_default(self, number: int) -> None:
        """Make a published number the one that ``module load NAME`` loads."""

    def result(self, lock: Lock, number: int) -> CreateResult:
        """Return what is known of a published number."""

    def scripts(self, lock: Lock, places: BuildFolders) -> dict[str, str]:
        """Return the texts of the build folder, with a script for each smoke test: smoke-1.sh."""

    def job(self, lock: Lock, places: BuildFolders, tree: Path) -> JobFile | None:
        """Return the job of the site's scheduler; None where there can be none.

        *tree*: the folder for ``module use``.
        """

    def modulefile(self, lock: Lock, places: BuildFolders) -> tuple[Dialect, str]:
        """Return the modulefile's language and text, with marks for its number and its proof."""

    def proving(self, lock: Lock) -> dict[str, Any]:
        """Return what the smoke tests of ``scripts`` prove, for ``target_tools``."""

    def text(self, script: Script) -> str:
        """Return the text of a template."""

    def write(self, folder: Path, texts: Mapping[str, str]) -> None:
        """Write a build folder with the programs and sources that belong into it."""

    def fetch(self, folder: Path, lock: Lock, downloads: Path | None) -> None:
        """Fetch every file of the lock into a build folder; those in *downloads* are moved.

        Raises BuildError.
        """


class Target(Protocol):
    """Where a prefix is made.

    ``HIGHEST_TIER``: what can be proved there at most. ``OWN_ARCH``, ``OTHER_ARCH``: whether it can
    be for this machine's architecture, and for another.
    """

    HIGHEST_TIER: Tier
    OWN_ARCH: bool
    OTHER_ARCH: bool

    def make(self, stages: Stages) -> CreateResult | BundleResult | ImageResult:
        """Make the environment. What fails leaves nothing that looks finished."""
