"""Run this Python's pip for another Python: requirements are read as they are read there.

    python pip_for_target.py MARKERS.json ARGUMENTS...

pip takes ``--python-version`` and ``--platform`` for the choice of wheels. The markers of
requirements and the Requires-Python in the metadata of packages it evaluates for the Python that
it runs on itself, whatever these options say (https://github.com/pypa/pip/issues/11664). Here both
are told of the other Python, at the two places that have held them since pip 20.3; Pex does the
same. Whoever calls this checks the answer: a pip that looks somewhere else would give a wrong one.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> None:
    """Put the Python that the file describes in the place of this one, and become pip."""
    # The folder of this program is no place to import from.
    del sys.path[0]
    target = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    markers: Any = importlib.import_module("pip._vendor.packaging.markers")
    markers.default_environment = lambda: dict(target)
    candidates: Any = importlib.import_module("pip._internal.resolution.resolvelib.candidates")
    python = candidates.RequiresPythonCandidate
    version = tuple(int(number) for number in target["python_full_version"].split("."))
    python.__init__ = _always(python.__init__, version)
    sys.argv = ["pip", *arguments[1:]]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def _always(init: Callable[..., None], version: tuple[int, ...]) -> Callable[..., None]:
    def replaced(self: object, py_version_info: object) -> None:  # noqa: ARG001 - in its place
        init(self, version)

    return replaced


if __name__ == "__main__":
    main(sys.argv[1:])
