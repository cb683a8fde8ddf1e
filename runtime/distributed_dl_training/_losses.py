"""Waiting for Gloo, and the error that every rank raises when one of them is lost."""

import ctypes
from datetime import timedelta
from typing import Any, List, Optional

from distributed_dl_training._core import PeerLostError, name_ranks
from distributed_dl_training._heartbeat import RARELY, Heartbeat
from distributed_dl_training._waiting import raised_in_python

# Between looks whether a rank is lost, while data is awaited.
_LOOK = timedelta(seconds=0.25)
# Seconds for answers that tell which rank is lost: twice what a rank takes between two looks.
_PROBE = 2 * RARELY


class Losses:
    """What is known of lost ranks, and the process groups that must outlive them."""

    def __init__(self, heartbeat: Heartbeat, groups: List[Any]) -> None:
        """Note lost ranks, and keep ``groups``, a list that the engine may still add to."""
        self._heartbeat = heartbeat
        self._groups = groups

    def check(self) -> None:
        """Raise PeerLostError if a rank is known to be lost."""
        if self._heartbeat.lost is not None:
            raise self._lost(self._heartbeat.lost)

    def wait(self, work: Any, longest: Optional[timedelta] = None) -> bool:
        """Wait for ``work``, and tell whether it is complete; raises PeerLostError."""
        while True:
            try:
                work.wait(longest or _LOOK)
                return True
            except RuntimeError as error:
                if raised_in_python(error):
                    raise  # from a handler of a signal
                if work.is_completed():  # not only this look has ended
                    return self._ended(work)
            self.check()
            if longest is not None:
                return False

    def _ended(self, work: Any) -> bool:
        try:
            work.wait()
        except RuntimeError as error:
            raise self._lost(str(error)) from error
        return True

    def _lost(self, reason: str) -> PeerLostError:
        """Return the error that every rank raises; nothing can be exchanged from now on."""
        if self._heartbeat.lost is None:
            silent = [rank for rank, says in self._heartbeat.probe(_PROBE).items() if says is None]
            who = f"{name_ranks(silent)} gone: " if silent else ""
            # Gloo adds general advice to what has happened.
            self._heartbeat.tell_lost(who + reason.split(" This is typically")[0])
        # Threads below may still wait for the lost rank, and to free a group is to wait for them:
        # the groups stay for as long as the process does.
        for group in self._groups:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
        del self._groups[:]
        return PeerLostError(self._heartbeat.lost or reason)
