"""GitHub Actions. Source: docs.github.com/en/actions/reference/workflow-syntax-for-github-actions.

Its runner is published for x86_64 and aarch64 alone: for other architectures it is one on a machine
from which the words of ``in-job`` reach the nodes.
"""

from __future__ import annotations

import re
from typing import Any

from ...model.site import Runner
from ..values import CACHE, Pipeline, PipelineJob, When, shell_lines
from .yaml_text import yaml_text

FILE = ".github/workflows/envbuild.yml"

_NIGHTLY, _WEEKLY = "17 2 * * *", "43 3 * * 0"
_DAY = "github.event_name != 'schedule'"
_IF: dict[When, str] = {
    "always": _DAY,
    "default-branch": f"{_DAY} && github.ref_name == github.event.repository.default_branch",
    "nightly": f"github.event.schedule == '{_NIGHTLY}'",
    "weekly": f"github.event.schedule == '{_WEEKLY}'",
}
# What it gives every job where nothing else is said.
_HOSTED = "ubuntu-latest"


def render(pipeline: Pipeline) -> str:
    """Return the workflow."""
    return yaml_text(
        {
            "name": f"envbuild {pipeline.site}",
            "on": {
                "push": {},
                "pull_request": {},
                "schedule": [{"cron": each} for each in (_NIGHTLY, _WEEKLY)],
                "workflow_dispatch": {},
            },
            "permissions": {"contents": "read"},
            "defaults": {"run": {"shell": "bash"}},
            "jobs": {_id(job.id): _job(job, pipeline) for job in pipeline.jobs},
        },
        pipeline.refused,
    )


def _id(name: str) -> str:
    """Return the id of a job: letters, digits, ``-`` and ``_`` alone."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _job(job: PipelineJob, pipeline: Pipeline) -> dict[str, Any]:
    script = "".join(f"{line}\n" for line in (*pipeline.setup, *shell_lines(job, in_job=False)))
    return {
        "name": job.id,
        "runs-on": _labels(job.runner),
        "if": _IF[job.when],
        **({"needs": [_id(each) for each in job.needs]} if job.needs else {}),
        "env": {"XDG_CACHE_HOME": f"${{{{ github.workspace }}}}/{CACHE}"},
        "steps": [
            {"uses": "actions/checkout@v4"},
            {
                "uses": "actions/cache@v4",
                "with": {
                    "path": CACHE,
                    "key": f"envbuild-{job.arch}-${{{{ github.run_id }}}}-{job.stage}",
                    "restore-keys": f"envbuild-{job.arch}-",
                },
            },
            *(
                {"uses": "actions/download-artifact@v4", "with": {"name": each, "path": job.folder}}
                for each in job.takes
            ),
            {"name": job.stage, "run": script},
            {
                "uses": "actions/upload-artifact@v4",
                "if": "always()",
                "with": {"name": job.id, "path": job.folder},
            },
        ],
    }


def _labels(runner: Runner) -> str | list[str]:
    return ["self-hosted", *runner.tags] if runner.tags else _HOSTED
