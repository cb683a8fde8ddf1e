"""``horovod.common.process_sets``: sets of ranks."""

from distributed_dl_training._horovod import ProcessSet, add_process_set, remove_process_set
from distributed_dl_training._session import global_process_set

__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]
