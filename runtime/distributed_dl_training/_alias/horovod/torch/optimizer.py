"""``horovod.torch.optimizer``: where some programs import DistributedOptimizer from."""

from distributed_dl_training.alias import mirror_torch as _mirror

_mirror(globals())
