"""The exchange that opens a cycle: bits, a signature, and the values of a small allreduce.

One reduction by AND finds what all ranks have said.  A signature stands in it once as it is and
once inverted: both are left only if all ranks have the same one.

A small allreduce that comes again is reduced at the same time, before the ranks know that all of
them ask for it.  What kind of values the next one has follows from what was agreed on before, so
that all ranks reduce the same; a rank that asks for something else adds zeros.  The result counts
if all ranks have signed that request alone.  If not, nothing is lost: it is reduced as any other.
"""

import functools
from typing import Any, Callable, Iterable, List, Mapping, NamedTuple, Optional, Sequence

import numpy

from distributed_dl_training import _reduce
from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Array, Engine, Op, elements
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._works import Allreduce

# Bytes of values that travel along, at most.
_LONGEST = 4096
# The dtypes that every engine reduces at once, and their bytes.
_SIZES = {"int8": 1, "uint8": 1, "int32": 4, "int64": 8, "float32": 4, "float64": 8}
_OPERATIONS = {"Sum": Op.SUM, "Average": Op.SUM, "Product": Op.PRODUCT}
# Of floats a NaN has to be looked for.
_OF_INTEGERS = dict(_OPERATIONS, Min=Op.MIN, Max=Op.MAX)
# Bytes of a signature.  It follows the first byte of bits, and then inverted.
SIGNATURE = 16
_ONES = (1 << 8 * SIGNATURE) - 1


class ValueKind(NamedTuple):
    """What the ranks have to agree on before they reduce values: how many, and how."""

    dtype: str
    op: Op
    length: int


def value_kind(request: Request) -> Optional[ValueKind]:
    """Return how the values of ``request`` travel along; None if they do not."""
    dtype, shape = request.dtype, request.shape
    if request.call != "allreduce" or request.refusal or dtype not in _SIZES:
        return None
    operation = (_OF_INTEGERS if "int" in dtype else _OPERATIONS).get(request.op)
    count = elements(shape)
    if operation is None or not 0 < count * _SIZES[dtype] <= _LONGEST:
        return None
    return ValueKind(dtype, operation, count)


class State(NamedTuple):
    """What follows from agreements, of which ``number`` have changed it.

    last: the kind of the last one; kind: of the next, likely; following: what came after each.
    """

    number: int
    last: Optional[ValueKind]
    kind: Optional[ValueKind]
    following: Mapping[Optional[ValueKind], Optional[ValueKind]]

    def steady(self, kind: Optional[ValueKind]) -> bool:
        """Tell whether another agreement on this kind changes nothing."""
        return self.kind == self.last == kind == self.following.get(kind, kind)


class Prediction:
    """What kind of values travel along with the next opening: those that came after these before.

    It follows from what all ranks have agreed on, so that it is the same on all of them.
    """

    def __init__(self) -> None:
        self.state = State(0, None, None, {})  # after all agreements so far
        self._states = {0: self.state}  # the last few, by number

    def note(self, number: int, kind: Optional[ValueKind]) -> None:
        """Take note of an agreement on one request of this kind; None: on several.

        number: of the state before.  A thread that was interrupted in this may go on with it later,
            and then changes nothing.
        """
        state = self._states.get(number)
        if state is None or state.steady(kind):
            return
        following = state.following
        if following.get(state.last, state) != kind:
            following = {**following, state.last: kind}
        self._states[number + 1] = State(number + 1, kind, following.get(kind, kind), following)
        self._states.pop(number - 2, None)
        newest = None
        while newest != max(self._states):  # else this was interrupted, and others have gone on
            newest = max(self._states)
            self.state = self._states.get(newest, self.state)


def _width(count: int) -> int:
    """Return the bytes of so many bits."""
    return (count + 127) // 128 * 16


def spell(bits: Sequence[int], count: int) -> bytes:
    """Return what follows a signature where these are set of ``count`` bits that follow it."""
    first = 8 * (1 + 2 * SIGNATURE)
    said = bytearray(_width(first + count))
    _set(said, [first + bit for bit in bits])
    return bytes(said[1 + 2 * SIGNATURE :])


