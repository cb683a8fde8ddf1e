"""What happens in a cycle: the ranks find out what all of them ask for, and carry it out."""

import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _memory, _timeline
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
from distributed_dl_training._bursts import Burst, Bursts
from distributed_dl_training._core import Engine, Pending, StallError
from distributed_dl_training._cycle import Cycle, CycleRequests, Program
from distributed_dl_training._fusion import Fusion, batches
from distributed_dl_training._handle import Handle, Item
from distributed_dl_training._opening import SIGNATURE, Opening, Repeated, Room
from distributed_dl_training._settings import Settings
from distributed_dl_training._stall import StallInspector
from distributed_dl_training._waiting import comes_soon, pause
from distributed_dl_training._works import Allreduce, Nothing, as_bytes, zeros

# The first bits that ranks combine; a signature and the cache bits follow.
_ALL_CACHED = 0
_BLOCKED = 1
_FIRST = 8 * (1 + 2 * SIGNATURE)
# Negotiation without a result, and seconds, after which what waits is negotiated in full.
_PATIENCE = 3
_LATE = 0.5
# Seconds between looks at what other ranks say, while waiting for them.
_LOOK = 0.25
# Seconds until what all ranks have said has reached this one.
_SOON = 0.5
# Seconds after which a rank has been away, and what waits for it is given time anew.
_ABSENT = 1.0


