"""Who has asked for what, and what follows: the same answer on every rank, without a coordinator.

Every rank keeps a :class:`ResponseCache` and feeds it the same reports, so that all caches are
equal at all times.  Nothing here communicates: the negotiation gathers the reports, which are taken
in the same order everywhere.  Ranks that report the same are one :class:`Report`: what it costs
depends on how many different ones there are, not on the number of ranks.

A request that all ranks have agreed on once gets a *cache bit*, which from then on says that a rank
asks for it again.  One reduction of all ranks' bits finds what everybody asks for: training steps
repeat the same requests, so that nothing is negotiated in full after the first one.
"""

import hashlib
import json
from collections import OrderedDict
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from distributed_dl_training._core import MismatchError, Op, name_ranks

# A named request goes by its name, an unnamed one by its number among the unnamed ones.
Label = Union[str, int]

# Waiting requests that a text lists for a rank, and tensors of a group in a short text.
_SHOWN = 4


class _Fields(NamedTuple):
    call: str
    name: Optional[str] = None
    dtype: str = ""
    shape: Tuple[Any, ...] = ()
    op: str = ""
    prescale: float = 1.0
    postscale: float = 1.0
    root: int = -1
    place: Tuple[Any, ...] = ()
    refusal: str = ""


class Request(_Fields):
    """What a rank asks for.  Ranks agree if all fields are equal.

    shape: the tensor's; "*" stands for a first dimension that may differ between ranks.  Of a
        group: one shape for each tensor.  Of a process set: its ranks.
    place: the arena that the tensor lies in and its first element there, or nothing.
    refusal: the kind of error in this rank's arguments, or nothing.
    last_bit: the cache bit that it had when this object was last looked up; not compared.
    """

    last_bit = -1
    kind: Optional[Tuple[Any, ...]] = None  # as ``_fusion`` has it
    _digest = b""

    def digest(self) -> bytes:
        """Return 16 bytes that tell it from any other request."""
        if not self._digest:
            text = json.dumps(self, separators=(",", ":")).encode("utf-8", "surrogatepass")
            self._digest = hashlib.sha256(text).digest()[:16]
        return self._digest

    def __str__(self) -> str:
        return self._text(_shape(self.shape))

    def brief(self) -> str:
        """Return the text without most shapes of a large group."""
        if len(self.shape) <= _SHOWN or not isinstance(self.shape[0], tuple):
            return str(self)
        some = ", ".join(_shape(each) for each in self.shape[:_SHOWN])
        return self._text(f"({some}, and {len(self.shape) - _SHOWN} more)")

    def _text(self, shape: str) -> str:
        facts = [] if self.name is None else [f"name={self.name!r}"]
        if self.dtype:
            facts += [f"dtype={self.dtype}", f"shape={shape}"]
        if self.op:
            facts += [f"op={self.op}", f"prescale={self.prescale}", f"postscale={self.postscale}"]
        if self.call == "broadcast":
            facts.append(f"root={self.root}")
        if self.call == "add_process_set":
            facts.append(f"ranks={list(self.shape)}")
        if self.place:
            facts.append("place={}[{}]".format(*self.place))
        refused = f" refused: {self.refusal}" if self.refusal else ""
        return f"{self.call}({', '.join(facts)}){refused}"


def _shape(shape: Tuple[Any, ...]) -> str:
    inner = (_shape(each) if isinstance(each, tuple) else str(each) for each in shape)
    return "({}{})".format(", ".join(inner), "," if len(shape) == 1 else "")


JOIN = Request("join")
SHUTDOWN = Request("shutdown")
# Their labels; unnamed collectives are numbered from 0.
JOIN_LABEL = -1
SHUTDOWN_LABEL = -2
# These name a set by its number, which hardly comes again: a bit would be lost to them.
_ASKED_ONCE = ("remove_process_set",)
# Sums go on without the ranks that have joined: zeros add nothing.
_SUMS = (Op.SUM.value, Op.AVERAGE.value)


def goes_on_without_joined(request: Request) -> bool:
    """Tell whether ranks that have joined can be taken to ask for ``request``, with zeros."""
    if request.refusal:
        return False
    return request.call == "barrier" or (request.call == "allreduce" and request.op in _SUMS)


