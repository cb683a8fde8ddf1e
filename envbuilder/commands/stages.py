"""The stages of ``create``, as its target puts them in order."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import files, process
from ..build import prepare
from ..documents.patches import patch_files
from ..errors import BuildError, UsageError
from ..locking.checks import changed_inputs
from ..model.backend import Script
from ..model.places import Places
from ..model.plan import Lock
from ..model.proofs import proofs_of
from ..render.build import render_build, render_smoke, render_text
from ..render.forms import job_form
from ..render.modulefile import render_modulefile
from ..render.subject import Subject
from ..schedulers import SCHEDULERS
from ..targets.protocol import JobFile
from .context import Context
from .job import job_of, job_parts
from .launch_requests import example, facts_of, script_start
from .load import PlanInputs, plan
from .lock import LOCKS, check_derived, check_fits, current_inputs, obtain_lock
from .root_environment import EnvironmentOptions, RootEnvironment, hold_environment

if TYPE_CHECKING:
    from .create import CreateOptions

_FETCH_SECONDS = 3600.0


@dataclass(frozen=True)
class CreateStages:
    """The stages, bound to what the user asked for. See ``targets.Stages``."""

    options: CreateOptions
    plan_inputs: PlanInputs
    context: Context

    @property
    def output(self) -> Path:
        return self.context.path(self.options.output or Path())

    def environment(self) -> AbstractContextManager[RootEnvironment]:
        options = self.options
        given = _given_lock(options, self.plan_inputs, self.context)
        wanted = EnvironmentOptions(
            options.root, given, options.relock, options.resume, options.require_tier
        )
        return hold_environment(wanted, self.plan_inputs, self.context)

    def lock(self) -> Lock:
        given = _given_lock(self.options, self.plan_inputs, self.context)
        scratch = self.output / f".{self.plan_inputs.recipe.value.name}.locking"
        return given or obtain_lock(self.plan_inputs, plan(self.plan_inputs), self.context, scratch)

    def scripts(self, lock: Lock, places: Places) -> dict[str, str]:
        prefix = self.plan_inputs.prefix_of(lock.plan)
        scripts = render_build(lock, places, prefix)
        facts = facts_of(lock.plan, self.plan_inputs)
        for number, proof in enumerate(proofs_of(lock.plan), start=1):
            smoke = render_smoke(lock, places, prefix, script_start(facts, proof), proof)
            scripts[f"smoke-{number}.sh"] = smoke["smoke.sh"]
        patches = patch_files(lock.plan, self.plan_inputs.folders)
        return {**scripts, **patches, "lock.json": lock.text()}

    def job(self, lock: Lock, places: Places, tree: Path) -> JobFile | None:
        scheduler = self.plan_inputs.site.scheduler
        if scheduler not in SCHEDULERS:
            return None
        job = job_of(lock.plan, self.plan_inputs)
        form = job_form(scheduler)
        subject = Subject(
            source=lock,
            places=places,
            knowledge=self.plan_inputs.knowledge.value,
            prefix_of=self.plan_inputs.prefix_of,
            tree=tree,
            job=lambda scheduler: job_parts(lock.plan, job, scheduler, self.plan_inputs),
        )
        try:
            text = form.render(subject)
        except UsageError as error:
            self.context.reporter.warn(f"there is no job script: {error}")
            return None
        return JobFile(form.file_of(lock.plan), text, SCHEDULERS[scheduler].SUBMIT_LINE)

    def modulefile(self, lock: Lock, places: Places) -> tuple[str, str]:
        tcl = self.plan_inputs.site.module_system == "tcl"
        shown = example(facts_of(lock.plan, self.plan_inputs))
        text = render_modulefile(lock, places, 1, None, "tcl" if tcl else "lua", shown)
        return "1" if tcl else "1.lua", text

    def text(self, script: Script) -> str:
        return render_text(script)

    def write(self, folder: Path, texts: Mapping[str, str]) -> None:
        prepare(folder, texts, self.plan_inputs.runtime_source)

    def fetch(self, folder: Path, lock: Lock) -> None:
        title = f"fetch {len(lock.artifacts)} files for {lock.plan.arch}"
        with self.context.reporter.working(title):
            _fetch(folder, self.context)

    def remove(self, folder: Path) -> None:
        files.remove_tree(folder)


def _given_lock(options: CreateOptions, plan_inputs: PlanInputs, context: Context) -> Lock | None:
    """Return the lock of ``--locked``, and say what has changed since it was made.

    Raises UsageError for a lock that is for something else, or asked for with what would change it.
    """
    if options.locked is None:
        return None
    if options.relock or options.choice.allow:
        other = "--relock" if options.relock else "--allow"
        raise UsageError(f"--locked takes a lock as it is: {other} would change it")
    file = context.path(options.locked)
    lock = LOCKS.load(file)
    check_fits(lock, file, plan_inputs, with_runtime=True)
    changed = changed_inputs(lock, current_inputs(plan_inputs))
    if changed:
        context.reporter.warn(
            f"changed since {file} was locked: {', '.join(changed)}; built as locked"
        )
    else:
        check_derived(lock, file, plan_inputs)
    return lock


def _fetch(build: Path, context: Context) -> None:
    # Wheels of another machine are no wheels to pip here: the program that fetches sources does it.
    # It reads on standard input what pip is configured with.
    command = """
      set -euo pipefail
      settings=$("$1" -m pip config list)
      for list in sources.txt fetch.txt; do
        "$1" -B target_tools fetch "$list" wheelhouse <<<"$settings"
      done
    """
    (build / "wheelhouse").mkdir(exist_ok=True)
    done = process.run(
        ["bash", "-c", command, "fetch", sys.executable],
        env=context.environ,
        cwd=build,
        timeout=_FETCH_SECONDS,
    )
    if not done.ok:
        said = [line for line in done.stderr.splitlines() if line.strip()][-8:]
        raise BuildError(
            "\n".join(["the files of the bundle cannot be fetched", *(f"  | {s}" for s in said)]),
            "they come from the places of pip's configuration: python -m pip config list",
        )
