"""Call a Python function on several ranks and return the results."""

import importlib
import os
import pickle
import shutil
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence

from distributed_dl_training.launch._cli import main

_FAILED = "the ranks ended with exit code {}; their output states the reason"
# Arguments of elastic jobs.
_ELASTIC = (
    "min_num_proc max_num_proc slots reset_limit cooldown_range host_discovery_script min_np max_np"
).split()


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    num_proc: int = 1,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Any = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    host_discovery_script: Optional[str] = None,
    start_timeout: Optional[float] = None,
    ssh_port: Optional[int] = None,
    ssh_identity_file: Optional[str] = None,
    disable_cache: Optional[bool] = None,
    output_filename: Optional[str] = None,
    verbose: Optional[int] = None,
    use_gloo: Optional[bool] = None,
    use_mpi: Optional[bool] = None,
    mpi_args: Optional[str] = None,
    network_interface: Optional[str] = None,
    network_interfaces: Any = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
    folder: Optional[str] = None,
) -> List[Any]:
    """Return ``[func(*args, **kwargs) on rank 0, on rank 1, ...]``.

    The arguments are those of Horovod 0.28.1 (horovod/runner/__init__.py) and mean what the options
    of the command line mean.  ``np`` and ``network_interface`` are deprecated.  ``disable_cache``
    has no effect, because no result of a check is stored.

    The function and its results are pickled and exchanged as files in ``folder`` (default: a new
    temporary folder); all hosts must see that folder.  With cloudpickle, functions of ``__main__``,
    of a notebook, and lambdas work as well.

    Raises RuntimeError if a rank fails or its result cannot be pickled, ValueError for arguments
    that contradict each other or belong to elastic jobs, TypeError for a function of ``__main__``
    if cloudpickle is not installed, and whatever pickling ``func`` raises.
    """
    given = locals()
    elastic = [name for name in _ELASTIC if given[name] is not None]
    if elastic:
        raise ValueError(f"{elastic[0]}: elastic jobs are not supported; use num_proc and hosts")
    if hosts is not None and hostfile is not None:
        raise ValueError("give hosts or hostfile, not both")
    if use_gloo and use_mpi:
        raise ValueError("give use_gloo or use_mpi, not both")
    if np is not None or network_interface is not None:
        text = "np and network_interface are deprecated: use num_proc and network_interfaces"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    ranks = num_proc if np is None else np
    interfaces = network_interfaces or network_interface
    if interfaces is not None and not isinstance(interfaces, str):
        interfaces = ",".join(interfaces)
    # The calling program keeps its input.
    options = ["--no-stdin", "-np", str(ranks)]
    for name, value in (
        ("--hosts", hosts),
        ("--hostfile", hostfile),
        ("--start-timeout", start_timeout),
        ("--ssh-port", ssh_port),
        ("--ssh-identity-file", ssh_identity_file),
        ("--output-filename", output_filename),
        ("--network-interfaces", interfaces),
        ("--mpi-args", mpi_args),
    ):
        if value is not None:
            options.append(f"{name}={value}")
    for name, wanted in (("--verbose", verbose), ("--gloo", use_gloo), ("--mpi", use_mpi)):
        options += [name] * bool(wanted)
    place = tempfile.mkdtemp(prefix="ddlt-run-", dir=folder)
    try:
        _store_call(place, func, args, kwargs or {})
        program = ["-m", "distributed_dl_training.launch._function", place]
        code = main(options + [executable or sys.executable] + program)
        if code:
            raise RuntimeError(_FAILED.format(code))
        return [_load_result(place, rank) for rank in range(ranks)]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _store_call(
    place: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]
) -> None:
    """Write the module search path, and after it the call, which may need the path to be read."""
    pickler = _pickler()
    if pickler is pickle and getattr(func, "__module__", None) == "__main__":
        raise TypeError(
            f"{func!r} is defined in __main__, which the ranks cannot import"
            "\n\nhint: pip install cloudpickle, or define it in a module"
        )
    data = pickler.dumps((func, tuple(args), kwargs))
    with open(os.path.join(place, "call"), "wb") as stream:
        pickle.dump([os.path.abspath(folder) for folder in sys.path], stream)
        stream.write(data)


def _pickler() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def _load_result(place: str, rank: int) -> Any:
    try:
        with open(os.path.join(place, f"result.{rank}"), "rb") as stream:
            return pickle.load(stream)
    except FileNotFoundError:
        raise RuntimeError(f"rank {rank} has left no result") from None


def call(place: str) -> None:
    """Run as one rank: call the function stored in ``place`` and store its result there."""
    from distributed_dl_training.launch._node import RANK_NAMES

    # Under MPI, RANK belongs to a job around this one.
    names = RANK_NAMES if os.environ.get("DDLT_ENGINE") == "mpi" else ("RANK", *RANK_NAMES)
    rank = next(os.environ[name] for name in names if name in os.environ)
    with open(os.path.join(place, "call"), "rb") as stream:
        sys.path += [folder for folder in pickle.load(stream) if folder not in sys.path]
        func, args, kwargs = pickle.load(stream)
    data = _pickler().dumps(func(*args, **kwargs))
    path = os.path.join(place, f"result.{rank}")
    with open(path + ".new", "wb") as stream:
        stream.write(data)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    call(sys.argv[1])
