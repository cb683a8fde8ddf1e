"""PyTorch's own collectives, ``torch.distributed``.

Source: PyTorch's documentation of torch.distributed and torch.distributed.run.
"""

from __future__ import annotations

from ..model.runtime import RuntimeTraits
from .parts import framework_proofs, no_bindings, no_flags, no_traces

TRAITS = RuntimeTraits(
    summary="part of PyTorch; add it to the stack; started by `torchrun`; proved over NCCL if the "
    "stack has it, otherwise over Gloo",
    holder="pytorch",
    launcher="torchrun",
    apis=("torch.distributed",),
)

meaning, bindings, traces = no_flags, no_bindings, no_traces
proofs = framework_proofs("torch-distributed")
