"""Run this Python's pip with a change of its inside, where no option of it does the same.

    python run_pip.py keep FOLDER ARGUMENTS...
    python run_pip.py for MARKERS.json ARGUMENTS...

``keep``: where an index has no metadata beside its wheels, pip downloads them to say what it would
install, and removes them at its end; what its cache holds is up to the index. This holds on to
them: whoever fetches them afterwards by their hash finds them in FOLDER. A pip that does not remove
its folders where it has since version 10 keeps nothing, and answers all the same.

``for``: pip takes ``--python-version`` and ``--platform`` for the choice of wheels. The markers of
requirements and the Requires-Python in the metadata of packages it evaluates for the Python that
it runs on itself, whatever these options say (https://github.com/pypa/pip/issues/11664). Here both
are told of the other Python, at the two places that have held them since pip 20.3; Pex does the
same. Whoever calls this checks the answer: a pip that looks somewhere else would give a wrong one.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any


def main(change: str, path: str, *arguments: str) -> None:
    """Make the change, and become pip."""
    # The folder of this program is no place to import from.
    del sys.path[0]
    if change == "for":
        _stand_in_for(json.loads(Path(path).read_text(encoding="utf-8")))
    else:
        with contextlib.suppress(ImportError, AttributeError):
            _keep_in(Path(path))
    sys.argv = ["pip", *arguments]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def _stand_in_for(target: dict[str, str]) -> None:
    markers: Any = importlib.import_module("pip._vendor.packaging.markers")
    markers.default_environment = lambda: dict(target)
    candidates: Any = importlib.import_module("pip._internal.resolution.resolvelib.candidates")
    python = candidates.RequiresPythonCandidate
    version = tuple(int(number) for number in target["python_full_version"].split("."))
    init = python.__init__
    # In the place of the version that it is called with.
    python.__init__ = lambda self, py_version_info: init(self, version)  # noqa: ARG005


def _keep_in(folder: Path) -> None:
    temporary: Any = importlib.import_module("pip._internal.utils.temp_dir").TempDirectory
    remove = temporary.cleanup

    def cleanup(self: Any) -> None:
        for wheel in Path(self.path).glob("*.whl"):
            with contextlib.suppress(OSError):  # it is fetched again
                folder.mkdir(exist_ok=True)
                shutil.move(str(wheel), str(folder / wheel.name))
        remove(self)

    temporary.cleanup = cleanup


if __name__ == "__main__":
    main(*sys.argv[1:])
