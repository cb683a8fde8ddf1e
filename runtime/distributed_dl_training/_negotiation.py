"""A negotiation cycle: the ranks find out what all of them ask for, and carry it out."""

import os
import select
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _memory
from distributed_dl_training._agreement import (
    JOIN,
    SHUTDOWN,
    Decision,
    Label,
    Request,
    ResponseCache,
    decode,
    encode,
)
from distributed_dl_training._core import Array, Engine, Pending, Protocol
from distributed_dl_training._fusion import Fusion, batches
from distributed_dl_training._handle import Handle, Item
from distributed_dl_training._settings import Settings
from distributed_dl_training._stall import StallInspector
from distributed_dl_training._works import Allreduce, Nothing, as_bytes, zeros

# The first bits that ranks combine; the cache bits follow.
_ALL_CACHED = 0
_BLOCKED = 1
_FIRST_BIT = 2
# Negotiation without a result, and seconds, after which what waits is negotiated in full.
_PATIENCE = 3
_LATE = 0.5
# Seconds: while waiting for other ranks, first without and then with pauses of an eighth of the
# time waited; and between looks at what they say.
_SPIN = 0.0002
_LONGEST_NAP = 0.001
_LOOK = 0.25
# Seconds after which a rank has been away, and what waits for it is given time anew.
_ABSENT = 1.0


class CycleRequests(NamedTuple):
    """What this rank brings to a negotiation cycle.

    new: what other ranks have not been told, in the order in which it was asked for.
    entries: everything that is not done, by label; other threads add to it.
    several_unnamed: whether more than one entry has no name.
    blocked: whether this rank will ask for nothing more before something is done.
    oldest: what has waited longest.
    """

    new: List[Handle]
    entries: Dict[Label, Handle]
    several_unnamed: bool
    blocked: bool
    oldest: Optional[Handle]


class Program(Protocol):
    """Those who wait for results."""

    def begins(self, item: Item) -> None:
        """Take note that something agreed on is about to be carried out."""

    def finish(self, items: Sequence[Item]) -> None:
        """Give results or errors to those who wait for them."""

    def end(self, error: Optional[Exception]) -> None:
        """End the session."""


