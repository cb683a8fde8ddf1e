"""Which ranks have called init, as their node processes tell it."""

import time
from typing import Dict, List, Optional


class Joins:
    """Which ranks wait in init for the others, and which have ended without a call of it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: Dict[int, float] = {}  # since when
        self._joined: List[int] = []
        self._ended: Dict[int, float] = {}  # when, without having joined

    def note(self, rank: int, word: bytes) -> None:
        """Take note of what a rank says: ``j`` as it calls init, ``J`` when all are there."""
        self._waiting.pop(rank, None)
        if word == b"j":
            self._waiting[rank] = time.monotonic()
        else:
            self._joined.append(rank)

    def ended(self, rank: int) -> None:
        """Take note that a rank has ended."""
        self._waiting.pop(rank, None)
        if 0 <= rank < self._size and rank not in self._joined:
            self._ended[rank] = time.monotonic()

    def absent(self, seconds: float) -> Optional[int]:
        """Return a rank that has ended, if others have waited for it so long since."""
        if not self._ended or not self._waiting:
            return None
        since = max(min(self._waiting.values()), min(self._ended.values()))
        return min(self._ended) if time.monotonic() - since > seconds else None

    def late(self, seconds: float) -> List[int]:
        """Return the ranks that have not called init, once others have waited there so long."""
        if not seconds or not self._waiting:
            return []
        if time.monotonic() - min(self._waiting.values()) < seconds:
            return []
        there = {*self._waiting, *self._joined}
        return [rank for rank in range(self._size) if rank not in there]
