"""A negotiation cycle: what it is given, what it is under way, and who is told of its results."""

from typing import Dict, List, NamedTuple, Optional, Sequence

from distributed_dl_training._agreement import Label
from distributed_dl_training._bursts import Burst
from distributed_dl_training._core import Array, Protocol
from distributed_dl_training._handle import ArrayHandle, Handle, Item
from distributed_dl_training._opening import Opening


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

    def begins(self, items: Sequence[Item]) -> None:
        """Take note that what was agreed on is about to be carried out."""

    def finish(self, items: Sequence[Item]) -> None:
        """Give results or errors to those who wait for them."""

    def deliver(self, handles: Sequence[ArrayHandle], values: Sequence[Array]) -> None:
        """Give results of a burst to those who wait for them."""

    def end(self, error: Optional[Exception]) -> None:
        """End the session."""


class Cycle(NamedTuple):
    """A cycle that has begun: what this rank has brought, and the exchange that opens it.

    mine: what this rank asks for again, by bit; None: the bits are the burst's.
    since: when waiting for the oldest began.
    signature: of all that this rank newly asks for; empty if it has signed nothing.
    burst: what that is, if it has come before.
    """

    asked: CycleRequests
    mine: Optional[Dict[int, Handle]]
    opening: Opening
    since: float
    signature: bytes
    burst: Optional[Burst] = None
