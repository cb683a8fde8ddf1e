"""``horovod.tensorflow.mpi_ops``: where some programs import the collectives from."""

from distributed_dl_training._horovod import HorovodBasics as _HorovodBasics
from distributed_dl_training.alias import mirror_framework as _mirror

_mirror("tensorflow", globals())
_basics = _HorovodBasics()
