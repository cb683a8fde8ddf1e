"""What the bundled collective runtime costs, beside MPI alone, Horovod and torch.distributed.

    python benchmarks/runtime.py compare [ROUNDS]        # starts all jobs that follow, in turns
    mpiexec -n RANKS python benchmarks/runtime.py [ROUNDS] [PART ...]
    python benchmarks/runtime.py [ROUNDS]                # bookkeeping of one rank
    DDLT_ENGINE=nccl torchrun --nproc-per-node=2 benchmarks/runtime.py [ROUNDS]

with a Python that has distributed_dl_training and, for ranks, mpi4py.  ``compare`` measures one
small allreduce on 2 to 16 ranks, tensors and gradients on 2 and 4, and, with Open MPI and as root,
two network namespaces as two nodes.  PART is latency, idle, small, tensors, resnet50 or bert; all
of these if none is named; or tensorflow, with a Python that has it and the op.  Open MPI binds each
of two ranks to one core by default, which its threads then share: not so with --bind-to none, as
Horovod's documentation starts ranks.

Contenders take turns within each round, in a random order that is the same on all ranks; a round's
time is that of its slowest rank.  Ratios are taken round by round, because machines are noisy, and
printed as their median with a 95% interval of it (bootstrap) and their quartiles.  A real Horovod
and torch.distributed (over gloo) take part where they are installed; a line says why they do not.
Horovod's thread, which looks for work a thousand times a second, runs in its own turns only.
DDLT_OTHER names packages, with commas, of other releases of the runtime, to take part in latency: a
copy with another name,

    cp -r distributed_dl_training other && sed -i s/distributed_dl_training/other/g other/*.py ...

CPU is that of a whole process, its communication thread and what it spends inside MPI included.

On a machine that others use, `chrt -f 1 mpiexec ...` (as root) lets ranks run before all else:
threads that hand over to each other then wait for each other alone, as on an idle machine.
Not with Open MPI and Horovod without `--mca mpi_yield_when_idle 1`: threads that wait in MPI keep
their cores from each other then, for ever.

Over NCCL gradients lie on GPUs.  Ranks that have to share one are told apart as hosts, so that they
talk by NCCL's sockets: this measures what the runtime costs, not what NCCL can do.
"""

import contextlib
import importlib
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import distributed_dl_training.numpy as hvd
import numpy as np

PROGRAM = Path(__file__).resolve()
ROUNDS = next((int(word) for word in sys.argv[1:] if word.isdigit()), 15)
PARTS = [word for word in sys.argv[1:] if not word.isdigit()]
SMALL = 1000  # tensors in one go
CALLS = 200  # of what is timed one by one
CHUNK = 16 << 20  # bytes, as the runtime sends long tensors
IDLE = 30.0  # seconds
SETTLE = 12.0  # the same, after which a rank does what it does for as long as it is idle
# What ``compare`` starts: ranks on each node, nodes, and parts.
JOBS = [(ranks, 1, ["latency"]) for ranks in (2, 4, 8, 9, 12, 16)]
JOBS += [(ranks, 1, ["tensors", "resnet50", "bert"]) for ranks in (2, 4)]
JOBS += [(ranks, 2, ["latency"]) for ranks in (1, 2, 4, 8)]
JOBS += [(2, 2, ["tensors", "resnet50"])]


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


def bert():
    """Return the shapes of the 199 parameters of BERT's base size, 109,482,240 elements.

    Source: Devlin et al., arXiv:1810.04805, section 3 (12 layers, 768 hidden, 110 million).
    """
    norm, square = [(768,), (768,)], [(768, 768), (768,)]
    shapes = [(30522, 768), (512, 768), (2, 768), *norm]
    for _ in range(12):
        shapes += 4 * square + norm + [(3072, 768), (3072,), (768, 3072), (768,)] + norm
    return shapes + square


