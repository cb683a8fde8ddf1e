"""``horovod.tensorflow``: what ``distributed_dl_training.tensorflow`` has, by Horovod's rules."""

import importlib

from distributed_dl_training.alias import mirror_framework as _mirror

_mirror("tensorflow", globals())
for _name in ("compression", "functions", "mpi_ops", "sync_batch_norm", "util"):
    _module = importlib.import_module(f"horovod.tensorflow.{_name}")
_executing_eagerly = _module._executing_eagerly
gpu_available = importlib.import_module("horovod.common.util").gpu_available
