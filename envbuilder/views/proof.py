"""A smoke test's result as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.evidence import SmokeResult, Timing
from .layout import columns, size


def proof(result: SmokeResult) -> list[str]:
    """Return what a smoke test found, a line each."""
    where = ", ".join(result.nodes) or "no node"
    seconds = f"{result.seconds:.1f}"
    lines = [
        f"{result.verdict}: {result.tier}, {result.ranks} ranks on {where} in {seconds} s",
        f"launched by: {result.launch}",
        f"talked through: {result.api}" + (f" ({result.framework})" if result.framework else ""),
    ]
    lines += [
        f"{each.operation} carried by: {each.transport} ({each.source})" for each in result.carried
    ]
    lines += [f"{library.kind} library: {library.path}" for library in result.libraries]
    good = sum(check.passed for check in result.checks)
    lines.append(f"{good} of {len(result.checks)} checks passed")
    for each in result.left_out:
        name = f"{each.name} {each.dtype}" if each.dtype else each.name
        lines.append(f"left out: {name}: {each.why}")
    return [*lines, *result.failure_lines()]


def timings(values: Sequence[Timing]) -> str:
    """Return the speeds per size as a table."""
    head = ("size", "latency", "bus bandwidth")
    rows = [
        (size(t.bytes), f"{t.latency_us:.1f} us", f"{t.bus_bandwidth:.2f} GB/s") for t in values
    ]
    return columns([head, *rows]) if rows else ""