def _set(said: Any, bits: Iterable[int]) -> None:
    for bit in bits:
        said[bit >> 3] |= 128 >> (bit & 7)


class Opening:
    """What this rank says, and what all have said.  Bits count from the first byte's highest.

    number: of the agreement that it is for.
    agreed: what follows from it has been found out.
    """

    def __init__(self, engine: Engine, count: int, state: State) -> None:
        """Say nothing yet, in ``count`` bits."""
        self.number = state.number
        self.kind = state.kind
        self.agreed = False
        self._size = engine.size
        self._quietly: Callable[..., Any] = _reduce.call_quietly
        self._words = numpy.zeros(_width(count) // 8, numpy.int64)
        data: Any = self._words.view(numpy.uint8)
        self._said = memoryview(data)  # until it is started
        self._values: Any = None
        op = None
        if state.kind is not None:
            self._values = numpy.zeros(state.kind.length, state.kind.dtype)
            op = state.kind.op
        self._make = functools.partial(engine.prepare_reductions, self._words, self._values, op)
        self._transfers = self._make()
        self._first = self._transfers[0]
        # Makes progress, and tells whether it is complete.  Raises PeerLostError.
        self.done = self._first.done if len(self._transfers) == 1 else self._all_done

    def say(self, bits: Iterable[int]) -> None:
        """Set some bits."""
        _set(self._said, bits)

    def sign(self, signature: bytes, said: bytes) -> None:
        """Say a signature, and the bits that follow it as bytes; to be said first."""
        inverted = int.from_bytes(signature, "big") ^ _ONES
        both = signature + inverted.to_bytes(SIGNATURE, "big")
        self._said[1 : 1 + len(both) + len(said)] = both + said

    def said(self) -> bytes:
        """Return the bits that follow a signature, as bytes."""
        return self._said[1 + 2 * SIGNATURE :].tobytes()

    def carry(self, handle: Handle) -> None:
        """Let the values of ``handle``, which are of the kind that travels along, do so."""
        values = self._values
        if isinstance(handle, ArrayHandle):
            values[:] = handle.source
            prescale = handle.reduction.prescale
        else:
            assert isinstance(handle.work, Allreduce)
            numpy.concatenate(handle.work.sources, out=values)
            prescale = handle.work.prescale
        if prescale != 1.0:
            _reduce.call_quietly(_reduce.scale, values, prescale)

    @property
    def started(self) -> bool:
        """Whether other ranks may count on this one; the values may still have to be started."""
        return self._first.started

    def start(self) -> None:
        """Exchange it with the other ranks; what has been started is not started again."""
        for transfer in self._transfers:
            if not transfer.started:
                transfer.start()

    def leave(self) -> None:
        """Take it from the thread that has begun it: nothing that this still does starts it.

        What other ranks count on can still be started by ``start``, if they can count on this rank.
        """
        for at, transfer in enumerate(self._transfers):
            if not transfer.started:
                transfer.disarm()
                if self.started:
                    self._transfers[at] = self._make()[at]

    def _all_done(self) -> bool:
        for transfer in self._transfers:
            if not transfer.done():
                return False
        return True

    def common(self) -> "Bits":
        """Return the bits that all ranks have set, once it is complete."""
        return Bits(int.from_bytes(self._words.tobytes(), "big"), len(self._said))

    def finish(self, handle: Handle, value: Optional[Array] = None) -> None:
        """Give ``handle`` what the values that it has carried were reduced to.

        value: that, if it is known.
        """
        if value is None:
            value = self._transfers[-1].result(self._values)
        if isinstance(handle, ArrayHandle):
            how = handle.reduction
            if how.op is Op.AVERAGE:
                self._quietly(numpy.true_divide, value, self._size, value)
            if how.postscale != 1.0:
                _reduce.call_quietly(_reduce.scale, value, how.postscale)
            if len(how.shape) != 1:
                value = value.reshape(how.shape)
            if handle.in_place:
                handle.take(value)
            else:
                handle.value = value
            return
        work = handle.work
        assert isinstance(work, Allreduce)
        work.target[:] = value
        _reduce.call_quietly(_reduce.finish, work.target, work.op, self._size, work.postscale)


class Repeated(Opening):
    """The opening of cycles that ask for one request alone: only the values are new in each.

    value_kind: of the request's values.
    changes: of the cache, that it was made for.
    carries: there are values that travel along.
    unscaled: they travel as they are.
    plain: what they are reduced to is the result of an ArrayHandle.
    steady: to agree on it changes nothing of what is predicted.
    """

    def __init__(
        self,
        engine: Engine,
        count: int,
        state: State,
        request: Request,
        signature: bytes,
        bits: Sequence[int],
    ) -> None:
        """Say this signature and these bits."""
        super().__init__(engine, count, state)
        self.sign(signature, b"")
        self.say(bits)
        self._said_by_all = self._said.tobytes()
        self.request = request
        self.signature = signature
        self.changes = -1
        self.state: Optional[State] = None  # that it was found to suit
        self.steady = False
        self._quietly = _reduce.quiet_caller()
        kind = value_kind(request)
        # The same object, which is compared faster.
        self.value_kind = self.kind if kind == self.kind else kind
        self.carries = kind is not None
        self.unscaled = self.carries and request.prescale == 1.0
        scaled = request.op == Op.AVERAGE.value or request.postscale != 1.0
        self.plain = self.carries and not scaled and len(request.shape) == 1

    def suits(self, state: State) -> bool:
        """Tell whether values of its kind travel along in this state, and prepare for it if so."""
        if self.kind != state.kind:
            return False
        self.state, self.number = state, state.number
        self.steady = state.steady(self.value_kind)
        return True

    def reset(self) -> None:
        """Let it be started again, once it is complete."""
        for transfer in self._transfers:
            transfer.requests.clear()

    def begin(self, handle: Handle) -> None:
        """Exchange it with the values of ``handle``, if it has any.

        What is said need not be said anew: it is left where all say the same.
        """
        if self.unscaled and isinstance(handle, ArrayHandle):
            self._values[:] = handle.source
        elif self.carries:
            self.carry(handle)
        elif self._values is not None:
            self._values[:] = 0
        self._first.start()
        if len(self._transfers) > 1:
            self.start()

    def unanimous(self) -> bool:
        """Tell whether all ranks have said the same, once it is complete.

        The signature and its inversion are both left of this rank's: it is that of all ranks.
        """
        return self._said.tobytes() == self._said_by_all

    def result(self) -> Optional[Array]:
        """Return what the values that travelled along were reduced to; None if there are none."""
        return self._transfers[-1].result(self._values) if self.carries else None


class Bits:
    """Bits that all ranks have set, by number."""

    def __init__(self, bits: int, width: int) -> None:
        self._bits = bits
        self._width = width

    def has(self, bit: int) -> bool:
        """Tell whether a bit is set."""
        return bool(self._bits >> (8 * self._width - 1 - bit) & 1)

    def signed(self, signature: bytes) -> bool:
        """Tell whether all ranks have said this signature."""
        both = self._bits >> 8 * (self._width - 1 - 2 * SIGNATURE)
        mine = int.from_bytes(signature, "big")
        return both & (_ONES << 8 * SIGNATURE | _ONES) == mine << 8 * SIGNATURE | mine ^ _ONES

    def since(self, first: int) -> List[int]:
        """Return the numbers of the bits that are set, from ``first`` on, ascending."""
        bits = self._bits & ((1 << (8 * self._width - first)) - 1)
        if not bits & (bits - 1):  # one, as a rule, or none
            return [8 * self._width - bits.bit_length()] if bits else []
        data = numpy.frombuffer(bits.to_bytes(self._width, "big"), dtype=numpy.uint8)
        found: List[int] = numpy.flatnonzero(numpy.unpackbits(data)).tolist()
        return found
