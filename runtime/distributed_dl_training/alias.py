"""Switch on or off that ``import horovod`` or ``import ddl`` means this runtime.

    python -m distributed_dl_training.alias enable horovod

An alias is off until somebody asks for it, and it never takes the place of a real Horovod or DDL.
Where one is installed ``enable`` refuses; if one appears later, an import of the alias fails.
"""

import argparse
import importlib
import importlib.machinery
import os
import shlex
import sys
import sysconfig
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import distributed_dl_training

# The folder of each alias, which goes on ``sys.path``.
FOLDERS = {"ddl": "_alias_ddl", "horovod": "_alias"}
NAMES = tuple(sorted(FOLDERS))
# Horovod's last release; programs compare versions to learn what the API has.
API_VERSION = "0.28.1"
MARK = "distributed_dl_training.alias"
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_RULES = "distributed_dl_training._horovod"
_METADATA = (".dist-info", ".egg-info", ".egg-link")


class AliasError(Exception):
    """The alias cannot be switched; the text is for the user."""


class Place(NamedTuple):
    """The files that switch the alias on in one environment."""

    pth: str
    script: str


def version() -> str:
    """Return what ``horovod.__version__`` is: the API's version, and ours as the local part."""
    return f"{API_VERSION}+ddlt.{distributed_dl_training.__version__}"


def home(name: str) -> str:
    """Return the folder of an alias."""
    return os.path.join(_PACKAGE, FOLDERS[name])


def refuse_beside_real(name: str) -> None:
    """Raise ImportError if a real ``name`` is installed.

    The alias calls it at every import: a folder may have joined sys.path after it was enabled.
    """
    real = find_real(name)
    if real is not None:
        raise ImportError(
            f"a real {name} is installed ({real}), and the alias of distributed-dl-training is"
            " switched on as well"
            f"\n\nhint: python -m distributed_dl_training.alias disable {name}, or uninstall the"
            " real one",
            name=name,
        )


def find_real(name: str, path: Optional[Sequence[str]] = None) -> Optional[str]:
    """Return where a real ``name`` lies, a package or a distribution's metadata, or None.

    path: folders to look in; default ``sys.path``.  A folder without ``__init__.py`` is none:
    an import prefers any package to it.
    """
    folders = [
        folder or os.getcwd()
        for folder in (sys.path if path is None else path)
        if not _same(folder or os.getcwd(), home(name))
    ]
    for folder in folders:
        found = importlib.machinery.PathFinder.find_spec(name, [folder])
        if found is not None and found.origin not in (None, "namespace"):
            return os.path.dirname(str(found.origin))
        metadata = _metadata(name, folder)
        if metadata is not None:
            return metadata
    return _editable(name) if path is None else None


def _metadata(name: str, folder: str) -> Optional[str]:
    try:
        entries = sorted(os.listdir(folder))
    except OSError:  # a zip file, or not there
        return None
    for entry in entries:
        base, ending = os.path.splitext(entry)
        if ending in _METADATA and base.split("-")[0].lower() == name:
            return os.path.join(folder, entry)
    return None


def _editable(name: str) -> Optional[str]:
    """Ask the finders that editable installs add, as they have no folder of their own."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or finder is importlib.machinery.PathFinder:
            continue
        found = find(name, None)
        origin = None if found is None else found.origin
        if origin and not str(origin).startswith(home(name) + os.sep):
            return os.path.dirname(str(origin))
    return None


def mirror_torch(names: Dict[str, Any]) -> None:
    """Put what ``horovod.torch`` has into ``names``, the globals of one of its modules."""
    mirror_framework("torch", names)


def mirror_framework(framework: str, names: Dict[str, Any]) -> None:
    """Put what ``horovod.FRAMEWORK`` has into ``names``, the globals of one of its modules.

    All public names of ours, then what Horovod's rules need.  Raises ImportError without the
    framework.
    """
    mirror(f"distributed_dl_training.{framework}", names)
    rules = "distributed_dl_training.torch._horovod" if framework == "torch" else _RULES
    names.update(importlib.import_module(rules).NAMES)


def mirror(module: str, names: Dict[str, Any]) -> None:
    """Put all public names of ``module`` into ``names``, and refuse those of Horovod's table."""
    from distributed_dl_training import _missing

    source = importlib.import_module(module)
    names.update((name, getattr(source, name)) for name in dir(source) if name[:1] != "_")
    _missing.refuse(names["__name__"], _missing.refused(names["__name__"]))


def _same(first: str, second: str) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)


