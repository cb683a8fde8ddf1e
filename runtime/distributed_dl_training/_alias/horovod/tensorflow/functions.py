"""``horovod.tensorflow.functions``: where some programs import the broadcasts from."""

from distributed_dl_training.alias import mirror_framework as _mirror

_mirror("tensorflow", globals())
