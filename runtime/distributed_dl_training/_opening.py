"""The exchange that opens a cycle: cache bits, and the values of a small allreduce.

Where the ranks are few each hears what every other one says, instead of what all have in common.
Then the values of one small allreduce that was agreed on before can travel with its bit: if all
ranks have sent those of the same request, they have agreed on it and exchanged it in one message,
and each reduces what it has heard in the order of the ranks, to the same bits.  If not, nothing is
lost: it is reduced as any other.
"""

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _reduce
from distributed_dl_training._agreement import Request
from distributed_dl_training._core import FEW, Array, Engine, Op, Pending
from distributed_dl_training._handle import ArrayHandle, Handle, Item
from distributed_dl_training._works import Allreduce, Nothing

# Bytes of values that travel along, at most.
_LONGEST = 4096
# Bytes before the values, that tell whose they are; and what lengths are multiples of, so that
# values of any dtype begin at a multiple of their size.
_MARK = 16
# What is calculated in its own dtype, by the name that requests have for it, and its bytes.
SIZES = {name: numpy.dtype(name).itemsize for name in ("complex64", "complex128")}
SIZES.update((f"{kind}{8 * size}", size) for kind in ("int", "uint") for size in (1, 2, 4, 8))
SIZES.update(float32=4, float64=8)
# Bytes that sign all that a rank newly asks for.  They follow the first byte of bits, once as they
# are and once inverted: what all ranks have in common is both only if their signatures are equal.
SIGNATURE = 16
_ONES = (1 << 8 * SIGNATURE) - 1

# Lengths of segments for which an exchange is kept ready, at most.
_LENGTHS = 16


class Channel:
    """What all ranks say in a cycle, a segment for each, and the exchange that fills it.

    It is kept for all cycles in which segments have this length; what is in it is of the last one.
    """

    __slots__ = ("exchange", "heard", "others", "own", "quietly", "rank", "said", "step", "width")

    def __init__(self, engine: Engine, width: int, nbytes: int) -> None:
        """width: bytes of bits; nbytes: of values, which the mark precedes."""
        self.width = width
        self.rank = engine.rank
        self.step = step = width + _MARK + nbytes
        self.own = engine.rank * step
        self.others = [step * rank for rank in range(engine.size) if rank != engine.rank]
        self.heard = bytearray(step * engine.size)
        self.said = b""  # how this rank's segment begins
        self.quietly = _quiet_caller()
        self.exchange = engine.prepare_gather(numpy.frombuffer(self.heard, dtype=numpy.uint8))

    def say(self, begin: bytes) -> None:
        """Let this rank's segment begin so."""
        self.heard[self.own : self.own + len(begin)] = begin
        self.said = begin

    def segments(self, dtype: "numpy.dtype[Any]", count: int) -> List[Array]:
        """Return the values of each rank, by rank; views of the channel."""
        first = self.width + _MARK
        return [
            numpy.frombuffer(self.heard, dtype, count, start + first)
            for start in range(0, len(self.heard), self.step)
        ]


