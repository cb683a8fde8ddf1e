"""IBM's DDL. No smoke test calls it: that of the bundled runtime proves the MPI that it uses.

Source: IBM's documentation of DDL.
"""

from __future__ import annotations

from ..model.runtime import RuntimeTraits
from .parts import framework_proofs, no_bindings, no_flags, no_traces

TRAITS = RuntimeTraits(
    summary="IBM DDL, part of WMLCE; add `ddl` to the stack; it has no proof",
    holder="ddl",
    launcher="ddlrun",
)

meaning, bindings, traces = no_flags, no_bindings, no_traces
proofs = framework_proofs("ddl")