class Bench:
    """Runs contenders in turns; keeps seconds by contender, and CPU seconds of this process."""

    def __init__(self):
        self.mpi = None
        if hvd.engine_name() == "mpi":
            from mpi4py import MPI

            self.mpi = MPI
            self.world = MPI.COMM_WORLD.Dup()

    def slowest(self, value):
        if self.mpi:
            return self.world.allreduce(value, op=self.mpi.MAX)
        return float(hvd.allreduce(value, op=hvd.Max))

    def barrier(self):
        if self.mpi:
            self.world.Barrier()
        else:
            hvd.barrier()

    def run(self, contenders):
        """Return both, by round.  A contender's ``session``, if any, is a context of its turns."""
        seconds = {name: [] for name in contenders}
        cpu = {name: [] for name in contenders}
        order = random.Random(0)
        names = list(contenders)
        for number in range(ROUNDS + 2):
            order.shuffle(names)
            for name in names:
                with getattr(contenders[name], "session", contextlib.ExitStack)():
                    took, used = self._turn(contenders[name])
                if number > 1:  # the first two fill caches and buffers
                    seconds[name].append(took)
                    cpu[name].append(used)
        return seconds, cpu

    def _turn(self, contender):
        self.barrier()
        used, started = time.process_time(), time.perf_counter()
        contender()
        took, used = time.perf_counter() - started, time.process_time() - used
        return self.slowest(took), used

    def show(self, title, contenders, base, per=1):
        """Measure, and print times, and how many times as long as ``base`` each one took."""
        seconds, cpu = self.run(contenders)
        if hvd.rank():
            return
        print(f"\n{title}, {hvd.size()} rank(s) ({ROUNDS} rounds; time / {base})")
        for name, values in seconds.items():
            ratios = [a / b for a, b in zip(values, seconds[base])]
            middle, low, high = interval(ratios)
            first, third = quartiles(ratios)
            calls = [value * 1e6 / per for value in values]
            times = f"{statistics.median(calls):11.1f} us {min(calls):11.1f} min"
            used = f"{statistics.median(cpu[name]) * 1e6 / per:11.1f} CPU us"
            spread = f"[{low:.2f}, {high:.2f}] quartiles {first:.2f} {third:.2f}"
            print(f"  {name:36}{times}{used}   ratio {middle:6.2f} {spread}")
        sys.stdout.flush()


