"""The smoke test that every rank runs: do the ranks talk, and are their results exact?

    mpiexec -n 2 python smoke.py --out DIR --nonce HEX --ranks 2 --max-bytes B --timeout S

A program of its own, one file: Python >= 3.6, numpy and the collective runtime. Each process
appends JSON lines to DIR/rank-<host>-<pid>.jsonl, one before and one after every check, so that
who reads them knows where a rank stopped. It judges what it alone can see; what takes the view
of all ranks is judged from the records. Exit code 0: every check of this rank passed.
"""

import argparse
import faulthandler
import importlib
import json
import os
import platform
import re
import signal
import socket
import statistics
import sys
import time
import traceback
from functools import partial
from pathlib import Path

# Seconds after the limit at which a rank ends itself, should nobody do so from outside: its
# launcher may be gone, or unable to reach this node.
OVERTIME = 10
# Seconds between the last record of a failed rank and its exit: most launchers end all ranks
# when one exits with an error, and the others shall have written their last record by then.
PARTING = 0.5
# Seconds that the timing of one size should take; it sets the number of repetitions.
TIMING_BUDGET = 0.06
REPETITIONS = (3, 500)
# Seconds that one rank comes late to the barrier.
LATE = 0.1
# A count that no rank number or block size divides: chunks of unequal length are a classic error.
ODD_BYTES = 4 * 100003
# The largest integer up to which every integer has an exact value.
EXACT = {"int32": 2**31 - 1, "int64": 2**63 - 1}
EXACT.update(float16=2**11, float32=2**24, float64=2**53)
CLASSES = 251  # values per rank; below 256, so that the class of an element fits a byte
PERIOD = 1000003  # elements after which the classes repeat: a prime, so no block size hides a shift
BLOCK = 1 << 18  # elements handled at once, to keep temporaries small
LIBRARY = re.compile(r" (/.*/(?:libmpi|libnccl|libgloo)[^/]*\.so[^/]*)$")
# Where hydra, Open MPI, PMIx and Slurm tell a process its rank.
LAUNCHER_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


class Recorder:
    """Appends one JSON line per event; each is with the kernel when the call returns."""

    def __init__(self, folder, nonce):
        self.identity = f"{socket.gethostname()}-{os.getpid()}"
        self.who = self.identity
        self.nonce = nonce
        self.failed = 0
        path = folder / f"rank-{self.identity}.jsonl"
        self.stream = path.open("a", encoding="utf-8", errors="replace", buffering=1)

    def write(self, event, **facts):
        facts.update(event=event, nonce=self.nonce, time=time.monotonic())
        self.stream.write(json.dumps(facts, sort_keys=True, ensure_ascii=False) + "\n")

    def check(self, name, work, dtype=None, nbytes=None):
        """Run *work*, which returns None or what is wrong, or a dict of facts with a problem."""
        what = {"check": name, "dtype": dtype, "bytes": nbytes}
        self.write("begin", **what)
        started = time.monotonic()
        found = work()
        facts = found if isinstance(found, dict) else {"problem": found}
        problem = facts["problem"]
        facts.update(what, passed=problem is None, seconds=time.monotonic() - started)
        self.write("done", **facts)
        if problem is not None:
            self.failed += 1
            label = " ".join(str(word) for word in (name, dtype, nbytes) if word is not None)
            sys.stderr.write(f"{self.who}: {label}: {problem}\n")


