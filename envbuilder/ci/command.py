"""``envbuild ci``: a site's pipeline in a provider's language, or its jobs done on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from .. import process
from ..base import canonical_json, sha256_text
from ..files import remove_tree, write_atomically
from ..knowledge.entries import check_choice
from ..model.plan import Step
from ..model.progress import Listener
from ..text import LONG, shown
from ..workflow.context import Context
from ..workflow.matrix import Matrix, MatrixRow, for_pipeline, matrix
from ..workflow.options import CiOptions
from .jobs import pipeline
from .providers import PROVIDERS
from .values import FOLDER, Command, JobResult, Pipeline, PipelineJob, RunResult

# How the last run stands: that of the jobs of a change, and that of the night.
_STATES = {False: f"{FOLDER}/state.json", True: f"{FOLDER}/state-nightly.json"}
# For what only reads and prints: seconds.
_READ_LIMIT = 600.0


def render(options: CiOptions, provider: str | None, context: Context) -> str:
    """Return the text of a pipeline. Raises UsageError for a provider that there is not."""
    check_choice("provider", provider, PROVIDERS)
    entry = PROVIDERS[provider or next(iter(PROVIDERS))]
    return entry.render(jobs_of(rows_of(options, context), options, context))


def rows_of(options: CiOptions, context: Context) -> Matrix:
    """Return the rows of a pipeline. Raises NoSolutionError as ``for_pipeline`` does."""
    return for_pipeline(matrix(options, context), context)


def jobs_of(planned: Matrix, options: CiOptions, context: Context) -> Pipeline:
    """Return the pipeline of a matrix."""
    return pipeline(planned, context.recipe_folders, emulate=options.emulate)


def run(options: CiOptions, context: Context, *, resume: bool, nightly: bool) -> RunResult:
    """Do the jobs of a pipeline one after the other; what fails ends its own row alone.

    *nightly*: those of the night instead. *resume*: what has passed is not done again, unless it
    is made of something else by now. How it stands is kept after every job.
    """
    planned = rows_of(options, context)
    every = jobs_of(planned, options, context).jobs
    jobs = [each for each in every if (each.when == "nightly") == nightly]
    rows = {f"{row.name}-{row.arch}": row for row in planned.rows}
    keys = {job.id: _key(job, rows[job.matrix]) for job in jobs}
    file = context.cwd / _STATES[nightly]
    earlier = _passed(jobs, keys, file, context.cwd) if resume else {}
    results: list[JobResult] = []
    steps = {job.id: Step(id="job", title=job.id) for job in jobs}
    with context.reporter.steps(tuple(steps.values())) as listener:

        def do(job: PipelineJob) -> JobResult:
            listener.step_begins(steps[job.id])
            result = _do(job, keys[job.id], listener, context)
            listener.step_ends(steps[job.id], done=result.state == "passed")
            return result

        for result in in_order(jobs, keys, earlier, do):
            results.append(result)
            stands = RunResult(site=planned.site.name, jobs=tuple(results))
            write_atomically(file, canonical_json(stands.plain()))
    return RunResult(site=planned.site.name, jobs=tuple(results))


def in_order(
    jobs: Sequence[PipelineJob],
    keys: Mapping[str, str],
    earlier: Mapping[str, JobResult],
    do: Callable[[PipelineJob], JobResult],
) -> Iterator[JobResult]:
    """Yield how each job ended, as it ends.

    One whose needs did not pass is not run; one of *earlier* is not done again, unless what it
    needs was.
    """
    state: dict[str, JobResult] = {}
    for job in jobs:
        missing = next((each for each in job.needs if state[each].state != "passed"), None)
        before = earlier.get(job.id)
        if missing:
            state[job.id] = _result(job, keys[job.id], "not run", reason=f"needs {missing}")
        elif before and all(state[each] is earlier.get(each) for each in job.needs):
            state[job.id] = before
        else:
            state[job.id] = do(job)
        yield state[job.id]


def _result(job: PipelineJob, key: str, state: str, **more: object) -> JobResult:
    about = {"job": job.id, "stage": job.stage, "matrix": job.matrix, "state": state, "key": key}
    return JobResult.model_validate({**about, **more})


def _key(job: PipelineJob, row: MatrixRow) -> str:
    """Return a hash of what a job does, and of what its recipe's plan is made of."""
    inputs = [each.plain() for each in row.inputs]
    return sha256_text(canonical_json([[each.words for each in job.commands], inputs]))[:16]


def _passed(
    jobs: Sequence[PipelineJob], keys: Mapping[str, str], file: Path, cwd: Path
) -> dict[str, JobResult]:
    """Return the jobs of the last run that passed, are the same now, and whose files are there."""
    try:
        last = RunResult.model_validate_json(file.read_bytes())
    except (FileNotFoundError, ValidationError):
        return {}
    makes = {job.id: job.makes for job in jobs}
    return {
        each.job: each
        for each in last.jobs
        if each.state == "passed"
        and each.key == keys.get(each.job)
        and all((cwd / path).exists() for path in makes[each.job])
    }


def _do(job: PipelineJob, key: str, listener: Listener, context: Context) -> JobResult:
    """Do one job: its commands, until one fails."""
    began, log = context.clock(), context.cwd / job.log
    log.parent.mkdir(parents=True, exist_ok=True)
    for path in (log, *(context.cwd / each for each in job.makes)):
        remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)
    codes = (_do_command(each, log, listener, context) for each in job.commands)
    code = next((code for code in codes if code != 0), 0)
    told = {"code": code, "seconds": (context.clock() - began).total_seconds(), "log": job.log}
    if code == 0:
        return _result(job, key, "passed", **told)
    return _result(job, key, "failed", **told, reason=_reason(log))


def _do_command(command: Command, log: Path, listener: Listener, context: Context) -> int:
    """Run one command of envbuild by this Python; return its exit code, negative for a signal."""
    # What lies in the working folder is not for this Python to import.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    words = [sys.executable, *safe, "-m", "envbuilder", *command.words]
    env, cwd = context.environ, context.cwd
    if command.output is None:
        code = process.follow(words, env=env, cwd=cwd, log=log, on_line=listener.step_says)
        return 1 if code is None else code
    done = process.run(words, env=env, cwd=cwd, timeout=_READ_LIMIT)
    with log.open("a", encoding="utf-8") as out:
        out.write(done.stderr)
    if done.ok or command.reports:
        write_atomically(cwd / command.output, done.stdout)
    if command.reports:
        return 0
    return 1 if done.code is None else done.code


_ERROR = re.compile(r"^(?:\S+: )?error: .*", re.MULTILINE)


def _reason(log: Path) -> str:
    """Return the line of a log that says why it failed: the last error, else its last line."""
    text = log.read_text(encoding="utf-8", errors="replace")
    said = _ERROR.findall(text) or [line for line in text.splitlines() if line.strip()]
    return shown(said[-1], LONG) if said else "no output"
