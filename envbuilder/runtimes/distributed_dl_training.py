"""The runtime that comes with envbuild, which every environment has: its sources are runtime/."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.plan import Proof
from ..model.runtime import ProofInputs, RuntimeTraits
from . import horovod
from .parts import no_bindings, no_flags, no_traces

TRAITS = RuntimeTraits(
    summary="bundled with envbuild, in every environment; its smoke test runs first",
    bundled=True,
    package="distributed_dl_training",
    needs={"numpy": "*", "mpi4py": "*", "mpi": "*"},
    build_needs={"flit-core": ">=3.2"},
    aliases=("ddl", "horovod"),
    launcher="distributed-dl-trainingrun",
    gloo_with="pytorch",
)

meaning, bindings, traces = no_flags, no_bindings, no_traces


def proofs(inputs: ProofInputs) -> Iterator[Proof]:
    """Yield its own proof over MPI, and those of the programs that find it under an alias."""
    if inputs.launcher:
        yield Proof(api="numpy", transport="mpi", launcher=inputs.launcher)
    if "horovod" in inputs.aliases:
        parts = horovod.bindings(inputs.known).items()
        names = [part.name for name, part in parts if part.bundled and name in inputs.components]
        without = {} if TRAITS.gloo_with in inputs.components else {"HOROVOD_WITHOUT_GLOO": "1"}
        yield from horovod.framework_proofs(names, horovod.meaning(without, None), inputs)
