"""The way in: ``envbuild``, and ``python -m envbuilder`` where that is not on PATH."""

import os
import sys

from . import __version__


def main() -> None:
    """Run the command line. The version alone needs none of what that imports."""
    if sys.argv[1:] != ["--version"] or not _said(f"envbuild {__version__}"):
        from .cli import main as command_line

        command_line()


def _said(line: str) -> bool:
    try:
        # Not through sys.stdout, which would keep what a full disk did not take.
        os.write(1, f"{line}\n".encode())
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
