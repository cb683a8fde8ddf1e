"""``horovod.torch``: what ``distributed_dl_training.torch`` has, by Horovod's rules."""

import importlib

from distributed_dl_training.alias import mirror_torch as _mirror

_mirror(globals())
check_extension = importlib.import_module("horovod.common.util").check_extension
for _name in ("compression", "functions", "mpi_ops", "optimizer", "sync_batch_norm"):
    importlib.import_module(f"horovod.torch.{_name}")