def interval(ratios):
    """Return the median and the bounds between which 95% of resampled medians lie."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def quartiles(values):
    """Return the first and the third."""
    first, third = np.percentile(values, [25, 75])
    return first, third


def bookkeeping(bench):
    """CPU time from asking to the result, of tensors of one element."""
    tensors = [np.ones(1, dtype=np.float32) for _ in range(SMALL)]

    def apart():
        for number, tensor in enumerate(tensors):
            hvd.allreduce(tensor, name=f"b{number}", op=hvd.Sum)

    base = "async, then synchronize"
    contenders = {base: lambda: many(hvd, tensors, "b"), "one by one": apart}
    bench.show(f"{SMALL} tensors of one float32, each", contenders, base, SMALL)


def latency(bench, peers):
    """One small allreduce, one at a time."""
    tensor, result = np.ones(1, dtype=np.float32), np.empty(1, dtype=np.float32)

    def repeated(call):
        def run():
            for _ in range(CALLS):
                call()

        return run

    def of(package):
        module = importlib.import_module(f"{package}.numpy")
        module.init()
        return lambda: module.allreduce(tensor, name="latency", op=module.Sum)

    calls = {"mpi4py": lambda: bench.world.Allreduce(tensor, result)}
    packages = [
        "distributed_dl_training",
        *filter(None, os.environ.get("DDLT_OTHER", "").split(",")),
    ]
    calls.update((package, of(package)) for package in packages)
    contenders = {name: repeated(call) for name, call in calls.items()}
    for peer in peers:
        contenders[peer.name] = in_session(repeated(peer.call), peer)
    bench.show("one small allreduce", contenders, packages[1] if packages[1:] else "mpi4py", CALLS)


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


def idle(bench, _peers):
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


def many(module, tensors, prefix, suffix=""):
    """Ask for all, then wait for all; prefix: of their names, None: they have none."""
    reduce = getattr(module, "allreduce_async" + suffix)
    handles = [
        reduce(tensor, name=None if prefix is None else f"{prefix}{number}", op=module.Sum)
        for number, tensor in enumerate(tensors)
    ]
    return [module.synchronize(handle) for handle in handles]


def small(bench, _peers):
    """1,000 numpy arrays of 4 kB: together, and one call each."""
    tensors = [np.ones(1024, dtype=np.float32) for _ in range(SMALL)]

    def apart():
        for number, tensor in enumerate(tensors):
            hvd.allreduce(tensor, name=f"s{number}", op=hvd.Sum)

    def by_mpi():
        for tensor in tensors:
            bench.world.Allreduce(tensor, np.empty_like(tensor))

    def by_mpi_kept():  # all results at once, which the asynchronous ones have as well
        results = [np.empty_like(tensor) for tensor in tensors]
        for tensor, result in zip(tensors, results):
            bench.world.Allreduce(tensor, result)

    kept = []

    def many_kept():  # until the next round: as a program that uses them until then
        kept[:] = many(hvd, tensors, "k")

    contenders = {
        "async, fused": lambda: many(hvd, tensors, "s"),
        "async, results kept until the next": many_kept,
        "async, without names": lambda: many(hvd, tensors, None),
        "grouped": lambda: hvd.grouped_allreduce(tensors, name="g", op=hvd.Sum),
        "one by one": apart,
        "mpi4py, one by one": by_mpi,
        "mpi4py, all results at once": by_mpi_kept,
    }
    bench.show(f"{SMALL} float32 arrays of 4 kB, each", contenders, "mpi4py, one by one", SMALL)


def tensors(bench, peers):
    """1,000 tensors of 1 kB from PyTorch, asynchronously."""
    import distributed_dl_training.torch as hvd_torch
    import torch

    values = [torch.ones(256) for _ in range(SMALL)]
    contenders = {
        "runtime": lambda: many(hvd_torch, values, "t"),
        "runtime, in place": lambda: many(hvd_torch, values, "p", "_"),
    }
    for peer in peers:
        contenders.update(peer.tensors(values))
    bench.show(f"{SMALL} tensors of 1 kB, all", contenders, "runtime")


def gradients(bench, peers, title, shapes):
    """Backward passes of a model of little else but the exchange of gradients of these shapes."""
    import distributed_dl_training.torch as hvd_torch
    import torch

    arrays = [np.ones(shape, dtype=np.float32) for shape in shapes]
    flat = np.ones(sum(array.size for array in arrays), dtype=np.float32)
    alone, ours = constant_gradients(arrays), constant_gradients(arrays)
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    optimizer = hvd_torch.DistributedOptimizer(optimizer, ours.named_parameters())

    def by_mpi():
        for start in range(0, flat.size, CHUNK // 4):
            bench.world.Allreduce(bench.mpi.IN_PLACE, flat[start : start + CHUNK // 4])

    contenders = {
        "MPI, in chunks of 16 MiB": by_mpi,
        "the backward pass alone": lambda: backward(alone),
        "runtime": lambda: backward(ours, optimizer.synchronize),
    }
    for peer in peers:
        contenders.update(peer.gradients(arrays))
    bench.show(
        f"{len(shapes)} gradients like {title}'s, {flat.nbytes / 1e6:.0f} MB", contenders, "runtime"
    )


def tensorflow(bench, _peers):
    """Gradients, and 1,000 small tensors, in tf.function: by the op and by py-functions."""
    import distributed_dl_training.tensorflow as hvd_tensorflow
    import tensorflow as tf

    flat = np.ones(sum(int(np.prod(shape)) for shape in resnet50()), dtype=np.float32)
    chunks = [flat[start : start + CHUNK // 4] for start in range(0, flat.size, CHUNK // 4)]

    def in_function(implementation, shapes, collective):
        os.environ["DDLT_TENSORFLOW"] = implementation  # read when the function is traced
        values = [tf.ones(shape) for shape in shapes]
        function = tf.function(lambda: collective(values)[-1])
        function()
        return function

    def each(values):
        return [hvd_tensorflow.allreduce(value, name=f"t{i}") for i, value in enumerate(values)]

    grouped = hvd_tensorflow.grouped_allreduce
    contenders = {name: in_function(name, resnet50(), grouped) for name in ("op", "py-function")}
    contenders["MPI, in chunks of 16 MiB"] = lambda: [
        bench.world.Allreduce(bench.mpi.IN_PLACE, chunk) for chunk in chunks
    ]
    bench.show("161 gradients like ResNet-50's in tf.function", contenders, "py-function")
    small = [(256,)] * SMALL
    contenders = {name: in_function(name, small, grouped) for name in ("op", "py-function")}
    contenders["op, a node for each"] = in_function("op", small, each)
    bench.show(f"{SMALL} tensors of 1 kB in tf.function, a group", contenders, "py-function")
    contenders = {name: in_function(name, [(256,)], each) for name in ("op", "py-function")}
    bench.show("one tensor of 1 kB in tf.function", contenders, "py-function")


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
    wait = torch.cuda.synchronize
    if hvd.rank() == 0:
        version = ".".join(str(part) for part in torch.cuda.nccl.version())
        print(f"{gpus} x {torch.cuda.get_device_name()}, NCCL {version}, torch {torch.__version__}")
    contenders = {
        "one flat NCCL allreduce": lambda: (dist.all_reduce(flat), wait()),
        "runtime": lambda: (backward(ours, optimizer.synchronize), wait()),
        "torch DDP": lambda: (backward(copying), wait()),
        "torch DDP, bucket views": lambda: (backward(viewing), wait()),
        "the backward pass alone": lambda: (backward(alone), wait()),
    }
    title = f"{len(arrays)} gradients on GPUs, {flat.nbytes / 1e6:.0f} MB"
    bench.show(title, contenders, "one flat NCCL allreduce")
    dist.destroy_process_group()


def backward(model, finish=lambda: None):
    model.zero_grad(set_to_none=False)
    model().backward()
    finish()


def constant_gradients(arrays, device="cpu"):
    """Return a model whose gradients are ones: little is calculated.  On CPUs it has the arrays."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            values = (torch.from_numpy(array).to(device) for array in arrays)
            self.all = torch.nn.ParameterList(map(torch.nn.Parameter, values))

        def forward(self):
            return sum(each.sum() for each in self.all)

    return Model()


