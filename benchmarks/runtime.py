"""What the bundled collective runtime costs, beside MPI alone and others.

    python benchmarks/runtime.py [ROUNDS]
    mpiexec -n 2 python benchmarks/runtime.py [ROUNDS]
    mpirun --bind-to none -n 2 python benchmarks/runtime.py [ROUNDS]
    DDLT_ENGINE=nccl torchrun --nproc-per-node=2 benchmarks/runtime.py [ROUNDS]

with a Python that has distributed_dl_training and, for ranks, mpi4py.  Open MPI binds each of two
ranks to one core by default, which its threads then share: not so with the option, as Horovod's
documentation starts ranks.  Contenders take turns
within each round, in a random order that is the same on all ranks; a round's time is that of its
slowest rank.  Ratios are taken round by round, because machines are noisy, and printed as their
median with a 95% interval of it (bootstrap) and their quartiles.  torch's DistributedDataParallel
(over gloo) and a real Horovod take part where they are installed; a line says why they do not.

CPU is that of a whole process, its communication thread and what it spends inside MPI included.

On a machine that others use, `chrt -f 1 mpiexec ...` (as root) lets ranks run before all else:
threads that hand over to each other then wait for each other alone, as on an idle machine.

Over NCCL gradients lie on GPUs.  Ranks that have to share one are told apart as hosts, so that they
talk by NCCL's sockets: this measures what the runtime costs, not what NCCL can do.
"""

import math
import os
import random
import statistics
import subprocess
import sys
import time
import warnings

import distributed_dl_training.numpy as hvd
import numpy as np
from distributed_dl_training import _collectives, _fusion

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
SMALL = 1000  # tensors of 4 kB
CALLS = 100  # of what is timed one by one
IDLE = 30.0  # seconds
SETTLE = 12.0  # the same, after which a rank does what it does for as long as it is idle


def resnet50():
    """Return the shapes of ResNet-50's 161 parameters, 25,557,032 elements."""
    shapes = [(64, 3, 7, 7), (64,), (64,)]
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            after = 4 * width
            for shape in ((width, before, 1, 1), (width, width, 3, 3), (after, width, 1, 1)):
                shapes += [shape, shape[:1], shape[:1]]
            if block == 0:
                shapes += [(after, before, 1, 1), (after,), (after,)]
            before = after
    return shapes + [(1000, 2048), (1000,)]


class Bench:
    """Runs contenders in turns; keeps seconds by contender, and CPU seconds of this process."""

    def __init__(self):
        self.mpi = None
        if hvd.engine_name() == "mpi":
            from mpi4py import MPI

            self.mpi = MPI

    def slowest(self, value):
        if self.mpi:
            return self.mpi.COMM_WORLD.allreduce(value, op=self.mpi.MAX)
        return float(hvd.allreduce(value, op=hvd.Max))

    def barrier(self):
        if self.mpi:
            self.mpi.COMM_WORLD.Barrier()
        else:
            hvd.barrier()

    def run(self, contenders, rounds):
        seconds = {name: [] for name in contenders}
        cpu = {name: [] for name in contenders}
        order = random.Random(0)
        names = list(contenders)
        for number in range(rounds + 2):
            order.shuffle(names)
            for name in names:
                self.barrier()
                used, started = time.process_time(), time.perf_counter()
                contenders[name]()
                took, used = time.perf_counter() - started, time.process_time() - used
                if number > 1:  # the first two fill caches and buffers
                    seconds[name].append(self.slowest(took))
                    cpu[name].append(used)
        return seconds, cpu


