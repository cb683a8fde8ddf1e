"""The collectives, for tensors of any framework: arguments checked, requests made, results shaped.

A framework module is an :class:`Adapter`, which turns its tensors into flat numpy arrays and back,
and thin functions with its own docstrings over the ones here.  Each of these returns a
:class:`Handle` at once.

Wrong arguments are not raised at once: an error on one rank alone would leave the others waiting.
They are part of what the ranks agree on, so that either all ranks refuse or all see a
MismatchError.
"""

import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _arguments, _memory, _reduce, _results, _session
from distributed_dl_training._adapter import Adapter as Adapter
from distributed_dl_training._adapter import Local as Local
from distributed_dl_training._adapter import Place as Place
from distributed_dl_training._adasum import Adasum
from distributed_dl_training._adasum import refusal as _adasum_refusal
from distributed_dl_training._agreement import JOIN, Request
from distributed_dl_training._controller import Controller
from distributed_dl_training._core import ArgumentError, Array, Op, elements
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._reductions import (
    ArrayReduction,
    Reduction,
    find,
    remember,
)
from distributed_dl_training._session import ProcessSet
from distributed_dl_training._works import (
    Allgather,
    Allreduce,
    Alltoall,
    Broadcast,
    Nothing,
    ReduceScatter,
    Work,
)

Result = Callable[[Any], Any]


# What stands for a group of no tensors.
_EMPTY = Local(numpy.empty(0, dtype=numpy.float32), (0,), "float32")


def reduce_one(
    adapter: Adapter,
    tensor: Any,
    name: Optional[str],
    op: Any,
    prescale: Any,
    postscale: Any,
    process_set: Optional[ProcessSet] = None,
    waits: bool = False,
    in_place: bool = False,
) -> Handle:
    """Reduce one tensor: ``allreduce`` in fewer steps, for what was asked before."""
    controller = _session.controller(process_set)
    try:
        last = controller.arrays.get(name)
    except TypeError:  # a name that is no text
        last = None
    flat = None
    if (
        last is not None
        and op is last.given_op  # the same objects: what is equal otherwise takes the longer way
        and prescale is last.given_prescale
        and postscale is last.given_postscale
    ):
        flat = adapter.flat(tensor, last, in_place)
    if flat is None:
        factors = (prescale, postscale)
        local = adapter.read(tensor)
        key = (name, local.dtype, local.shape, op, factors, None)
        found = None if local.error is not None else find(controller, key)
        if found is not None:
            given = (op, prescale, postscale)
            last = ArrayReduction(local.shape, getattr(tensor, "dtype", None), given, found)
            flat = adapter.flat(tensor, last, in_place)
        if flat is None or last is None:
            return allreduce(
                adapter, [tensor], name, op, factors, process_set, in_place=in_place, waits=waits
            )
        remember(controller.arrays, name, last)
    handle: ArrayHandle = adapter.handle(controller, last, flat, tensor)
    if in_place:
        handle.in_place = True
    if waits:
        controller.run(handle)
    else:
        controller.submit(handle)
    return handle


