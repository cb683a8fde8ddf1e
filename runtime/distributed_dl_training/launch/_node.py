"""Starts ranks on one node, passes on what they print, and sees to it that none outlives the job.

The launcher runs this file by its path, so that a remote node needs nothing but this Python: it
imports the standard library alone, and is one file however long it gets.  It talks over a pipe (its
stdin and stdout, which ssh or srun carry) or, when an MPI launcher has started it as one rank, over
a socket (``--connect``).

From the launcher come lines: first the task as JSON, then ``end`` (SIGTERM, and SIGKILL after
the grace) or ``kill``.  The end of that stream means that the launcher is gone, and is an ``end``.
To the launcher go a greeting line and frames, ``KIND RANK LENGTH\\n`` and as many bytes:
``o`` stdout, ``e`` stderr, ``f`` why a rank cannot start, ``t`` the signal that told this process
to end, ``x`` the exit code of a rank, negative for a signal, ``i`` how many bytes of its input a
rank has taken, -1 if it has closed it, ``j`` that it joins the others (J: has joined).  Input for
rank 0 comes as ``in BASE64``; its end as ``in``.
"""

import base64
import ctypes
import json
import os
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

GREETING = b"ddlt-node"
ADDRESS = "DDLT_LAUNCH_ADDRESS"
TOKEN = "DDLT_LAUNCH_TOKEN"
JOIN = "DDLT_LAUNCH_JOIN"  # as ``_joining`` has it
# What an MPI launcher calls the rank; the first that is there counts.
RANK_NAMES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID", "SLURM_PROCID")

