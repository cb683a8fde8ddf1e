"""``horovod.torch.functions``: where some programs import broadcast_parameters and its kin from."""

from distributed_dl_training.alias import mirror_torch as _mirror

_mirror(globals())
