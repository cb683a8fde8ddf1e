"""What a form is rendered of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
class RenderInput:
    """What is rendered: a lock or a plan, where it would lie, what is known.

    ``prefix_of``: what the backend makes of a plan, be it this one or what it is in an image.
    ``tree``: the folder of its modulefile. ``number``: the one that it is published by; None: it is
    not published. ``evidence``: what was proved of it. ``job``: says what is rendered of a job,
    given its scheduler. ``example``: makes the launch line of the modulefile's help.
    ``in_image``: returns a plan with the launchers that an image has, and ``start`` what starts the
    smoke test of such a plan.
    """

    source: Renderable
    places: BuildFolders
    knowledge: Knowledge
    prefix_of: Callable[[Plan], PrefixParts]
    runtimes: Runtimes
    tree: Path = Path("modulefiles")
    number: int | None = None
    evidence: Evidence | None = None
    job: Callable[[str], JobParts] | None = None
    example: Callable[[], StartCommand] | None = None
    in_image: Callable[[Plan], Plan] = lambda plan: plan
    start: Callable[[Plan], StartCommand] | None = None

    @property
    def plan(self) -> Plan:
        return self.source.plan

    @property
    def prefix(self) -> PrefixParts:
        return self.prefix_of(self.plan)

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
