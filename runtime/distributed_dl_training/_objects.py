"""Python objects between ranks, by pickle: their lengths first, then their bytes."""

import pickle
from typing import Any, List, Optional

import numpy

from distributed_dl_training import _collectives, _facts
from distributed_dl_training._arrays import ARRAYS
from distributed_dl_training._core import Array, part_name
from distributed_dl_training._session import ProcessSet


def broadcast(
    obj: Any, root_rank: int, name: Optional[str], process_set: Optional[ProcessSet]
) -> Any:
    """Return the root's ``obj``."""

    def everywhere(data: Any, named: Optional[str]) -> Any:
        return _collectives.broadcast(ARRAYS, data, root_rank, named, process_set).synchronize()

    root = _facts.rank() == root_rank
    data = _pickled(obj) if root else None
    length = _length(data) if root else numpy.zeros(1, dtype=numpy.int64)
    count = int(everywhere(length, part_name(name, "length"))[0])
    moved = everywhere(data if root else numpy.empty(count, dtype=numpy.uint8), name)
    return obj if root else pickle.loads(moved.tobytes())


def allgather(obj: Any, name: Optional[str], process_set: Optional[ProcessSet]) -> List[Any]:
    """Return every rank's ``obj``."""

    def joined(data: Any, named: Optional[str]) -> Any:
        return _collectives.allgather(ARRAYS, data, named, process_set).synchronize()

    data = _pickled(obj)
    lengths = joined(_length(data), part_name(name, "length"))
    everything = joined(data, name).tobytes()
    ends = numpy.cumsum(lengths)
    return [pickle.loads(everything[end - count : end]) for count, end in zip(lengths, ends)]


class _Unpicklable:
    """Stands for an object that pickle refuses: it is raised in step with the other ranks."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __array__(self, *unused: Any, **unused_too: Any) -> Array:
        raise self._error


def _pickled(obj: Any) -> Any:
    try:
        return numpy.frombuffer(pickle.dumps(obj), dtype=numpy.uint8)
    except Exception as error:  # __reduce__ may raise anything
        return _Unpicklable(error)


def _length(data: Any) -> Any:
    if isinstance(data, _Unpicklable):
        return data
    return numpy.array([data.size], dtype=numpy.int64)
