"""The exchange that opens a cycle: cache bits, and the values of a small allreduce.

Where the ranks are few each hears what every other one says, instead of what all have in common.
Then the values of one small allreduce that was agreed on before can travel with its bit: if all
ranks have sent those of the same request, they have agreed on it and exchanged it in one message,
and each reduces what it has heard in the order of the ranks, to the same bits.  If not, nothing is
lost: it is reduced as any other.
"""

from typing import Iterable, List, Optional, Sequence

import numpy

from distributed_dl_training import _reduce
from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Array, Engine, Pending
from distributed_dl_training._handle import Handle, Item
from distributed_dl_training._works import Allreduce, Nothing, Work

# Ranks, at most, that all hear each other: the bytes that each one hears grow with them.
_FEW = 8
# Bytes of values that travel along, at most.
_LONGEST = 4096
# Bytes before the values, that tell whose they are; and what lengths are multiples of, so that
# values of any dtype begin at a multiple of their size.
_MARK = 16
# What is calculated in its own dtype, by the name that requests have for it, and its bytes.
_SIZES = {name: numpy.dtype(name).itemsize for name in ("complex64", "complex128")}
_SIZES.update((f"{kind}{8 * size}", size) for kind in ("int", "uint") for size in (1, 2, 4, 8))
_SIZES.update(float32=4, float64=8)


class Room:
    """How many bytes of values travel along: as many as what was agreed on last has.

    It follows from what all ranks have agreed on, so that it is the same on all of them.
    """

    def __init__(self, engine: Engine) -> None:
        self.few = 1 < engine.size <= _FEW
        self.nbytes = 0
        self._last: Optional[Request] = None  # what it was made for

    def fit(self, items: Sequence[Item]) -> None:
        """Make room for what comes again, if ``items`` were one small allreduce."""
        request = items[0].request if len(items) == 1 else None
        if not items or request is self._last or not self.few:
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
            and handle.request.dtype in _SIZES
            and isinstance(work.target, numpy.ndarray)
        )


def _short(request: Request) -> int:
    """Return the bytes of an allreduce's values; 0 if they are not to travel along."""
    size = 0 if request.refusal else _SIZES.get(request.dtype, 0)
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

    __slots__ = ("_carried", "_heard", "_said", "_size", "_width")

    def __init__(self, count: int, room: Room, size: int) -> None:
        """Say nothing yet, in ``count`` bits; ``size`` is the number of ranks."""
        self._width = (count + 127) // 128 * 16
        self._size = size
        self._said = bytearray(self._width + (_MARK + room.nbytes if room.few else 0))
        self._heard: Optional[bytearray] = None
        self._carried: Optional[Allreduce] = None

    def say(self, bits: Iterable[int]) -> None:
        """Set some bits."""
        said = self._said
        for bit in bits:
            said[bit >> 3] |= 128 >> (bit & 7)

    def carry(self, bit: int, work: Allreduce) -> None:
        """Let the values of what ``bit`` says travel along."""
        start = self._width
        self._said[start : start + _MARK] = (bit + 1).to_bytes(_MARK, "little")
        self.put(work)

    def put(self, work: Allreduce) -> None:
        """Replace the values that travel along."""
        start = self._width + _MARK
        if len(work.sources) == 1 and work.prescale == 1.0:
            data = work.sources[0].tobytes()
        else:
            values = numpy.concatenate(work.sources)
            with numpy.errstate(all="ignore"):
                _reduce.scale(values, work.prescale)
            data = values.tobytes()
        self._said[start : start + len(data)] = data
        self._carried = work

    def start(self, engine: Engine) -> Pending:
        """Exchange it with the other ranks."""
        said = numpy.frombuffer(self._said, dtype=numpy.uint8)
        step = len(self._said)
        if step == self._width:
            return engine.start_and(said.view(numpy.int64))
        self._heard = bytearray(step * self._size)
        heard = numpy.frombuffer(self._heard, dtype=numpy.uint8)
        return engine.start_gather(said, [step] * self._size, heard)

    def common(self) -> "Bits":
        """Return the bits that all ranks have set, once all is exchanged."""
        heard, width = self._heard, self._width
        if heard is None:
            return Bits(int.from_bytes(self._said, "big"), width)
        step = len(self._said)
        common = int.from_bytes(heard[:width], "big")
        for start in range(step, len(heard), step):
            common &= int.from_bytes(heard[start : start + width], "big")
        return Bits(common, width)

    def reduce_carried(self) -> bool:
        """Reduce what travelled along, unless ranks have sent different things; tell whether."""
        work, heard = self._carried, self._heard
        if work is None or heard is None:
            return False
        step = len(self._said)
        starts = range(self._width, len(heard), step)
        mark = self._said[self._width : self._width + _MARK]
        for start in starts:
            if heard[start : start + _MARK] != mark:
                return False
        target = work.target
        _finish(self.parts(target), work, self._size)
        return True

    def parts(self, target: Array) -> List[Array]:
        """Return what each rank has sent for ``target``, by rank."""
        assert self._heard is not None
        step, first = len(self._said), self._width + _MARK
        return [
            numpy.frombuffer(self._heard, target.dtype, target.size, start + first)
            for start in range(0, len(self._heard), step)
        ]