def allreduce(
    adapter: Adapter,
    tensors: Sequence[Any],
    name: Optional[str],
    op: Any,
    factors: Tuple[Any, Any],
    process_set: Optional[ProcessSet] = None,
    grouped: bool = False,
    in_place: bool = False,
    place: Optional[Place] = None,
    waits: bool = False,
) -> Handle:
    """Reduce one tensor, or several as a group; the group's result is a list.

    waits: whether the caller waits for it at once.
    """
    controller = _session.controller(process_set)
    if place is not None:
        local = [place.tensor]
    elif grouped:
        local = [adapter.read(tensor) for tensor in tensors] or [_EMPTY]
    else:
        local = [adapter.read(tensors[0])]
    if op is Op.ADASUM:
        return _adasum(controller, adapter, tensors, local, name, factors, grouped, in_place)
    flat, shape, dtype, error = local[0]
    key = (name, dtype, shape, op, factors, place and (place.name, place.start))
    found = None
    if not grouped and error is None and (name is None or type(name) is str):
        found = find(controller, key)
    if found is None:
        found, refusal = _reduction(controller, local, name, op, factors, grouped, place)
        if refusal is not None:
            return _submit(process_set, found.request, Nothing(), refusal, None)
        if not grouped and (name is None or type(name) is str):
            remember(controller.remembered, key, found)
    request, kind, prescale, postscale = found
    own: Optional[Array] = None
    if in_place and not grouped:
        own = flat if place else adapter.write(tensors[0])
    sources, target = _sources_and_target(local, own)
    work = Allreduce(sources, target, kind, prescale, postscale)
    if place is not None:
        work.in_arena(place.flat, place.start)
    # Not a function in here: what holds its variables takes a sixth of the time of a small tensor.
    finish: Optional[Result] = None
    if not grouped and sources[0] is target:  # it is reduced where it lies
        work.value = tensors[0]
    elif grouped or in_place:
        finish = functools.partial(_results.cut, adapter, tensors, local, grouped, in_place)
    elif adapter.views:
        work.value = adapter.make(target, shape, tensors[0])
    else:
        finish = functools.partial(_results.make, adapter, shape, tensors[0])
    handle = Handle(request, work, None, finish)
    if waits:
        controller.run(handle)
    else:
        controller.submit(handle)
    return handle


def _adasum(
    controller: Controller,
    adapter: Adapter,
    tensors: Sequence[Any],
    local: Sequence[Local],
    name: Optional[str],
    factors: Tuple[Any, Any],
    grouped: bool,
    in_place: bool,
) -> Handle:
    """Combine tensors by Adasum, each with those of the other ranks."""
    found, refusal = _reduction(controller, local, name, Op.ADASUM, factors, grouped, None)
    on_device = not isinstance(local[0].flat, numpy.ndarray)
    refusal = refusal or _adasum_refusal(controller.engine.size, on_device)
    request = found.request._replace(call="adasum", refusal=_kind(refusal))
    if refusal is not None:
        return _submit_to(controller, request, Nothing(), refusal, None)
    sources = [each.flat for each in local]
    target = numpy.empty(sum([each.size for each in sources]), sources[0].dtype)
    work = Adasum(sources, target, found.prescale, found.postscale)
    finish = functools.partial(_results.cut, adapter, tensors, local, grouped, in_place)
    return _submit_to(controller, request, work, None, finish)