def interval(ratios):
    """Return the median and the bounds between which 95% of resampled medians lie."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def show(title, seconds, cpu, base, per=1):
    """Print a table: times, and how many times as long as ``base`` each one took."""
    if hvd.rank():
        return
    print(f"\n{title} ({len(seconds[base])} rounds; time / {base})")
    for name, values in seconds.items():
        ratios = [a / b for a, b in zip(values, seconds[base])]
        middle, low, high = interval(ratios)
        first, _, third = statistics.quantiles(ratios, n=4)
        times = f"{statistics.median(values) * 1e3:10.2f} ms {min(values) * 1e3:10.2f} min"
        used = f"{statistics.median(cpu[name]) * 1e6 / per:10.1f} CPU us/tensor"
        spread = f"[{low:.2f}, {high:.2f}] quartiles {first:.2f} {third:.2f}"
        print(f"  {name:36}{times}{used}   ratio {middle:6.2f} {spread}")


def bookkeeping(bench):
    """Print CPU microseconds from asking to the result, of tensors of one element."""
    tensors = [np.ones(1, dtype=np.float32) for _ in range(SMALL)]

    def apart():
        for number, tensor in enumerate(tensors):
            hvd.allreduce(tensor, name=f"b{number}", op=hvd.Sum)

    seconds, cpu = bench.run(
        {"async, then synchronize": lambda: many(tensors, "b"), "one by one": apart}, ROUNDS
    )
    title = f"bookkeeping: {SMALL} tensors of one float32, {hvd.size()} rank(s)"
    show(title, seconds, cpu, "async, then synchronize", SMALL)


def latency(bench):
    """Print what one small allreduce takes, one at a time."""
    tensor, result = np.ones(1, dtype=np.float32), np.empty(1, dtype=np.float32)
    world = bench.mpi.COMM_WORLD.Dup()

    def ours():
        for _ in range(CALLS):
            hvd.allreduce(tensor, name="latency", op=hvd.Sum)

    def by_mpi():
        for _ in range(CALLS):
            world.Allreduce(tensor, result)

    seconds, cpu = bench.run({"mpi4py": by_mpi, "allreduce": ours}, ROUNDS)
    title = f"{CALLS} allreduces of one float32, one by one, {hvd.size()} ranks"
    show(title, seconds, cpu, "mpi4py", CALLS)


# A process that wakes as often as told, and what of a core that takes.
SLEEPER = """
import sys, time
times, used = int(sys.argv[1]), time.process_time()
for _ in range(times):
    time.sleep(float(sys.argv[2]) / times)
print((time.process_time() - used) / float(sys.argv[2]))
"""


# What of a core the process that has started this one takes, all its threads, by the scheduler's
# clock (schedstat of proc(5)): to ask for it oneself is to wake.
WATCHER = """
import os, sys, time
tasks = f"/proc/{os.getppid()}/task"
def used():
    return sum(int(open(f"{tasks}/{one}/schedstat").read().split()[0]) for one in os.listdir(tasks))
before, seconds = used(), float(sys.argv[1])
time.sleep(seconds)
print((used() - before) / 1e9 / seconds)
"""


def idle(bench):
    """Print how much of a core a rank takes that asks for nothing, and a Python that only sleeps.

    Where processes take turns and memory is mapped anew after a pause, as under some hypervisors,
    to wake is what takes most of it.
    """
    bench.barrier()
    time.sleep(SETTLE)
    part = bench.slowest(printed(WATCHER, IDLE))
    if hvd.rank() == 0:
        print(f"\nidle for {IDLE:g} s: {100 * part:.3f} % of a core on the busiest rank")
        for times in (1, 5):
            alone = printed(SLEEPER, times, IDLE)
            print(f"a Python that sleeps {times} time(s) in {IDLE:g} s: {100 * alone:.3f} %")
    bench.barrier()


def printed(code, *words):
    """Return the number that a Python prints."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def many(tensors, prefix):
    handles = [
        hvd.allreduce_async(tensor, name=f"{prefix}{number}", op=hvd.Sum)
        for number, tensor in enumerate(tensors)
    ]
    for handle in handles:
        hvd.synchronize(handle)


def without_names(tensors):
    handles = [hvd.allreduce_async(tensor, op=hvd.Sum) for tensor in tensors]
    for handle in handles:
        hvd.synchronize(handle)


