"""A runtime that is made up, a part of mpi4py: one module, and the line in the dict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.model.plan import Proof
from envbuilder.model.runtime import ProofInputs, RuntimeTraits
from envbuilder.runtimes import BUNDLED, RUNTIMES
from envbuilder.runtimes.parts import no_bindings, no_flags, no_traces

TRAITS = RuntimeTraits(
    summary="collectives of mpi4py, which the stack names; started by `mpiexec`",
    holder="mpi4py",
    launcher="hydra",
    tf_config=True,
)

meaning, bindings, traces = no_flags, no_bindings, no_traces


def proofs(inputs: ProofInputs) -> Iterator[Proof]:
    if "mpi4py" in inputs.components and inputs.launcher:
        yield Proof(api="mpi4py", transport="mpi", launcher=inputs.launcher)


def add_runtime(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add the runtime; return its name."""
    monkeypatch.setitem(RUNTIMES, "mpi4py-collectives", sys.modules[__name__])  # type: ignore[arg-type]
    return "mpi4py-collectives"


def write_recipe(folder: Path, runtime: str) -> Path:
    """Write the recipe ``mine``, which asks for the runtime, and return its folder."""
    text = (data.RECIPES / "allreduce.yaml").read_text(encoding="utf-8")
    folder.mkdir()
    mine = text.replace("name: allreduce", "name: mine").replace(f": {BUNDLED}", f": {runtime}")
    (folder / "mine.yaml").write_text(mine, encoding="utf-8")
    return folder
