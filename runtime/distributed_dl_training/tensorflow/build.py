"""Compile the operation in C++ with the installed TensorFlow.

    python -m distributed_dl_training.tensorflow.build [--output FOLDER] [--cache FOLDER]

By default it lies beside this module, where the package finds it.  The compiler is ``CXX``, or g++.
Without the operation collectives in graphs are py-functions.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Mapping, Optional

import tensorflow as tf

from distributed_dl_training._builds import (
    OPERATION_FACTS,
    OPERATION_HOME,
    OPERATION_LIBRARY,
    operation_facts,
)

SOURCE = os.path.join(OPERATION_HOME, "collective_op.cc")


def flags() -> List[str]:
    """Return the options of the compiler, which runs in TensorFlow's folder of headers.

    Neither this folder's name nor that of the source gets into the library.
    """
    own = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
    if not any("std=" in flag for flag in own):
        own.append("-std=c++14")  # the flags of TensorFlow 1 name no standard
    return ["-O2", "-fPIC", "-shared", "-w", "-I.", *own]


def facts(compiler: List[str]) -> Dict[str, Any]:
    """Return all that the library depends on.

    Raises OSError or CalledProcessError if the compiler cannot be run.
    """
    version = subprocess.run(
        [*compiler, "--version"], stdout=subprocess.PIPE, universal_newlines=True, check=True
    ).stdout.splitlines()
    target = subprocess.run(
        [*compiler, "-dumpmachine"], stdout=subprocess.PIPE, universal_newlines=True, check=True
    ).stdout.strip()
    with open(SOURCE, "rb") as stream:
        source = hashlib.sha256(stream.read()).hexdigest()
    links = [flag for flag in tf.sysconfig.get_link_flags() if not flag.startswith("-L")]
    return {
        "tensorflow": tf.__version__,
        "tensorflow_build": [tf.version.GIT_VERSION, tf.version.COMPILER_VERSION],
        "compiler": [*compiler[1:], *version[:1], target],
        "flags": flags() + links,
        "source": source,
    }


def build(output: str, cache: Optional[str], environ: Mapping[str, str]) -> str:
    """Bring the library and its facts to a folder; return ``present``, ``cached`` or ``compiled``.

    cache: folder of libraries by their facts, which gets what it lacks; None: none.
    environ: variables, of which CXX names the compiler.

    Raises OSError or CalledProcessError if the compiler cannot be run, or fails, and what
    TensorFlow raises for a library that it cannot load.
    """
    compiler = shlex.split(environ.get("CXX") or "g++")
    properties = facts(compiler)
    library = os.path.join(output, OPERATION_LIBRARY)
    if os.path.exists(library) and operation_facts(output) == properties:
        return "present"
    digest = hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()
    entry = os.path.join(cache, f"collective-op-{digest[:16]}") if cache else None
    if entry and _is_trusted(entry) and operation_facts(entry) == properties:
        _copy(entry, output)
        return "cached"
    with tempfile.TemporaryDirectory(dir=output) as folder:
        compile_library(compiler, os.path.join(folder, OPERATION_LIBRARY))
        with open(os.path.join(folder, OPERATION_FACTS), "w", encoding="utf-8") as stream:
            json.dump(properties, stream, indent=2, sort_keys=True)
        tf.load_op_library(os.path.join(folder, OPERATION_LIBRARY))
        _copy(folder, output)
    if entry and not os.path.exists(entry):
        _keep(output, entry)
    return "compiled"


def compile_library(compiler: List[str], path: str) -> None:
    """Compile the library.  Raises OSError or CalledProcessError."""
    command = [*compiler, *flags(), "-o", path, "-x", "c++", "-", *tf.sysconfig.get_link_flags()]
    with open(SOURCE, "rb") as source:
        subprocess.run(command, cwd=tf.sysconfig.get_include(), stdin=source, check=True)


def _copy(folder: str, output: str) -> None:
    """Copy the library, and last its facts."""
    for name in (OPERATION_LIBRARY, OPERATION_FACTS):
        partial = os.path.join(output, f".{name}.{os.getpid()}")
        shutil.copyfile(os.path.join(folder, name), partial)
        os.replace(partial, os.path.join(output, name))


def _keep(folder: str, entry: str) -> None:
    """Add a library to the cache; without effect where that cannot be written."""
    try:
        os.makedirs(os.path.dirname(entry), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(entry)) as partial:
            made = os.path.join(partial, "entry")
            os.mkdir(made, 0o755)
            _copy(folder, made)
            os.rename(made, entry)
    except OSError as error:
        sys.stderr.write(f"warning: cannot cache the operation: {error}\n")


def _is_trusted(entry: str) -> bool:
    """Tell whether nobody but this user and root can have written an entry of the cache."""
    for path in (
        entry,
        os.path.join(entry, OPERATION_LIBRARY),
        os.path.join(entry, OPERATION_FACTS),
    ):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return False
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if status.st_uid not in (0, os.getuid()) or others_write or stat.S_ISLNK(status.st_mode):
            sys.stderr.write(f"warning: not trusted: {path}\n")
            return False
    return True


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the command line; return its exit code (1: there is no library)."""
    parser = argparse.ArgumentParser(
        prog="python -m distributed_dl_training.tensorflow.build",
        description="Compile the operation in C++ with the installed TensorFlow.",
    )
    parser.add_argument(
        "--output", metavar="FOLDER", default=OPERATION_HOME, help="default: the package"
    )
    parser.add_argument("--cache", metavar="FOLDER", help="folder of compiled operations")
    options = parser.parse_args(arguments)
    try:
        # Absolute, because the compiler runs in another folder.
        cache = options.cache and os.path.abspath(options.cache)
        origin = build(os.path.abspath(options.output), cache, os.environ)
    except (OSError, subprocess.CalledProcessError, tf.errors.OpError) as error:
        sys.stderr.write(f"error: the operation is not built: {error}\n")
        return 1
    sys.stdout.write(f"the operation for TensorFlow {tf.__version__}: {origin}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
