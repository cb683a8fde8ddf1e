"""The smoke test that every rank runs: do the ranks talk, and are their results exact?

    mpiexec -n 2 python target_tools smoke --out DIR --nonce HEX --ranks 2 --api numpy

It needs numpy, and what it talks through.
"""

from .rank import main

__all__ = ["main"]
