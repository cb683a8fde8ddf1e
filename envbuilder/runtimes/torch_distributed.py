"""PyTorch's own collectives, ``torch.distributed``.

Source: PyTorch's documentation of torch.distributed and torch.distributed.run.
"""

from __future__ import annotations

from ..model.runtime import RuntimeTraits
from .parts import framework_proofs, no_bindings, no_flags, no_traces

TRAITS = RuntimeTraits(
    summary="part of PyTorch, which the stack names; started by `torchrun`; proved over NCCL where "
    "the stack names that too, else over Gloo",
    holder="pytorch",
    launcher="torchrun",
    apis=("torch.distributed",),
)

meaning, bindings, traces = no_flags, no_bindings, no_traces
proofs = framework_proofs("torch-distributed")
