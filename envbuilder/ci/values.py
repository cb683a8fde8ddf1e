"""A pipeline of continuous integration: its jobs in order, before any provider's language."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..model.site import Runner

FOLDER = "envbuild-ci"
"""Where jobs put their files, below the working folder: all of it is kept as artefacts."""

CACHE = ".cache"
"""The cache folder of a provider's jobs, below the working folder: XDG_CACHE_HOME."""

Stage = Literal[
    "plan", "lock", "build", "prove", "scan", "publish", "image", "prove-again", "drift", "record"
]

When = Literal["always", "default-branch", "nightly", "weekly"]
"""When a job runs: for every change, for the branch that counts, once a night, once a week."""


@dataclass(frozen=True)
class Command:
    """One command of envbuild.

    ``words``: behind ``envbuild``. ``output``: the file that gets what it prints. ``ranks``:
    whether it starts some, which wants a job of the scheduler where the site has one. ``reports``:
    it only writes down what a later command of the job judges; its exit code does not count.
    """

    words: tuple[str, ...]
    output: str | None = None
    ranks: bool = False
    reports: bool = False


ReportKind = Literal["junit", "cyclonedx"]
"""What providers show of a file: findings as test cases, a bill of materials."""


@dataclass(frozen=True)
class PipelineJob:
    """One job: the commands of a stage for one recipe and architecture.

    ``matrix``: what it is for, ``RECIPE-ARCH``. ``needs``: the jobs that must have passed, by
    their ids. ``takes``: those of them whose files it reads. ``runner``: where it runs. ``makes``:
    the files and folders that it writes, which may not be there before. ``reports``: those of
    them that a provider may show, by what they are. ``before``: lines of shell for sources.
    """

    stage: Stage
    recipe: str
    arch: str
    commands: tuple[Command, ...]
    runner: Runner
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    when: When = "always"
    makes: tuple[str, ...] = ()
    reports: tuple[tuple[ReportKind, str], ...] = ()
    before: tuple[str, ...] = ()

    @property
    def matrix(self) -> str:
        return f"{self.recipe}-{self.arch}"

    @property
    def id(self) -> str:
        return f"{self.stage}-{self.matrix}"

    @property
    def folder(self) -> str:
        """Where its files and its log are, relative to the working folder."""
        return f"{FOLDER}/{self.matrix}"

    @property
    def log(self) -> str:
        return f"{self.folder}/{self.stage}.log"


@dataclass(frozen=True)
class Pipeline:
    """All jobs of a site, in an order in which each comes after what it needs.

    ``setup``: lines of shell that put envbuild on the search path. ``refused``: the rows that are
    not jobs because they cannot pass, with the reasons, for a comment.
    """

    site: str
    setup: tuple[str, ...]
    jobs: tuple[PipelineJob, ...]
    refused: tuple[str, ...] = ()

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that have jobs, in order."""
        return tuple(dict.fromkeys(job.stage for job in self.jobs))

    def rows(self) -> Iterator[tuple[PipelineJob, ...]]:
        """Yield the jobs of each recipe and architecture, without those of night and week."""
        by_change = [job for job in self.jobs if job.when not in ("nightly", "weekly")]
        for matrix in dict.fromkeys(job.matrix for job in by_change):
            yield tuple(job for job in by_change if job.matrix == matrix)


def shell_lines(job: PipelineJob, *, in_job: bool) -> tuple[str, ...]:
    """Return a job's commands as lines of bash, which want ``set -o pipefail``.

    *in_job*: its runner is in a job of the scheduler already; else what starts ranks is started in
    one by the words that the site states for it. What a command says is kept in the job's log.
    """
    lead = () if in_job else job.runner.in_job
    return (
        shlex.join(["rm", "-rf", job.log, *job.makes]),
        shlex.join(["mkdir", "-p", job.folder]),
        *job.before,
        *(_line(each, lead, job.log) for each in job.commands),
    )


def _line(command: Command, lead: Sequence[str], log: str) -> str:
    words = shlex.join((*(lead if command.ranks else ()), "envbuild", *command.words))
    if command.output:
        line = f"{words} > {shlex.quote(command.output)}"
        return f"{line} || true" if command.reports else line
    return f"{words} 2>&1 | tee -a {shlex.quote(log)}"
