"""What opens a cycle: bits that ranks have in common, and values that travel along."""

import functools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Op
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._opening import Opening, Prediction, Repeated, value_kind
from distributed_dl_training._reductions import ArrayReduction, Reduction
from distributed_dl_training._works import Allreduce

from fakes import Group

REDUCED = {Op.SUM: np.add, Op.PRODUCT: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum}
DTYPES = [np.dtype(code) for code in ("i1", "u1", "i4", "i8", "f4", "f8")]
SIGNED = b"s" * 16


def asked(values, op=Op.SUM, prescale=1.0, postscale=1.0, name="x"):
    """Return a handle for values, which are reduced elsewhere."""
    factors = prescale, postscale
    request = Request("allreduce", name, values.dtype.name, values.shape, op.value, *factors)
    target = np.full(values.size, 7, values.dtype)
    return Handle(request, Allreduce([values.reshape(-1)], target, op, *factors))


def asked_array(values, op, prescale, postscale):
    """Return a handle for an array whose result is a new one."""
    given = (op, prescale, postscale)
    reduction = Reduction(asked(values, *given).request, *given)
    how = ArrayReduction(values.shape, values.dtype, given, reduction)
    return ArrayHandle(None, how, values.reshape(-1))


def state_for(*requests):
    """Return what ranks expect that have agreed on these."""
    prediction = Prediction()
    for request in requests:
        prediction.note(prediction.state.number, value_kind(request))
    return prediction.state


def exchange(opening):
    """Start it, twice as a thread that was interrupted does, and wait for the other ranks."""
    opening.start()
    opening.start()
    while not opening.done():
        time.sleep(0.0002)