class Negotiation:
    """One group's agreement and exchange, by one thread at a time."""

    def __init__(self, engine: Engine, settings: Settings, inspector: StallInspector) -> None:
        self.fruitless = 0  # cycles since the last result
        self._engine = engine
        self._cache = ResponseCache(engine.size, settings.cache_capacity)
        self._fusion = Fusion(engine, settings.fusion_threshold)
        self._inspector = inspector
        # Kept after an error as well: the layer below may still write to its arrays.
        self._pending: Optional[Pending] = None

    def agree(self, asked: CycleRequests) -> Tuple[List[Item], int]:
        """Return what all ranks ask for, in the same order on all of them, and the epoch.

        Unnamed requests are numbered anew in each epoch.  Raises StallError.
        """
        cache = self._cache
        assert asked.oldest is not None
        since = self._since(asked.oldest)
        waited = time.monotonic() - since
        if waited > _LOOK:
            # Before this rank gives its bits: with these, others could go inside a collective and
            # wait there for a rank that has ended.
            self._inspector.look(waited, None, self._cache.missing)
        mine, uncached = self._cached(asked, time.monotonic() - since > _LATE)
        bits = numpy.zeros(_FIRST_BIT + len(cache.requests), dtype=numpy.bool_)
        bits[_ALL_CACHED] = not uncached
        bits[_BLOCKED] = asked.blocked
        if self._engine.rank in cache.joined:
            bits[_FIRST_BIT:] = cache.without_joined
        for bit in mine:
            bits[_FIRST_BIT + bit] = True
        words = as_words(bits)
        if self._await(self._engine.start_and(words), since) > _ABSENT:
            asked.oldest.since = since = time.monotonic()  # who was away has only just come back
        common = bits_of(words, bits.size)
        hits = numpy.flatnonzero(common[_FIRST_BIT:]).tolist()
        items = [self._item(cache.requests[bit], mine.get(bit)) for bit in hits]
        for bit in hits:
            if bit in mine:
                mine[bit].reported = True
        if common[_BLOCKED] or not common[_ALL_CACHED]:
            new = [handle for handle in asked.new if not handle.reported]
            decisions = cache.report(self._negotiate(new, since))
            for handle in new:
                handle.reported = True
            if common[_BLOCKED] and not items and not decisions:
                decisions = cache.give_up()
            items += [self._decided(one, asked.entries) for one in decisions]
        self.fruitless = 0 if items else self.fruitless + 1
        return items, cache.epoch

    def carry_out(self, items: Sequence[Item], program: Program) -> None:
        """Exchange what has been agreed on, allreduces first and together; collective."""
        reductions: List[Item] = []
        others: List[Item] = []
        for item in items:
            together = isinstance(item.work, Allreduce) and item.error is None
            (reductions if together else others).append(item)
        # As numpy does it by default, but without a word: no caller sees this thread's warnings,
        # and where they are made errors one rank alone would fail.
        with numpy.errstate(all="ignore"):
            for batch in batches(reductions):
                for item in batch.items:
                    program.begins(item)
                self._inspector.enter(batch.items[0].request)
                try:
                    self._fusion.run(batch)
                finally:
                    self._inspector.leave()
                program.finish(batch.items)
            for item in others:
                self._carry_out_alone(item, program)

    def _carry_out_alone(self, item: Item, program: Program) -> None:
        if item.request == SHUTDOWN:
            program.end(item.error)
            return
        if item.error is None and item.work is not None:
            program.begins(item)
            self._inspector.enter(item.request)
            try:
                with _memory.carrying([item.work.value]):
                    item.work.run(self._engine)
                    _memory.settle(item.work.value)
            finally:
                self._inspector.leave()
        program.finish([item])

    def _since(self, oldest: Handle) -> float:
        """Return when waiting for ``oldest`` began; for that of join() it begins anew."""
        now = time.monotonic()
        self._inspector.waiting(oldest.request)
        if oldest.request == JOIN:
            return now
        if not oldest.since:
            oldest.since = now
        return oldest.since

    def _cached(self, asked: CycleRequests, late: bool) -> Tuple[Dict[int, Handle], bool]:
        """Return what cache bits can say, and whether something must be negotiated in full."""
        cache = self._cache
        mine: Dict[int, Handle] = {}
        uncached = False
        for handle in asked.new:
            bit = cache.bits.get(handle.request)
            if (
                bit is None
                or handle.label in cache.waiting
                # Their numbers, which a bit does not tell, must not be mixed up.
                or (asked.several_unnamed and handle.request.name is None)
            ):
                uncached = True
            else:
                mine[bit] = handle
        impatient = late or self.fruitless >= _PATIENCE
        return mine, uncached or (impatient and bool(asked.new))

    def _decided(self, decision: Decision, entries: Dict[Label, Handle]) -> Item:
        """Return what follows from a decision on this rank."""
        request, error = decision.request, decision.error
        handle = entries.get(decision.label)
        if handle is not None and not handle.reported:
            handle = None  # asked for since: this rank has joined, and it is not part of this
        if request == JOIN:
            last = self._cache.last_joined()
            if handle is not None:
                handle.work = Nothing(last)
        refused = handle.refusal if handle is not None and error is None else None
        return self._item(request, handle, error or refused)

    def _item(
        self, request: Request, handle: Optional[Handle], error: Optional[Exception] = None
    ) -> Item:
        """Return this rank's part in a request: of one that has joined, zeros."""
        if handle is not None:
            return Item(request, handle, handle.work, error)
        joined = request.call == "allreduce" and error is None
        return Item(
            request, None, zeros(request, self._engine.local_rank) if joined else None, error
        )

    def _negotiate(self, new: Sequence[Handle], since: float) -> List[List[Tuple[Label, Request]]]:
        """Return what each rank newly asks for, by rank; collective."""
        report = encode([(handle.label, handle.request) for handle in new])
        data = numpy.frombuffer(report, dtype=numpy.uint8)
        size = self._engine.size
        counts = numpy.empty(size, dtype=numpy.int64)
        mine = as_bytes(numpy.array([data.size], dtype=numpy.int64))
        self._await(self._engine.start_gather(mine, [8] * size, counts.view(numpy.uint8)), since)
        everything = numpy.empty(int(counts.sum()), dtype=numpy.uint8)
        lengths: List[int] = counts.tolist()
        self._await(self._engine.start_gather(data, lengths, everything), since)
        ends = numpy.cumsum(counts)
        return [decode(everything[e - n : e].tobytes()) for n, e in zip(lengths, ends)]

    def _await(self, pending: Pending, since: float) -> float:
        """Return when ``pending`` is complete, and how long that took.

        Raises StallError past the limit, if others have taken part in nothing for half that time.
        """
        self._pending = pending
        started = looked = time.monotonic()
        while not pending.done():
            now = time.monotonic()
            waited = now - started
            if waited < _SPIN:
                _yield()
            else:
                time.sleep(min(waited / 8, _LONGEST_NAP))
            if now - looked > _LOOK:
                looked = now
                self._inspector.look(now - since, waited, self._cache.missing)
        return time.monotonic() - started


def _yield() -> None:
    """Let other threads of this process run, and other processes, if they want to."""
    # Not time.sleep(0): from Python 3.11 on that takes 0.1 ms.
    select.select((), (), (), 0)
    os.sched_yield()


def as_words(bits: Array) -> Array:
    """Return bits as int64 words, the last one filled up with zeros."""
    packed = numpy.packbits(bits)
    words = numpy.zeros((packed.size + 7) // 8, dtype=numpy.int64)
    words.view(numpy.uint8)[: packed.size] = packed
    return words


def bits_of(words: Array, count: int) -> Array:
    """Return the first ``count`` bits of what ``as_words`` made."""
    return numpy.unpackbits(words.view(numpy.uint8))[:count]
