"""``horovod.torch.sync_batch_norm``: where some programs import SyncBatchNorm from."""

from distributed_dl_training.alias import mirror_torch as _mirror

_mirror(globals())