class Report(NamedTuple):
    """What some ranks newly ask for, in this order.

    ranks: bit ``1 << rank`` is set for each of them.
    """

    ranks: int
    requests: Sequence[Tuple[Label, Request]]


def ranks_of(mask: int) -> List[int]:
    """Return the ranks whose bits are set, ascending."""
    return [rank for rank, bit in enumerate(reversed(bin(mask)[2:])) if bit == "1"]


class Decision(NamedTuple):
    """What becomes of one label on every rank: it runs, or it fails with the same error."""

    label: Label
    request: Request
    error: Optional[MismatchError] = None


class ResponseCache:
    """What the ranks have reported and agreed on before, who has joined and who shuts down.

    One class for these, because each report may change all of them at once, and they must stay
    equal on all ranks.

    size: ranks in the group.
    capacity: cache bits; when all are taken, the oldest is given to the next request.
    waiting: by label, which ranks (a mask) have asked for which request.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self.size = size
        self.capacity = capacity
        self.evictions = 0
        self._everybody = (1 << size) - 1
        self.bits: Dict[Request, int] = {}
        self.requests: List[Request] = []  # by cache bit
        self.without_joined: List[bool] = []  # by cache bit: goes_on_without_joined
        self.waiting: OrderedDict[Label, Dict[Request, int]] = OrderedDict()
        self.joined: List[int] = []  # in the order in which they joined
        self.shutdown_requested: List[int] = []
        self.changes = 0  # of the bits
        self.epoch = 0  # unnamed requests are numbered anew in each
        self._oldest = 0

    def report(self, reports: Sequence[Report]) -> List[Decision]:
        """Take in what ranks newly ask for; return what follows, in order."""
        touched: Dict[Label, None] = OrderedDict()
        joined = len(self.joined)
        for ranks, requests in reports:
            for label, request in requests:
                if label == JOIN_LABEL:
                    self.joined += ranks_of(ranks)
                elif label == SHUTDOWN_LABEL:
                    self.shutdown_requested += ranks_of(ranks)
                else:
                    asked = self.waiting.setdefault(label, {})
                    asked[request] = asked.get(request, 0) | ranks
                    touched[label] = None
        # A rank that joins may complete anything, a report only what it speaks of.
        changed = list(self.waiting if len(self.joined) > joined else touched)
        decisions = [self._decide(label) for label in changed if self._complete(label)]
        if self.shutdown_requested:
            return decisions + self._close()
        if len(self.joined) == self.size:
            decisions.append(Decision(JOIN_LABEL, JOIN))
        return decisions

    def bit_of(self, request: Request) -> int:
        """Return the cache bit of ``request``, -1 if it has none."""
        bit = request.last_bit  # to compare objects is faster than to look for equal ones
        if bit < 0 or bit >= len(self.requests) or self.requests[bit] is not request:
            bit = request.last_bit = self.bits.get(request, -1)
            if bit >= 0:
                self.requests[bit] = request
        return bit

    def give_up(self) -> List[Decision]:
        """Fail everything that waits: no rank can go on, and no two wait for the same.

        Some ranks may have asked for more without a name than others: a new epoch begins.
        """
        self.epoch += 1
        return self._fail_waiting(mismatch(self._asked()))

    def last_joined(self) -> int:
        """Return the rank that joined last, and forget who has joined; a new epoch begins."""
        self.epoch += 1
        last = self.joined[-1]
        del self.joined[:]
        return last

    def missing(self) -> List[Tuple[Request, List[int]]]:
        """Return each waiting request, as its first rank asked for it, and the ranks that lack."""
        found = []
        for asked in self.waiting.values():
            lacking = self._everybody & ~(_union(asked) | _mask(self.joined))
            found.append((_first(asked), ranks_of(lacking)))
        return found

    def _complete(self, label: Label) -> bool:
        ranks = _union(self.waiting[label])
        return ranks | _mask(self.joined) == self._everybody

    def _decide(self, label: Label) -> Decision:
        asked = self.waiting.pop(label)
        request = _first(asked)
        lacking = _union(asked) != self._everybody
        if len(asked) > 1 or (lacking and not goes_on_without_joined(request)):
            texts = [str(JOIN)] * self.size
            for one, ranks in asked.items():
                for rank in ranks_of(ranks):
                    texts[rank] = str(one)
            return Decision(label, request, mismatch(texts))
        self.remember(request)
        return Decision(label, request)

    def remember(self, request: Request) -> None:
        """Give a cache bit to what all ranks have agreed on, unless it has one."""
        if self.bit_of(request) >= 0 or not self.capacity or request.call in _ASKED_ONCE:
            return
        if request.refusal:
            return
        self.changes += 1
        if len(self.requests) < self.capacity:
            self.requests.append(request)
            self.without_joined.append(goes_on_without_joined(request))
            self.bits[request] = len(self.requests) - 1
            return
        self.evictions += 1
        bit, self._oldest = self._oldest, (self._oldest + 1) % self.capacity
        del self.bits[self.requests[bit]]
        self.bits[request] = bit
        self.requests[bit] = request
        self.without_joined[bit] = goes_on_without_joined(request)

    def _close(self) -> List[Decision]:
        """End the session for everybody: who shuts down will never ask for what waits."""
        error = None if len(self.shutdown_requested) == self.size else mismatch(self._asked())
        failed = self._fail_waiting(error) if error else []
        return failed + [Decision(SHUTDOWN_LABEL, SHUTDOWN, error)]

    def _fail_waiting(self, error: MismatchError) -> List[Decision]:
        failed = [Decision(label, _first(asked), error) for label, asked in self.waiting.items()]
        self.waiting.clear()
        return failed

    def _asked(self) -> List[str]:
        """Return what each rank waits for, by rank, as text."""
        waits: List[List[str]] = [[] for _ in range(self.size)]
        for asked in self.waiting.values():
            for request, ranks in asked.items():
                text = str(request)
                for rank in ranks_of(ranks):
                    waits[rank].append(text)
        texts = []
        for rank, mine in enumerate(waits):
            mine += [str(JOIN)] * (rank in self.joined) + [str(SHUTDOWN)] * (
                rank in self.shutdown_requested
            )
            more = f" and {len(mine) - _SHOWN} more" if len(mine) > _SHOWN else ""
            texts.append("; ".join(mine[:_SHOWN]) + more or "nothing")
        return texts


def _union(asked: Mapping[Request, int]) -> int:
    """Return which ranks have asked for anything."""
    ranks = 0
    for mask in asked.values():
        ranks |= mask
    return ranks


def _first(asked: Mapping[Request, int]) -> Request:
    """Return what the lowest rank has asked for."""
    return min(asked, key=lambda request: asked[request] & -asked[request])


def _mask(ranks: Sequence[int]) -> int:
    mask = 0
    for rank in ranks:
        mask |= 1 << rank
    return mask


def mismatch(requests: Sequence[str]) -> MismatchError:
    """Return the error that every rank raises: which ranks asked for what, lowest rank first."""
    ranks: Dict[str, List[int]] = {}
    for rank, request in enumerate(requests):
        ranks.setdefault(request, []).append(rank)
    lines = ["the ranks do not agree on a collective:"]
    for request, members in sorted(ranks.items(), key=lambda item: item[1]):
        lines.append(f"  {name_ranks(members)}: {request}")
    lines.append("")
    lines.append("hint: all ranks must ask for the same collectives with equal arguments; those")
    lines.append("      without a name must come in the same order")
    return MismatchError("\n".join(lines), requests)


def encode(report: Sequence[Tuple[Label, Request]]) -> bytes:
    """Return a report as bytes that any rank can read."""
    return json.dumps(report, separators=(",", ":")).encode("utf-8", "surrogatepass")


def decode(data: bytes) -> List[Tuple[Label, Request]]:
    """Return the report that ``encode`` made."""
    report = json.loads(data.decode("utf-8", "surrogatepass"))
    return [(label, Request(*(_tuple(field) for field in fields))) for label, fields in report]


def _tuple(value: Any) -> Any:
    """Return lists as tuples, which is what they were before JSON."""
    return tuple(_tuple(each) for each in value) if isinstance(value, list) else value
