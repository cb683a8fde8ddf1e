"""``import horovod`` answered by distributed-dl-training, where its alias is switched on.

See :mod:`distributed_dl_training.alias`.  A real Horovod that lies elsewhere on ``sys.path`` is
never hidden: this package refuses to be imported then, and names it.
"""

import sys as _sys
from typing import Any

from distributed_dl_training import _missing, build_record  # noqa: F401 - smoke tests record it
from distributed_dl_training import alias as _alias

__ddlt_alias__ = True
__version__ = _alias.version()

_alias.refuse_beside_real("horovod")
_sys.meta_path.append(_missing.RefusedModules())  # last: for what no other finder has


def run(*args: Any, **kwargs: Any) -> Any:
    """See :func:`horovod.runner.run`."""
    from distributed_dl_training.launch._function import run as run_

    return run_(*args, **kwargs)
