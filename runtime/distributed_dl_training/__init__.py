"""Collective operations for distributed deep learning that check that all ranks agree.

Programs import one module per framework, for example::

    import distributed_dl_training.numpy as hvd

This package itself carries only what needs neither a framework nor MPI.
"""

import json
import pkgutil
from typing import Any, Dict, Optional, cast

__version__ = "0.1.0"
__all__ = ["__version__", "build_record"]


def build_record() -> Optional[Dict[str, Any]]:
    """Return what this copy was built against, or None if it carries no record.

    The keys are those that :mod:`distributed_dl_training.record` writes; ``schema`` tells
    their layout.  A plain source tree has no record.

    Raises ValueError if the file is there but is not JSON.
    """
    try:
        data = pkgutil.get_data(__name__, "build_record.json")
    except OSError:
        return None
    return None if data is None else cast(Dict[str, Any], json.loads(data.decode("utf-8")))
