"""``horovod.torch.optimizer``: where some programs import DistributedOptimizer from."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.torch", globals())
