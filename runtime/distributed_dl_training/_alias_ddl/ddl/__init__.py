"""``import ddl`` answered by distributed-dl-training, where its alias is switched on.

See :mod:`distributed_dl_training.alias`.  A real DDL that lies elsewhere on ``sys.path`` is never
hidden: this module refuses to be imported then, and names it.
"""

from distributed_dl_training import alias as _alias

__ddlt_alias__ = True

_alias.refuse_beside_real("ddl")
_alias.mirror("distributed_dl_training.tensorflow.ddl", globals())
