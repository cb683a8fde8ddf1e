"""What opens a cycle: bits that ranks have in common, and values that travel along."""

import functools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Op
from distributed_dl_training._handle import ArrayHandle, Handle, Item
from distributed_dl_training._opening import Opening, Room
from distributed_dl_training._reductions import ArrayReduction, Reduction
from distributed_dl_training._works import Allreduce, Nothing

from fakes import Group

REDUCED = {Op.SUM: np.add, Op.PRODUCT: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum}
ORDERED = [np.dtype(code) for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")]
DTYPES = [*ORDERED, np.dtype("c8"), np.dtype("c16")]


def asked(values, op=Op.SUM, prescale=1.0, postscale=1.0, name="x"):
    """Return a handle for values, which are reduced elsewhere."""
    request = Request("allreduce", name, values.dtype.name, values.shape, op.value)
    target = np.full_like(values, 7)
    return Handle(request, Allreduce([values], target, op, prescale, postscale))


def asked_array(values, op, prescale, postscale):
    """Return a handle for an array whose result is a new one, made of what the ranks say."""
    given = (op, prescale, postscale)
    reduction = Reduction(asked(values, *given).request, *given)
    how = ArrayReduction(values.shape, values.dtype, given, reduction)
    return ArrayHandle(None, how, values.reshape(-1))


def item(handle):
    return Item(handle.request, handle, handle.work)


def room_for(handle, engine):
    room = Room(engine)
    room.fit([item(handle)])
    return room


def exchange(start, *arguments):
    """Start an exchange and wait for the other ranks."""
    pending = start(*arguments)
    while not pending.done():
        time.sleep(0.0002)


@settings(max_examples=15)
@given(
    st.integers(1, 300).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(st.sets(st.integers(0, count - 1)), min_size=2, max_size=3),
            st.booleans(),
        )
    )
)
def test_bits_in_common(drawn):
    count, said, few = drawn
    group = Group(len(said))

    def body(engine):
        room = Room(engine)
        room.few = few
        opening = Opening(count, room)
        opening.say(said[engine.rank])
        exchange(opening.start, engine)
        return opening.common()

    for common in group.run(body):
        want = functools.reduce(set.intersection, said)
        assert common.since(0) == sorted(want)
        assert [bit for bit in range(count) if common.has(bit)] == sorted(want)
        assert common.since(count // 2) == sorted(bit for bit in want if bit >= count // 2)


def reduced(parts, op, prescale, postscale):
    """Return what must come of the ranks' values: in their order, one after the other."""
    scaled = [part * part.dtype.type(prescale) for part in parts]
    kind = Op.SUM if op is Op.AVERAGE else op
    result = functools.reduce(REDUCED[kind], scaled)
    if op is Op.AVERAGE:
        result = result / part_count(parts)
    return (result * result.dtype.type(postscale)).astype(parts[0].dtype)


def part_count(parts):
    return parts[0].dtype.type(len(parts))


@pytest.mark.parametrize("again", ["", "repeated", "array"], ids=["once", "repeated", "array"])
@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize(
    "dtype, op, factors",
    [(dtype, Op.SUM, (1.0, 1.0)) for dtype in DTYPES]
    + [(dtype, op, (1.0, 1.0)) for dtype in ORDERED[1::3] for op in (Op.MIN, Op.MAX, Op.PRODUCT)]
    + [(np.dtype(code), Op.AVERAGE, (0.3, 1.7)) for code in ("f4", "f8", "c8", "c16")],
    ids=str,
)
def test_values_that_travel_along(dtype, op, factors, size, again):
    """To the last bit what the ranks' values are in the order of the ranks, on all of them."""
    chance = np.random.RandomState(3)
    rounds = 3 if again else 1
    drawn = (chance.standard_normal((rounds, size, 2, 5)) * 100).astype(dtype)

    def body(engine):
        first = asked(drawn[0][engine.rank], op, *factors)
        room = room_for(first, engine)
        assert room.takes(first) and room.nbytes >= first.work.target.nbytes
        repeated = room.repeat(first, 3, (0, 5), 9)
        assert room.repeated[3] is repeated and repeated.fits(first.request, room.nbytes, 9)
        results = []
        for values in drawn:
            handle = asked(values[engine.rank], op, *factors)
            handle.work.sources = [values[engine.rank].reshape(-1)]
            handle.work.target = np.empty(10, dtype)
            if again:
                array = asked_array(values[engine.rank], op, *factors)
                exchange(repeated.again, array if again == "array" else handle)
                assert repeated.settle(array if again == "array" else handle)
                if again == "array":
                    assert array.value.shape == (2, 5)
                    handle.work.target = array.value
            else:
                opening = Opening(9, room)
                opening.say((0, 5))
                opening.carry(5, handle.work)
                exchange(opening.start, engine)
                assert opening.common().since(0) == [0, 5] and opening.reduce_carried()
            results.append(handle.work.target)
        return results

    with np.errstate(all="ignore"):
        want = [reduced(list(parts), op, *factors).reshape(-1) for parts in drawn]
    for results in Group(size).run(body):
        assert [each.tobytes() for each in results] == [each.tobytes() for each in want]


@pytest.mark.parametrize("op", [Op.MIN, Op.MAX])
def test_nan_on_any_rank(op):
    def body(engine):
        values = np.array([1.0, np.nan if engine.rank else 2.0, np.nan], dtype="f4")
        handle = asked(values, op)
        opening = Opening(3, room_for(handle, engine))
        opening.carry(2, handle.work)
        exchange(opening.start, engine)
        assert opening.reduce_carried()
        return handle.work.target.tolist()

    for first, *others in Group(2).run(body):
        assert first == 1.0 and all(each != each for each in others)


@pytest.mark.parametrize("what", ["another", "none", "more"])
def test_ranks_that_say_different_things(what):
    """Nothing is reduced, and what they have in common is known."""

    def body(engine):
        handle = asked(np.ones(3, "f4"))
        room = room_for(handle, engine)
        repeated = room.repeat(handle, 3, (0, 5), 9)
        if engine.rank == 0:
            exchange(repeated.again, handle)
            assert not repeated.settle(handle)
            repeated.carry_on(handle)
            same, common = repeated.reduce_carried(), repeated.common()
        else:
            other = Opening(9, room)
            other.say((0, 5, 6))
            if what != "none":
                other.carry(5 if what == "more" else 6, handle.work)
            exchange(other.start, engine)
            same, common = other.reduce_carried(), other.common()
        return same, common.since(0), set(handle.work.target.tolist())

    reduced_to = {2.0} if what == "more" else {7.0}
    assert Group(2).run(body) == [(what == "more", [0, 5], reduced_to)] * 2


def test_channels_that_come_and_go():
    """Ranks that say things of many lengths, in the same order, hear each other each time."""
    lengths = [16 * (step % 20) for step in range(50)]

    def body(engine):
        room = Room(engine)
        heard = []
        for step, nbytes in enumerate(lengths):
            room.nbytes = nbytes
            opening = Opening(step + 1, room)
            opening.say({step, engine.rank})
            exchange(opening.start, engine)
            heard.append(opening.common().since(0))
            assert len(room._channels) <= 16
        room.close()
        return heard

    for heard in Group(2).run(body):
        assert heard == [[0], [1], *[[step] for step in range(2, 50)]]


def test_room_follows_from_what_was_agreed_on():
    """Whatever objects stand for it on a rank."""
    rooms = [Room(Group(2).engines[0]) for _ in range(2)]
    small, smaller = asked(np.ones(1000, "f4")), asked(np.ones(3, "f8"), name="y")
    long, halves = asked(np.ones(1025, "f4")), asked(np.ones(3, "f2"))
    barrier = Handle(Request("barrier"), Nothing())
    rounds = [
        ([small], 4000),
        ([small], 4000),
        ([barrier], 4000),
        ([smaller], 32),
        ([], 32),
        ([small, smaller], 0),
        ([small], 4000),
        ([long], 0),
        ([small], 4000),
        ([halves], 0),
    ]
    for handles, nbytes in rounds:
        rooms[0].fit([item(handle) for handle in handles])
        others = [Item(Request(*handle.request), None) for handle in handles]
        rooms[1].fit(others)
        assert [room.nbytes for room in rooms] == [nbytes] * 2
    assert not rooms[0].takes(halves) and not rooms[0].takes(small) and rooms[0].takes(barrier)
    many = Room(Group(9).engines[0])
    many.fit([item(small)])
    assert not many.few and not many.nbytes
