"""``horovod.tensorflow.keras``: what our module for tf.keras has, by Horovod's rules."""

from distributed_dl_training.alias import mirror_framework as _mirror

_mirror("tensorflow.keras", globals())
