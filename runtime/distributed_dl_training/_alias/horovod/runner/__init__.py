"""``horovod.runner.run``: call a function on several ranks."""

from distributed_dl_training.launch._function import run

__all__ = ["run"]
