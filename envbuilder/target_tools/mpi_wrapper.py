"""The MPI that its compiler wrapper links: what ``mpicxx -show`` names."""

import re
import shlex
import shutil
from pathlib import Path

from .files import is_elf
from .processes import output_of


def mpicxx_words() -> "tuple[str, list[str]] | None":
    """Return (path of mpicxx, the words of its compiler command); None without mpicxx."""
    program = shutil.which("mpicxx")
    shown = output_of([program, "-show"]) if program else None
    return (program, words_of(shown)) if program and shown else None


def words_of(shown: str) -> "list[str]":
    """Return the words of the compiler call that a wrapper shows."""
    try:
        return shlex.split(shown)
    except ValueError:  # a quote without its end
        return shown.split()


def mpi_libraries(words: "list[str]") -> "list[str]":
    """Return the files, links resolved, of the MPI libraries that a compiler call names."""
    folders = option_values(words, "-L")
    names = [name for name in option_values(words, "-l") if "mpi" in name.lower()]
    found: "list[str | Path]" = []
    for name in names:
        found += library_files("lib" + name + ".so", folders, words[0])
    found += [word for word in words if word.endswith(".so") and word.startswith("/")]
    return sorted({str(Path(path).resolve()) for path in found})


def option_values(words: "list[str]", option: str) -> "list[str]":
    """Return the values of -Lx or -L x."""
    pairs = zip(words, [*words[1:], ""])
    return [word[2:] or following for word, following in pairs if word.startswith(option)]


def library_files(name: str, folders: "list[str]", compiler: str) -> "list[Path]":
    """Return the files that the linker uses for a name: one, or those of a linker script."""
    paths = [Path(folder, name) for folder in folders]
    paths += [Path(output_of([compiler, "-print-file-name=" + name]) or name)]
    # A compiler that finds nothing says the bare name.
    path = next((each for each in paths if each.is_absolute() and each.is_file()), None)
    if path is None or is_elf(path):
        return [path] if path else []
    # The wheels of PyPI hold no links; their libmpi.so is a script: INPUT(libmpi.so.40)
    text = path.read_text(encoding="utf-8", errors="replace")
    inputs = re.findall(r"(?:INPUT|GROUP)\s*\(([^)]*)\)", text)
    beside = [str(path.parent), *folders]
    targets = [word for text in inputs for word in re.split(r"[\s,]+", text) if ".so" in word]
    places = [[Path(folder, target) for folder in beside] for target in targets]
    return [next(p for p in each if is_elf(p)) for each in places if any(map(is_elf, each))]