class Horovod:
    """A real Horovod, over MPI.  Its thread runs in its own turns only."""

    def __init__(self, bench):
        import horovod.torch as real
        import torch

        if "distributed_dl_training" in sys.modules[real.allreduce.__module__].__file__:
            raise ImportError("this horovod is the alias")
        self.name = f"Horovod {importlib.import_module('horovod').__version__}"
        self._real = real
        self._one = torch.ones(1)

    @contextlib.contextmanager
    def session(self):
        self._real.init()
        try:
            yield
        finally:
            self._real.shutdown()

    def call(self):
        self._real.allreduce(self._one, name="latency", op=self._real.Sum)

    def tensors(self, values):
        return {
            self.name: in_session(lambda: many(self._real, values, "t"), self),
            f"{self.name}, in place": in_session(lambda: many(self._real, values, "p", "_"), self),
        }

    def gradients(self, arrays):
        import torch

        model = constant_gradients(arrays)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.session():
            optimizer = self._real.DistributedOptimizer(optimizer, model.named_parameters())
        return {self.name: in_session(lambda: backward(model, optimizer.synchronize), self)}


class TorchDistributed:
    """torch.distributed and its DistributedDataParallel, over Gloo."""

    name = "torch.distributed, gloo"
    session = contextlib.ExitStack

    def __init__(self, bench):
        import torch
        import torch.distributed

        self._torch, self._one = torch, torch.ones(1)
        torch.set_num_threads(1)
        address = os.environ.get("MASTER_ADDR", "127.0.0.1")
        port = bench.world.bcast(free_port() if hvd.rank() == 0 else None)
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://{address}:{port}", rank=hvd.rank(), world_size=hvd.size()
        )

    def call(self):
        self._torch.distributed.all_reduce(self._one)

    def tensors(self, values):
        def run():
            works = [self._torch.distributed.all_reduce(each, async_op=True) for each in values]
            for work in works:
                work.wait()

        return {f"{self.name}, in place": run}

    def gradients(self, arrays):
        parallel = self._torch.nn.parallel.DistributedDataParallel(constant_gradients(arrays))
        return {"torch DDP, gloo": lambda: backward(parallel)}


