"""Call a Python function on several ranks and return what each has returned."""

import importlib
import os
import pickle
import shutil
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence

from distributed_dl_training.launch._cli import main

_FAILED = "the ranks ended with exit code {}; what they printed says why"


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    np: int = 1,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    start_timeout: Optional[float] = None,
    ssh_port: Optional[int] = None,
    output_filename: Optional[str] = None,
    verbose: bool = False,
    use_gloo: bool = False,
    use_mpi: bool = False,
    network_interfaces: Optional[str] = None,
    executable: Optional[str] = None,
    folder: Optional[str] = None,
) -> List[Any]:
    """Return ``[func(*args, **kwargs) on rank 0, on rank 1, ...]``.

    The options are those of the command line.  The function and its results travel as files,
    pickled, or by cloudpickle where it is installed (then functions of ``__main__`` and lambdas
    work as well), through ``folder``: default a temporary one in TMPDIR.  Other hosts must see
    the same folder.

    Must be called from the main thread.  Raises RuntimeError if a rank fails or returns nothing
    that can be pickled, and what pickling ``func`` raises.
    """
    place = tempfile.mkdtemp(prefix="ddlt-run-", dir=folder)
    try:
        with open(os.path.join(place, "call"), "wb") as stream:
            stream.write(_pickler().dumps((func, tuple(args), kwargs or {})))
        # The calling program's input is its own.
        options: List[str] = ["--no-stdin", "-np", str(np)]
        for name, value in (
            ("--hosts", hosts),
            ("--hostfile", hostfile),
            ("--start-timeout", start_timeout),
            ("--ssh-port", ssh_port),
            ("--output-filename", output_filename),
            ("--network-interfaces", network_interfaces),
        ):
            if value is not None:
                options += [name, str(value)]
        for name, wanted in (("--verbose", verbose), ("--gloo", use_gloo), ("--mpi", use_mpi)):
            options += [name] * wanted
        program = ["-m", "distributed_dl_training.launch._function", place]
        code = main(options + [executable or sys.executable] + program)
        if code:
            raise RuntimeError(_FAILED.format(code))
        return [_load(os.path.join(place, f"result.{rank}")) for rank in range(np)]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _pickler() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def _load(path: str) -> Any:
    try:
        with open(path, "rb") as stream:
            return pickle.load(stream)
    except FileNotFoundError:
        raise RuntimeError(f"a rank has left no result: {path}") from None


def call(place: str) -> None:
    """Be one rank: call the function of ``place`` and leave its result there."""
    from distributed_dl_training.launch._node import RANK_NAMES

    # Under MPI a RANK is that of a job around this one.
    names = RANK_NAMES if os.environ.get("DDLT_ENGINE") == "mpi" else ("RANK", *RANK_NAMES)
    rank = next(os.environ[name] for name in names if name in os.environ)
    func, args, kwargs = _load(os.path.join(place, "call"))
    data = _pickler().dumps(func(*args, **kwargs))
    path = os.path.join(place, f"result.{rank}")
    with open(path + ".new", "wb") as stream:
        stream.write(data)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    call(sys.argv[1])
