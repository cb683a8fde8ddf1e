"""The launcher's end of the connection with one node process (see ``_node``)."""

import json
import os
import re
import signal
import socket
import subprocess
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from distributed_dl_training.launch import _node

_FRAME = re.compile(rb"([oefijtx]) (-?\d+) (\d+)\n")
_LONGEST_NOISE = 1 << 16


class Frame(NamedTuple):
    """What a node process says about one rank."""

    kind: str
    rank: int
    data: bytes


class Peer:
    """One node process.

    name: the host, for texts.  ranks: those it runs; -1 is the MPI launcher.
    noise: what came before the greeting, say from a login script.
    """

    def __init__(
        self,
        name: str,
        ranks: Sequence[int],
        infd: int,
        outfd: int,
        process: "Optional[subprocess.Popen[bytes]]" = None,
    ) -> None:
        self.name = name
        self.ranks = list(ranks)
        self.process = process
        self.infd = infd
        self._outfd = outfd
        self.greeting: Optional[List[str]] = None
        self.noise = b""
        self.gone = False
        self.told_to_end = False
        self._buffer = b""

    def send(self, line: str) -> None:
        """Send one line; a peer that is gone is noticed when it is read."""
        data = line.encode("utf-8", "surrogateescape") + b"\n"
        try:
            while data:
                data = data[os.write(self._outfd, data) :]
        except OSError:
            pass

    def give(self, task: Mapping[str, Any]) -> None:
        self.send(json.dumps(task))

    def receive(self) -> List[Frame]:
        """Return what has come; at the end of the stream ``gone`` becomes true."""
        try:
            data = os.read(self.infd, 1 << 16)
        except OSError:
            data = b""
        if not data:
            self.gone = True
        self._buffer += data
        if self.greeting is None and not self._greet():
            return []
        return self._frames()

    def _greet(self) -> bool:
        """Find the greeting line, and what a login script has printed before it."""
        before, found, rest = self._buffer.partition(_node.GREETING + b" ")
        line, ended, after = rest.partition(b"\n")
        if not (found and ended):
            if len(self._buffer) > _LONGEST_NOISE:
                self._buffer = self._buffer[-_LONGEST_NOISE:]
            self.noise = self._buffer
            return False
        self.noise, self._buffer = before, after
        self.greeting = line.decode("utf-8", "replace").split()
        return True

    def _frames(self) -> List[Frame]:
        frames = []
        start = 0
        while True:
            match = _FRAME.match(self._buffer, start)
            if match is None:
                break
            end = match.end() + int(match.group(3))
            if end > len(self._buffer):
                break
            data = self._buffer[match.end() : end]
            frames.append(Frame(match.group(1).decode("ascii"), int(match.group(2)), data))
            start = end
        self._buffer = self._buffer[start:]
        return frames

    def kill(self) -> None:
        """End the process that reaches the node: it has not got through."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the connection, and what it went through: after 5 s, or if it has not gone, by force.

        A peer that has gone is leaving by itself; a srun that is killed meanwhile would leave
        its step behind.
        """
        for fd in {self.infd, self._outfd}:
            os.close(fd)
        if self.process is None:
            return
        try:
            self.process.wait(timeout=5.0 if self.gone else 0.0)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()


def start_peer(
    name: str, ranks: Sequence[int], command: Sequence[str], environ: Mapping[str, str]
) -> Peer:
    """Start a node process by ``command``.  Raises OSError."""
    process = subprocess.Popen(
        list(command),
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C at the terminal is for the launcher, which then decides
    )
    assert process.stdin is not None and process.stdout is not None
    infd, outfd = os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
    process.stdout.close()
    process.stdin.close()
    return Peer(name, ranks, infd, outfd, process)


def accept_peer(listener: socket.socket) -> Peer:
    """Take a connection from a rank of an MPI job; who it is its greeting tells."""
    connection, address = listener.accept()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    fd = os.dup(connection.fileno())
    connection.close()
    return Peer(str(address[0]), [], fd, fd)
