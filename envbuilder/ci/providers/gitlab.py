"""GitLab CI. Source: docs.gitlab.com/ee/ci/yaml.

On a cluster its runner may be Jacamar CI, which runs a job in one of the scheduler; that takes its
options from SCHEDULER_PARAMETERS. Source: ecp-ci.gitlab.io/docs.
"""

from __future__ import annotations

from typing import Any

from ..values import CACHE, Pipeline, PipelineJob, When, shell_lines
from .yaml_text import yaml_text

FILE = ".gitlab-ci.yml"

_SCHEDULE = '$CI_PIPELINE_SOURCE == "schedule"'
_DAY = '$CI_PIPELINE_SOURCE != "schedule"'
_RULES: dict[When, str] = {
    "always": _DAY,
    "default-branch": f"{_DAY} && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH",
    "nightly": f'{_SCHEDULE} && $ENVBUILD_SCHEDULE != "weekly"',
    "weekly": f'{_SCHEDULE} && $ENVBUILD_SCHEDULE == "weekly"',
}


def render(pipeline: Pipeline) -> str:
    """Return ``.gitlab-ci.yml``. The jobs of the night want a schedule of the project."""
    return yaml_text(
        {
            "stages": list(pipeline.stages()),
            "workflow": {
                "rules": [
                    {"if": "$CI_COMMIT_BRANCH && $CI_OPEN_MERGE_REQUESTS", "when": "never"},
                    {"when": "always"},
                ]
            },
            "default": {"before_script": ["set -o pipefail", *pipeline.setup]},
            "variables": {"XDG_CACHE_HOME": f"$CI_PROJECT_DIR/{CACHE}"},
            **{job.id: _job(job) for job in pipeline.jobs},
        },
        pipeline.refused,
    )


def _job(job: PipelineJob) -> dict[str, Any]:
    runner = job.runner
    jacamar = runner.scheduler_parameters
    cache = {"key": f"envbuild-{job.arch}", "paths": [f"{CACHE}/"]}
    artifacts = {
        "when": "always",
        "name": job.id,
        "paths": [f"{job.folder}/"],
        **({"reports": dict(job.reports)} if job.reports else {}),
    }
    return {
        "stage": job.stage,
        **({"tags": list(runner.tags)} if runner.tags else {}),
        "rules": [{"if": _RULES[job.when]}],
        "needs": [{"job": each, "artifacts": each in job.takes} for each in job.needs],
        **({"variables": {"SCHEDULER_PARAMETERS": jacamar}} if jacamar else {}),
        "cache": cache,
        "script": list(shell_lines(job, in_job=jacamar is not None)),
        "artifacts": artifacts,
    }