class Pattern:
    """Numbers for an allreduce whose sum is known, and exact in whatever order it is formed.

    Rank r holds table[r, c] where c is the class of an element, a hash of its index: the data
    depend on both. The sum over all ranks is one number per class, so that it is known for any
    number of ranks and elements without adding arrays, and without the runtime.
    """

    def __init__(self, numpy, ranks, most):
        """most: the largest number of elements that will be asked for."""
        self.numpy = numpy
        self.ranks = ranks
        # A multiplicative hash; no product of these numbers needs more than 63 bits.
        mixed = numpy.arange(1, PERIOD + 1, dtype="int64") * 2654435761 % 2**32
        mixed ^= mixed >> 15
        self.classes = numpy.resize((mixed % CLASSES).astype("uint8"), most)

    def tables(self, dtype):
        """Return (values by rank and class, their sum by class), scaled to use dtype's range."""
        limit = EXACT[dtype]
        rank = self.numpy.arange(self.ranks, dtype="int64")[:, None]
        one = self.numpy.arange(CLASSES, dtype="int64")[None, :]
        # With more ranks than dtype has integers, only every step-th rank adds to an element.
        step = -(-2 * self.ranks // limit)
        adding = (rank + one) % step == 0
        most = max(2, min(CLASSES, limit // self.ranks))
        table = self.numpy.where(adding, 1 + (31 * rank + 17 * one + rank * one) % most, 0)
        # An odd factor: the sum then needs all of dtype's bits, the lowest included.
        factor = limit // int(table.sum(axis=0).max())
        table *= max(1, factor - 1 + factor % 2)
        return table.astype(dtype), table.sum(axis=0).astype(dtype)

    def spread(self, table, count):
        """Return *count* elements, each the table's value for its class."""
        values = self.numpy.empty(count, dtype=table.dtype)
        for start in range(0, count, BLOCK):
            part = self.classes[start : min(start + BLOCK, count)]
            values[start : start + len(part)] = table[part]
        return values

    def difference(self, values, table):
        """Return what differs from the table, or None."""
        wrong, first = 0, ()
        for start in range(0, values.size, BLOCK):
            part = values[start : start + BLOCK]
            expected = table[self.classes[start : start + part.size]]
            bad = self.numpy.flatnonzero(part != expected)
            if bad.size and not first:
                first = (start + bad[0], part[bad[0]], expected[bad[0]])
            wrong += bad.size
        return differing(wrong, *first) if wrong else None


def differing(wrong, index, value, expected):
    more = f" (and {wrong - 1} more)" if wrong > 1 else ""
    return f"element {index} is {value.item()!r}, must be {expected.item()!r}{more}"


class Conversation:
    """The checks that take all ranks: one small method each, in one file that can be copied."""

    def __init__(self, hvd, numpy, recorder, options):
        self.hvd = hvd
        self.numpy = numpy
        self.recorder = recorder
        self.max_bytes = options.max_bytes
        self.asked = options.ranks
        self.rank = hvd.rank()
        self.size = hvd.size()
        self.pattern = Pattern(numpy, self.size, max(1, options.max_bytes // 2))

    def run(self):
        run = self.recorder.check
        run("world", self.world)
        for dtype in EXACT:
            for nbytes in self.sizes(dtype):
                run("allreduce", partial(self.allreduce, dtype, nbytes), dtype, nbytes)
        run("allgather", partial(self.allgather, "int64", last_gives_none=False), "int64")
        no_rows = partial(self.allgather, "float32", last_gives_none=True)
        run("allgather with no rows", no_rows, "float32")
        run("broadcast", self.broadcast, "int64")
        run("barrier", self.barrier)
        if self.size > 1 and hasattr(self.hvd, "MismatchError"):
            run("mismatch", self.mismatch)
        for nbytes in self.steps():
            run("timing", partial(self.timing, nbytes), "float32", nbytes)

    def steps(self):
        """Return the message sizes in bytes, in powers of four up to the largest."""
        largest = self.max_bytes // 4 * 4
        return [4**power for power in range(1, 17) if 4**power < largest] + [largest]

    def sizes(self, dtype):
        """Return the sizes for a dtype: every one for float32, some for the others."""
        item = self.numpy.dtype(dtype).itemsize
        some = [4, 4096, 2**20, self.max_bytes]
        sizes = [*self.steps(), ODD_BYTES] if dtype == "float32" else some
        sizes = [max(item, size // item * item) for size in sizes if size <= self.max_bytes]
        return sorted(set(sizes))

    def world(self):
        found = self.hvd.allgather(self.numpy.array([self.rank], dtype="int64")).tolist()
        if self.size != self.asked:
            return f"size is {self.size}, must be {self.asked}"
        if found != list(range(self.size)):
            return f"the ranks are {found[:20]}, must be 0 to {self.size - 1}"
        return None

    def allreduce(self, dtype, nbytes):
        count = nbytes // self.numpy.dtype(dtype).itemsize
        table, sums = self.pattern.tables(dtype)
        values = self.pattern.spread(table[self.rank], count)
        result = self.sum(values)
        problem = self.kind_of(result, dtype, (count,)) or self.pattern.difference(result, sums)
        changed = self.pattern.difference(values, table[self.rank])
        return problem or (changed and f"the input was changed: {changed}")

    def sum(self, values):
        return self.hvd.allreduce(values, op=self.hvd.Sum)

    def kind_of(self, result, dtype, shape):
        """Return what is wrong with the type or shape of a result, or None."""
        found = (str(getattr(result, "dtype", type(result))), getattr(result, "shape", None))
        text = "the result has dtype {} and shape {}, must be {} and {}"
        return None if found == (dtype, shape) else text.format(*found, dtype, shape)

    def compare(self, result, expected):
        """Return how a small result differs from what is expected, or None."""
        problem = self.kind_of(result, str(expected.dtype), expected.shape)
        bad = [] if problem else self.numpy.flatnonzero(result != expected)
        if len(bad):
            problem = differing(len(bad), bad[0], result.flat[bad[0]], expected.flat[bad[0]])
        return problem

    def allgather(self, dtype, *, last_gives_none):
        # Rank r gives r + 1 rows, and from 64 ranks on never more than 64.
        counts = [rank % 64 + 1 for rank in range(self.size)]
        if last_gives_none:
            counts[-1] = 0
        rows = self.numpy.arange(64 * 3, dtype=dtype).reshape(64, 3)
        parts = [rows[:count] + 1000 * (rank + 1) for rank, count in enumerate(counts)]
        expected = self.numpy.concatenate(parts)
        return self.compare(self.hvd.allgather(parts[self.rank]), expected)

    def broadcast(self):
        problems = []
        for root in range(self.size):
            expected = self.numpy.arange(1000, dtype="int64") + 7919 * (root + 1)
            values = expected.copy() if self.rank == root else -expected
            before = values.copy()
            problem = self.compare(self.hvd.broadcast(values, root_rank=root), expected)
            changed = self.compare(values, before)
            if problem or changed:
                problems.append(f"from root {root}: {problem or 'the input was changed'}")
        return problems[0] if problems else None  # not sooner: the other ranks go on

    def barrier(self):
        """Come late on one rank after the other; whether all waited is seen from the records."""
        entered, left = [], []
        for late in sorted({0, self.size - 1}):
            self.hvd.barrier()
            if self.rank == late:
                time.sleep(LATE)
            entered.append(time.monotonic())
            self.hvd.barrier()
            left.append(time.monotonic())
        return {"problem": None, "entered": entered, "left": left}

    def mismatch(self):
        values = self.numpy.ones(4 if self.rank == 0 else 3, dtype="float32")
        try:
            self.sum(values)
        except self.hvd.MismatchError:
            return None
        return "shapes differed between ranks, yet no MismatchError was raised"

    def timing(self, nbytes):
        """Time one size; the result after all repetitions must still be exact."""
        table, sums = self.pattern.tables("float32")
        values = self.pattern.spread(table[self.rank], nbytes // 4)
        self.sum(values)
        started = time.perf_counter()
        self.sum(values)
        wanted = int(TIMING_BUDGET / max(time.perf_counter() - started, 1e-9))
        wanted = min(max(wanted, REPETITIONS[0]), REPETITIONS[1])
        agreed = self.hvd.broadcast(self.numpy.array([wanted], dtype="int64"), root_rank=0)
        times = []
        for _ in range(int(agreed[0])):
            started = time.perf_counter()
            result = self.sum(values)
            times.append(time.perf_counter() - started)
        problem = self.pattern.difference(result, sums)
        return {"problem": problem, "median": statistics.median(times), "repetitions": len(times)}


def read(path):
    """Return the text of a file of /proc, or nothing where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def start_time():
    """Return when this process started, in clock ticks after boot; 0 if the kernel hides it.

    proc(5): field 22 of /proc/self/stat. The second field may hold spaces and brackets.
    """
    fields = read("/proc/self/stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0


def begin(options):
    """Open the record, and see to it that a hang leaves a stack and comes to an end."""
    recorder = Recorder(options.out, options.nonce)
    path = options.out / f"stack-{recorder.identity}.txt"
    stacks = path.open("w", encoding="utf-8")  # stays open: a hang writes to it
    faulthandler.enable(file=stacks)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True, chain=False)
    # From a thread of its own, so also out of a C call that never returns.
    before_limit = max(1.0, options.timeout - max(2.0, options.timeout / 10))
    faulthandler.dump_traceback_later(before_limit, file=stacks)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(options.timeout) + OVERTIME)
    told = [os.environ[name] for name in LAUNCHER_RANKS if os.environ.get(name, "").isdigit()]
    recorder.write(
        "start",
        host=socket.gethostname(),
        pid=os.getpid(),
        started=start_time(),
        clock=read("/proc/sys/kernel/random/boot_id").strip(),
        executable=sys.executable,
        uid=os.getuid(),
        launcher_rank=int(told[0]) if told else None,
    )
    return recorder


def world_facts(hvd, numpy, name):
    """Return who this rank is and what it runs with."""
    package = importlib.import_module(name.partition(".")[0])
    mpi = sys.modules.get("mpi4py.MPI")
    vendor = mpi.get_vendor() if mpi else None
    build_record = getattr(package, "build_record", lambda: None)
    return {
        "rank": hvd.rank(),
        "size": hvd.size(),
        "local_rank": hvd.local_rank(),
        "local_size": hvd.local_size(),
        "runtime": package.__name__,
        "runtime_version": str(getattr(package, "__version__", "unknown")),
        "runtime_file": package.__file__,
        "build_record": build_record(),
        "mpi": vendor and vendor[0],
        "mpi_version": vendor and ".".join(map(str, vendor[1])),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def libraries():
    """Return the communication libraries that this process has mapped, sorted by path."""
    found = (LIBRARY.search(line) for line in read("/proc/self/maps").splitlines())
    return sorted({match.group(1) for match in found if match})


def converse(options, recorder):
    """Run everything, from the import of the runtime to its shutdown."""
    names = ("numpy", options.runtime)

    def load():
        for name in names:
            importlib.import_module(name)

    recorder.check("import", load)
    numpy, hvd = (sys.modules[name] for name in names)
    recorder.check("init", hvd.init)
    recorder.who = f"rank {hvd.rank()}"
    recorder.write("init", **world_facts(hvd, numpy, options.runtime))
    Conversation(hvd, numpy, recorder, options).run()
    recorder.write("libraries", paths=libraries())
    recorder.check("shutdown", hvd.shutdown)
    recorder.write("end", failed=recorder.failed)


def parse(arguments):
    parser = argparse.ArgumentParser(description="Prove that the ranks can talk.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the records")
    parser.add_argument("--nonce", required=True, help="names this run in every record")
    parser.add_argument("--ranks", type=int, required=True, help="ranks that were asked for")
    parser.add_argument("--max-bytes", type=int, default=64 * 2**20, help="largest message")
    parser.add_argument("--timeout", type=float, default=120, help="seconds until it is a hang")
    parser.add_argument("--runtime", default="distributed_dl_training.numpy", help="its module")
    options = parser.parse_args(arguments)
    if options.ranks < 1 or options.max_bytes < 4 or options.timeout <= 0:
        parser.error("--ranks must be 1 or more, --max-bytes 4 or more, --timeout above 0")
    return options


def main(arguments=None):
    options = parse(arguments)
    recorder = begin(options)
    try:
        converse(options, recorder)
    except BaseException as error:
        told = {"message": str(error), "traceback": traceback.format_exc()}
        recorder.write("error", type=type(error).__name__, **told)
        traceback.print_exc()
        time.sleep(PARTING)
        # Not through the interpreter's exit: MPI would wait there for the other ranks.
        os._exit(1)
    time.sleep(PARTING if recorder.failed else 0)
    return 1 if recorder.failed else 0


if __name__ == "__main__":
    sys.exit(main())
