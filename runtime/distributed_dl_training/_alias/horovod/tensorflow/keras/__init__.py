"""``horovod.tensorflow.keras``: everything that ``distributed_dl_training.keras`` has."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.keras", globals())
