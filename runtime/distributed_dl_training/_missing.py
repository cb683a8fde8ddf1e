"""What is said of names of Horovod's API that are not there: what to do instead."""

import sys
import types
from typing import Any, Dict, Mapping

# By name; what is there is told in docs/api.md.
REASONS: Dict[str, str] = {
    "Adasum": "use op=Average; with more ranks raise the learning rate step by step (warm-up)",
    "elastic": "a lost rank ends the job: start it again from the last checkpoint",
    "grouped_allgather": "call allgather_async for each array, then synchronize",
    "grouped_allgather_async": "call allgather_async for each array",
    "grouped_reducescatter": "call reducescatter_async for each array, then synchronize",
    "grouped_reducescatter_async": "call reducescatter_async for each array",
}


def refuse(module: str, reasons: Mapping[str, str]) -> None:
    """Make ``module`` say what to do where one of these names is asked of it.

    Its class is changed, as a function ``__getattr__`` of a module is asked only from 3.7 on.
    """

    class Module(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            text = f"module {module!r} has no attribute {name!r}"
            if name in reasons:
                text = f"{module} has no {name} yet: {reasons[name]} (docs/api.md)"
            raise AttributeError(text)

    sys.modules[module].__class__ = Module


def reasons(*names: str) -> Dict[str, str]:
    """Return some of ``REASONS``."""
    return {name: REASONS[name] for name in names}
