"""A collective as a value, and how it is carried out on memory of the host."""

import functools
import json
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _collectives, _session
from distributed_dl_training._arrays import ARRAYS, Arrays
from distributed_dl_training._core import Array, Op, elements, part_name
from distributed_dl_training._handle import Handle
from distributed_dl_training._session import ProcessSet, global_process_set


class Collective(NamedTuple):
    """A collective of one or several tensors.

    call: allreduce, allgather, broadcast, alltoall or reducescatter.
    op, prescale, postscale: of an allreduce and reducescatter.
    root: of a broadcast.
    """

    call: str
    name: Optional[str]
    process_set: ProcessSet
    op: Any = Op.SUM
    prescale: Any = 1.0
    postscale: Any = 1.0
    root: Any = -1

    @property
    def in_place(self) -> bool:
        """Tell whether results have the shape of the tensors, and can replace them."""
        return self.call in ("allreduce", "broadcast")

    def part(self, number: int) -> "Collective":
        """Return the collective of some of the tensors."""
        return self._replace(name=part_name(self.name, number))

    def run(self, arrays: List[Array]) -> List[Array]:
        """Carry it out; return its results.  Raises what the collective raises."""
        if not self.in_place:
            return self.results(list(self.start(arrays)))
        if len(arrays) == 1:
            one = self._reduce_one(ARRAYS, arrays[0], True) if self.call == "allreduce" else None
            return self.results([one] if one else list(self.start(arrays)))
        groups = groups_of([array.dtype for array in arrays])
        parts = [self.part(number) for number in range(len(groups))]
        members = [[arrays[index] for index in group] for group in groups]
        if self.call == "broadcast":
            handles = [list(part.start(group)) for part, group in zip(parts, members)]
            return ungroup(groups, [self.results(group) for group in handles])
        reductions = [part._reduce_group(ARRAYS, group) for part, group in zip(parts, members)]
        return ungroup(groups, self.results(reductions))

    def start(self, arrays: Sequence[Array]) -> Iterator[Handle]:
        """Start it, unless it is an allreduce; yield the handle of each part."""
        process_set = self.process_set
        if self.call == "allgather":
            for array, part in zip(arrays, self._part_names(len(arrays))):
                yield _collectives.allgather(ARRAYS, array, part, process_set)
        elif self.call == "broadcast":
            for array, part in zip(arrays, self._part_names(len(arrays))):
                yield self._broadcast(ARRAYS, array, part)
        elif self.call == "alltoall":
            splits = arrays[1].tolist() if len(arrays) > 1 else None
            yield _collectives.alltoall(ARRAYS, arrays[0], splits, self.name, process_set)
        else:
            factors = (self.prescale, self.postscale)
            yield _collectives.reducescatter(
                ARRAYS, arrays[0], self.name, self.op, factors, process_set
            )

    def start_in_place(self, flat: Array, shapes: Sequence[Any]) -> Iterator[Handle]:
        """Start an allreduce or a broadcast of tensors that lie one behind the other in ``flat``.

        Yield the handle of each part.  The results replace the tensors.
        """
        if self.call == "broadcast":
            for tensor, part in zip(_cut(flat, shapes), self._part_names(len(shapes))):
                yield self._broadcast(HOST_MEMORY, tensor, part, in_place=True)
        elif len(shapes) == 1:
            yield self._reduce_one(HOST_MEMORY, flat.reshape(shapes[0]), in_place=True)
        elif self.op is Op.ADASUM:
            yield self._reduce_group(HOST_MEMORY, list(_cut(flat, shapes)), in_place=True)
        else:
            factors = (self.prescale, self.postscale)
            yield _collectives.reduce_packed(
                ARRAYS, flat, shapes, self.name, self.op, factors, self.process_set
            )

    def results(self, handles: Iterable[Handle]) -> List[Array]:
        """Return the results of handles.  Raises what the collective raises."""
        values = [handle.synchronize() for handle in handles]
        if self.call != "alltoall":
            return values
        rows, received = values[0]
        return [rows, numpy.array(received, dtype=numpy.int32)]

    def encode(self) -> str:
        """Return it as text, the same for equal collectives."""
        fields: Dict[str, Any] = dict(self._asdict(), process_set=self.process_set.process_set_id)
        fields["op"] = self.op.value if isinstance(self.op, Op) else repr(self.op)
        return json.dumps(fields, sort_keys=True, default=_number_or_text)

    def _part_names(self, count: int) -> List[Optional[str]]:
        """Return the names of the parts; a single one has the collective's name."""
        if count == 1:
            return [self.name]
        return [part_name(self.name, index) for index in range(count)]

    def _reduce_one(
        self, adapter: Arrays, array: Array, waits: bool = False, in_place: bool = False
    ) -> Handle:
        return _collectives.reduce_one(
            adapter,
            array,
            self.name,
            self.op,
            self.prescale,
            self.postscale,
            self.process_set,
            waits,
            in_place,
        )

    def _reduce_group(
        self, adapter: Arrays, arrays: Sequence[Array], in_place: bool = False
    ) -> Handle:
        return _collectives.allreduce(
            adapter,
            arrays,
            self.name,
            self.op,
            (self.prescale, self.postscale),
            self.process_set,
            grouped=True,
            in_place=in_place,
        )

    def _broadcast(
        self, adapter: Arrays, array: Array, name: Optional[str], in_place: bool = False
    ) -> Handle:
        return _collectives.broadcast(adapter, array, self.root, name, self.process_set, in_place)


class _HostMemory(Arrays):
    """The adapter of arrays whose memory a collective may change."""

    def write(self, tensor: Any) -> Optional[Array]:
        return self.read(tensor).flat


HOST_MEMORY = _HostMemory()


def _cut(flat: Array, shapes: Sequence[Any]) -> Iterator[Array]:
    """Yield the tensors of these shapes that lie one behind the other in ``flat``."""
    start = 0
    for shape in shapes:
        end = start + elements(shape)
        yield flat[start:end].reshape(shape)
        start = end


def decode(text: str) -> Collective:
    """Return what ``encode`` wrote.  Raises ValueError if its process set is gone."""
    collective, number = _decode(text)
    if number == 0:
        return collective
    members = _session.facts().members
    if number not in members:
        raise ValueError(f"there is no process set {number}: add_process_set() makes it usable")
    return collective._replace(process_set=members[number])


@functools.lru_cache(maxsize=1 << 14)
def _decode(text: str) -> Tuple[Collective, Any]:
    fields = json.loads(text)
    operations: Dict[str, Any] = {op.value: op for op in Op}
    fields["op"] = operations.get(fields["op"], fields["op"])
    number = fields.pop("process_set")
    return Collective(process_set=global_process_set, **fields), number


def _number_or_text(value: Any) -> Any:
    """Return what JSON has for a value; text is refused later, together with the other ranks."""
    return value.item() if hasattr(value, "item") else repr(value)


def groups_of(keys: Sequence[Any]) -> List[List[int]]:
    """Return the indices of equal keys, in the order of their first ones."""
    groups: Dict[Any, List[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def ungroup(groups: Sequence[List[int]], values: Sequence[Any]) -> List[Any]:
    """Return the values of groups in the order of their indices."""
    pairs = [pair for group, members in zip(groups, values) for pair in zip(group, members)]
    return [value for _, value in sorted(pairs, key=lambda pair: pair[0])]
