"""``horovod.runner.launch``: horovodrun as a function."""

import sys

from distributed_dl_training import _missing
from distributed_dl_training.launch._cli import main

__all__ = ["run_commandline"]

_missing.refuse(__name__, _missing.refused(__name__))


def run_commandline() -> None:
    """Run sys.argv as horovodrun does, and exit with its code."""
    sys.exit(main(program="horovodrun"))
