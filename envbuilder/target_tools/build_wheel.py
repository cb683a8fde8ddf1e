"""Build a wheel from a folder of sources, as its pyproject.toml says, without pip.

    python target_tools build-wheel SOURCE TARGET

The backend must be importable (PYTHONPATH). pip could do the same from 19.0 on, but the Python
3.6 of many sites brings an older one.
"""

import importlib
import os
import re
import sys
from pathlib import Path


def backend_name(pyproject: Path) -> str:
    """Return the build backend that a pyproject.toml names."""
    # Python has a TOML reader only from 3.11 on.
    text = pyproject.read_text(encoding="utf-8")
    found = re.search(r"""^build-backend\s*=\s*["']([\w.:]+)["']""", text, re.MULTILINE)
    if not found:
        raise SystemExit(f"error: {pyproject} does not state a build-backend")
    return found.group(1)


def main(arguments: "list[str]") -> int:
    """Build; return the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(__doc__)
        return 2
    source, target = (Path(path).resolve() for path in arguments)
    module, _, attribute = backend_name(source / "pyproject.toml").partition(":")
    backend = importlib.import_module(module)
    for part in filter(None, attribute.split(".")):
        backend = getattr(backend, part)
    os.chdir(str(source))  # where PEP 517 wants its hooks to run
    name = backend.build_wheel(str(target))
    sys.stdout.write(f"{target / name}\n")
    return 0