_FULL = 1 << 20  # bytes that may wait for the launcher before ranks have to wait too
_DRAIN = 0.5  # seconds that an ended rank's pipe may stay silent, if a process of it holds it open
_HOLD = 60.0  # seconds that a failed rank's end is hidden from the MPI launcher
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Link:
    """The two ends of the connection with the launcher; never blocks on writing."""

    def __init__(self, infd: int, outfd: int) -> None:
        self.infd, self.outfd = infd, outfd
        self.gone = False
        self.pending = bytearray()
        self._received = b""
        os.set_blocking(outfd, False)

    def frame(self, kind: str, rank: int, data: bytes) -> None:
        self.pending += b"%s %d %d\n" % (kind.encode("ascii"), rank, len(data)) + data

    def flush(self) -> None:
        """Write what the launcher takes now."""
        try:
            while self.pending:
                del self.pending[: os.write(self.outfd, bytes(self.pending[:65536]))]
        except BlockingIOError:
            pass
        except OSError:
            self.lose()

    def lines(self) -> List[str]:
        """Return the lines that have come; blocks if there is nothing to read."""
        try:
            data = os.read(self.infd, 65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.lose()
        *whole, self._received = (self._received + data).split(b"\n")
        return [line.decode("utf-8", "surrogateescape") for line in whole]

    def lose(self) -> None:
        self.gone = True
        del self.pending[:]


class Rank:
    """One program: its process, the pipes still open (descriptor -> kind) and its exit code."""

    def __init__(self, number: int, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None and process.stderr is not None
        self.number, self.process = number, process
        self.pipes = {process.stdout.fileno(): "o", process.stderr.fileno(): "e"}
        self.joins: Optional[int] = None  # where it tells that it joins the others
        self.code: Optional[int] = None
        self.quiet_since = 0.0
        self.reported = False

    def close(self) -> None:
        self.pipes.clear()
        if self.joins is not None:
            os.close(self.joins)
            self.joins = None
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


class Node:
    """The ranks of one node; one class with many methods, because any event may end them all."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.ranks: List[Rank] = []
        self.ended: List[Rank] = []  # and not reported yet
        self.grace = 5.0
        self.hold = False
        self.told: Optional[int] = None
        self.kill_at: Optional[float] = None
        self.code = 0  # of the first rank that failed
        self.stdin: Any = None  # of rank 0
        self.input = bytearray()
        self.input_ended = False
        self._wake, wakeup = os.pipe()
        for end in (self._wake, wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Functions and not SIG_IGN, which the ranks would inherit.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def run(self, greeting: str) -> int:
        """Do what the launcher says; return the code of the first rank that failed, else 0."""
        self.link.pending += greeting.encode("utf-8", "surrogateescape") + b"\n"
        while not self._finished():
            self._step()
        held_until = time.monotonic() + _HOLD
        while self.hold and self.code and self.kill_at is None and time.monotonic() < held_until:
            self._step()
        sweep()
        return self.code

    def _finished(self) -> bool:
        if not (self.ranks or self.code or self.link.gone) and self.kill_at is None:
            return False  # no task yet
        return all(rank.reported for rank in self.ranks) and not self.link.pending

    def _on_signal(self, number: int, _frame: Any) -> None:
        self.told = number

    def _step(self) -> None:
        """Wait for the next thing to happen, and see to it."""
        masks = {self._wake: select.POLLIN}
        if not self.link.gone:
            masks[self.link.infd] = select.POLLIN
            if self.link.pending:
                masks[self.link.outfd] = masks.get(self.link.outfd, 0) | select.POLLOUT
        if self.stdin is not None and self.input:
            masks[self.stdin.fileno()] = select.POLLOUT
        full = len(self.link.pending) > _FULL
        pipes = {fd: rank for rank in self.ranks if not full for fd in rank.pipes}
        joins = {rank.joins: rank for rank in self.ranks if rank.joins is not None}
        masks.update((fd, select.POLLIN) for fd in joins)
        poller = select.poll()
        for fd, mask in list(masks.items()) + [(fd, select.POLLIN) for fd in pipes]:
            poller.register(fd, mask)
        busy = self.kill_at is not None or any(r.code is not None for r in self.ranks)
        for fd, event in poller.poll(50 if busy else 1000):
            if fd in pipes:
                self._pass_on(pipes[fd], fd)
            elif fd in joins:
                self._note_join(joins[fd])
            elif fd == self._wake:
                os.read(fd, 4096)
            elif self.stdin is not None and fd == self.stdin.fileno():
                self._feed()
            else:
                if fd == self.link.infd and event & ~select.POLLOUT:
                    for line in self.link.lines():
                        self._obey(line)
        self.link.flush()
        self._reap()
        self._report(full)
        self._end_if_told()

    def _pass_on(self, rank: Rank, fd: int) -> None:
        data = os.read(fd, 65536)
        rank.quiet_since = time.monotonic()
        if not data:
            del rank.pipes[fd]
        elif not self.link.gone:
            self.link.frame(rank.pipes[fd], rank.number, data)

    def _note_join(self, rank: Rank) -> None:
        """Pass on that a rank joins the others, or has."""
        assert rank.joins is not None
        data = os.read(rank.joins, 64)
        if not data:
            os.close(rank.joins)
            rank.joins = None
        elif not self.link.gone:
            self.link.frame("j", rank.number, data[-1:])

    def _feed(self) -> None:
        """Give rank 0 what it takes of its input now."""
        try:
            count = os.write(self.stdin.fileno(), bytes(self.input[:4096]))
        except BlockingIOError:
            return
        except OSError:  # it has closed its end
            count = -1
            self.input_ended = True
            self.input.clear()
        else:
            del self.input[:count]
        if not self.link.gone:
            self.link.frame("i", 0, b"%d" % count)
        self._end_input()

    def _end_input(self) -> None:
        """Close rank 0's input once all of it has been taken."""
        if self.stdin is not None and self.input_ended and not self.input:
            self.stdin.close()
            self.stdin = None

    def _obey(self, line: str) -> None:
        if line.startswith("{"):
            self._start(json.loads(line))
        elif line.startswith("in"):
            data = base64.b64decode(line[2:])
            if self.stdin is not None:
                self.input += data
                self.input_ended = not data
                self._end_input()
        elif line == "end":
            self.end()
        elif line == "kill":
            self.grace = 0.0
            self.kill_at = None
            self.end()

    def _start(self, task: Dict[str, Any]) -> None:
        self.grace, self.hold = task["grace"], task.get("hold", False)
        environ = dict(os.environ)
        for name in (ADDRESS, TOKEN):
            environ.pop(name, None)
        environ.update(task["environ"])
        for one in task["ranks"]:
            try:
                process, joins = start_rank(task, dict(environ, **one["environ"]), one["rank"])
            except (OSError, ValueError) as error:  # ValueError: a null byte in a word
                self.link.frame("f", one["rank"], str(error).encode("utf-8", "surrogateescape"))
                self.code = self.code or (126 if isinstance(error, PermissionError) else 127)
                self.end()
                return
            self.ranks.append(Rank(one["rank"], process))
            self.ranks[-1].joins = joins
            if process.stdin is not None:
                self.stdin = process.stdin
                os.set_blocking(self.stdin.fileno(), False)

    def _reap(self) -> None:
        """Take the exit codes of ranks, and of what they left behind: all come to this process."""
        living = {rank.process.pid: rank for rank in self.ranks if rank.code is None}
        for pid, code in reap():
            rank = living.get(pid)
            if rank is not None:
                rank.code = rank.process.returncode = code
                rank.quiet_since = time.monotonic()
                self.ended.append(rank)

    def _report(self, full: bool) -> None:
        """Tell the launcher of ranks that have ended, once all they printed is on its way.

        In the order in which they ended: the launcher names the first that failed.
        """
        now = time.monotonic()
        if full:
            for rank in self.ended:
                rank.quiet_since = now
        while self.ended:
            rank = self.ended[0]
            if rank.pipes and now < rank.quiet_since + _DRAIN:
                return
            del self.ended[0]
            assert rank.code is not None
            rank.close()
            rank.reported = True
            self.code = self.code or rank.code
            if not self.link.gone:
                self.link.frame("x", rank.number, b"%d" % rank.code)

    def _end_if_told(self) -> None:
        if self.told is not None and self.kill_at is None:
            if not self.link.gone:
                self.link.frame("t", 0, b"%d" % self.told)
            self.end()
        if self.link.gone:
            self.end()
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self._signal(signal.SIGKILL)

    def end(self) -> None:
        """SIGTERM to all ranks now, SIGKILL after the grace; the second call does nothing."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.grace
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for rank in self.ranks:
            if rank.code is None:  # not reaped yet, so the group's id is still its own
                try:
                    os.killpg(rank.process.pid, number)
                except OSError:
                    pass


def start_rank(
    task: Dict[str, Any], environ: Dict[str, str], number: int
) -> "Tuple[subprocess.Popen[bytes], int]":
    """Start one program in a session of its own that dies with this process.

    Returns it and the descriptor at which it tells that it joins.  Raises OSError.
    """
    parent = os.getpid()
    fed = number == 0 and task.get("stdin")

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(127)

    joins, tell = os.pipe()
    os.set_inheritable(tell, True)
    try:
        process = subprocess.Popen(
            task["argv"],
            cwd=task["cwd"],
            env=dict(environ, **{JOIN: str(tell)}),
            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            close_fds=not task.get("hold"),  # an MPI launcher hands its ranks open descriptors
            pass_fds=() if task.get("hold") else (tell,),
            preexec_fn=before_exec,
        )
    except Exception:
        os.close(joins)
        raise
    finally:
        os.close(tell)
    return process, joins


_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; a kernel that lacks it changes nothing."""
    try:
        _libc.prctl(option, value, 0, 0, 0)
    except AttributeError:  # no Linux
        pass


def reap() -> Any:
    """Yield (pid, exit code) of every child that has ended; a negative code is a signal."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def descendants(ancestor: int) -> List[int]:
    """Return the ids of all living processes below ``ancestor``; none where there is no /proc."""
    children: Dict[int, List[int]] = {}
    try:
        entries = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return []
    for entry in entries:
        try:
            with open(f"/proc/{entry}/stat", "rb") as stream:
                state, parent = stream.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(entry))
    found = list(children.get(ancestor, []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def sweep(patience: float = 1.0, limit: float = 5.0) -> None:
    """End what the ranks have left running: SIGTERM, after ``patience`` seconds SIGKILL."""
    started = time.monotonic()
    told: List[int] = []
    while time.monotonic() < started + limit:
        for _ in reap():
            pass
        left = descendants(os.getpid())
        if not left:
            return
        late = time.monotonic() >= started + patience
        for pid in left:
            if late or pid not in told:
                told.append(pid)
                try:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                except OSError:
                    pass
        time.sleep(0.02)


def free_port() -> int:
    """Return a TCP port that nobody holds here now.

    Below the range from which the kernel takes ports for outgoing connections, as one of those
    might take it before rank 0 does.
    """
    for port in random.SystemRandom().sample(range(20000, 32768), 64) + [0]:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free TCP port")


def connect() -> Link:
    """Return the link to the launcher at one of the addresses it has given.  Raises OSError."""
    *hosts, port = os.environ[ADDRESS].split(",")
    for index, host in enumerate(hosts):
        try:
            connection = socket.create_connection((host, int(port)), timeout=10)
        except OSError:
            if index == len(hosts) - 1:
                raise
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            fd = os.dup(connection.fileno())
            connection.close()
            return Link(fd, fd)
    raise OSError(f"{ADDRESS} names no host")


def die_like(code: int) -> None:
    """End as the rank has ended, so that an MPI launcher draws its own conclusions."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the rank has left one if any
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def main(arguments: List[str]) -> None:
    """Run as a node over a pipe, or with ``--connect`` as one rank of an MPI job."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if arguments == ["--connect"]:
        rank = next((os.environ[name] for name in RANK_NAMES if name in os.environ), "none")
        greeting = [rank, os.environ[TOKEN]]
        try:
            link = connect()
        except OSError as error:
            sys.exit(f"rank {rank} cannot reach the launcher at {os.environ[ADDRESS]}: {error}")
    else:
        greeting = [str(free_port()), "-"]
        link = Link(os.dup(0), os.dup(1))
        os.dup2(2, 1)
    words = [GREETING.decode("ascii"), *greeting, socket.gethostname()]
    code = Node(link).run(" ".join(words))
    if arguments:
        die_like(code)


if __name__ == "__main__":
    main(sys.argv[1:])
