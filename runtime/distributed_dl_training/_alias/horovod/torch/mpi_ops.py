"""``horovod.torch.mpi_ops``: where some programs import allreduce and its kin from."""

from distributed_dl_training._horovod import HorovodBasics as _HorovodBasics
from distributed_dl_training.alias import mirror_torch as _mirror

_mirror(globals())
_basics = _HorovodBasics()
