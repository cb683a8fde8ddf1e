"""What a form is rendered of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..knowledge.rows import Knowledge
from ..model.backend import PrefixParts
from ..model.evidence import Evidence
from ..model.job import Job, JobScript
from ..model.launch import EnvironmentProgram, StartCommand
from ..model.places import BuildFolders
from ..model.plan import Lock, Plan
from ..model.profiles import recipe_arguments
from ..model.runtime import Runtimes
from .image import Image


@dataclass(frozen=True)
class UnlockedPlan:
    """A plan whose files are not decided: what is rendered of it says so in place of an id."""

    plan: Plan

    def id(self) -> str:
        """Return a name that no environment has."""
        return "not-locked"

    def sha256(self) -> str:
        """Return no hash."""
        return "none"


Renderable = Lock | UnlockedPlan
"""Whatever needs no file of the lock is rendered from either: it has a plan, and a name."""


@dataclass(frozen=True)
class JobParts:
    """What a scheduler is asked for, its parts of the script, and the launch line in the job.

    ``scheduler``: its name, and ``title`` its name for people; ``submit``: what takes the script.
    ``launcher``: the program that starts the ranks; None: the environment does not bring it.
    """

    job: Job
    script: JobScript
    words: Sequence[str]
    scheduler: str
    title: str
    submit: str
    launcher: EnvironmentProgram | None = None


@dataclass(frozen=True)
class PlannedImage:
    """The image of a plan, and what the backend makes of the plan that is inside it."""

    image: Image
    prefix: PrefixParts


@dataclass(frozen=True)
class RenderInput:
    """What is rendered: a lock or a plan, where it would lie, what is known.

    ``prefix``: what the backend makes of the plan. ``tree``: the folder of its modulefile.
    ``number``: the number of the published environment; None: it is not published. ``evidence``:
    what its smoke test proved. ``job``, ``example`` (the launch line in a modulefile's help) and
    ``image`` are set for the forms that need them (``Form.needs``).
    """

    source: Renderable
    places: BuildFolders
    knowledge: Knowledge
    prefix: PrefixParts
    runtimes: Runtimes
    tree: Path = Path("modulefiles")
    number: int | None = None
    evidence: Evidence | None = None
    job: JobParts | None = None
    example: StartCommand | None = None
    image: PlannedImage | None = None

    @property
    def plan(self) -> Plan:
        return self.source.plan

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of a form made without a lock must know."""
        if isinstance(self.source, Lock):
            return ()
        return (
            "Rendered from a plan without a lock, therefore without hashes. With a lock:",
            (
                f"  envbuild lock {recipe_arguments(self.plan)} --output FILE; "
                "envbuild render --locked FILE ..."
            ),
        )
