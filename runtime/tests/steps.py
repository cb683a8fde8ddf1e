"""Many steps in random orders, compared bit by bit with mpi4py: python steps.py STEPS.

Every rank asks for 12 tensors of mixed dtypes in a random order of its own.  What went through
the engine is noted: which bytes each reduction took and gave.  So are the tensors.  mpi4py then
reduces the same bytes over another communicator, and must give the same; and each tensor's result
must be what the reduction that carried it gave, also if that was one beside the agreement.  With 4
ranks the order in which MPI adds depends on the length of a message and on the place in it, so that
only the same message is the same sum.
"""

import gc
import random
import resource
import sys
import tracemalloc
from typing import Any, Dict, List, Tuple

import numpy as np
from mpi4py import MPI

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _opening, _session

STEPS = int(sys.argv[1])
DTYPES = ["f4", "f4", "f4", "f8", "f2", "i4", "f4", "f8", "f4", "f2", "c8", "f4"]
LENGTHS = [5, 1000, 3, 77, 10, 64, 4097, 1, 300, 33, 8, 0]
OPERATIONS = {hvd.Op.SUM: MPI.SUM, hvd.Op.MAX: MPI.MAX}
Carried = List[Tuple[Any, Any, Any]]


def watch_what_travels_along(carried: Carried) -> None:
    """Note what each rank has sent along with the agreement, what came of it, and the operation."""
    carry, finish = _opening.Opening.carry, _opening.Opening.finish

    def carry_noted(opening: Any, handle: Any) -> None:
        carry(opening, handle)
        opening.taken = opening._values.copy()

    def finish_noted(opening: Any, handle: Any) -> None:
        carried.append((opening.taken, opening._values.copy(), opening.kind.op))
        finish(opening, handle)

    _opening.Opening.carry = carry_noted  # type: ignore[method-assign]
    _opening.Opening.finish = finish_noted  # type: ignore[method-assign]


def watch(engine: Any, carried: Carried) -> None:
    """Note what each reduction took and gave, and its operation."""
    real = engine.allreduce

    def allreduce(values: Any, op: hvd.Op) -> None:
        taken = values.copy()
        real(values, op)
        carried.append((taken, values.copy(), op))

    engine.allreduce = allreduce


def summed(comm: Any, taken: Any, op: hvd.Op) -> Any:
    given = taken.copy()
    comm.Allreduce(MPI.IN_PLACE, given, op=OPERATIONS[op])
    return given


def step(number: int, chance: random.Random, values: Dict[int, Any]) -> Dict[int, Any]:
    """Ask in a random order, wait in another one; return results by tensor."""
    places = list(range(len(DTYPES)))
    chance.shuffle(places)
    handles = {}
    for n in places:
        op = hvd.Max if n == 5 else hvd.Sum
        handles[n] = hvd.allreduce_async(values[n], name=f"t{n}", op=op)
        if chance.random() < 0.05:
            hvd.poll(handles[n])
    chance.shuffle(places)
    return {n: hvd.synchronize(handles[n]) for n in places}


def check(carried: Carried, values: Dict[int, Any], results: Dict[int, Any], comm: Any) -> None:
    """Demand that all was carried, the same on all ranks, and summed as mpi4py does it."""
    pool: Dict[str, List[Tuple[Any, Any]]] = {}
    for taken, given, op in carried:
        assert summed(comm, taken, op).tobytes() == given.tobytes(), (taken.size, op)
        pool.setdefault(taken.dtype.str, []).append((taken, given))
    for n, value in values.items():
        wide = value.astype("f4") if value.dtype == np.float16 else value
        if not wide.size:
            continue
        found = False
        for taken, given in pool[wide.dtype.str]:
            at = taken.tobytes().find(wide.tobytes())
            start = at // wide.itemsize
            piece = given[start : start + wide.size].astype(value.dtype)
            if at >= 0 and piece.tobytes() == results[n].tobytes():
                found = True
        assert found, f"tensor {n} was not carried, or not by one message"
    moved = sum(taken.size for taken, _, _ in carried)
    assert moved == sum(value.size for value in values.values())


def main() -> None:
    hvd.init()
    comm = MPI.COMM_WORLD.Dup()
    chance = random.Random(hvd.rank())
    numbers = np.random.RandomState(hvd.rank())
    carried: Carried = []
    watch_what_travels_along(carried)
    session = _session._session
    assert session is not None
    watch(session.world.engine, carried)
    resident: List[int] = []
    traced: List[int] = []
    objects: List[int] = []
    tracemalloc.start()
    for number in range(STEPS):
        values = {}
        for n, (dtype, length) in enumerate(zip(DTYPES, LENGTHS)):
            values[n] = (numbers.standard_normal(length) * 100).astype(dtype)
        results = step(number, chance, values)
        check(carried, values, results, comm)
        del carried[:]
        if number % (STEPS // 10) == STEPS // 10 - 1:
            del values, results
            gc.collect()
            resident.append(_resident())
            traced.append(tracemalloc.get_traced_memory()[0])
            objects.append(len(gc.get_objects()))
    tracemalloc.stop()
    hvd.shutdown()
    # After the first fifth everything has been seen once: caches, buffers, MPI's own.
    print(f"resident kB {resident}\ntraced bytes {traced}\nobjects {objects}")
    assert max(traced[2:]) - traced[1] < 100000, traced
    assert max(objects[2:]) - objects[1] < 500, objects
    assert max(resident[2:]) - resident[1] < 8 << 10, resident


def _resident() -> int:
    """Return this process's resident memory in kB."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() >> 10


if __name__ == "__main__":
    main()