def small(bench, others):
    """1,000 tensors of 4 kB: together, and one call each."""
    tensors = [np.ones(1024, dtype=np.float32) for _ in range(SMALL)]
    world = bench.mpi.COMM_WORLD.Dup()

    def apart():
        for number, tensor in enumerate(tensors):
            hvd.allreduce(tensor, name=f"s{number}", op=hvd.Sum)

    def by_mpi():
        for tensor in tensors:
            world.Allreduce(tensor, np.empty_like(tensor))

    def by_mpi_kept():  # all results at once, which the asynchronous ones have as well
        results = [np.empty_like(tensor) for tensor in tensors]
        for tensor, result in zip(tensors, results):
            world.Allreduce(tensor, result)

    kept = []

    def many_kept():  # until the next round: as a program that uses them until then
        handles = [
            hvd.allreduce_async(tensor, name=f"k{number}", op=hvd.Sum)
            for number, tensor in enumerate(tensors)
        ]
        kept[:] = [hvd.synchronize(handle) for handle in handles]

    contenders = {
        "async, fused": lambda: many(tensors, "s"),
        "async, results kept until the next": many_kept,
        "async, without names": lambda: without_names(tensors),
        "grouped": lambda: hvd.grouped_allreduce(tensors, name="g", op=hvd.Sum),
        "one by one": apart,
        "mpi4py, one by one": by_mpi,
        "mpi4py, all results at once": by_mpi_kept,
    }
    contenders.update(others("small", tensors))
    seconds, cpu = bench.run(contenders, ROUNDS)
    show(f"{SMALL} float32 tensors of 4 kB", seconds, cpu, "mpi4py, one by one", SMALL)


def gradients(bench, others):
    """161 gradients as of ResNet-50 against one flat allreduce of the same bytes."""
    shapes = resnet50()
    sizes = [math.prod(shape) for shape in shapes]
    arena = np.ones(sum(sizes), dtype=np.float32)
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    pieces = [arena[start : start + size] for start, size in zip(starts, sizes)]
    apart = [piece.copy() for piece in pieces]
    world = bench.mpi.COMM_WORLD.Dup()
    adapter = InPlace()

    def in_arena():
        handles = []
        for number in reversed(range(len(sizes))):  # as backpropagation gives them
            local = adapter.read(pieces[number])
            place = _collectives.Place("arena", arena, starts[number], local)
            handles.append(
                _collectives.allreduce(
                    adapter,
                    [pieces[number]],
                    f"a{number}",
                    hvd.Sum,
                    (1.0, 1.0),
                    in_place=True,
                    place=place,
                )
            )
        for handle in handles:
            handle.synchronize()

    def in_chunks():
        step = _fusion.LONGEST_CHUNK // arena.itemsize
        for start in range(0, arena.size, step):
            world.Allreduce(bench.mpi.IN_PLACE, arena[start : start + step])

    contenders = {
        "MPI in chunks as the arena's": in_chunks,
        "one flat MPI allreduce": lambda: world.Allreduce(bench.mpi.IN_PLACE, arena),
        "arena": in_arena,
        "async, fused": lambda: many(apart, "r"),
        "grouped": lambda: hvd.grouped_allreduce(apart, name="rg", op=hvd.Sum),
    }
    contenders.update(others("gradients", apart))
    seconds, cpu = bench.run(contenders, ROUNDS)
    title = f"{len(shapes)} gradients, {arena.nbytes / 1e6:.0f} MB"
    show(title, seconds, cpu, "MPI in chunks as the arena's", len(shapes))


def gradients_on_gpu(bench):
    """161 gradients as of ResNet-50 on GPUs against one flat allreduce of the same bytes."""
    import distributed_dl_training.torch as hvd_torch
    import torch
    import torch.distributed as dist

    gpus = torch.cuda.device_count()
    if hvd.size() > gpus:  # before NCCL reads it
        own = {"NCCL_HOSTID": f"rank{hvd.rank()}", "NCCL_SOCKET_IFNAME": "lo"}
        os.environ.update(own, NCCL_IB_DISABLE="1")
    torch.cuda.set_device(hvd.local_rank() % gpus)
    dist.init_process_group("nccl")
    arrays = [np.ones(shape, dtype=np.float32) for shape in resnet50()]
    flat = torch.ones(sum(array.size for array in arrays), device="cuda")
    alone, ours = (constant_gradients(arrays, "cuda") for _ in range(2))
    optimizer = hvd_torch.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.1))
    parallel = torch.nn.parallel.DistributedDataParallel
    copying = parallel(constant_gradients(arrays, "cuda"))
    viewing = parallel(constant_gradients(arrays, "cuda"), gradient_as_bucket_view=True)

    def backward(model, finish=lambda: None):
        model.zero_grad(set_to_none=False)
        model().backward()
        finish()
        torch.cuda.synchronize()

    def flat_sum():
        dist.all_reduce(flat)
        torch.cuda.synchronize()

    contenders = {
        "one flat NCCL allreduce": flat_sum,
        "DistributedOptimizer, backward": lambda: backward(ours, optimizer.synchronize),
        "torch DDP, backward": lambda: backward(copying),
        "torch DDP, bucket views": lambda: backward(viewing),
        "the same backward alone": lambda: backward(alone),
    }
    seconds, cpu = bench.run(contenders, ROUNDS)
    if hvd.rank() == 0:
        version = ".".join(str(part) for part in torch.cuda.nccl.version())
        print(f"{gpus} x {torch.cuda.get_device_name()}, NCCL {version}, torch {torch.__version__}")
    title = f"{len(arrays)} gradients on GPUs, {flat.nbytes / 1e6:.0f} MB"
    show(title, seconds, cpu, "one flat NCCL allreduce", len(arrays))
    dist.destroy_process_group()


