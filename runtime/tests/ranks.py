"""What ranks do in tests of the launcher: python ranks.py WAY [WORD ...]."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import List

NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
RANK = int(next(os.environ[name] for name in NAMES if name in os.environ))


def report(words: List[str]) -> None:
    """Print what a rank is told, and where and how it runs."""
    told = {name: os.environ.get(name) for name in words}
    print(json.dumps({"rank": RANK, "cwd": os.getcwd(), "environ": told, "argv": sys.argv[1:]}))


def lines(words: List[str]) -> None:
    """Print many lines on both streams, in pieces that end anywhere."""
    for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
        text = "".join(f"{name} {RANK} {n} {'x' * (n % 150)}\n" for n in range(int(words[0])))
        for start in range(0, len(text), 97):
            stream.write(text[start : start + 97])
            stream.flush()


def raw(words: List[str]) -> None:
    """Print what is no text, and an end without a newline."""
    os.write(1, b"caf\xe9 \xff\x00 end\n10%\r20%\rdone\r\nlast without end")


def long_line(words: List[str]) -> None:
    os.write(1, b"")
    data = b"y" * int(words[0]) + b"\n"
    while data:
        data = data[os.write(1, data) :]


def leave_pid(folder: str, name: str) -> None:
    path = os.path.join(folder, "." + name)
    with open(path, "w") as stream:
        stream.write(str(os.getpid()))
    os.rename(path, os.path.join(folder, name))


def sleep(words: List[str]) -> None:
    """Leave the process number in a folder and sleep; ``deaf`` ignores SIGTERM."""
    if "deaf" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave_pid(words[0], str(RANK))
    time.sleep(300)


def family(words: List[str]) -> None:
    """Leave a grandchild in a session of its own, as a daemon would, and sleep, or end."""
    code = "import os, sys, time; os.setsid() if os.fork() == 0 else os._exit(0); "
    # Renamed once written: who waits for the file must not find it empty.
    code += "stream = open(sys.argv[1], 'w'); stream.write(str(os.getpid())); stream.close(); "
    code += "os.rename(sys.argv[1], sys.argv[2]); time.sleep(300)"
    paths = [os.path.join(words[0], f"{dot}grandchild{RANK}") for dot in (".", "")]
    subprocess.check_call([sys.executable, "-c", code, *paths])
    if words[1:] != ["end"]:
        sleep(words)


def fail(words: List[str]) -> None:
    """The last rank ends as told; the others notice once it is gone, and say so."""
    how, size, folder = words[0], int(words[1]), words[2]
    print(f"rank {RANK} begins")
    sys.stdout.flush()
    if RANK == size - 1:
        leave_pid(folder, "failing")
        print("deliberate", file=sys.stderr)
        sys.stderr.flush()
        if how.startswith("signal"):
            os.kill(os.getpid(), int(how[6:]))
        if how == "exception":
            raise ValueError("from the rank")
        sys.exit(int(how))
    if "deaf" not in words:
        wait_for_end(os.path.join(folder, "failing"))
        sys.exit(f"rank {RANK} has noticed")
    time.sleep(300)


def wait_for_end(path: str) -> None:
    """Return when the process that leaves its number in a file has ended, and was waited for."""
    while True:
        try:
            with open(path) as stream:
                os.kill(int(stream.read()), 0)
        except FileNotFoundError:
            pass
        except ProcessLookupError:
            return
        time.sleep(0.02)


def meet(words: List[str]) -> None:
    """Rank 0 listens where the ranks are told to meet; all others must reach it."""
    size = int(os.environ["WORLD_SIZE"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if RANK == 0:
        with socket.socket() as listener:
            listener.bind(("", address[1]))
            listener.listen(size)
            listener.settimeout(30)
            met = []
            for _ in range(size - 1):
                other, _ = listener.accept()
                met.append(other.makefile().readline().strip())
                other.close()
        print("met " + " ".join(sorted(met)))
        return
    for _ in range(300):
        try:
            with socket.create_connection(address, timeout=10) as connection:
                connection.sendall(f"{RANK}@{socket.gethostname()}\n".encode())
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nobody at {address}")


def gloo_sum(words: List[str]) -> None:
    """Sum the ranks by torch.distributed, where the launcher says."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    one = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(one)
    print(f"sum {one.item():g}")
    dist.destroy_process_group()


def mpi_sum(words: List[str]) -> None:
    from mpi4py import MPI

    print(f"sum {MPI.COMM_WORLD.allreduce(RANK + 1)} of {MPI.COMM_WORLD.Get_size()}")


def mpi_end(words: List[str]) -> None:
    """The last rank ends as told while the others wait in a collective."""
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    if RANK == MPI.COMM_WORLD.Get_size() - 1:
        print("deliberate", file=sys.stderr)
        sys.stderr.flush()
        if words[0] == "abort":
            MPI.COMM_WORLD.Abort(7)
        if words[0].startswith("signal"):
            os.kill(os.getpid(), int(words[0][6:]))
        os._exit(int(words[0]))
    MPI.COMM_WORLD.Barrier()


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2:])
