"""What ranks print: whole lines with a prefix, or one folder per rank; and each one's last lines.

Everything is bytes: a rank may print what is no text in any encoding.
"""

import os
import select
import time
from collections import deque
from typing import BinaryIO, Callable, Deque, Dict, List, Optional, Tuple

LAST_LINES = 20
_LONGEST_LINE = 1 << 16
_LONGEST_LAST = 400
_CHUNK = 4096  # a pipe that select calls writable takes this many bytes without blocking
_STREAMS = {"o": ("stdout", 1), "e": ("stderr", 2)}


class Lines:
    """Cuts a stream into lines, and a line of more than 64 KiB into pieces.

    A carriage return ends a line too, so that progress bars are seen while they move.
    """

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> List[bytes]:
        """Return the lines that ``data`` completes, each with its end."""
        lines = (self._rest + data).splitlines(True)  # for bytes: \n, \r and \r\n alone
        self._rest = b""
        # A last \r may be the first half of \r\n.
        if lines and not lines[-1].endswith(b"\n") and len(lines[-1]) < _LONGEST_LINE:
            self._rest = lines.pop()
        return lines

    def end(self) -> List[bytes]:
        """Return what is left, as a line."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


class ClosedOutput(Exception):
    """Nobody reads the launcher's own output any more."""


def write_out(fd: int, data: bytes, hurry: Callable[[], bool]) -> bool:
    """Write all of ``data``, however long the reader takes; in a hurry, as far as it takes it.

    Returns whether all is written.  Raises ClosedOutput if the other end is closed.
    """
    view = memoryview(data)
    while view:
        if not select.select([], [fd], [], 0.5)[1]:
            if hurry():
                return False
            continue
        try:
            view = view[os.write(fd, view[:_CHUNK]) :]
        except BlockingIOError:  # somebody else has filled it meanwhile
            continue
        except OSError as error:
            raise ClosedOutput(str(error)) from error
    return True


class Output:
    """Takes what ranks print and puts it where the user wants it.

    stamped: put the time before each line's prefix.
    folder: if given, the folder in which ``rank.N/stdout`` and ``rank.N/stderr`` are written.
        N has as many digits as the highest rank, so that the names sort.

    Raises OSError if a file cannot be made.
    """

    def __init__(self, size: int, folder: Optional[str] = None, stamped: bool = False) -> None:
        self._stamped = stamped
        self._lines: Dict[Tuple[int, str], Lines] = {}
        self._last: Dict[int, Deque[bytes]] = {}
        self._files: Dict[Tuple[int, str], BinaryIO] = {}
        self.hurry = False  # the user wants it to end: what nobody reads is dropped
        self._closed = False
        if folder is not None:
            width = len(str(size - 1))
            for rank in range(size):
                place = os.path.join(folder, f"rank.{rank:0{width}d}")
                os.makedirs(place, exist_ok=True)
                for kind, (name, _) in _STREAMS.items():
                    path = os.path.join(place, name)
                    self._files[rank, kind] = open(path, "wb", buffering=0)

    def add(self, rank: int, kind: str, data: bytes) -> None:
        """Take ``data`` from stdout (kind ``o``) or stderr (``e``) of ``rank``.

        A negative rank is the MPI launcher, whose lines have no prefix.
        """
        lines = self._lines.setdefault((rank, kind), Lines())
        self._put(rank, kind, lines.add(data))
        if (rank, kind) in self._files:
            self._files[rank, kind].write(data)

    def end(self, rank: int) -> None:
        """Show what ``rank`` has printed without ending the line."""
        for kind in _STREAMS:
            if (rank, kind) in self._lines:
                self._put(rank, kind, self._lines[rank, kind].end())

    def last(self, rank: int) -> List[str]:
        """Return the last lines of ``rank``, cut to 400 bytes each."""
        return [line.decode("utf-8", "replace") for line in self._last.get(rank, ())]

    def close(self) -> None:
        for key in list(self._lines):
            self._put(*key, self._lines[key].end())
        for stream in self._files.values():
            stream.close()

    def _put(self, rank: int, kind: str, lines: List[bytes]) -> None:
        if not lines:
            return
        last = self._last.setdefault(rank, deque(maxlen=LAST_LINES))
        last.extend(line.rstrip(b"\r\n")[:_LONGEST_LAST] for line in lines if line.strip())
        if (rank, kind) in self._files:
            return
        name, fd = _STREAMS[kind]
        stamp = time.strftime("%a %b %d %H:%M:%S %Y") if self._stamped else ""
        tag = b"" if rank < 0 else f"{stamp}[{rank}]<{name}>:".encode("ascii")
        whole = [line if line.endswith((b"\n", b"\r")) else line + b"\n" for line in lines]
        self.write(fd, b"".join(tag + line for line in whole))

    def write(self, fd: int, data: bytes) -> None:
        """Write to the launcher's own stdout or stderr.  Raises ClosedOutput, but only once."""
        if self._closed:
            return
        try:
            # Who has not read in a hurry will not read the rest.
            self._closed = not write_out(fd, data, lambda: self.hurry)
        except ClosedOutput:
            self._closed = True
            raise
