"""Ranks and sizes as tensors, which a graph evaluates when it runs."""

from typing import Any, Callable, Optional

import numpy
import tensorflow as tf

from distributed_dl_training import _collectives, _facts, _session
from distributed_dl_training.tensorflow._graph import run_function


def _number(function: Callable[[], int]) -> Any:
    def evaluate(_: Any) -> Any:
        return [numpy.array(function(), dtype=numpy.int32)]

    return run_function(evaluate, [], [tf.int32], [tf.TensorShape([])])[0]


def _process_set(process_set_id: int) -> _session.ProcessSet:
    return _session.facts().members[process_set_id]


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """Return the number of ranks of a process set, as an integer scalar."""
    return _number(lambda: _process_set(process_set_id).size())


def rank_op(name: Optional[str] = None) -> Any:
    """Return this process's rank, as an integer scalar."""
    return _number(_facts.rank)


def local_size_op(name: Optional[str] = None) -> Any:
    """Return the number of ranks on this node, as an integer scalar."""
    return _number(_facts.local_size)


def local_rank_op(name: Optional[str] = None) -> Any:
    """Return this rank's place on its node, as an integer scalar."""
    return _number(_facts.local_rank)


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """Return 1 if this process is one of the set, else 0, as an integer scalar."""
    return _number(lambda: int(_process_set(process_set_id).included()))


def join() -> Any:
    """Contribute zeros until all ranks have joined; return the last rank as a scalar."""
    return _number(_collectives.join)
