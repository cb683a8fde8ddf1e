"""``horovod.torch.functions``: where some programs import broadcast_parameters and its kin from."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.torch", globals())
