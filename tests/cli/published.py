"""Environments that are published but were never built: what verbs read of them is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.model.decisions import earlier_sha256
from envbuilder.model.plan import Plan
from envbuilder.target_tools.root import layout, publish, store
from envbuilder.workflow.texts import attestations
from tests.made_up_files import locked

# Where the programs lie that a launch line starts; nothing runs them.
PROGRAMS = {
    f"bin/{name}": ""
    for name in (
        "python",
        "ddlrun",
        "distributed-dl-trainingrun",
        "horovodrun",
        "mpiexec",
        "mpirun",
        "torchrun",
    )
}

# The words of the check that the line of a published environment begins with.
CHECK = 4

# What Slurm sets in a job of two nodes, and LSF in one of Summit's: the first host takes no rank.
SLURM = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "ml[1-2]", "SLURM_TASKS_PER_NODE": "4(x2)"}
LSF = {"LSB_JOBID": "17", "LSB_MCPU_HOSTS": "batch2 1 a01n02 42 a01n03 42"}


def planned(recipe: str, *words: str) -> dict[str, Any]:
    """Return the plan of a recipe as plain values."""
    answer = CliRunner().invoke(app, ["plan", recipe, *words, "--json"])
    assert answer.exit_code == 0, answer.stderr
    value: dict[str, Any] = json.loads(answer.stdout)
    return value


def publish_plan(
    root: Path,
    plan: dict[str, Any],
    files: Mapping[str, str] = MappingProxyType({}),
    *,
    earlier: bool = False,
    attested: bool = False,
) -> layout.Version:
    """Publish an environment of *plan* in *root*, by the functions of ``create``; the default.

    *files*: what its prefix holds, by path in it. *earlier*: its folders are called as by a release
    that hashed all that a lock says. *attested*: with a bill of materials and its provenance.
    """
    lock = locked(Plan.model_validate_json(json.dumps(plan)))
    home = store.open_home(store.open_root(root, lock.plan.site, lock.plan.arch), lock.plan.recipe)
    identity = earlier_sha256(lock.text())[:12] if earlier else lock.id()
    for folder in (home.prefix(identity), home.build(identity)):
        folder.mkdir()
    (home.build(identity) / "lock.json").write_text(lock.text(), encoding="utf-8")
    for name, text in (attestations(lock) if attested else {}).items():
        (home.build(identity) / name).write_text(text, encoding="utf-8")
    for name, text in files.items():
        path = home.prefix(identity) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    version = publish.reserve(home, identity, "lua")
    publish.publish(home, version, f"-- never loaded: {home.prefix(identity)}\n")
    publish.set_default(home, version)
    return version
