"""A launcher that is made up, of the made-up scheduler: one module, and the line in the dict."""

from __future__ import annotations

import sys

import pytest

from envbuilder.launching.launchers import LAUNCHERS
from envbuilder.launching.launchers.protocol import JobTraits, Traits
from envbuilder.model.launch import LaunchRequest, Words

COMMAND: Words = ("palsrun",)


def options(request: LaunchRequest) -> Words:
    return ("-n", str(request.ranks), "--ppn", str(request.per_node()))


def once_a_node(request: LaunchRequest) -> Words:
    return (*COMMAND, "-n", str(request.nodes), "--ppn", "1")


TRAITS = Traits(job=JobTraits(scheduler="pjm", once_a_node=once_a_node, outside_image=True))


def add_launcher(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add the launcher; return its name."""
    monkeypatch.setitem(LAUNCHERS, "pals", sys.modules[__name__])  # type: ignore[arg-type]
    return "pals"
