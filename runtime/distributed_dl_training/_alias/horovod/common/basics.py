"""``horovod.common.basics``: the session's functions as methods of one class."""

from distributed_dl_training._horovod import HorovodBasics

__all__ = ["HorovodBasics"]
