"""The launcher: starts a program on many ranks, on one machine or several (see ``_cli``).

Distributed-DL-trainingrun -np 16 -H server1:4,server2:4 python train.py
"""

from typing import List, Optional

__all__ = ["main"]


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the command line; return the exit code: of the first rank that failed, 2 for usage."""
    from distributed_dl_training.launch._cli import main as run

    return run(arguments)