def reduce_packed(
    adapter: Adapter,
    flat: Array,
    shapes: Sequence[Tuple[int, ...]],
    name: Optional[str],
    op: Any,
    factors: Tuple[Any, Any],
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Reduce, as ``allreduce`` does a group, tensors that lie one behind the other in ``flat``.

    They are replaced by the result, which is ``flat``.  Not for Adasum, which keeps its operands.
    """
    controller = _session.controller(process_set)
    first = adapter.read(flat)
    key = (name, first.dtype, shapes, op, factors, "packed")
    found = find(controller, key)
    if found is None:
        local = [Local(first.flat, shape, first.dtype, first.error) for shape in shapes]
        found, refusal = _reduction(controller, local, name, op, factors, True, None)
        if refusal is not None:
            return _submit(process_set, found.request, Nothing(), refusal, None)
        remember(controller.remembered, key, found)
    request, kind, prescale, postscale = found
    work = Allreduce([first.flat], first.flat, kind, prescale, postscale)
    return _submit(process_set, request, work, None, None)


def _sources_and_target(local: Sequence[Local], own: Optional[Array]) -> Tuple[List[Array], Array]:
    """Return what is reduced, and where to: ``own``, a tensor's own memory, if that takes it."""
    flat = local[0].flat
    if own is not None and own.dtype == flat.dtype:
        sources, target = [own], own
    else:
        sources = [each.flat for each in local]
        target = _memory.empty(sum([each.size for each in sources]), flat.dtype, flat)
    if not isinstance(target, numpy.ndarray):
        _memory.order(target)
    return sources, target


def _reduction(
    controller: Controller,
    local: Sequence[Local],
    name: Optional[str],
    op: Any,
    factors: Tuple[Any, Any],
    grouped: bool,
    place: Optional[Place],
) -> Tuple[Reduction, Optional[Exception]]:
    """Return what the ranks are asked to agree on, and what is wrong with it."""
    first = local[0]
    scales, refusal = _arguments.factors(factors)
    if len(local) > 1:
        refusal = _arguments.group(local) or refusal
    refusal = first.error or refusal or _arguments.reduction(first, op, scales)
    request = Request(
        "allreduce",
        name if name is None else str(name),
        first.dtype,
        tuple([each.shape for each in local]) if grouped else first.shape,
        op._value_ if isinstance(op, Op) else type(op).__name__,
        scales[0],
        scales[1],
        -1,
        (place.name, place.start) if place else (),
        "" if refusal is None else _kind(refusal),
    )
    kind, postscale = _by_rules(op, scales[1], controller)
    return Reduction(request, kind, scales[0], postscale), refusal


def allgather(
    adapter: Adapter,
    tensor: Any,
    name: Optional[str],
    process_set: Optional[ProcessSet] = None,
    part_of: Optional[Request] = None,
) -> Handle:
    """Join tensors along the first dimension; ``part_of`` is what the ranks ask for with it."""
    local = adapter.read(tensor)
    refusal = local.error
    if refusal is None and not local.shape:
        refusal = ValueError("allgather needs an array of at least one dimension")
    trailing = local.shape[1:]
    shape: Tuple[Any, ...] = ("*",) + trailing if local.shape else ()
    if part_of is not None:
        shape = (shape, part_of.shape)
    asked = part_of or Request("allgather")
    request = asked._replace(
        name=_name(name), dtype=local.dtype, shape=shape, refusal=_kind(refusal)
    )
    if refusal is not None:
        return _submit(process_set, request, Nothing(), refusal, None)
    _memory.order(local.flat)
    work = Allgather(local.flat, local.shape[0], elements(trailing))

    def finish(done: Allgather) -> Any:
        return adapter.make(done.value, (done.rows,) + trailing, tensor)

    return _submit(process_set, request, work, None, finish)


def broadcast(
    adapter: Adapter,
    tensor: Any,
    root_rank: Any,
    name: Optional[str],
    process_set: Optional[ProcessSet] = None,
    in_place: bool = False,
) -> Handle:
    """Give every rank the root's tensor."""
    local = adapter.read(tensor)
    root, place, refusal = _arguments.root(root_rank, process_set)
    refusal = local.error or refusal
    request = Request(
        "broadcast", _name(name), local.dtype, local.shape, root=root, refusal=_kind(refusal)
    )
    if refusal is not None:
        return _submit(process_set, request, Nothing(), refusal, None)
    own = adapter.write(tensor) if in_place else None
    data = own if own is not None and own.dtype == local.flat.dtype else local.flat.copy()
    _memory.order(data)

    def finish(done: Broadcast) -> Any:
        if in_place:
            return _results.put_back(adapter, tensor, local.shape, done.value, own)
        return adapter.make(done.value, local.shape, tensor)

    return _submit(process_set, request, Broadcast(data, place), None, finish)


def alltoall(
    adapter: Adapter,
    tensor: Any,
    splits: Optional[Sequence[int]],
    name: Optional[str],
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Send rows to all ranks; the result is the rows received, and how many from each rank."""
    local = adapter.read(tensor)
    refusal = local.error
    if refusal is None and not local.shape:
        refusal = ValueError("alltoall needs an array of at least one dimension")
    size = _session.controller(process_set).engine.size
    rows = local.shape[0] if local.shape else 0
    counts: List[int] = []
    if refusal is None:
        counts, refusal = _arguments.splits(splits, rows, size)
    trailing = local.shape[1:]
    shape: Tuple[Any, ...] = ("*",) + trailing if local.shape else ()
    request = Request("alltoall", _name(name), local.dtype, shape, refusal=_kind(refusal))
    if refusal is not None:
        return _submit(process_set, request, Nothing(), refusal, None)

    def finish(done: Alltoall) -> Any:
        shape = (sum(done.received),) + trailing
        return adapter.make(done.value, shape, tensor), done.received

    _memory.order(local.flat)
    work = Alltoall(local.flat, counts, elements(trailing))
    return _submit(process_set, request, work, None, finish)


def reducescatter(
    adapter: Adapter,
    tensor: Any,
    name: Optional[str],
    op: Any,
    factors: Tuple[Any, Any],
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Reduce, and give each rank its share of the first dimension."""
    local = adapter.read(tensor)
    scales, refusal = _arguments.factors(factors)
    refusal = local.error or refusal or _arguments.reduction(local, op, scales)
    if refusal is None and not local.shape:
        refusal = ValueError("reducescatter needs an array of at least one dimension")
    if refusal is None and op not in (Op.SUM, Op.AVERAGE):
        refusal = ValueError("reducescatter takes op=Sum or op=Average")
    request = Request(
        "reducescatter",
        _name(name),
        local.dtype,
        local.shape,
        op.value if isinstance(op, Op) else type(op).__name__,
        scales[0],
        scales[1],
        refusal=_kind(refusal),
    )
    if refusal is not None:
        return _submit(process_set, request, Nothing(), refusal, None)
    engine = _session.controller(process_set).engine
    trailing = local.shape[1:]
    rows = share(local.shape[0], engine.size)
    dtype = local.flat.dtype
    values = _memory.converted(local.flat, _reduce.working(local.flat, engine))
    _memory.order(values)
    counts = [each * elements(trailing) for each in rows]

    def finish(done: ReduceScatter) -> Any:
        segment = done.value
        flat = segment if segment.dtype == dtype else _memory.converted(segment, dtype)
        return adapter.make(flat, (rows[engine.rank],) + trailing, tensor)

    kind, postscale = _by_rules(op, scales[1], _session.controller(process_set))
    work = ReduceScatter(values, counts, kind, scales[0], postscale)
    return _submit(process_set, request, work, None, finish)


def barrier(process_set: Optional[ProcessSet] = None) -> Handle:
    """Wait for every rank, as the caller is to do at once."""
    return _submit(process_set, Request("barrier"), Nothing(), None, None, True)


def join(device: int = -1) -> int:
    """Take part in what the other ranks still reduce, with zeros, until all have joined.

    device: Horovod's, and ignored.
    """
    handle = Handle(JOIN, Nothing())
    return int(_session.controller().submit(handle).synchronize())


def share(rows: int, size: int) -> List[int]:
    """Return how many of ``rows`` each rank gets: equally many, the first ones the rest."""
    return [rows // size + (rank < rows % size) for rank in range(size)]


def _submit(
    process_set: Optional[ProcessSet],
    request: Request,
    work: Work,
    refusal: Optional[Exception],
    finish: Optional[Result],
    waits: bool = False,
) -> Handle:
    controller = _session.controller(process_set)
    return _submit_to(controller, request, work, refusal, finish, waits)


def _submit_to(
    controller: Controller,
    request: Request,
    work: Work,
    refusal: Optional[Exception],
    finish: Optional[Result],
    waits: bool = False,
) -> Handle:
    if refusal is not None and _session.horovod_rules():
        told = ArgumentError(str(refusal))
        told.__cause__ = refusal
        refusal = told
    return controller.submit(Handle(request, work, refusal, finish), waits)


def _by_rules(op: Op, postscale: float, controller: Controller) -> Tuple[Op, float]:
    """Return how an operation is calculated, and the factor after it.

    Horovod's average is a sum times postscale / size, in one multiplication
    (horovod/common/ops/mpi_operations.cc:39 of 0.28.1); ours divides, which is rounded once less.
    """
    if op is Op.AVERAGE and _session.horovod_rules():
        return Op.SUM, postscale / controller.engine.size
    return op, postscale


def _name(name: Optional[str]) -> Optional[str]:
    return None if name is None else str(name)


def _kind(refusal: Optional[Exception]) -> str:
    return "" if refusal is None else type(refusal).__name__
