"""TensorFlow's distribution strategies, which read the list of workers from TF_CONFIG.

Source: TensorFlow's guide "Distributed training".
"""

from __future__ import annotations

from ..model.runtime import RuntimeTraits
from .parts import framework_proofs, no_bindings, no_flags, no_traces

TRAITS = RuntimeTraits(
    summary="the strategies of TensorFlow; add TensorFlow to the stack; it has no proof",
    holder="tensorflow",
    tf_config=True,
)

meaning, bindings, traces = no_flags, no_bindings, no_traces
proofs = framework_proofs("tf-distribute")
