"""A lock that is there already, held against what is there now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import Place, UsageError
from ..model.plan import Input, Lock, RuntimePlan


def changed_inputs(lock: Lock, inputs: Iterable[Input]) -> tuple[str, ...]:
    """Return what the lock was made of and is not among *inputs* now: ``recipe allreduce``."""
    before = {each.kind: each for each in lock.plan.inputs}
    now = {each.kind: each for each in inputs}
    kinds = dict.fromkeys((*before, *now))
    return tuple(
        " ".join(dict.fromkeys((kind, (before.get(kind) or now[kind]).name)))
        for kind in kinds
        if before.get(kind) != now.get(kind)
    )


def check_is_for(lock: Lock, file: Path, recipe: str, site: str, arch: str) -> None:
    """Raise UsageError if the lock in *file* is for another recipe, site or architecture."""
    plan = lock.plan
    for what, requested, locked in (
        ("recipe", recipe, plan.recipe),
        ("site", site, plan.site),
        ("architecture", arch, plan.arch),
    ):
        if requested != locked:
            raise UsageError(
                "lock.other-request",
                f"the lock is for {what} {locked}, not for {requested}",
                "use it for that request, or make another lock: envbuild lock RECIPE -o FILE",
                place=Place(str(file)),
            )


def check_runtime(lock: Lock, file: Path, runtime: RuntimePlan, source: Path) -> None:
    """Raise UsageError unless the lock's runtime is of the sources in *source*."""
    if runtime.source_sha256 != lock.plan.runtime.source_sha256:
        raise UsageError(
            "lock.other-sources",
            f"the lock is for {runtime.package} {lock.plan.runtime.version} from other sources "
            f"than those in {source}",
            "build it with the envbuild that made it, or lock again: envbuild lock",
            place=Place(str(file)),
        )
