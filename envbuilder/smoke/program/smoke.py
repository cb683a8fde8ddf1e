"""The smoke test that every rank runs: do the ranks talk, and are their results exact?

    mpiexec -n 2 python smoke.py --out DIR --nonce HEX --ranks 2 --api numpy

The folder smoke_program must lie beside this file. Python >= 3.6, numpy, and what it talks through.
"""

import sys

# The environment under test is read-only, and the folder of a run holds what was written for it.
sys.dont_write_bytecode = True

from smoke_program.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
