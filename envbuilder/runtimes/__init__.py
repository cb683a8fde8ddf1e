"""Runtimes: what programs communicate through. Each is a module of its own."""

from __future__ import annotations

from ..knowledge.terms import Api
from ..model.plan import Plan
from ..model.runtime import CollectiveRuntime, RuntimeTraits
from . import ddl, distributed_dl_training, horovod, tf_distribute, torch_distributed

RUNTIMES: dict[str, CollectiveRuntime] = {
    "distributed-dl-training": distributed_dl_training,
    "horovod": horovod,
    "torch-distributed": torch_distributed,
    "tf-distribute": tf_distribute,
    "ddl": ddl,
}
"""Every runtime by the name that recipes use: ``runtime: {package: NAME}``."""

(BUNDLED,) = (name for name, each in RUNTIMES.items() if each.TRAITS.bundled)
"""The name of the runtime that comes with every environment."""


def traits() -> dict[str, RuntimeTraits]:
    """Return what documents must know of each runtime, by its name."""
    return {name: each.TRAITS for name, each in RUNTIMES.items()}


def other_api(plan: Plan, api: Api) -> Api | None:
    """Return the API of a proof if it is not one of the recipe's runtime, otherwise None.

    The programs of a runtime that a plan names as ``beside`` call that runtime alone.
    """
    beside = RUNTIMES.get(plan.runtime.beside or "")
    return api if beside and api not in beside.TRAITS.apis else None
