"""Several verbs in one process of their own, with little memory: a test can end one that hangs."""

from __future__ import annotations

import json
from typing import NamedTuple

# Each argument is the words of a verb, as JSON. A verb that a test ends by a time limit is the last
# that standard error names.
SCRIPT = """
import json, resource, sys
from typer.testing import CliRunner
from envbuilder.cli import app
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for line in sys.argv[1:]:
    print(line, file=sys.stderr, flush=True)
    done = CliRunner().invoke(app, json.loads(line))
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""


class Answer(NamedTuple):
    """What a verb printed, and its exit code."""

    code: int
    out: str
    err: str


def answers(printed: str) -> list[Answer]:
    """Return the answer of each verb, from what the script printed."""
    return [Answer(*json.loads(line)) for line in printed.splitlines()]


def problem_ids(printed: str) -> list[str]:
    """Return the ids of the problems that a verb with ``--json`` printed."""
    return [problem["id"] for problem in json.loads(printed)["problems"]]
