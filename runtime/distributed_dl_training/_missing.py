"""Names of Horovod's API that this runtime refuses, and what to use instead."""

import copyreg
import importlib
import sys
import types
from typing import Any, Dict, Mapping, Tuple

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
    """Let ``module`` raise AttributeError with a reason where one of these names is read.

    It gets a function ``__getattr__`` (PEP 562), which Python 3.6 ignores; there the module's class
    is changed as well.
    """

    def refuse_name(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        if name in reasons:
            text = f"{module} has no {name} yet: {reasons[name]} (docs/api.md)"
        raise AttributeError(text)

    found = sys.modules[module]
    vars(found)["__getattr__"] = refuse_name
    if sys.version_info < (3, 7):  # noqa: UP036 - ruff knows nothing below 3.7
        found.__class__ = RefusingModule


class RefusingModule(types.ModuleType):
    """A module of Python 3.6 whose ``__getattr__`` is called; pickled by its name."""

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["__getattr__"](name)


def _reduce_module(module: types.ModuleType) -> Tuple[Any, Tuple[str]]:
    return importlib.import_module, (module.__name__,)


copyreg.pickle(RefusingModule, _reduce_module)


def reasons(*names: str) -> Dict[str, str]:
    """Return some of ``REASONS``."""
    return {name: REASONS[name] for name in names}
