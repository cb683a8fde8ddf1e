"""``horovod.tensorflow.sync_batch_norm``: where programs import the layer from."""

from distributed_dl_training.alias import mirror_framework as _mirror

_mirror("tensorflow", globals())
