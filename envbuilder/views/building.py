"""What create, bundle and lock achieved as text for people: pure functions, no printing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from ..model.evidence import Evidence, Timing
from ..model.outcome import BundleResult, CreateResult, LockCheck
from ..text import filled
from .layout import size


def created(value: CreateResult) -> str:
    """Return what ``create`` achieved and how to use it; the last line says it in one."""
    result = value.evidence.result
    return "\n".join(
        [
            *(_proved(each) for each in value.proofs or (value.evidence,)),
            *_speed(result.timings),
            *_risks(value.evidence),
            f"prefix: {value.prefix}",
            "",
            "use it:",
            f"  module use '{value.modulefiles}'",
            f"  module load {value.environment}",
            f"  {shlex.join(value.launch)}",
            *_without_its_module(value),
            "",
            f"{value.environment}/{value.number} is ready and the default",
        ]
    )


def _proved(evidence: Evidence) -> str:
    result = evidence.result
    over = f" over {result.transport}" if result.transport else ""
    return (
        f"proved: {result.api}{over}: {result.tier} on {evidence.arch}; "
        f"{len(result.checks)} checks passed"
    )


def bundled(value: BundleResult) -> str:
    """Return what a bundle holds and how it is installed; the last line says its tier."""
    compiled = ", ".join(value.builds) or "nothing"
    return "\n".join(
        [
            f"{value.files} files for {value.arch}; compiled there: {compiled}",
            f"bundle: {value.folder}",
            f"packed: {value.archive} ({value.bytes / 1e6:.0f} MB)",
            "",
            f"on a machine of {value.site} ({value.arch}), without network:",
            f"  tar -xzf '{PurePath(value.archive).name}'",
            f"  bash '{PurePath(value.folder).name}/install.sh' ROOT",
            "",
            f"bundle only: tier {value.tier}, nothing was built",
        ]
    )


def _risks(evidence: Evidence) -> list[str]:
    waived = [each.id for each in evidence.findings if each.status == "waived"]
    return filled("waived advisories: ", ", ".join(waived)) if waived else []


def _without_its_module(value: CreateResult) -> list[str]:
    if value.loads:
        return [f"which loads the site's {', '.join(value.loads)}"]
    return ["or, without a module system:", f"  source '{value.prefix}/bin/activate'"]


def _speed(values: Sequence[Timing]) -> list[str]:
    if not values:
        return []
    first, last = values[0], values[-1]
    latency = f"{first.latency_us:.0f} us latency at {size(first.bytes)}"
    return [f"speed: {latency}, {last.bus_bandwidth:.2f} GB/s at {size(last.bytes)}"]


def lock_check(value: LockCheck) -> str:
    """Return what has changed since a lock was made."""
    if not value.changed:
        return f"{value.file} ({value.id}): nothing has changed since it was made"
    return "\n".join(
        [
            f"{value.file} ({value.id}): changed since it was made:",
            *(f"  {e}" for e in value.changed),
        ]
    )
