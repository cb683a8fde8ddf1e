"""What rank 0 reads from its stdin."""

import base64
import os
from typing import Optional

from distributed_dl_training.launch._peer import Peer

_INPUT = 1 << 15  # bytes of input that are read ahead of rank 0


class Input:
    """What rank 0 reads: the launcher's own input, as fast as the rank takes it."""

    def __init__(self, fd: Optional[int]) -> None:
        self._fd = fd
        self._under_way = 0  # bytes that the rank has not taken yet

    def wanted(self) -> Optional[int]:
        """Return the descriptor if more may be read from it now."""
        return self._fd if self._under_way < _INPUT else None

    def pass_on(self, peer: Peer) -> None:
        """Read some, and give it to the node process of rank 0; an end is passed on too."""
        assert self._fd is not None
        try:
            data = os.read(self._fd, _INPUT)
        except OSError:
            data = b""
        self._under_way += len(data)
        if not data:
            self._fd = None
        peer.send("in " + base64.b64encode(data).decode("ascii"))

    def taken(self, count: int) -> None:
        """Take note that the rank has read so much; -1: it will read no more."""
        if count < 0:
            self._fd = None
        self._under_way -= count