class InPlace:
    """numpy arrays that are reduced where they are, as a framework's gradients are."""

    views = True

    def read(self, tensor):
        return _collectives.Local(tensor, tensor.shape, "float32")

    def write(self, tensor):
        return tensor

    def make(self, flat, shape, like):
        return flat.reshape(shape)


def others(bench):
    """Return a function that gives the contenders besides this runtime that can run here."""
    found = []
    for make in (horovod, torch_ddp):
        try:
            found.append(make(bench))
        except Exception as error:  # whatever is wrong with it, the rest can be measured
            if hvd.rank() == 0:
                print(f"without {make.__name__}: {type(error).__name__}: {error}")

    def contenders(what, arrays):
        made = {}
        for each in found:
            made.update(each(what, arrays))
        return made

    return contenders


def horovod(_bench):
    import horovod.torch as real
    import torch

    if "distributed_dl_training" in sys.modules[real.allreduce.__module__].__file__:
        raise ImportError("this horovod is the alias")
    real.init()

    def contenders(what, arrays):
        tensors = [torch.from_numpy(array.copy()) for array in arrays]

        def run():
            handles = [
                real.allreduce_async_(tensor, name=f"{what}{number}", op=real.Sum)
                for number, tensor in enumerate(tensors)
            ]
            for handle in handles:
                real.synchronize(handle)

        return {"Horovod, async in place": run}

    return contenders


def torch_ddp(bench):
    """Backward of a model of little else but the exchange of its gradients."""
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    port = bench.mpi.COMM_WORLD.bcast(_free_port() if hvd.rank() == 0 else None)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=hvd.rank(), world_size=hvd.size()
    )

    def contenders(what, arrays):
        if what != "gradients":
            return {}
        model = constant_gradients(arrays)
        parallel = torch.nn.parallel.DistributedDataParallel(constant_gradients(arrays))

        def alone():
            model.zero_grad(set_to_none=False)
            model().backward()

        def run():
            parallel.zero_grad(set_to_none=False)
            parallel().backward()

        return {"torch DDP gloo, with backward": run, "the same backward alone": alone}

    return contenders


def constant_gradients(arrays, device="cpu"):
    """Return a model whose gradients are ones: little is calculated."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            made = (torch.nn.Parameter(torch.tensor(array, device=device)) for array in arrays)
            self.all = torch.nn.ParameterList(made)

        def forward(self):
            return sum(each.sum() for each in self.all)

    return Model()


def _free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    warnings.filterwarnings("ignore", "allreduces without a name")
    hvd.init()
    bench = Bench()
    if hvd.rank() == 0:
        print(f"engine {hvd.engine_name()}, {hvd.size()} rank(s), {os.cpu_count()} cores")
    if hvd.engine_name() == "nccl":
        gradients_on_gpu(bench)
        hvd.shutdown()
        return
    bookkeeping(bench)
    if bench.mpi and hvd.size() > 1:
        latency(bench)
        idle(bench)
        add = others(bench)
        small(bench, add)
        gradients(bench, add)
    hvd.shutdown()


if __name__ == "__main__":
    main()
