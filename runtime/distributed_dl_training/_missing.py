"""Names of Horovod's API that this runtime refuses, and what to use instead."""

import copyreg
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, Dict, Mapping, Optional, Tuple

# By name; what is there is told in docs/api.md.
REASONS: Dict[str, str] = {
    "elastic": "a lost rank ends the job: start it again from the last checkpoint",
    "grouped_allgather": "call allgather_async for each array, then synchronize",
    "grouped_allgather_async": "call allgather_async for each array",
    "grouped_reducescatter": "call reducescatter_async for each array, then synchronize",
    "grouped_reducescatter_async": "call reducescatter_async for each array",
}
_FRAMEWORK = "use horovod.torch, horovod.tensorflow or horovod.keras"
_SCHEDULER = "start the ranks by horovodrun, mpiexec or srun"
_LAUNCHER = "call horovod.run() or horovod.runner.launch.run_commandline()"
_GRADIENTS = "pass backward_passes_per_step to DistributedOptimizer"
_LIBRARY = "this runtime compiles no library against a framework"
_FUNCTION = "call the function of that name, which has a gradient"
_UTIL = "import it from horovod.common.util"
# What Horovod 0.28.1 has and the alias has not: reasons, by module, and the names in it.
_REFUSED: Dict[str, Dict[str, str]] = {
    "horovod": {
        _FRAMEWORK: "_keras mxnet",
        _SCHEDULER: "ray spark",
    },
    "horovod.common": {REASONS["elastic"]: "elastic"},
    "horovod.common.exceptions": {_LIBRARY: "get_version_mismatch_message"},
    "horovod.common.util": {
        _LIBRARY: "EXTENSIONS check_installed_version get_ext_suffix get_extension_full_path "
        "get_version_mismatch_message",
        "call horovod.torch.mpi_ops.handle_average_backwards_compatibility": (
            "get_average_backwards_compatibility_fun"
        ),
        "call iter() and catch TypeError": "is_iterable",
    },
    "horovod.keras": {REASONS["elastic"]: "elastic"},
    "horovod.runner": {
        REASONS["elastic"]: "elastic",
        _LAUNCHER: "driver gloo_run http js_run mpi_run run_task task task_fn",
    },
    "horovod.runner.launch": {
        _LAUNCHER: "CACHE_FOLDER CACHE_STALENESS_THRESHOLD_MINUTES SSH_ATTEMPTS "
        "SSH_CONNECT_TIMEOUT_S _run check_build gloo_run gloo_run_elastic is_gloo_used js_run "
        "make_check_build_action make_deprecated_bool_action make_nic_action make_override_action "
        "make_override_bool_action make_override_false_action make_override_true_action mpi_run "
        "parse_args run_controller"
    },
    "horovod.runner.common": {_LAUNCHER: "service"},
    "horovod.runner.common.util": {
        _LAUNCHER: "codec config_parser host_hash hosts network safe_shell_exec secret settings "
        "timeout tiny_shell_exec"
    },
    "horovod.runner.common.util.env": {
        _LAUNCHER: "IGNORE_REGEXES KUBEFLOW_MPI_EXEC LOG_LEVEL_STR is_exportable is_kubeflow_mpi"
    },
    "horovod.runner.util": {_LAUNCHER: "cache lsf network remote streams"},
    "horovod.tensorflow": {
        REASONS["elastic"]: "elastic",
        _GRADIENTS: "gradient_aggregation gradient_aggregation_eager",
    },
    "horovod.tensorflow.keras": {REASONS["elastic"]: "elastic"},
    "horovod.torch": {REASONS["elastic"]: "elastic", _LIBRARY: "mpi_lib_v2"},
    "horovod.torch.mpi_ops": {
        _FUNCTION: "HorovodAllgather HorovodAllreduce HorovodAlltoall HorovodBroadcast "
        "HorovodGroupedAllgather HorovodGroupedAllreduce HorovodGroupedReducescatter "
        "HorovodReducescatter",
        _LIBRARY: "check_installed_version mpi_lib",
        _UTIL: "gpu_available num_rank_is_power_2",
    },
    "horovod.torch.optimizer": {_UTIL: "split_list"},
}


def refused(module: str) -> Dict[str, str]:
    """Return the names of one of Horovod's modules that are refused, with the reasons."""
    reasons = _REFUSED.get(module, {})
    return {name: reason for reason, names in reasons.items() for name in names.split()}


class RefusedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Raises an ImportError with the reason where a refused module is imported."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Return a specification if ``name`` is refused."""
        module, _, last = name.rpartition(".")
        if last not in refused(module):
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: Any) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Raise ImportError."""
        parent, _, last = module.__name__.rpartition(".")
        raise ImportError(_text(parent, last, refused(parent)[last]), name=module.__name__)


def _text(module: str, name: str, reason: str) -> str:
    return f"{module} has no {name}: {reason} (docs/api.md)"


def refuse(module: str, reasons: Mapping[str, str]) -> None:
    """Let ``module`` raise AttributeError with a reason where one of these names is read.

    It gets a function ``__getattr__`` (PEP 562), which Python 3.6 ignores; there the module's class
    is changed as well.
    """

    def refuse_name(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        if name in reasons:
            text = _text(module, name, reasons[name])
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
