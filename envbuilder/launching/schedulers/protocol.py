"""What a scheduler's module has. It starts nothing: texts and environments come in, values go out.

A new scheduler is a module with these names, and its line in SCHEDULERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from ...model.job import Job, JobScript
from ...model.launch import Hosts, JobStep, LaunchNode, TaskRequest, Words
from ...model.site import SiteLauncher

Which = Callable[[str], str | None]
"""Returns the path of a program, or None."""

Ask = Callable[..., str]
"""Runs a program with words and returns what it printed; empty where it could not be asked."""


class Scheduler(Protocol):
    """One scheduler.

    ``TITLE``: its name for people. ``SUBMIT``: the program that takes a job script, and
    ``SUBMIT_LINE``: the words before the script's file. ``VERSION``: text of its ``--version``,
    where other schedulers have a program of that name; else empty. ``JOB_ID`` and ``PARTITION``:
    the variables that hold the number and the partition (or queue) of a job. ``OPTIONS``: fields of
    Job that only some schedulers have an option for, and this one has. ``SETTINGS``: lines of
    bash before a launch line in a script that may run inside a step of a job. The launcher that
    belongs to it, if there is one, is an entry of LAUNCHERS with the trait ``scheduler``.
    """

    TITLE: str
    SUBMIT: str
    SUBMIT_LINE: str
    VERSION: str
    JOB_ID: str
    PARTITION: str
    OPTIONS: frozenset[str]
    SETTINGS: Words

    def job_script(self, job: Job) -> JobScript:
        """Return the parts of a job script that only this scheduler knows."""

    def shell_line(self, job: Job, program: Words) -> Words:
        """Return the command that runs an interactive program in a job of its own.

        Raises UsageError where an interactive job takes no program.
        """

    def job_hosts(
        self,
        environ: Mapping[str, str],
        read: Callable[[str, str], str],
        ask: Ask,
        launch_node: LaunchNode | None,
    ) -> Hosts:
        """Return the hosts of the job that *environ* is in, with its tasks on each as the slots.

        *read*: returns the text of a file, given its path and what to call it in an error. Raises
        UsageError where the job says nothing that can be understood.
        """

    def job_task(self, environ: Mapping[str, str]) -> TaskRequest:
        """Return what the job asks for by the task and its own launcher must be told."""

    def job_step(self, environ: Mapping[str, str], ask: Ask) -> JobStep | None:
        """Return the step of the job that holds the CPUs of this shell; None: there is none."""

    def draft_launcher(self, which: Which, ask: Ask) -> SiteLauncher | None:
        """Return what starts ranks here by this scheduler, for the draft of a site document."""

    def draft_pmi(self, ask: Ask) -> Words:
        """Return the interfaces by which its launcher starts ranks, for the draft's fact ``pmi``;
        empty where it does not say.
        """


def no_pmi(_ask: Ask) -> Words:
    """Return nothing: its launcher names no interfaces."""
    return ()


def no_job_task(_environ: Mapping[str, str]) -> TaskRequest:
    """Return nothing: its launcher takes all from the job."""
    return TaskRequest()


def no_job_step(_environ: Mapping[str, str], _ask: Ask) -> JobStep | None:
    """Return None: further steps of a job wait for no CPUs."""
    return None