class Negotiation:
    """One group's agreement and exchange, by one thread at a time.

    One class with many small methods: each is a step of a cycle, and all work on the same cache,
    the same buffers and the same count of cycles without a result.
    """

    def __init__(self, engine: Engine, settings: Settings, inspector: StallInspector) -> None:
        self.fruitless = 0  # cycles since the last result
        self._engine = engine
        self._cache = ResponseCache(engine.size, settings.cache_capacity)
        self._fusion = Fusion(engine, settings.fusion_threshold)
        self._inspector = inspector
        self._bursts = Bursts(self._fusion.most, self._fusion.capacity)
        self._room = Room(engine)
        self._last: Optional[Repeated] = None  # has opened the last cycle, and fits the next one
        # Kept after an error as well: the layer below may still write to its arrays.
        self._pending: Optional[Pending] = None

    def close(self) -> None:
        """Let go of what the engine keeps ready for cycles; none may be under way."""
        self._last = None
        self._room.close()

    @property
    def epoch(self) -> int:
        """Unnamed requests are numbered anew in each."""
        return self._cache.epoch

    def may_repeat(self) -> bool:
        """Tell whether it is worth to call ``repeated``; any thread may ask this at any time."""
        return self._room.few and not self.fruitless

    def repeated(self, handle: Handle) -> Optional[Repeated]:
        """Return what opens a cycle that asks for ``handle`` alone, if it may bring its result.

        Only for the thread whose turn it is, between cycles.
        """
        request, last = handle.request, self._last
        if last is not None and last.request is request:
            return last
        self._last = None  # whose channel may have to make room for another one's
        cache, room = self._cache, self._room
        if self.fruitless or not room.few or cache.joined:
            return None
        bit, count = request.last_bit, len(cache.requests)
        if not 0 <= bit < count or cache.requests[bit] is not request:
            bit = cache.bit_of(request)
        found = room.repeated.get(bit)
        if found is not None and found.fits(request, room.nbytes, count + _FIRST):
            return found
        if bit < 0 or not room.takes(handle):
            return None
        return room.repeat(handle, bit, (_ALL_CACHED, _FIRST + bit), count + _FIRST)

    def settle(self, opening: Repeated, handle: Handle) -> bool:
        """Tell whether all ranks have asked for ``handle``'s request alone, which is done then.

        If not it is for ``agree`` to find out what they ask for, in a ``repeated_cycle``.
        """
        if not opening.settle(handle):
            return False
        if opening is not self._last:
            self.fruitless = 0
            self._room.fit_request(opening.request)
            # Else all ranks make room for another length now, whichever way they go next.
            if opening.nbytes == self._room.nbytes:
                self._last = opening
        return True

    def repeated_cycle(
        self, handle: Handle, entries: Dict[Label, Handle], opening: Repeated, pending: Pending
    ) -> Cycle:
        """Return the cycle that asks for ``handle`` alone, which takes longer."""
        self._last = None
        self._inspector.waiting(handle.request)
        handle.since = time.monotonic()
        self._pending = pending
        asked = CycleRequests([handle], entries, False, False, handle)
        mine = {_FIRST + opening.bit: handle}
        return Cycle(asked, mine, opening, pending, handle.since)

    def begin(self, asked: CycleRequests) -> Cycle:
        """Begin a cycle, without waiting for other ranks.  Raises StallError."""
        cache = self._cache
        self._last = None  # what it relies on may change in this cycle
        assert asked.oldest is not None
        since = self._since(asked.oldest)
        waited = time.monotonic() - since
        if waited > _LOOK:
            # Before this rank gives its bits: with these, others could go inside a collective and
            # wait there for a rank that has ended.
            self._inspector.look(waited, None, self._cache.missing)
            waited = time.monotonic() - since
        opening = Opening(_FIRST + len(cache.requests), self._room)
        impatient = waited > _LATE or self.fruitless >= _PATIENCE
        burst = None if impatient else self._burst(asked)
        signature = burst.signature(asked.new) if burst is not None else b""
        mine, uncached = self._say(opening, asked, impatient, burst, signature)
        if not uncached:
            opening.say((_ALL_CACHED,))
        if asked.blocked:
            opening.say((_BLOCKED,))
        if self._engine.rank in cache.joined:
            there = enumerate(cache.without_joined, _FIRST)
            opening.say([bit for bit, without in there if without])
        if mine is not None and len(mine) == 1 and not cache.joined:
            for bit, handle in mine.items():
                if isinstance(handle.work, Allreduce) and self._room.takes(handle):
                    opening.carry(bit, handle.work)
        self._pending = pending = opening.start(self._engine)
        return Cycle(asked, mine, opening, pending, since, burst, signature)

    def _burst(self, asked: CycleRequests) -> Optional[Burst]:
        """Return what this rank may sign, if it is all that it asks for."""
        cache = self._cache
        if cache.waiting or cache.joined or _timeline.current.on:
            return None
        return self._bursts.find(asked.new)

    def _say(
        self,
        opening: Opening,
        asked: CycleRequests,
        impatient: bool,
        burst: Optional[Burst],
        signature: bytes,
    ) -> Tuple[Optional[Dict[int, Handle]], bool]:
        """Say what this rank asks for; see ``_cached`` for what is returned."""
        if burst is None:
            mine, uncached = self._cached(asked, impatient)
            opening.say(mine)
            return mine, uncached
        changes = self._cache.changes
        if burst.changes == changes:
            opening.sign(signature, burst.said)
            return None, False
        opening.sign(signature, b"")
        if burst.unnamed == len(asked.new):
            return {}, True
        mine, uncached = self._cached(asked, False)
        opening.say(mine)
        if not uncached:
            burst.said, burst.changes = opening.said(), changes
        return mine, uncached

    def agree(self, cycle: Cycle) -> Tuple[List[Item], Optional[Burst]]:
        """Return what all ranks ask for, in the same order on all of them.

        If that is all that this rank has asked for, and it has signed it, it is the burst.
        Raises StallError.
        """
        asked, cache, since = cycle.asked, self._cache, cycle.since
        if self._await(cycle.pending, since) > _ABSENT and asked.oldest is not None:
            asked.oldest.since = since = time.monotonic()  # who was away has only just come back
        common = cycle.opening.common()
        if cycle.burst is not None and common.signed(cycle.signature):
            self.fruitless = 0
            self._room.fit_request(None)
            return [], cycle.burst
        items = self._again(cycle, common.since(_FIRST))
        if common.has(_BLOCKED) or not common.has(_ALL_CACHED):
            new = [handle for handle in asked.new if not handle.reported]
            decisions = cache.report(self._negotiate(new, since))
            for handle in new:
                handle.reported = True
            if common.has(_BLOCKED) and not items and not decisions:
                decisions = cache.give_up()
            items += [self._decided(one, asked.entries) for one in decisions]
        self._count(items)
        return items, None

    def _again(self, cycle: Cycle, hits: Sequence[int]) -> List[Item]:
        """Return what all ranks ask for again; what travelled along is reduced."""
        mine = self._cached(cycle.asked, False)[0] if cycle.mine is None else cycle.mine
        carried = cycle.opening.reduce_carried()
        items: List[Item] = []
        for hit in hits:
            handle = mine.get(hit)
            if handle is None:
                items.append(self._item(self._cache.requests[hit - _FIRST], None))
            else:
                handle.reported = True
                # What travelled along came with the bit of this one alone.
                items.append(Item(handle.request, handle, handle.work, None, carried))
        return items

    def _count(self, items: Sequence[Item]) -> None:
        """Take note of what a cycle has brought."""
        self.fruitless = 0 if items else self.fruitless + 1
        self._room.fit(items)

    def carry_out(self, items: Sequence[Item], program: Program) -> None:
        """Exchange what has been agreed on, allreduces first and together; collective."""
        reductions: List[Item] = []
        others: List[Item] = []
        for item in items:
            _, _, work, error, done = item
            if done:
                program.begins([item])
                program.finish([item])
            elif error is None and isinstance(work, Allreduce):
                reductions.append(item)
            else:
                others.append(item)
        if not reductions and not others:
            return
        # As numpy does it by default, but without a word: no caller sees this thread's warnings,
        # and where they are made errors one rank alone would fail.
        with numpy.errstate(all="ignore"):
            for batch in batches(reductions):
                program.begins(batch.items)
                self._inspector.enter(batch.items[0].request)
                try:
                    self._fusion.run(batch)
                finally:
                    self._inspector.leave()
                program.finish(batch.items)
            for item in others:
                self._carry_out_alone(item, program)

    def carry_out_burst(self, burst: Burst, handles: List[Handle], program: Program) -> None:
        """Exchange what was signed as ``carry_out`` would, its handles in order; collective."""
        with numpy.errstate(all="ignore"):
            for pack in burst.packs or []:
                some: List[Any] = pack.of(handles)
                sources = [handle.source for handle in some]
                self._inspector.enter(some[0].request)
                try:
                    values, own = self._fusion.run_packed(sources, pack.size, some[0].reduction)
                finally:
                    self._inspector.leave()
                program.deliver(some, pack.views(values) if own else pack.copies(values))
                del values  # whose memory is used again

    def _carry_out_alone(self, item: Item, program: Program) -> None:
        if item.request == SHUTDOWN:
            program.end(item.error)
            return
        if item.error is None and item.work is not None:
            program.begins([item])
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

    def _cached(self, asked: CycleRequests, impatient: bool) -> Tuple[Dict[int, Handle], bool]:
        """Return what bits can say, by bit, and whether something must be negotiated in full."""
        cache = self._cache
        mine: Dict[int, Handle] = {}
        uncached = False
        waiting, bit_of, several_unnamed = cache.waiting, cache.bit_of, asked.several_unnamed
        requests = cache.requests
        count = len(requests)
        for handle in asked.new:
            request = handle.request
            bit = request.last_bit
            if not 0 <= bit < count or requests[bit] is not request:
                bit = bit_of(request)
            if (
                bit < 0
                or (waiting and handle.label in waiting)
                # Their numbers, which a bit does not tell, must not be mixed up.
                or (several_unnamed and request.name is None)
            ):
                uncached = True
            else:
                mine[_FIRST + bit] = handle
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
            pause(waited)
            if now - looked > _LOOK:
                looked = now
                try:
                    self._inspector.look(now - since, waited, self._cache.missing)
                except StallError:
                    # Who has calculated past the limit, and takes part while it is asked, answers
                    # that it waits for something: no reason to give up.
                    if not comes_soon(pending, longest=_SOON):
                        raise
        return time.monotonic() - started
