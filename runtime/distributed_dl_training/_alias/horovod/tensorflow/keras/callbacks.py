"""``horovod.tensorflow.keras.callbacks``: the callbacks of Keras."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.tensorflow.keras.callbacks", globals())