def place(name: str) -> Place:
    """Return the alias's files in this Python's environment."""
    paths = sysconfig.get_paths()
    return Place(
        os.path.join(paths["purelib"], f"distributed_dl_training_alias_{name}.pth"),
        os.path.join(paths["scripts"], f"{name}run"),
    )


def contents(name: str) -> Dict[str, bytes]:
    """Return what ``enable`` writes, by path."""
    where = place(name)
    # A line that is a folder is put at the end of sys.path.
    pth = f"# {MARK}: {name}\n{home(name)}\n"
    # For sh this is an exec; for Python a string.  A first line with the Python itself would
    # break at 127 characters or a space.
    script = (
        "#!/bin/sh\n"
        f"'''exec' {shlex.quote(sys.executable)} \"$0\" \"$@\"\n"
        "' '''\n"
        f"# {MARK}: {name}\n"
        "import sys\n\n"
        "from distributed_dl_training.launch._cli import main\n\n"
        f'sys.exit(main(program="{name}run"))\n'
    )
    return {where.pth: os.fsencode(pth), where.script: os.fsencode(script)}


def enable(name: str) -> List[str]:
    """Switch the alias on; return the files written.

    Raises AliasError if a real ``name`` is there, this Python is no environment of its own, a
    file of somebody else is in the way, or a folder cannot be written to.
    """
    real = find_real(name)
    if real is not None:
        raise AliasError(
            f"a real {name} is installed: {real}"
            f"\n\nhint: use it, or remove it (pip uninstall {name}) before the alias is enabled"
        )
    if not _own_environment():
        raise AliasError(
            f"{sys.prefix} is the Python of everybody, no virtual or conda environment"
            "\n\nhint: python -m venv DIR, and install the runtime there"
        )
    files = contents(name)
    for path in files:
        if os.path.lexists(path) and not _is_ours(path):
            raise AliasError(f"{path} is there already, and not from here")
    written = []
    try:
        for path, data in files.items():
            with open(path + ".new", "wb") as stream:
                stream.write(data)
            os.chmod(path + ".new", 0o755 if path == place(name).script else 0o644)
            os.replace(path + ".new", path)
            written.append(path)
    except OSError as error:
        for path in written:
            os.unlink(path)
        raise AliasError(f"cannot write {error.filename}: {error.strerror}") from error
    return written


def disable(name: str) -> List[str]:
    """Switch the alias off; return the files removed.  Files of others stay.

    Raises AliasError if one cannot be removed.
    """
    removed = []
    for path in place(name):
        if os.path.lexists(path) and _is_ours(path):
            try:
                os.unlink(path)
            except OSError as error:
                raise AliasError(f"cannot remove {path}: {error.strerror}") from error
            removed.append(path)
    return removed


def enabled(name: str) -> bool:
    """Tell whether this environment has the alias's files."""
    return all(os.path.lexists(path) and _is_ours(path) for path in place(name))


def status_lines(name: str = "horovod") -> List[str]:
    """Return what an import of ``name`` takes, and whether the alias is on."""
    real = find_real(name)
    state = "enabled" if enabled(name) else "disabled"
    taken = f"import {name} takes nothing"
    if real is not None:
        taken = f"import {name} takes the real one: {real}"
        if any(_same(folder or os.getcwd(), home(name)) for folder in sys.path):
            taken += " (or fails and names it, where the alias comes first)"
    elif enabled(name):
        taken = f"import {name} takes this runtime: {os.path.join(home(name), name)}"
    return [f"alias: {state}", taken]


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return MARK.encode("ascii") in stream.read(4096)
    except OSError:
        return False


def _own_environment() -> bool:
    """Tell whether this is a virtual or a conda environment."""
    conda = os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
    return sys.prefix != sys.base_prefix or conda


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the command line; return its exit code (1: refused)."""
    parser = argparse.ArgumentParser(
        prog="python -m distributed_dl_training.alias",
        description="Make `import NAME` and NAMErun mean this runtime, in this environment.",
    )
    parser.add_argument("verb", choices=["enable", "disable", "status"])
    parser.add_argument("name", choices=NAMES)
    options = parser.parse_args(arguments)
    if options.verb == "status":
        sys.stdout.write("\n".join(status_lines(options.name)) + "\n")
        return 0
    try:
        changed = (enable if options.verb == "enable" else disable)(options.name)
    except AliasError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    done = "written" if options.verb == "enable" else "removed"
    sys.stdout.write("".join(f"{done}: {path}\n" for path in changed) or "nothing to do\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
