"""``horovod.tensorflow.util``: what programs and Horovod's own tests import from there."""

import functools
from typing import Any

import tensorflow as tf

from distributed_dl_training import _missing

_executing_eagerly = tf.executing_eagerly
_make_subgraph = tf.function

_missing.refuse(__name__, _missing.refused(__name__))


def _cache(function: Any) -> Any:
    """Keep results by their arguments, eager ones apart from those of graphs."""
    kept = functools.lru_cache(maxsize=None)(lambda eager, *arguments: function(*arguments))
    return lambda *arguments: kept(_executing_eagerly(), *arguments)


def vars_to_refs(vars: Any) -> Any:
    """Return hashable references of variables, in tuples where these are in lists."""
    return tuple(map(vars_to_refs, vars)) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs: Any) -> Any:
    """Return the variables of references, in lists where these are in tuples."""
    return list(map(refs_to_vars, refs)) if isinstance(refs, tuple) else refs.deref()
