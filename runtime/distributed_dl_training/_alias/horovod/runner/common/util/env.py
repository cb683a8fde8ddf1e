"""``horovod.runner.common.util.env``: rank and size before ``init``."""

import os
from typing import Tuple

from distributed_dl_training import _missing

_missing.refuse(__name__, _missing.refused(__name__))
_LAUNCHERS = ("HOROVOD", "OMPI_COMM_WORLD", "PMI")


def get_env_rank_and_size() -> Tuple[int, int]:
    """Return the rank and the number of ranks that the launcher's variables state; else 0 and 1.

    Raises RuntimeError if they state one of the two alone.
    """
    for launcher in _LAUNCHERS:
        names = f"{launcher}_RANK", f"{launcher}_SIZE"
        values = [os.environ.get(name) for name in names]
        if values[0] is not None and values[1] is not None:
            return int(values[0]), int(values[1])
        if values != [None, None]:
            raise RuntimeError(f"of {' and '.join(names)} one is set and the other is not")
    return 0, 1