class Room:
    """How many bytes of values travel along: as many as what was agreed on last has.

    It follows from what all ranks have agreed on, so that it is the same on all of them.
    """

    def __init__(self, engine: Engine) -> None:
        self.few = 1 < engine.size <= FEW
        self.nbytes = 0
        self._engine = engine
        self._last: Optional[Request] = None  # what it was made for
        self._channels: Dict[Tuple[int, int], Channel] = {}
        self.repeated: Dict[int, Repeated] = {}  # what ``repeat`` has made, by cache bit

    def fit(self, items: Sequence[Item]) -> None:
        """Make room for what comes again, if ``items`` were one small allreduce."""
        if items:
            self.fit_request(items[0].request if len(items) == 1 else None)

    def fit_request(self, request: Optional[Request]) -> None:
        """Make room for what comes again, if ``request`` was one small allreduce; None: several."""
        if request is self._last or not self.few:
            return
        if request is not None and request.call != "allreduce":
            return
        self._last = request
        self.nbytes = -(-_short(request) // _MARK) * _MARK if request is not None else 0

    def takes(self, handle: Handle) -> bool:
        """Tell whether the values of ``handle``, if it has any, can travel along."""
        work = handle.work
        if type(work) is Nothing:
            return True
        return (
            isinstance(work, Allreduce)
            and 0 < work.target.nbytes <= self.nbytes
            and handle.request.dtype in SIZES
            and isinstance(work.target, numpy.ndarray)
        )

    def channel(self, count: int) -> Channel:
        """Return what carries ``count`` bits and as many values as travel along now."""
        key = (_width(count), self.nbytes)
        found = self._channels.get(key)
        if found is None:
            if len(self._channels) >= _LENGTHS:
                self.close()
            found = self._channels[key] = Channel(self._engine, *key)
        return found

    def repeat(self, handle: Handle, bit: int, said: Sequence[int], count: int) -> "Repeated":
        """Return what ``handle`` alone is asked for with: the bits ``said``, of ``count``."""
        made = self.repeated[bit] = Repeated(self.channel(count), handle, bit, said)
        made.nbytes, made.count = self.nbytes, count
        return made

    def close(self) -> None:
        """Let go of all channels; none may be in use."""
        for each in self._channels.values():
            each.exchange.free()
        self._channels.clear()
        self.repeated.clear()


def _width(count: int) -> int:
    """Return the bytes of so many bits."""
    return (count + 127) // 128 * 16


def _short(request: Request) -> int:
    """Return the bytes of an allreduce's values; 0 if they are not to travel along."""
    size = 0 if request.refusal else SIZES.get(request.dtype, 0)
    shape = request.shape
    nbytes = 0
    for each in shape if shape and isinstance(shape[0], tuple) else (shape,):
        count = size
        for length in each:
            count *= length
        nbytes += count
        if nbytes > _LONGEST:
            return 0
    return nbytes


class Opening:
    """What this rank says, and what all have said.  Bits count from the first byte's highest."""

    __slots__ = ("_carried", "_channel", "_said", "_width")

    def __init__(self, count: int, room: Room) -> None:
        """Say nothing yet, in ``count`` bits."""
        self._width = _width(count)
        self._said = bytearray(self._width + _MARK)
        self._channel = room.channel(count) if room.few else None
        self._carried: Optional[Allreduce] = None

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
        return bytes(self._said[1 + 2 * SIGNATURE : self._width])

    def carry(self, bit: int, work: Allreduce) -> None:
        """Let the values of what ``bit`` says travel along."""
        self._said[self._width :] = _mark(bit)
        self._carried = work

    def start(self, engine: Engine) -> Pending:
        """Exchange it with the other ranks."""
        channel, work = self._channel, self._carried
        if channel is None:
            said = numpy.frombuffer(self._said, dtype=numpy.uint8)
            return engine.start_and(said[: self._width].view(numpy.int64))
        channel.say(bytes(self._said))
        if work is not None:
            target = work.target
            _put(work, channel.segments(target.dtype, target.size)[engine.rank])
        return channel.exchange.start()

    def common(self) -> "Bits":
        """Return the bits that all ranks have set, once all is exchanged."""
        channel, width = self._channel, self._width
        if channel is None:
            return Bits(int.from_bytes(self._said[:width], "big"), width)
        return _common(channel)

    def reduce_carried(self) -> bool:
        """Reduce what travelled along, unless ranks have sent different things; tell whether."""
        work, channel = self._carried, self._channel
        if work is None or channel is None:
            return False
        heard, mark = channel.heard, self._said[self._width :]
        if not all(heard.startswith(mark, start + self._width) for start in channel.others):
            return False
        parts = channel.segments(work.target.dtype, work.target.size)
        channel.quietly(_finish, parts, work)
        return True


def _set(said: bytearray, bits: Iterable[int]) -> None:
    for bit in bits:
        said[bit >> 3] |= 128 >> (bit & 7)


def _mark(bit: int) -> bytes:
    """Return what precedes the values of what ``bit`` says."""
    return (bit + 1).to_bytes(_MARK, "little")


def _common(channel: Channel) -> "Bits":
    heard, width = channel.heard, channel.width
    common = -1
    for start in range(0, len(heard), channel.step):
        common &= int.from_bytes(heard[start : start + width], "big")
    return Bits(common, width)


def _put(work: Allreduce, own: Array) -> None:
    """Copy this rank's values to where they travel."""
    if len(work.sources) == 1:
        own[:] = work.sources[0]
    else:
        numpy.concatenate(work.sources, out=own)
    if work.prescale != 1.0:
        with numpy.errstate(all="ignore"):
            _reduce.scale(own, work.prescale)


def _finish(parts: Sequence[Array], work: Allreduce) -> None:
    op, target, postscale = work.op, work.target, work.postscale
    _reduce.combine(parts, op, target)
    if op is Op.AVERAGE or postscale != 1.0:
        _reduce.finish(target, op, len(parts), postscale)


def _finish_handle(parts: Sequence[Array], handle: Handle) -> None:
    assert isinstance(handle.work, Allreduce)
    _finish(parts, handle.work)


def _finish_array(parts: Sequence[Array], handle: ArrayHandle) -> None:
    """Make the handle's value, without all that is only needed where that takes longer."""
    how = handle.reduction
    op, postscale = how.op, how.postscale
    value = _reduce.combine(parts, op)
    if op is Op.AVERAGE or postscale != 1.0:
        _reduce.finish(value, op, len(parts), postscale)
    handle.value = value if len(how.shape) == 1 else value.reshape(how.shape)


def _quiet_caller() -> Callable[..., Any]:
    """Return what calls a function so that numpy tells nothing of overflows; one at a time.

    The caller's thread may have made errors of what numpy tells: on one rank alone.
    """
    if int(numpy.__version__.split(".")[0]) < 2:
        return _call_quietly
    import contextvars  # numpy 2 keeps it in one, and has Python 3.9 or later

    context = contextvars.Context()
    context.run(numpy.seterr, all="ignore")
    return context.run  # a tenth of the time that ``errstate`` takes


def _call_quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    with numpy.errstate(all="ignore"):
        return function(*arguments)


class Repeated(Opening):
    """The opening of cycles that ask for one request alone.

    All that is new in each are the values: the rest is kept.
    """

    __slots__ = ("_begin", "_parts", "bit", "channel", "count", "nbytes", "request")

    def __init__(self, channel: Channel, handle: Handle, bit: int, said: Sequence[int]) -> None:
        """bit: the cache bit of ``handle``'s request; ``said`` are the bits to say."""
        self.request = handle.request
        self.bit = bit
        self.nbytes = self.count = 0  # bytes of values and number of bits that it was made for
        self.channel = self._channel = channel
        self._width = channel.width
        self._said = bytearray(channel.width + _MARK)
        self._carried = None
        self._parts: List[Array] = []
        self.say(said)
        if isinstance(handle.work, Allreduce):
            self.carry(said[-1], handle.work)
            self._parts = channel.segments(handle.work.target.dtype, handle.work.target.size)
        self._begin = bytes(self._said)

    def fits(self, request: Request, nbytes: int, count: int) -> bool:
        """Tell whether it was made for this request, as many bytes of values and as many bits."""
        return self.request is request and self.nbytes == nbytes and self.count == count

    def again(self, handle: Handle) -> Pending:
        """Exchange it with the values of ``handle``, if it has any."""
        channel = self.channel
        if channel.said is not self._begin:
            channel.say(self._begin)
        if self._parts:
            own = self._parts[channel.rank]
            if type(handle) is ArrayHandle:
                own[:] = handle.source
                if handle.reduction.prescale != 1.0:
                    channel.quietly(_reduce.scale, own, handle.reduction.prescale)
            else:
                assert isinstance(handle.work, Allreduce)
                _put(handle.work, own)
        return channel.exchange.start()

    def settle(self, handle: Handle) -> bool:
        """Reduce the values, if all ranks have said the same but for these; tell whether."""
        channel, begin = self.channel, self._begin
        startswith = channel.heard.startswith
        for start in channel.others:
            if not startswith(begin, start):
                return False
        if self._parts:
            finish = _finish_array if type(handle) is ArrayHandle else _finish_handle
            channel.quietly(finish, self._parts, handle)
        return True

    def carry_on(self, handle: Handle) -> None:
        """Let ``reduce_carried`` see to the values of ``handle``: ``settle`` has not."""
        if self._parts:
            assert isinstance(handle.work, Allreduce)
            self._carried = handle.work


class Bits:
    """Bits that all ranks have set, by number."""

    __slots__ = ("_bits", "_width")

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
