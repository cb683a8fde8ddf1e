"""The stages of ``create``, as its target puts them in order."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import files, process
from ..build import prepare
from ..errors import BuildError, UsageError
from ..locking.checks import changed_inputs
from ..model.backend import Script
from ..model.places import Dialect, Places
from ..model.plan import Lock
from ..model.proofs import proofs_of
from ..render.build import render_smoke, render_text
from ..render.modulefile import unfilled
from ..schedulers import SCHEDULERS
from ..target_tools.files import sha256_of
from ..targets.protocol import JobFile
from .context import Context
from .launch_requests import example, facts_of, script_start
from .load import PlanInputs, plan
from .lock import check_derived, named_lock, obtain_lock
from .options import CreateOptions
from .prove import script_proofs
from .root_environment import RootEnvironment, hold_environment
from .texts import build_texts, dialect_of, forms, subject_of

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
        given = self._given_lock()
        return hold_environment(self.options, given, self.plan_inputs, self.context)

    def lock(self) -> Lock:
        given = self._given_lock()
        scratch = self.output / f".{self.plan_inputs.recipe.value.name}.locking"
        return given or obtain_lock(self.plan_inputs, plan(self.plan_inputs), self.context, scratch)

    def _given_lock(self) -> Lock | None:
        """Return the lock of ``--locked``, and say what has changed since it was made.

        Raises UsageError for one that is for something else, or asked for with what would change
        it.
        """
        named, plan_inputs = self.options.locked, self.plan_inputs
        if named is None:
            return None
        if self.options.relock or self.options.choice.allow:
            other = "--relock" if self.options.relock else "--allow"
            raise UsageError(f"--locked takes a lock as it is: {other} would change it")
        file = self.context.path(named)
        lock = named_lock(file, plan_inputs, with_runtime=True)
        changed = changed_inputs(lock, plan_inputs.inputs())
        if changed:
            self.context.reporter.warn(
                f"changed since {file} was locked: {', '.join(changed)}; built as locked"
            )
        else:
            check_derived(lock, file, plan_inputs)
        return lock

    def scripts(self, lock: Lock, places: Places) -> dict[str, str]:
        texts = build_texts(lock, places, self.plan_inputs)
        prefix, facts = self.plan_inputs.prefix_of(lock.plan), facts_of(lock.plan, self.plan_inputs)
        for number, proof in enumerate(proofs_of(lock.plan), start=1):
            smoke = render_smoke(lock, places, prefix, script_start(facts, proof), proof)
            texts[f"smoke-{number}.sh"] = smoke["smoke.sh"]
        return texts

    def job(self, lock: Lock, places: Places, tree: Path) -> JobFile | None:
        scheduler = self.plan_inputs.site.scheduler
        if scheduler not in SCHEDULERS:
            return None
        form = forms()[scheduler]
        subject = subject_of(lock, places, tree, self.plan_inputs)
        try:
            text = form.render(subject)
        except UsageError as error:
            self.context.reporter.warn(f"there is no job script: {error}")
            return None
        return JobFile(form.file_of(lock.plan), text, SCHEDULERS[scheduler].SUBMIT_LINE)

    def modulefile(self, lock: Lock, places: Places) -> tuple[Dialect, str]:
        dialect = dialect_of(self.plan_inputs)
        shown = example(facts_of(lock.plan, self.plan_inputs))
        return dialect, unfilled(lock, places, dialect, shown)

    def proving(self, lock: Lock) -> dict[str, Any]:
        return script_proofs(lock, facts_of(lock.plan, self.plan_inputs))

    def text(self, script: Script) -> str:
        return render_text(script)

    def write(self, folder: Path, texts: Mapping[str, str]) -> None:
        prepare(folder, texts, self.plan_inputs.runtime_source)

    def fetch(self, folder: Path, lock: Lock) -> None:
        title = f"fetch {len(lock.artifacts)} files for {lock.plan.arch}"
        with self.context.reporter.working(title):
            _fetch(folder, self.context)

    def sha256(self, path: Path) -> str:
        return sha256_of(path)

    def remove(self, folder: Path) -> None:
        files.remove_tree(folder)


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
