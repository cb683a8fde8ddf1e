"""What happens in a cycle: the ranks find out what all of them ask for, and carry it out."""

import hashlib
import sys
import time
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _memory, _timeline
from distributed_dl_training._agreement import (
    JOIN,
    SHUTDOWN,
    Decision,
    Label,
    Report,
    Request,
    ResponseCache,
    decode,
    encode,
)
from distributed_dl_training._bursts import Burst, Bursts, sign
from distributed_dl_training._core import Engine, Pending, StallError
from distributed_dl_training._cycle import Cycle, CycleRequests, Program
from distributed_dl_training._fusion import Fusion, batches
from distributed_dl_training._handle import Handle, Item, make_item
from distributed_dl_training._opening import (
    SIGNATURE,
    Opening,
    Prediction,
    Repeated,
    State,
    spell,
    value_kind,
)
from distributed_dl_training._settings import Settings
from distributed_dl_training._stall import StallInspector
from distributed_dl_training._waiting import comes_soon, pause
from distributed_dl_training._works import Allreduce, Nothing, zeros

# The first bits that ranks combine; a signature and the cache bits follow.
_ALL_CACHED = 0
_BLOCKED = 1
_PACKED = 2  # what is signed can be carried out as a whole
_FIRST = 8 * (1 + 2 * SIGNATURE)
# What follows from these depends on who has asked before; they are not signed.
_UNSIGNED = (JOIN.call, SHUTDOWN.call)
# Openings for one request alone that are kept, at most.
_KEPT = 64
_EVICTIONS = (
    "more than {} different collectives were asked for: agreement on the oldest is forgotten; "
    "names that change in each step cost time, and DDLT_CACHE_CAPACITY remembers more\n"
)
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
        self._bursts = Bursts()
        self._prediction = Prediction()
        self._repeated: Dict[int, Repeated] = {}  # by cache bit
        self._warned = False  # of a cache that is too small
        # Kept after an error as well: the layer below may still write to its arrays.
        self._pending: Optional[Pending] = None

    @property
    def epoch(self) -> int:
        """Unnamed requests are numbered anew in each."""
        return self._cache.epoch

    def repeated(self, handle: Handle) -> Optional[Repeated]:
        """Return what opens a cycle that asks for ``handle`` alone, if it may bring its result.

        Only for the thread whose turn it is, between cycles.
        """
        request, cache, state = handle.request, self._cache, self._prediction.state
        if self.fruitless or cache.joined or cache.waiting:
            return None
        found = self._repeated.get(request.last_bit)
        if found is not None and found.request is request and found.changes == cache.changes:
            if found.state is state or found.suits(state):
                return found
        return self._make_repeated(handle, state)

    def _make_repeated(self, handle: Handle, state: State) -> Optional[Repeated]:
        request, cache = handle.request, self._cache
        bit, kind = cache.bit_of(request), value_kind(request)
        if bit < 0 or (kind != state.kind if kind is not None else request.call != "barrier"):
            return None
        if len(self._repeated) >= _KEPT:
            self._repeated.clear()
        signature = sign([handle], False)
        count = len(cache.requests) + _FIRST
        bits = (_ALL_CACHED, _FIRST + bit)
        made = Repeated(self._engine, count, state, request, signature, bits)
        made.changes = cache.changes
        self._repeated[bit] = made
        return made

    def forget_openings(self) -> None:
        """Make new openings: a thread that was interrupted may still look at those that are."""
        self._repeated.clear()

    def note(self, opening: Repeated) -> None:
        """Take note that all ranks have asked for what this opening says, alone."""
        self._prediction.note(opening.number, opening.value_kind)

    def repeated_cycle(
        self, handle: Handle, entries: Dict[Label, Handle], opening: Repeated
    ) -> Cycle:
        """Return the cycle that asks for ``handle`` alone, which takes longer."""
        self._inspector.waiting(handle.request)
        handle.since = time.monotonic()
        asked = CycleRequests([handle], entries, False, False, handle)
        mine = {_FIRST + self._cache.bit_of(handle.request): handle}
        return Cycle(asked, mine, opening, handle.since, opening.signature)

    def begin(self, asked: CycleRequests) -> Cycle:
        """Begin a cycle, without waiting for other ranks.  Raises StallError."""
        _timeline.current.mark_cycle()
        cache = self._cache
        assert asked.oldest is not None
        since = self._since(asked.oldest)
        waited = time.monotonic() - since
        if waited > _LOOK:
            # Before this rank gives its bits: with these, others could go inside a collective and
            # wait there for a rank that has ended.
            self._inspector.look(waited, None, self._cache.missing)
            waited = time.monotonic() - since
        opening = Opening(self._engine, _FIRST + len(cache.requests), self._prediction.state)
        impatient = waited > _LATE or self.fruitless >= _PATIENCE
        burst = None
        if not (impatient or cache.waiting or cache.joined):
            burst = self._bursts.find(asked.new)
        mine, signature = self._say(opening, asked, impatient, burst)
        if asked.blocked:
            opening.say((_BLOCKED,))
        if self._engine.rank in cache.joined:
            there = enumerate(cache.without_joined, _FIRST)
            opening.say([bit for bit, without in there if without])
        if signature and len(asked.new) == 1:
            handle = asked.new[0]
            if opening.kind is not None and value_kind(handle.request) == opening.kind:
                opening.carry(handle)
        self._pending = opening
        opening.start()
        return Cycle(asked, mine, opening, since, signature, burst)

    def _say(
        self, opening: Opening, asked: CycleRequests, impatient: bool, burst: Optional[Burst]
    ) -> Tuple[Optional[Dict[int, Handle]], bytes]:
        """Say what this rank asks for; return the bits (None: the burst's) and the signature."""
        new, cache, numbered = asked.new, self._cache, asked.several_unnamed
        signature = b""
        if burst is not None:
            signature = burst.signature(new, numbered)
        elif new and not cache.joined and not any(one.request.call in _UNSIGNED for one in new):
            signature = sign(new, numbered)
        known = burst is not None and burst.changes == cache.changes
        if signature:
            opening.sign(signature, burst.said if burst is not None and known else b"")
        if burst is not None and not _timeline.current.on:
            if burst.packed(new, self._fusion.most, self._fusion.capacity):
                opening.say((_PACKED,))
        if known:
            opening.say((_ALL_CACHED,))
            return None, signature
        mine, uncached = self._cached(asked, impatient)
        opening.say(mine)
        if not uncached:
            opening.say((_ALL_CACHED,))
            if burst is not None:
                burst.said, burst.changes = opening.said(), cache.changes
        return mine, signature

    def agree(self, cycle: Cycle) -> Tuple[List[Item], Optional[Burst]]:
        """Return what all ranks ask for, in the same order on all of them.

        If that is all that this rank has asked for, and all ranks can carry it out as a whole, it
        is the burst.  Raises StallError.
        """
        asked, cache, since, opening = cycle.asked, self._cache, cycle.since, cycle.opening
        opening.start()  # all of it, if a thread that has begun it was interrupted
        if self._await(opening, since) > _ABSENT and asked.oldest is not None:
            asked.oldest.since = since = time.monotonic()  # who was away has only just come back
        opening.agreed = True
        common = opening.common()
        if cycle.signature and common.signed(cycle.signature):
            if common.has(_PACKED):
                self.fruitless = 0
                self._prediction.note(opening.number, None)
                return [], cycle.burst
            items = self._settled(cycle)
        else:
            items = self._again(cycle, common.since(_FIRST))
            if common.has(_BLOCKED) or not common.has(_ALL_CACHED):
                new = [handle for handle in asked.new if not handle.reported]
                decisions = cache.report(self._collect(new, since))
                for handle in new:
                    handle.reported = True
                if common.has(_BLOCKED) and not items and not decisions:
                    decisions = cache.give_up()
                items += [self._decided(one, asked.entries) for one in decisions]
        self._count(opening.number, items)
        return items, None

    def _settled(self, cycle: Cycle) -> List[Item]:
        """Return all that this rank has newly asked for: all ranks have signed the same."""
        new, cache, burst = cycle.asked.new, self._cache, cycle.burst
        if burst is None or burst.changes != cache.changes:
            for handle in new:
                cache.remember(handle.request)
            bits = [cache.bit_of(handle.request) for handle in new]
            if burst is not None and min(bits) >= 0 and not cycle.asked.several_unnamed:
                burst.said, burst.changes = spell(bits, len(cache.requests)), cache.changes
        kind = cycle.opening.kind
        carried = len(new) == 1 and kind is not None and value_kind(new[0].request) == kind
        if carried:
            cycle.opening.finish(new[0])
            items = [Item(new[0].request, new[0], None, None, True)]
        else:
            items = [make_item((one.request, one, one.work, one.refusal, False)) for one in new]
        new.clear()  # nothing is left to be told
        return items

    def _again(self, cycle: Cycle, hits: Sequence[int]) -> List[Item]:
        """Return what all ranks ask for again."""
        mine = self._cached(cycle.asked, False)[0] if cycle.mine is None else cycle.mine
        items: List[Item] = []
        for hit in hits:
            handle = mine.get(hit)
            if handle is None:
                items.append(self._item(self._cache.requests[hit - _FIRST], None))
            else:
                handle.reported = True
                items.append(Item(handle.request, handle, handle.work))
        return items

    def _count(self, number: int, items: Sequence[Item]) -> None:
        """Take note of what a cycle has brought."""
        self.fruitless = 0 if items else self.fruitless + 1
        if items:
            alone = len(items) == 1
            self._prediction.note(number, value_kind(items[0].request) if alone else None)
        if self._cache.evictions and not self._warned:
            self._warned = True
            if self._engine.rank == 0:  # not as a warning, which may be an error on some ranks
                sys.stderr.write(_EVICTIONS.format(self._cache.capacity))

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
                in_place = all(handle.in_place for handle in some)
                self._inspector.enter(some[0].request)
                try:
                    values, own = self._fusion.run_packed(
                        sources, pack.size, some[0].reduction, in_place
                    )
                finally:
                    self._inspector.leave()
                program.deliver(some, pack.results(values, copies=not own and not in_place))
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

    def _collect(self, new: Sequence[Handle], since: float) -> List[Report]:
        """Return what ranks newly ask for, each different report once; collective.

        All ranks hear the digest of each rank's report; then, of each different one, the digests of
        its requests; then the text of each different request, from the lowest rank that has it.
        """
        size, me = self._engine.size, self._engine.rank
        mine = {_head(_text(handle)): handle for handle in new}
        listed = b"".join(mine)
        heads = self._gather(_head(listed), [_HEAD] * size, since)
        ranks: Dict[bytes, int] = {}
        for rank in range(size):
            head = heads[rank * _HEAD : (rank + 1) * _HEAD]
            ranks[head] = ranks.get(head, 0) | 1 << rank
        counts = [0] * size
        for head, mask in ranks.items():  # in the order of their lowest ranks
            counts[(mask & -mask).bit_length() - 1] = _length(head)
        lists = self._gather(listed if counts[me] else b"", counts, since)
        reports: List[Tuple[int, List[bytes]]] = []
        owners: Dict[bytes, int] = OrderedDict()
        start = 0
        for head, mask in ranks.items():
            end = start + _length(head)
            records = [lists[at : at + _HEAD] for at in range(start, end, _HEAD)]
            reports.append((mask, records))
            for record in records:
                owners.setdefault(record, (mask & -mask).bit_length() - 1)
            start = end
        asked = self._spell(owners, mine, since)
        return [Report(mask, [asked[one] for one in records]) for mask, records in reports]

    def _spell(
        self, owners: Dict[bytes, int], mine: Dict[bytes, Handle], since: float
    ) -> Dict[bytes, Tuple[Label, Request]]:
        """Return what records stand for, each from the rank that owns it; collective."""
        counts = [0] * self._engine.size
        for record, rank in owners.items():
            counts[rank] += _length(record)
        own = [_text(one) for record, one in mine.items() if owners[record] == self._engine.rank]
        texts = self._gather(b"".join(own), counts, since)
        asked: Dict[bytes, Tuple[Label, Request]] = {}
        start = 0
        for record in owners:
            end = start + _length(record)
            handle = mine.get(record)
            if handle is None:
                asked[record] = decode(texts[start:end])[0]
            else:
                asked[record] = handle.label, handle.request
            start = end
        return asked

    def _gather(self, data: bytes, counts: Sequence[int], since: float) -> bytes:
        """Return all ranks' data in rank order, of so many bytes; collective."""
        gathered = numpy.empty(sum(counts), dtype=numpy.uint8)
        if gathered.size:
            sent = numpy.frombuffer(data, numpy.uint8) if data else gathered[:0]
            self._await(self._engine.start_gather(sent, counts, gathered), since)
        return gathered.tobytes()

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


# Bytes of a digest and of the length of what it stands for.
_HEAD = 24


def _head(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16] + len(data).to_bytes(8, "little")


def _length(head: bytes) -> int:
    return int.from_bytes(head[16:], "little")


def _text(handle: Handle) -> bytes:
    return encode([(handle.label, handle.request)])
