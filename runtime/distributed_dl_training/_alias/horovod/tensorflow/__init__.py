"""``horovod.tensorflow``: everything that ``distributed_dl_training.tensorflow`` has."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.tensorflow", globals())
