"""``horovod.torch.compression``: where some programs import Compression from."""

from distributed_dl_training.alias import mirror_torch as _mirror
from distributed_dl_training.torch import _compression

_mirror(globals())
_mirror_names = ("Compressor", "FP16Compressor", "NoneCompressor")
for _name in _mirror_names:
    globals()[_name] = getattr(_compression, _name)
