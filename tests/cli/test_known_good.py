"""Stacks that others built, tested and published are not called known bad."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app

pytestmark = pytest.mark.thorough

STACKS = Path(__file__).with_name("easybuild_horovod.yaml")
# Open MPI 3.1.3 came with foss-2019a; that training may hang in it was found afterwards.
KNOWN_BAD = {"Horovod-0.18.1-foss-2019a-Python-3.7.2": "OMPI-001"}


@cache
def stacks() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(STACKS.read_text(encoding="utf-8"))
    return found


def test_all_of_them_are_there() -> None:
    assert len(stacks()) == 34
    assert set(stacks()) >= set(KNOWN_BAD)


@pytest.mark.parametrize("name", stacks())
def test_a_stack_that_easybuild_publishes_is_not_refused(name: str) -> None:
    stack = stacks()[name]
    words = [f"{component}=={version}" for component, version in stack["components"].items()]
    for flag, value in stack.get("flags", {}).items():
        words += ["--fact", f"flags.{flag}={value}"]
    done = CliRunner().invoke(app, ["advisories", "check", *words, "--arch", "x86_64"])
    rows = [line.split() for line in done.stdout.splitlines()]
    errors = {row[0] for row in rows if row[1:2] == ["error"]}
    wanted = {KNOWN_BAD[name]} if name in KNOWN_BAD else set()
    assert (errors, done.exit_code) == (wanted, 4 if wanted else 0), done.stdout