def in_session(run, peer):
    """Let ``run`` be a contender whose turns are in a session of this peer."""
    run.session = peer.session
    return run


def find_peers(bench):
    """Return what can take part here besides this runtime and MPI, and say why others cannot."""
    peers = []
    for make in (Horovod, TorchDistributed):
        try:
            peers.append(make(bench))
        except Exception as error:  # whatever is wrong with it, the others can be measured
            if hvd.rank() == 0:
                print(f"without {make.__name__}: {type(error).__name__}: {error}")
    return peers


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]


def compare():
    """Start all jobs, one after the other; return the exit code of the first that fails, or 0."""
    sys.path.insert(0, str(PROGRAM.parents[1] / "runtime" / "tests"))
    import launcher
    import nodes

    mpiexec = launcher.find_mpiexec() or sys.exit("compare: there is no mpiexec")
    open_mpi = launcher.is_open_mpi(mpiexec)
    reason = nodes.why_not() or (None if open_mpi else "MPICH does not keep to the network")
    os.environ.update(launcher.variables("compare", {"DDLT_ENGINE": "mpi"}))
    codes = []
    for ranks, count, parts in JOBS:
        words = [sys.executable, str(PROGRAM), str(ROUNDS), *parts]
        print(f"\n--- {ranks} rank(s) on each of {count} node(s): {' '.join(parts)}", flush=True)
        if ranks > os.cpu_count() // count:
            print("  more ranks than cores: their times tell little")
        if count == 1:
            bind = [
                "--bind-to" if open_mpi else "-bind-to",
                "core" if parts == ["latency"] and ranks <= os.cpu_count() else "none",
            ]
            bind += ["--oversubscribe"] if open_mpi else []
            codes.append(subprocess.call([mpiexec, "-n", str(ranks), *bind, *words]))
        elif reason is not None:
            print(f"  without two nodes: {reason}")
        else:
            with nodes.TwoNodes() as two:
                os.environ.update(MASTER_ADDR=two.hosts[0], GLOO_SOCKET_IFNAME=nodes.DEVICE)
                hosts = dict.fromkeys(two.hosts, ranks)
                start = nodes.open_mpi_words(mpiexec, two.agent, hosts, alternate=False)
                codes.append(subprocess.call(two.command(start + words)))
    return next(filter(None, codes), 0)


MEASURES = {
    "latency": latency,
    "idle": idle,
    "small": small,
    "tensors": tensors,
    "resnet50": lambda bench, peers: gradients(bench, peers, "ResNet-50", resnet50()),
    "bert": lambda bench, peers: gradients(bench, peers, "BERT", bert()),
    "tensorflow": tensorflow,
}


def main():
    if PARTS == ["compare"]:
        sys.exit(compare())
    warnings.filterwarnings("ignore", "allreduces without a name")
    hvd.init()
    bench = Bench()
    if hvd.rank() == 0:
        print(f"engine {hvd.engine_name()}, {hvd.size()} rank(s), {os.cpu_count()} cores")
        if bench.mpi:
            print(bench.mpi.Get_library_version().splitlines()[0])
    if hvd.engine_name() == "nccl":
        gradients_on_gpu(bench)
    elif not bench.mpi or hvd.size() == 1:
        bookkeeping(bench)
    else:
        peers = find_peers(bench)
        for part in PARTS or [name for name in MEASURES if name != "tensorflow"]:
            MEASURES[part](bench, peers)
    hvd.shutdown()


if __name__ == "__main__":
    main()
