"""``horovod.common.exceptions``: what programs catch."""

from distributed_dl_training import _missing
from distributed_dl_training._horovod import (
    HorovodInternalError,
    HorovodVersionMismatchError,
    HostsUpdatedInterrupt,
)

_missing.refuse(__name__, _missing.refused(__name__))

__all__ = ["HorovodInternalError", "HorovodVersionMismatchError", "HostsUpdatedInterrupt"]