def _finish(parts: Sequence[Array], work: Allreduce, size: int) -> None:
    # The caller's thread may have made warnings of numpy errors: on one rank alone.
    with numpy.errstate(all="ignore"):
        _reduce.combine(parts, work.op, work.target)
        _reduce.finish(work.target, work.op, size, work.postscale)


class Repeated(Opening):
    """The opening of cycles that ask for one request alone, and that follow on one another.

    All that is new in each are the values: the rest is kept.
    """

    __slots__ = ("_agreed", "_counts", "_heard_array", "_parts", "_said_array")
    __slots__ += ("bit", "made_for", "request")

    def __init__(self, handle: Handle, bit: int, count: int, room: Room, size: int) -> None:
        """bit: of ``handle``'s request."""
        super().__init__(count, room, size)
        self.request = handle.request
        self.bit = bit
        self.made_for = (-1, -1)  # changes of the cache, and bytes of room
        self._heard = bytearray(len(self._said) * size)
        self._heard_array = numpy.frombuffer(self._heard, dtype=numpy.uint8)
        self._said_array = numpy.frombuffer(self._said, dtype=numpy.uint8)
        self._counts = [len(self._said)] * size
        self._parts: List[Array] = []
        self._agreed = b""

    def again(self, engine: Engine, work: Work) -> Pending:
        """Exchange it with the values of ``work``, if it has any; all bits have been said."""
        if isinstance(work, Allreduce):
            if not self._parts:
                self.carry(self.bit, work)
                self._parts = self.parts(work.target)
            else:
                self.put(work)
        if not self._agreed:
            self._agreed = bytes(self._said[: self._width + _MARK])
        return engine.start_gather(self._said_array, self._counts, self._heard_array)

    def settle(self) -> bool:
        """Reduce the values, if all ranks have said the same but for these; tell whether."""
        heard, agreed = self._heard, self._agreed
        assert heard is not None
        length = len(agreed)
        for start in range(0, len(heard), self._counts[0]):
            if heard[start : start + length] != agreed:
                return False
        if self._carried is not None:
            _finish(self._parts, self._carried, self._size)
        return True


class Bits:
    """Bits that all ranks have set, by number."""

    __slots__ = ("_bits", "_width")

    def __init__(self, bits: int, width: int) -> None:
        self._bits = bits
        self._width = width

    def has(self, bit: int) -> bool:
        """Tell whether a bit is set."""
        return bool(self._bits >> (8 * self._width - 1 - bit) & 1)

    def since(self, first: int) -> List[int]:
        """Return the numbers of the bits that are set, from ``first`` on, ascending."""
        bits = self._bits & ((1 << (8 * self._width - first)) - 1)
        if not bits & (bits - 1):  # one, as a rule, or none
            return [8 * self._width - bits.bit_length()] if bits else []
        data = numpy.frombuffer(bits.to_bytes(self._width, "big"), dtype=numpy.uint8)
        found: List[int] = numpy.flatnonzero(numpy.unpackbits(data)).tolist()
        return found