@settings(max_examples=15)
@given(
    st.integers(1, 300).flatmap(
        lambda count: st.tuples(
            st.just(count), st.lists(st.sets(st.integers(0, count - 1)), min_size=2, max_size=3)
        )
    )
)
def test_bits_in_common(drawn):
    count, said = drawn

    def body(engine):
        opening = Opening(engine, count, state_for())
        opening.say(said[engine.rank])
        exchange(opening)
        assert engine.calls == {"control": 1, "values": 0, "data": 0}
        return opening.common()

    for common in Group(len(said)).run(body):
        want = functools.reduce(set.intersection, said)
        assert common.since(0) == sorted(want)
        assert [bit for bit in range(count) if common.has(bit)] == sorted(want)
        assert common.since(count // 2) == sorted(bit for bit in want if bit >= count // 2)


@pytest.mark.parametrize("size", [2, 9])
def test_signatures(size):
    """All find that they are equal, or none; a rank may also sign nothing."""

    def body(engine):
        found = []
        for signatures in ([SIGNED] * size, [SIGNED] * (size - 1) + [b"t" * 16], [SIGNED, b""]):
            signature = (signatures * size)[engine.rank]
            opening = Opening(engine, 300, state_for())
            if signature:
                opening.sign(signature, b"\1")
            exchange(opening)
            found.append(bool(signature) and opening.common().signed(signature))
        return found

    assert Group(size).run(body) == [[True, False, False]] * size


@pytest.mark.parametrize("way", ["once", "repeated", "array"])
@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize(
    "dtype, op, factors",
    [(dtype, Op.SUM, (1.0, 1.0)) for dtype in DTYPES]
    + [(dtype, Op.PRODUCT, (1.0, 1.0)) for dtype in DTYPES[2:5]]
    + [(dtype, op, (1.0, 1.0)) for dtype in DTYPES[:4] for op in (Op.MIN, Op.MAX)]
    + [(np.dtype(code), Op.AVERAGE, (0.5, 2.0)) for code in ("f4", "f8")],
    ids=str,
)
def test_values_that_travel_along(dtype, op, factors, size, way):
    chance = np.random.RandomState(3)
    drawn = (chance.standard_normal((3, size, 2, 5)) * 3).astype(dtype)
    request = asked(drawn[0][0], op, *factors).request

    def body(engine):
        state = state_for(request)
        repeated = Repeated(engine, 300, state, request, SIGNED, ())
        assert repeated.suits(state) and repeated.steady and not repeated.suits(state_for())
        results = []
        for values in drawn[:, engine.rank]:
            make = asked_array if way == "array" else asked
            handle = make(values, op, *factors)
            if way == "once":
                opening = Opening(engine, 300, state)
                opening.sign(SIGNED, b"")
                opening.carry(handle)
                exchange(opening)
                assert opening.common().signed(SIGNED)
                opening.finish(handle)
            else:
                repeated.reset()
                repeated.begin(handle)
                exchange(repeated)
                assert repeated.unanimous() and repeated.carries
                repeated.finish(handle, repeated.result())
            result = handle.value if way == "array" else handle.work.value
            results.append(result.reshape(2, 5))
        return results

    with np.errstate(all="ignore"):
        reduction = REDUCED[Op.SUM if op is Op.AVERAGE else op]
        want = functools.reduce(reduction, drawn.swapaxes(0, 1))
        want = (want / size).astype(dtype) if op is Op.AVERAGE else want
    for results in Group(size).run(body):
        for number, result in enumerate(results):
            np.testing.assert_allclose(result, want[number], rtol=1e-6)


def test_a_rank_that_asks_for_something_else():
    """It adds zeros, nothing counts, and what the ranks have in common is known."""

    def body(engine):
        handle = asked(np.ones(3, "f4"))
        state = state_for(handle.request)
        if engine.rank:
            opening = Opening(engine, 300, state)
            opening.say([299])
        else:
            opening = Repeated(engine, 300, state, handle.request, SIGNED, [299])
            opening.begin(handle)
        exchange(opening)
        settled = not engine.rank and opening.unanimous()
        return settled, opening.common().since(280), set(handle.work.target.tolist())

    assert Group(2).run(body) == [(False, [299], {7.0})] * 2


def test_an_opening_that_is_taken_from_its_thread():
    """Whatever was started is not started again; what that thread still does starts nothing."""

    def body(engine):
        handle = asked(np.full(3, 1.0 + engine.rank))
        opening = Opening(engine, 300, state_for(handle.request))
        opening.sign(SIGNED, b"")
        opening.carry(handle)
        words, values = opening._transfers
        words.start()  # and the thread is interrupted before it starts the other one
        assert opening.started and not values.started
        opening.leave()
        assert opening._transfers[0] is words
        values.start()
        assert not values.started and engine.calls["values"] == 0
        exchange(opening)
        assert engine.calls == {"control": 1, "values": 1, "data": 0}
        opening.finish(handle)
        return handle.work.value.tolist()

    assert Group(2).run(body) == [[3.0] * 3] * 2


@pytest.mark.parametrize(
    "values, op, travel",
    [
        (np.ones(1024, "f4"), Op.SUM, True),
        (np.ones(1025, "f4"), Op.SUM, False),
        (np.ones(0, "f4"), Op.SUM, False),
        (np.ones(3, "f2"), Op.SUM, False),
        (np.ones(3, "c8"), Op.SUM, False),
        (np.ones(3, "f4"), Op.MAX, False),  # one may be no number
        (np.ones(3, "i8"), Op.MAX, True),
    ],
)
def test_values_that_do_not_travel(values, op, travel):
    assert (value_kind(asked(values, op).request) is not None) == travel


def test_groups_and_refused_requests():
    group = Request("allreduce", "g", "float32", ((2, 3), (), (4,)), "Sum")
    assert value_kind(group).length == 11
    assert value_kind(group._replace(refusal="TypeError")) is None
    assert value_kind(Request("barrier")) is None


def test_predictions_follow_from_what_was_agreed_on():
    """What comes in turn is expected in turn; the same agreement is noted once."""
    loss, count = (asked(np.ones(1, code)).request for code in ("f4", "i8"))
    prediction = Prediction()
    expected = []
    agreed = [loss, loss, count, loss, count, loss, None, loss, None, loss]
    for request in agreed:
        number = prediction.state.number
        for _ in range(2):
            prediction.note(number, None if request is None else value_kind(request))
        expected.append(prediction.state.kind)
    kinds = {None: None, "loss": value_kind(loss), "count": value_kind(count)}
    want = ["loss", "loss", "count", "count", "loss", "count", "loss", None, "loss", None]
    assert prediction.state.number == 9  # the second loss has changed nothing
    assert expected == [kinds[name] for name in want]
