"""The programs of documents 003 and 004, complete, and their ports to TensorFlow 2 and Keras 3."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import yaml

from .seed_programs import program

HERE = Path(__file__).with_name("programs")
# What each rank prints at the end: ranks have equal weights only if their gradients were averaged.
REPORT = """
values = [round(float(value), 5) for value in values.flatten()]
print("rank %d of %d: weights %s" % (hvd.rank(), hvd.size(), values))
"""
IMPORT = "import distributed_dl_training.tensorflow as hvd"
_FRAGMENT = re.compile(r"^#: (\d+)-(\d+)$", re.MULTILINE)


def hooks(folder: Path) -> str:
    """Return the program of document 004, with the lines of ``hooks.yaml`` in place."""
    edits = yaml.safe_load((HERE / "hooks.yaml").read_text(encoding="utf-8"))
    return program(folder, "004", 120, 156, edits) + REPORT


def mnist_cnn(folder: Path) -> str:
    """Return our ``mnist_cnn.py.in`` with the fragments of document 003."""
    text = (HERE / "mnist_cnn.py.in").read_text(encoding="utf-8")

    def fragment(match: re.Match[str]) -> str:
        return program(folder, "003", int(match[1]), int(match[2]), {}).rstrip()

    return _FRAGMENT.sub(fragment, text)


def texts(folder: Path) -> dict[str, str]:
    """Return every program by name: those of the documents in *folder*, and the ports.

    ``world`` and ``split`` are the two of document 004 with mpi4py.
    """
    ports = {file.stem: file.read_text(encoding="utf-8") for file in HERE.glob("*_*.py")}
    made = {
        "hooks": hooks(folder),
        "mnist_cnn": mnist_cnn(folder),
        "world": program(folder, "004", 202, 211, {202: IMPORT}),
        "split": program(folder, "004", 218, 228, {219: IMPORT}),
    }
    return {name: _without_trailing_spaces(text) for name, text in {**made, **ports}.items()}


def diffs(folder: Path) -> dict[str, str]:
    """Return diffs, by file name: document 004 to our program, and each program to its ports."""
    programs = texts(folder)
    document = _without_trailing_spaces(program(folder, "004", 120, 156, {}) + REPORT)
    made = {"hooks.diff": _diff(document, programs["hooks"])}
    for name in sorted(programs):
        base = "hooks" if name.startswith("hooks") else "mnist_cnn"
        if name.startswith(f"{base}_"):
            made[f"{name}.diff"] = _diff(programs[base], programs[name])
    return made


def _diff(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join([*list(lines)[2:], ""])


def _without_trailing_spaces(text: str) -> str:
    return "\n".join([*map(str.rstrip, text.splitlines()), ""])
