"""Jenkins, a declarative pipeline. Source: www.jenkins.io/doc/book/pipeline/syntax.

The jobs of one recipe and architecture are stages one after the other, those of several run side by
side: one that fails ends its own row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...model.site import Runner
from ..values import CACHE, Pipeline, PipelineJob, When, shell_lines

FILE = "Jenkinsfile"

_WHEN: dict[When, str] = {
    "always": "when { beforeAgent true; not { triggeredBy 'TimerTrigger' } }",
    # What it calls the default branch of a repository, in a multibranch pipeline.
    "default-branch": "when { beforeAgent true; environment name: 'BRANCH_IS_PRIMARY', "
    "value: 'true' }",
    "nightly": "when { beforeAgent true; triggeredBy 'TimerTrigger' }",
    "weekly": "when { expression { sh(script: 'date +%u', returnStdout: true).trim() == '7' } }",
}
_INDENT = "  "


def render(pipeline: Pipeline) -> str:
    """Return the Jenkinsfile."""
    lines = [
        "// Written by `envbuild ci render`; see docs/ci.md of envbuild.",
        "// Rendering it again discards changes.",
        *(f"// {line}" for line in pipeline.refused),
        *_block(
            "pipeline",
            [
                "agent none",
                "triggers { cron('H 2 * * *') }",
                *_block("stages", [*_day(pipeline), *_night(pipeline)]),
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _day(pipeline: Pipeline) -> list[str]:
    rows = [
        line
        for row in pipeline.rows()
        for line in _block(
            f"stage({_quoted(row[0].matrix)})",
            _block("stages", [line for job in row for line in _stage(job, pipeline.setup)]),
        )
    ]
    return _block("stage('recipes')", [_WHEN["always"], *_block("parallel", rows)])


def _night(pipeline: Pipeline) -> list[str]:
    jobs = [job for job in pipeline.jobs if job.when in ("nightly", "weekly")]
    stages = [line for job in jobs for line in _stage(job, pipeline.setup)]
    return _block("stage('nightly')", [_WHEN["nightly"], *_block("parallel", stages)])


def _stage(job: PipelineJob, setup: Sequence[str]) -> list[str]:
    script = ["#!/usr/bin/env bash", "set -eo pipefail", *setup]
    script += [f'export XDG_CACHE_HOME="$WORKSPACE/{CACHE}"', *shell_lines(job, in_job=False)]
    steps = [*(f"unstash {_quoted(each)}" for each in job.takes), *_sh(script)]
    files = _quoted(f"{job.folder}/**")
    always = [
        *(
            f"junit testResults: {_quoted(file)}, allowEmptyResults: true"
            for kind, file in job.reports
            if kind == "junit"
        ),
        f"archiveArtifacts artifacts: {files}, allowEmptyArchive: true",
        f"stash name: {_quoted(job.id)}, includes: {files}, allowEmpty: true",
    ]
    return _block(
        f"stage({_quoted(job.id)})",
        [
            *([] if job.when == "always" else [_WHEN[job.when]]),
            f"agent {_agent(job.runner)}",
            *_block("steps", steps),
            *_block("post", _block("always", always)),
        ],
    )


def _sh(script: Sequence[str]) -> Iterator[str]:
    """Yield a step that runs lines as one script; they are joined where Groovy reads them."""
    yield "sh(["
    yield from (f"{_INDENT}{_quoted(line)}," for line in script)
    yield "].join('\\n'))"


def _agent(runner: Runner) -> str:
    """Return the agent: one that has every label, else any."""
    if not runner.tags:
        return "any"
    return "{ label " + _quoted(" && ".join(runner.tags)) + " }"


def _quoted(text: str) -> str:
    """Return a string of Groovy in which nothing is expanded."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _block(head: str, lines: Sequence[str]) -> list[str]:
    return [f"{head} {{", *(f"{_INDENT}{line}" for line in lines), "}"]
