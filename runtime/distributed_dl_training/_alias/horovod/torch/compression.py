"""``horovod.torch.compression``: where some programs import Compression from."""

from distributed_dl_training.alias import mirror_torch as _mirror

_mirror(globals())
