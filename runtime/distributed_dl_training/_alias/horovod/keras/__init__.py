"""``horovod.keras``: what ``distributed_dl_training.keras`` has, by Horovod's rules."""

from distributed_dl_training.alias import mirror_framework as _mirror

_mirror("keras", globals())
