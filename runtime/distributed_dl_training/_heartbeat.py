"""What ranks tell each other through torch's key-value store: what they do, and who is lost.

Gloo notices a lost rank only where data from it is awaited, and others may wait for those who have
noticed.  So whoever notices writes it down, and every rank looks.
"""

import atexit
import threading
import time
from typing import Any, Dict, Optional

# Seconds between looks: at first, once this rank does the same for four times as long, and while
# somebody waits for answers.
_BEAT = 0.25
RARELY = 1.0
_HURRY = 0.02
# Seconds that an end waits for: a store that does not answer must not hold a process.
_LAST = 1.0


class Heartbeat:
    """A thread with a connection to the store of its own, which may hang without harm.

    status: what other ranks are told that this one does.
    lost: what another rank, or this one, has noticed; None while all is well.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.status = "starts"
        self.lost: Optional[str] = None
        self._store = store
        self._rank = rank
        self._others = [other for other in range(size) if other != rank]
        self._asking = False
        self._question = 0  # the number of ours that answers must have; 0 while it has none
        self._answered = 0
        self._answers: Dict[int, Optional[str]] = {}
        self._to_tell: Optional[str] = None
        self._told = threading.Event()
        self._wake = threading.Event()
        self._over = threading.Event()
        self._probes = threading.Lock()
        store.set(f"answer/{rank}", "0 ")
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()
        # A thread that is inside the store when the interpreter ends would crash it.
        atexit.register(self.close)

    def probe(self, seconds: float) -> Dict[int, Optional[str]]:
        """Return the status of every other rank, None for one that does not answer in time."""
        with self._probes:
            answers: Dict[int, Optional[str]] = dict.fromkeys(self._others)
            self._question = 0
            self._answers = answers
            self._asking = True
            self._wake.set()
            end = time.monotonic() + seconds
            while None in answers.values() and time.monotonic() < end:
                time.sleep(_HURRY)
            self._answers = {}
            return dict(answers)

    def tell_lost(self, text: str) -> None:
        """Let all ranks know why nothing can go on."""
        if self.lost is None:
            self.lost = text
        self._to_tell = text
        self._wake.set()
        if self._thread.is_alive():
            self._told.wait(_LAST)

    def close(self) -> None:
        """End the thread, unless the store holds it."""
        self._over.set()
        self._wake.set()
        self._thread.join(_LAST)
        atexit.unregister(self.close)
        if not self._thread.is_alive():
            self._store = None  # the connection ends with it, whoever still has this

    def _run(self) -> None:
        status, since = self.status, time.monotonic()
        try:
            while not self._over.is_set():
                if self.status != status:
                    status, since = self.status, time.monotonic()
                beat = min(RARELY, max(_BEAT, (time.monotonic() - since) / 4))
                self._wake.wait(_HURRY if self._answers else beat)
                self._wake.clear()
                self._beat()
        except Exception as error:  # the store's errors are of several kinds
            if self.lost is None and not self._over.is_set():
                self.lost = (
                    "the store by which ranks find each other is gone, and with it rank 0 or the "
                    f"launcher, which kept it: {str(error).splitlines()[0]}"
                )
        self._told.set()

    def _beat(self) -> None:
        store = self._store
        if self._to_tell is not None and not self._told.is_set():
            # Counters, because a TCPStore of PyTorch 1.10 has no ``check``.
            if not store.add("losses", 0):  # the first one knows best
                store.set("lost", self._to_tell)
                store.add("losses", 1)
            store.add("asked", 1)  # so that everybody looks
            self._told.set()
        if self._asking:
            self._asking = False
            self._question = store.add("asked", 1)
        asked = store.add("asked", 0)
        if asked != self._answered:
            store.set(f"answer/{self._rank}", f"{asked} {self.status}")
            self._answered = asked
            if self.lost is None and store.add("losses", 0):
                self.lost = _text(store.get("lost"))
        answers = self._answers
        for other in [other for other, text in answers.items() if text is None]:
            number, _, status = _text(store.get(f"answer/{other}")).partition(" ")
            if self._question and int(number) >= self._question:
                answers[other] = status


def meet(store: Any, size: int, seconds: float) -> None:
    """Return when all ranks have come here, or after ``seconds``; 0: do not wait."""
    store.add("shutdown requested", 1)
    end = time.monotonic() + seconds
    while time.monotonic() < end and store.add("shutdown requested", 0) < size:
        time.sleep(_HURRY)


def connect(world: Any, limit: Any) -> Any:
    """Return a connection of its own to a world's part of the store, for another thread."""
    from torch import distributed

    base = world.store
    while isinstance(base, distributed.PrefixStore) and hasattr(base, "underlying_store"):
        base = base.underlying_store
    if isinstance(base, distributed.TCPStore):
        base = distributed.TCPStore(base.host, base.port, world.size, False, limit)
    return distributed.PrefixStore(f"{world.prefix}/heartbeat", base)


def _text(data: Any) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
