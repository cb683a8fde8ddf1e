"""Very many small collectives of all kinds: python soak.py COUNT.

Every rank asks for COUNT of them, in orders of its own: named ones over all ranks and over process
sets that overlap, some without a name, with ranks that join early, and with sets that are removed
and added again.  All values are integers that every dtype holds, so that each result is known to
the last bit.  Memory, threads and open files must not grow.
"""

import gc
import os
import random
import resource
import sys
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np

import distributed_dl_training.numpy as hvd

COUNT = int(sys.argv[1])
DTYPES = ["f4", "f8", "f2", "i4", "i8", "u1", "f4"]
LENGTHS = [5, 64, 1, 300, 17, 1000, 2]
NAMES = 24  # over all ranks, in one step; a set has a third of them
SAMPLES = 10
IN_TURN = 12  # in one step, that are waited for one by one
JOINS, SETS = 10, 25  # steps between joins, and until a set is removed and added again


class Pending(NamedTuple):
    """A collective under way, and what must come of it."""

    handle: Any
    want: Any


class Group(NamedTuple):
    """Ranks that ask together, and which of their set's numbers is this one's."""

    members: List[int]
    process_set: Any


def values(rank: int, number: int, count: int) -> Any:
    """Return what a rank has for a number: whole, below 8, so that four ranks fit into a byte."""
    dtype = DTYPES[number % len(DTYPES)]
    return ((np.arange(count) * 3 + rank * 5 + number) % 8).astype(dtype)


def reduce_sum(group: Group, number: int, count: int, name: Any) -> Pending:
    parts = [values(rank, number, count) for rank in group.members]
    mine = values(hvd.rank(), number, count)
    handle = hvd.allreduce_async(mine, name=name, op=hvd.Sum, process_set=group.process_set)
    return Pending(handle, sum(parts[1:], parts[0]))


def reduce_max(group: Group, number: int, count: int, name: Any) -> Pending:
    parts = [values(rank, number, count) for rank in group.members]
    mine = values(hvd.rank(), number, count)
    handle = hvd.allreduce_async(mine, name=name, op=hvd.Max, process_set=group.process_set)
    return Pending(handle, np.maximum.reduce(parts))


def gather(group: Group, number: int, count: int, name: Any) -> Pending:
    parts = [values(rank, number, (count * (rank + 1)) % 50) for rank in group.members]
    mine = values(hvd.rank(), number, (count * (hvd.rank() + 1)) % 50)
    handle = hvd.allgather_async(mine, name=name, process_set=group.process_set)
    return Pending(handle, np.concatenate(parts))


def broadcast(group: Group, number: int, count: int, name: Any) -> Pending:
    root = group.members[number % len(group.members)]
    mine = values(hvd.rank(), number, count)
    handle = hvd.broadcast_async(mine, root, name=name, process_set=group.process_set)
    return Pending(handle, values(root, number, count))


