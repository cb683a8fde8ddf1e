"""Fixtures of the tests of ``envbuild launch``: published environments, and the verb on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.cli.published import PROGRAMS, planned, publish_plan

# Variables of a scheduler that runs these tests must not be taken for a test's own.
SCHEDULERS = (
    *("SLURM_JOB_ID", "SLURM_JOB_PARTITION", "LSB_JOBID", "LSB_QUEUE", "PBS_JOBID", "PBS_QUEUE"),
    "CUDA_VISIBLE_DEVICES",
)
PROGRAM = ("--", "python", "train.py")


@pytest.fixture(scope="session")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a root for each site, with environments that are published."""
    folder = tmp_path_factory.mktemp("roots")
    recipes = {
        "local": ("allreduce", "collective-torch-cpu", "horovod-torch-cpu", "horovod-gloo"),
        "taurus-ml": ("horovod-nccl",),
        "taurus-alpha": ("horovod-pytorch",),
        "summit": ("ddl", "horovod-ddl-module", "tensorflow-distribute"),
    }
    for site, names in recipes.items():
        for name in names:
            publish_plan(folder / site, planned(name, "--site", site), PROGRAMS)
    return folder


@pytest.fixture
def launch(roots: Path) -> Any:
    """Return what asks for a line: site, environment, words, variables."""

    def run(site: str, *words: str, program: tuple[str, ...] = PROGRAM, **env: str) -> Result:
        line = ["launch", "--root", str(roots / site), *words, *program]
        variables = {**dict.fromkeys((*SCHEDULERS, "ENVBUILD_SITE"), None), **env, "COLUMNS": "80"}
        return CliRunner().invoke(app, line, env=variables)

    return run
