"""Run this Python's pip, and keep the wheels that it downloads only to look into them.

    python pip_keeping.py FOLDER ARGUMENTS...

Where an index has no metadata beside its wheels, pip downloads them to say what it would install,
and removes them at its end; what its cache holds is up to the index. This holds on to them: whoever
fetches them afterwards by their hash finds them in FOLDER. A pip that does not remove its folders
where it has since version 10 keeps nothing, and answers all the same.
"""

from __future__ import annotations

import contextlib
import importlib
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> None:
    """See to what pip removes, and become pip."""
    # The folder of this program is no place to import from.
    del sys.path[0]
    with contextlib.suppress(ImportError, AttributeError):
        _keep_in(Path(arguments[0]))
    sys.argv = ["pip", *arguments[1:]]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


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
    main(sys.argv[1:])
