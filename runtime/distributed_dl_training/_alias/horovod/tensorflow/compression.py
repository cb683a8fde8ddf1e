"""``horovod.tensorflow.compression``: where some programs import Compression from."""

from distributed_dl_training.alias import mirror as _mirror

_mirror("distributed_dl_training.tensorflow._compression", globals())
