"""Which libmpi the plan means: whatever else the ranks load is not what was built against.

Where pip brings the MPI it lies in the prefix. The MPI of a module or of the system is the one that
its compiler wrapper links (``mpicxx -show``): ``smoke.sh`` asks it in the environment of the ranks,
after the modules were loaded, and keeps the answer beside the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..target_tools.mpi_wrapper import option_values, words_of

# What smoke.sh writes: the wrapper's path on the first line, then what it says.
ANSWER = "mpi.txt"
LIBRARY_FOLDERS = ("lib", "lib64", "lib/*-linux-gnu*")


@dataclass(frozen=True)
class PlanMpi:
    """The libraries that may be loaded as libmpi; all paths are real.

    source: what the plan takes its MPI from, as it is told.
    folder: every library below it is right; or
    files: these are, and those that belong to them (libmpi_mpifh beside libmpi).
    """

    source: str
    folder: str | None = None
    files: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return self.folder is not None or bool(self.files)

    def holds(self, path: str) -> bool:
        """Return whether a library that was loaded is the plan's."""
        if self.folder is not None:
            return PurePosixPath(path).is_relative_to(self.folder)
        return any(_belongs(PurePosixPath(path), PurePosixPath(file)) for file in self.files)


def _belongs(path: PurePosixPath, file: PurePosixPath) -> bool:
    """Return whether a library is *file*, or belongs to it.

    A wheel holds no links: there libmpi.so is a file of its own, which names libmpi.so.12.
    """
    if path.parent != file.parent:
        return False
    (stem, version), (name, release) = _split(path), _split(file)
    same = stem == name and (version == release or not version or not release)
    return same or stem.startswith(f"{name}_")


def _split(path: PurePosixPath) -> tuple[str, str]:
    """Return a library's name and its interface version: libmpi, 40."""
    stem, _, version = path.name.partition(".so")
    return stem, version.strip(".").partition(".")[0]


def of_prefix(prefix: Path) -> PlanMpi:
    """Return the MPI that pip installs below *prefix*."""
    return PlanMpi(source=f"the prefix {prefix}", folder=str(prefix))


def of_wrapper(run: Path) -> PlanMpi:
    """Return the MPI that the wrapper links whose answer lies in the folder of the run.

    Without files where nobody answered, or the answer names no libmpi that is there.
    """
    try:
        lines = (run / ANSWER).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    if not lines or not lines[0].startswith("/"):
        first = lines[0] if lines else "no answer"
        return PlanMpi(source=f"its compiler wrapper mpicxx ({first})")
    wrapper = lines[0]
    files = _linked(Path(wrapper), words_of(" ".join(lines[1:]))) or _beside(Path(wrapper))
    source = ", ".join(files) or "no libmpi that is there"
    return PlanMpi(source=f"{source} ({wrapper} -show)", files=files)


def _linked(wrapper: Path, words: list[str]) -> tuple[str, ...]:
    """Return the MPI libraries that the words of a link command name and that exist."""
    folders = [Path(folder) for folder in option_values(words, "-L") if folder]
    # A wrapper leaves out a folder that the compiler searches anyway.
    folders += _library_folders(wrapper)
    names = [name for name in option_values(words, "-l") if name.startswith("mpi")]
    paths = []
    for name in dict.fromkeys(names):
        there = (folder / f"lib{name}.so" for folder in folders)
        file = next((path for path in there if path.exists()), None)
        paths += [str(file.resolve())] if file else []
    return tuple(dict.fromkeys(paths))


def _beside(wrapper: Path) -> tuple[str, ...]:
    """Return the MPI libraries of the tree that a wrapper lies, or would lie, in."""
    paths = (
        path for folder in _library_folders(wrapper) for path in sorted(folder.glob("libmpi*.so*"))
    )
    return tuple(dict.fromkeys(str(path.resolve()) for path in paths))


def _library_folders(wrapper: Path) -> list[Path]:
    tops = dict.fromkeys((wrapper.parent.parent, wrapper.resolve().parent.parent))
    return [one for top in tops for pattern in LIBRARY_FOLDERS for one in sorted(top.glob(pattern))]
