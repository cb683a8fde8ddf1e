"""Write down what this copy of the runtime is built against.

    python -m distributed_dl_training.record --write distributed_dl_training/build_record.json

run with the Python of the target environment.  The file depends on that environment only: it
has no dates and no host names.  MPI is loaded, to ask it for its version, but never started.
"""

import argparse
import importlib.util
import json
import os
import platform
import re
import sys
from typing import Any, Dict, List, Mapping, Optional

import distributed_dl_training
from distributed_dl_training._builds import operation_facts

SCHEMA = 1
_FLAGS = re.compile(r"(HOROVOD|DDLT)_")


def collect(environ: Mapping[str, str]) -> Dict[str, Any]:
    """Return the record, ready for JSON; what is not there is None.

    environ: the environment of the build; HOROVOD_* and DDLT_* variables are its flags.

    Meant for a process of its own: if mpi4py is first imported here, MPI stays unstarted.
    """
    return {
        "schema": SCHEMA,
        "runtime": distributed_dl_training.__version__,
        "python": {
            "implementation": platform.python_implementation(),
            "version": platform.python_version(),
        },
        "platform": {
            "system": platform.system(),
            "machine": platform.machine(),
            "libc": _libc(),
        },
        "numpy": _version("numpy"),
        "mpi4py": _version("mpi4py"),
        "mpi": _mpi(),
        "tensorflow": _tensorflow(),
        "flags": {name: environ[name] for name in sorted(environ) if _FLAGS.match(name)},
    }


def library_line(text: str) -> str:
    """Return the first line of MPI's library version, without who built it where, and when.

    Open MPI puts ``package: <brand> <user>@<host> Distribution`` and a date in that line.
    """
    line = text.strip("\0 \n").split("\n")[0].strip()
    line = re.sub(r", package: .*?(?=, ident:|$)", "", line)
    return re.sub(r", [A-Z][a-z]{2} \d{1,2}, \d{4}\b", "", line)


def _libc() -> Optional[str]:
    """Return the name and version of the C library that runs, or None."""
    # Before Python 3.8 platform.libc_ver() gives the oldest glibc that python would run with.
    try:
        known = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        known = None
    return known or " ".join(platform.libc_ver()).strip() or None


def _version(name: str) -> Optional[str]:
    try:
        return str(__import__(name).__version__)
    except ImportError:
        return None


def _tensorflow() -> Optional[Dict[str, Any]]:
    """Return what carries out collectives in graphs, and what that is built with.

    None without TensorFlow, which is not imported: that takes seconds.
    """
    if importlib.util.find_spec("tensorflow") is None:
        return None
    facts = operation_facts()
    return {"implementation": "py-function"} if facts is None else dict(facts, implementation="op")


def _mpi() -> Optional[Dict[str, str]]:
    """Return name, version, library and standard of the MPI that mpi4py loads, or None."""
    try:
        import mpi4py
    except ImportError:
        return None
    mpi4py.rc.initialize = False  # a login node may have an MPI that only starts in a job
    mpi4py.rc.finalize = False
    from distributed_dl_training._core import MPIUnavailableError
    from distributed_dl_training._mpi import load_mpi

    try:
        MPI = load_mpi()
    except MPIUnavailableError:
        return None
    name, version = MPI.get_vendor()
    return {
        "name": str(name),
        "version": ".".join(map(str, version)),
        "library": library_line(MPI.Get_library_version()),
        "standard": ".".join(map(str, MPI.Get_version())),
    }


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the command line; return its exit code (1: --require-mpi is not met)."""
    parser = argparse.ArgumentParser(
        prog="python -m distributed_dl_training.record", description="Write the build record."
    )
    parser.add_argument("--write", metavar="PATH", help="write to PATH and not to stdout")
    parser.add_argument("--require-mpi", action="store_true", help="fail if no MPI can be loaded")
    options = parser.parse_args(arguments)

    record = collect(os.environ)
    if options.require_mpi and record["mpi"] is None:
        print("error: mpi4py with an MPI library is required and cannot be loaded", file=sys.stderr)
        return 1
    text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    if options.write is None:
        sys.stdout.write(text)
    else:
        with open(options.write, "w", encoding="utf-8") as stream:
            stream.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
