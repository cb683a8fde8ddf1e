"""``horovod.torch.mpi_ops``: where some programs import allreduce and its kin from."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.torch", globals())
