"""Which libmpi the plan means: whatever else the ranks load is not what was built against.

Where pip brings the MPI it lies in the prefix. The MPI of a module or of the system is the one that
its compiler wrapper links (``mpicxx -show``): ``smoke.sh`` asks it in the environment of the ranks,
after the modules were loaded, and keeps the answer beside the records.
"""

from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..files import IrregularFileError, is_below, read_regular
from ..mpi_wrapper import option_values, words_of

# What smoke.sh writes: the wrapper's path on the first line, then what it says.
ANSWER = "mpi.txt"
LIBRARY_FOLDERS = ("lib", "lib64", "lib/*-linux-gnu*")


class PlanMpi(NamedTuple):
    """The libraries that may be loaded as libmpi; all paths are real.

    source: the origin of the plan's MPI, for messages.
    folder: every library below it is right; or
    files: these are, and those that belong to them (libmpi_mpifh beside libmpi).
    """

    source: str
    folder: "str | None" = None
    files: "tuple[str, ...]" = ()

    @property
    def known(self) -> bool:
        """Whether anything is known of it."""
        return self.folder is not None or bool(self.files)

    def holds(self, path: str) -> bool:
        """Return whether a library that was loaded is the plan's."""
        if self.folder is not None:
            return is_below(path, self.folder)
        return any(belongs(PurePosixPath(path), PurePosixPath(file)) for file in self.files)


def belongs(path: PurePosixPath, file: PurePosixPath) -> bool:
    """Return whether a library is *file*, or belongs to it.

    A wheel holds no links: there libmpi.so is a file of its own, which names libmpi.so.12.
    """
    # A library's name and its interface version: libmpi, 40.
    (stem, _, version), (name, _, release) = (each.name.partition(".so") for each in (path, file))
    version, release = (each.strip(".").partition(".")[0] for each in (version, release))
    same = stem == name and (version == release or not version or not release)
    return path.parent == file.parent and (same or stem.startswith(f"{name}_"))


def of_prefix(prefix: "str | Path") -> PlanMpi:
    """Return the MPI that pip installs below *prefix*."""
    return PlanMpi(source=f"the prefix {prefix}", folder=str(prefix))


def of_wrapper(run: Path) -> PlanMpi:
    """Return the MPI that the compiler wrapper links, from its answer in the folder of the run.

    It has no files if there is no answer, or the answer names no existing libmpi.
    """
    try:
        lines = read_regular(run / ANSWER, links=False).decode("utf-8", "replace").splitlines()
    except IrregularFileError as error:
        lines = [f"{ANSWER}: {error}"]
    except OSError:
        lines = []
    if not lines or not lines[0].startswith("/"):
        first = lines[0] if lines else "no answer"
        return PlanMpi(source=f"its compiler wrapper mpicxx ({first})")
    wrapper = Path(lines[0])
    beside = library_folders(wrapper)
    words = words_of(" ".join(lines[1:]))
    # A wrapper leaves out a folder that the compiler searches anyway.
    found = linked(words, [*map(Path, filter(None, option_values(words, "-L"))), *beside])
    found = found or [path for folder in beside for path in sorted(folder.glob("libmpi*.so*"))]
    files = tuple(dict.fromkeys(str(path.resolve()) for path in found))
    source = ", ".join(files) or "no existing libmpi"
    return PlanMpi(source=f"{source} ({wrapper} -show)", files=files)


def linked(words: "list[str]", folders: "list[Path]") -> "list[Path]":
    """Return the MPI libraries that the words of a link command name and that exist."""
    names = [name for name in option_values(words, "-l") if name.startswith("mpi")]
    there = ([folder / f"lib{name}.so" for folder in folders] for name in dict.fromkeys(names))
    found = (next((path for path in paths if path.exists()), None) for paths in there)
    return [path for path in found if path]


def library_folders(wrapper: Path) -> "list[Path]":
    """Return the folders of libraries of the tree that a wrapper lies, or would lie, in."""
    tops = dict.fromkeys((wrapper.parent.parent, wrapper.resolve().parent.parent))
    return [one for top in tops for pattern in LIBRARY_FOLDERS for one in sorted(top.glob(pattern))]