def scatter(group: Group, number: int, count: int, name: Any) -> Pending:
    rows = count % 9
    parts = [values(rank, number, rows) for rank in group.members]
    size, place = len(group.members), group.members.index(hvd.rank())
    shares = [rows // size + (at < rows % size) for at in range(size)]
    start = sum(shares[:place])
    mine = values(hvd.rank(), number, rows)
    handle = hvd.reducescatter_async(mine, name=name, op=hvd.Sum, process_set=group.process_set)
    return Pending(handle, sum(parts[1:], parts[0])[start : start + shares[place]])


def exchange(group: Group, number: int, count: int, name: Any) -> Pending:
    size, place = len(group.members), group.members.index(hvd.rank())
    parts = [values(rank, number, size) for rank in group.members]
    mine = values(hvd.rank(), number, size)
    handle = hvd.alltoall_async(mine, name=name, process_set=group.process_set)
    return Pending(handle, np.array([part[place] for part in parts]))


KINDS: Tuple[Callable[[Group, int, int, Any], Pending], ...]
KINDS = (reduce_sum, reduce_max, gather, broadcast, scatter, exchange, reduce_sum, reduce_sum)


def check(asked: Pending) -> None:
    got = hvd.synchronize(asked.handle)
    got = got[0] if isinstance(got, tuple) else got
    assert got.dtype == asked.want.dtype and got.tobytes() == asked.want.tobytes(), (
        asked.handle.request,
        got,
        asked.want,
    )


def step(number: int, groups: List[Group], chance: random.Random) -> int:
    """Ask for all names of all groups in a random order, wait in another; return how many."""
    wishes = []
    for at, group in enumerate(groups):
        if hvd.rank() in group.members:
            wishes += [(group, n) for n in range(NAMES if at == 0 else NAMES // 3)]
    chance.shuffle(wishes)
    under_way = []
    for group, n in wishes:
        # Now and then a name comes with another length, which is negotiated anew.
        count = LENGTHS[(n + number // 50) % len(LENGTHS)]
        under_way.append(KINDS[n % len(KINDS)](group, n, count, f"name{n}"))
        if chance.random() < 0.02:
            hvd.poll(under_way[-1].handle)
    without = [reduce_sum(groups[0], n, 3 + n, None) for n in range(3)]
    chance.shuffle(under_way)
    for asked in under_way + without:
        check(asked)
    return len(under_way) + len(without)


def one_by_one(number: int, chance: random.Random) -> int:
    """Wait for each at once, as all ranks do in one order; each asks in a way of its own."""
    same = random.Random(number)
    everybody = list(range(hvd.size()))
    for at in range(IN_TURN):
        n = same.randrange(len(LENGTHS))
        parts = [values(rank, n, LENGTHS[n]) for rank in everybody]
        want, mine, name = sum(parts[1:], parts[0]), parts[hvd.rank()], f"in turn {n}"
        if chance.random() < 0.001:
            time.sleep(0.15)  # longer than others wait for it in the thread that asks
        if chance.random() < 0.7:
            got = hvd.allreduce(mine, name=name, op=hvd.Sum)
        else:
            handle = hvd.allreduce_async(mine, name=name, op=hvd.Sum)
            while chance.random() < 0.5 and not hvd.poll(handle):
                pass
            got = hvd.synchronize(handle)
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes(), (at, name, got, want)
    return IN_TURN


def uneven_end(number: int) -> int:
    """Let the ranks have different numbers of batches, and join; return this one's and the join."""
    size, last = hvd.size(), (number // JOINS) % hvd.size()
    batches = [1 + (rank - last - 1) % size for rank in range(size)]
    for batch in range(batches[hvd.rank()]):
        there = [rank for rank in range(size) if batch < batches[rank]]
        check(reduce_sum(Group(there, hvd.global_process_set), 1, 7, "until join"))
    assert hvd.join() == last
    return batches[hvd.rank()] + 1


def held() -> Dict[str, int]:
    """Return what this process holds: kB in memory, objects, threads, open files."""
    gc.collect()
    with open("/proc/self/statm") as stream:
        pages = int(stream.read().split()[1])
    return {
        "kB": pages * resource.getpagesize() >> 10,
        "objects": len(gc.get_objects()),
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
    }


def main() -> None:
    hvd.init()
    size = hvd.size()
    chance = random.Random(hvd.rank())
    subsets = [[0, size - 1], list(range(size))[::2], list(range(1, size))]
    least = 1 if size == 2 else 2  # of two ranks there are only sets of one
    subsets = [one for at, one in enumerate(subsets) if one not in subsets[:at]]
    subsets = [one for one in subsets if least <= len(one) < size]
    sets = [hvd.add_process_set(one) for one in subsets]
    done = number = 0
    samples: List[Dict[str, int]] = []
    while len(samples) < SAMPLES:
        groups = [Group(list(range(size)), hvd.global_process_set)]
        groups += [Group(one, each) for one, each in zip(subsets, sets)]
        done += step(number, groups, chance)
        done += one_by_one(number, chance)
        if number % JOINS == JOINS - 1:
            done += uneven_end(number)
        if sets and number % SETS == SETS - 1:
            at = (number // SETS) % len(sets)
            assert hvd.remove_process_set(sets[at])
            sets[at] = hvd.add_process_set(subsets[at])
        number += 1
        asked = hvd.allreduce(done, name="done", op=hvd.Min)
        if asked * SAMPLES >= COUNT * (len(samples) + 1):
            samples.append(held())
            if hvd.rank() == 0:  # of a long run something is to be seen
                sys.stderr.write(f"{asked} of {COUNT}: {samples[-1]}\n")
    hvd.shutdown()
    print(
        f"{done} collectives in {number} steps; "
        + str({k: [s[k] for s in samples] for k in samples[0]})
    )
    settled, later = samples[1], samples[2:]
    for name, most in (("kB", 8 << 10), ("threads", 0), ("files", 0)):
        growth = max(each[name] for each in later) - settled[name]
        assert growth <= most, (name, growth)
    # The objects of a step come and go; what is never freed raises the least number of them too.
    growth = min(each["objects"] for each in samples[SAMPLES // 2 :]) - settled["objects"]
    assert growth <= 300, ("objects", growth)


if __name__ == "__main__":
    main()
