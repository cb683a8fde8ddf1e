"""What a small allreduce takes, one at a time, in paired rounds beside mpi4py and another release.

    mpiexec -n RANKS python benchmarks/latency.py [ROUNDS]

with a Python that has distributed_dl_training and mpi4py.  DDLT_OTHER names the package of another
release of the runtime, which is a copy with another name:

    cp -r distributed_dl_training other && sed -i s/distributed_dl_training/other/g other/*.py ...

Contenders take turns within each round, in a random order that is the same on all ranks.  A round
is 200 calls; its time is that of the slowest rank.  Ratios are taken round by round.
"""

import importlib
import os
import random
import statistics
import sys
import time

import numpy as np
from mpi4py import MPI

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
CALLS = 200


def contender(package):
    """Return what calls a small allreduce of this package."""
    hvd = importlib.import_module(f"{package}.numpy")
    hvd.init()
    tensor = np.ones(1, dtype=np.float32)

    def run():
        for _ in range(CALLS):
            hvd.allreduce(tensor, name="latency", op=hvd.Sum)

    return run


def by_mpi():
    """Return the same, of mpi4py alone."""
    world = MPI.COMM_WORLD.Dup()
    tensor, result = np.ones(1, dtype=np.float32), np.empty(1, dtype=np.float32)

    def run():
        for _ in range(CALLS):
            world.Allreduce(tensor, result)

    return run


def measure(contenders):
    """Return microseconds of a call, by contender and round."""
    world = MPI.COMM_WORLD
    times = {name: [] for name in contenders}
    order, names = random.Random(0), list(contenders)
    for number in range(ROUNDS + 3):
        order.shuffle(names)
        for name in names:
            world.Barrier()
            started = time.perf_counter()
            contenders[name]()
            took = world.allreduce(time.perf_counter() - started, op=MPI.MAX)
            if number > 2:  # the first ones fill caches
                times[name].append(1e6 * took / CALLS)
    return times


def main():
    """Print one line for each contender."""
    contenders = {"mpi4py": by_mpi(), "runtime": contender("distributed_dl_training")}
    if os.environ.get("DDLT_OTHER"):
        contenders["other"] = contender(os.environ["DDLT_OTHER"])
    base = "other" if "other" in contenders else "mpi4py"
    times = measure(contenders)
    if MPI.COMM_WORLD.Get_rank() == 0:
        for name, values in times.items():
            first, middle, third = statistics.quantiles(values, n=4)
            ratios = [a / b for a, b in zip(values, times[base], strict=True)]
            quartiles = " ".join(f"{value:5.2f}" for value in statistics.quantiles(ratios, n=4))
            print(
                f"{MPI.COMM_WORLD.Get_size():3} ranks {name:8} {middle:8.1f} us"
                f" quartiles {first:8.1f} {third:8.1f} min {min(values):8.1f}"
                f"   / {base}: {quartiles}",
                flush=True,
            )


if __name__ == "__main__":
    main()
