"""A program written for Horovod 0.28.1 and nothing else: its numbers, as files to compare.

    mpiexec -n 2 python horovod_program.py DIRECTORY

Each rank writes DIRECTORY/<rank>.json: for every case the bits of its results.  It runs under a
real Horovod, from which ``test_horovod.py`` has what it compares with, and under the alias.
"""

import json
import os
import sys
import warnings
from typing import Any, Dict, List

import horovod.torch as hvd
import torch
from horovod.common.exceptions import HorovodInternalError

INTEGERS = [torch.int32, torch.int64]
FLOATS = [torch.float16, torch.float32, torch.float64]
Numbers = Dict[str, List[str]]


def bits(tensor: Any) -> List[Any]:
    """Return a tensor's dtype, shape and bits."""
    held = tensor.detach()
    held = (held.to_dense() if held.is_sparse else held).contiguous()
    return [str(held.dtype), list(held.shape), held.numpy().tobytes().hex()]


def sample(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Return numbers that are exact in every dtype and differ by rank."""
    generator = torch.Generator().manual_seed(100 * seed + hvd.rank())
    return torch.randint(-20, 20, shape, generator=generator).to(dtype)


def reductions(numbers: Numbers) -> None:
    operations = {"Sum": hvd.Sum, "Average": hvd.Average, "Min": hvd.Min, "Max": hvd.Max}
    for dtype in INTEGERS + FLOATS:
        for name, op in operations.items():
            x = sample(dtype, 5, 3)
            numbers[f"allreduce {dtype} {name}"] = bits(hvd.allreduce(x, op=op, name="a"))
            if name in ("Sum", "Average"):
                scaled = hvd.allreduce(x, op=op, prescale_factor=0.5, postscale_factor=3.0)
                numbers[f"scaled {dtype} {name}"] = bits(scaled)
                share = hvd.reducescatter(sample(dtype, 7, 2), op=op)
                numbers[f"reducescatter {dtype} {name}"] = bits(share)
        y = sample(dtype, 4)
        hvd.allreduce_(y, op=hvd.Sum)
        numbers[f"allreduce_ {dtype}"] = bits(y)
        group = [sample(dtype, 3, seed=1), sample(dtype, 2, 2, seed=2)]
        for at, each in enumerate(hvd.grouped_allreduce(group, op=hvd.Average, name="g")):
            numbers[f"grouped {dtype} {at}"] = bits(each)
        for at, each in enumerate(hvd.grouped_reducescatter(group, op=hvd.Sum)):
            numbers[f"grouped_reducescatter {dtype} {at}"] = bits(each)
    for each in (hvd.Compression.none, hvd.Compression.fp16):
        x = sample(torch.float32, 6) / 8
        numbers[f"compressed {each.__name__}"] = bits(hvd.allreduce(x, compression=each))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers["average"] = bits(hvd.allreduce(sample(torch.int32, 4), average=True))
        numbers["no average"] = bits(hvd.allreduce(sample(torch.int32, 4), average=False))


def movements(numbers: Numbers) -> None:
    rank, size = hvd.rank(), hvd.size()
    for dtype in [*INTEGERS, *FLOATS]:
        numbers[f"allgather {dtype}"] = bits(hvd.allgather(sample(dtype, rank + 1, 2)))
        numbers[f"broadcast {dtype}"] = bits(hvd.broadcast(sample(dtype, 3), size - 1))
    for dtype in [*INTEGERS, *FLOATS]:
        splits = torch.arange(1, size + 1, dtype=torch.int32) + rank
        rows, received = hvd.alltoall(sample(dtype, int(splits.sum()), 2), splits)
        numbers[f"alltoall {dtype}"] = [*bits(rows), received.tolist()]
    numbers["alltoall even"] = bits(hvd.alltoall(sample(torch.float32, 2 * size)))
    pair = hvd.synchronize(hvd.alltoall_async(sample(torch.float32, 2 * size)))
    numbers["alltoall_async"] = [*bits(pair[0]), pair[1].tolist()]
    group = [sample(torch.float32, rank + 1), sample(torch.float32, 2, 2)]
    for at, each in enumerate(hvd.grouped_allgather(group)):
        numbers[f"grouped_allgather {at}"] = bits(each)
    numbers["objects"] = [hvd.broadcast_object({"rank": rank}, 0), hvd.allgather_object(rank * "x")]


def gradients(numbers: Numbers) -> None:
    rank, size = hvd.rank(), hvd.size()

    def leaf(*shape: int) -> Any:
        return torch.ones(*shape, dtype=torch.float64).requires_grad_()

    def note(name: str, results: Any, *leaves: Any) -> None:
        loss = sum((each * (rank + 1 + at)).sum() for at, each in enumerate(results))
        loss.backward()
        for at, each in enumerate(leaves):
            numbers[f"gradient of {name} {at}"] = bits(each.grad)

    for op in (hvd.Sum, hvd.Average):
        name = "Sum" if op == hvd.Sum else "Average"
        x, y = leaf(4), leaf(2, 2)
        note(f"allreduce {name}", [hvd.allreduce(x, op=op, prescale_factor=0.5)], x)
        x = leaf(4)
        note(f"grouped_allreduce {name}", hvd.grouped_allreduce([x, y], op=op), x, y)
        x, y = leaf(2 * size), leaf(size, 2)
        reduced = hvd.reducescatter(x, op=op, prescale_factor=0.5, postscale_factor=3.0)
        note(f"reducescatter {name}", [reduced], x)
        x = leaf(2 * size)
        note(f"grouped_reducescatter {name}", hvd.grouped_reducescatter([x, y], op=op), x, y)
    x = leaf(4)
    note("allreduce Max", [hvd.allreduce(x, op=hvd.Max)], x)
    x, y = leaf(rank + 1), leaf(2, 2)
    note("allgather", [hvd.allgather(x)], x)
    x = leaf(rank + 1)
    note("grouped_allgather", hvd.grouped_allgather([x, y]), x, y)
    x = leaf(4)
    note("broadcast", [hvd.broadcast(x, size - 1)], x)
    x = leaf(size * (size + 1) // 2)
    note("alltoall", hvd.alltoall(x, splits=list(range(1, size + 1)))[:1], x)
    x = leaf(4)
    note("compressed", [hvd.allreduce(x, compression=hvd.Compression.fp16)], x)


def network() -> Any:
    torch.manual_seed(7)
    layers = [torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)]
    return torch.nn.Sequential(*layers).double()


def training(numbers: Numbers) -> None:
    ways: Dict[str, Dict[str, Any]] = {
        "plain": {},
        "Sum": {"op": hvd.Sum},
        "predivide": {"gradient_predivide_factor": 2.0},
        "groups": {"groups": 2},
        "passes": {"backward_passes_per_step": 2},
        "fp16": {"compression": hvd.Compression.fp16},
    }
    kinds = {
        "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
        "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    }
    for kind, make in kinds.items():
        for way, options in ways.items():
            model = network()
            optimizer = hvd.DistributedOptimizer(
                make(model.parameters()), named_parameters=model.named_parameters(), **options
            )
            hvd.broadcast_parameters(model.state_dict(), root_rank=0)
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
            for step in range(4):
                optimizer.zero_grad()
                for one in range(options.get("backward_passes_per_step", 1)):
                    x = sample(torch.float64, 8, 4, seed=10 * step + one) / 16
                    model(x).pow(2).sum().backward()
                optimizer.step()
            weights = torch.cat([each.detach().view(-1) for each in model.parameters()])
            numbers[f"training {kind} {way}"] = bits(weights)


def embeddings(numbers: Numbers) -> None:
    for kind in (torch.optim.SGD, torch.optim.SparseAdam):
        for dense in (False, True):
            table = torch.nn.Embedding(6, 3, sparse=True).double()
            with torch.no_grad():
                table.weight.copy_(torch.arange(18.0).view(6, 3) / 8)
            optimizer = hvd.DistributedOptimizer(
                kind(table.parameters(), lr=0.5), table.named_parameters(), sparse_as_dense=dense
            )
            for step in range(3):
                optimizer.zero_grad()
                rows = torch.tensor([(hvd.rank() + step) % 6, 5])
                (table(rows) * (hvd.rank() + 1)).sum().backward()
                optimizer.step()
            numbers[f"embedding {kind.__name__} dense={dense}"] = bits(table.weight)


def sets(numbers: Numbers) -> None:
    """Ranks in any order mean the same set, whose ranks ascend."""
    size = hvd.size()
    every = hvd.add_process_set(list(reversed(range(size - 1)))) if size > 2 else None
    if every is None:
        return
    numbers["set"] = [every.ranks, every.size(), every.included()]
    if every.included():
        x = sample(torch.float32, hvd.rank() + 1)
        numbers["allgather of a set"] = bits(hvd.allgather(x, process_set=every))
        numbers["average of a set"] = bits(hvd.allreduce(x[:1], process_set=every))
    hvd.barrier()
    numbers["removed"] = [hvd.remove_process_set(every), hvd.remove_process_set(every)]


def errors(numbers: Numbers) -> None:
    """Of which kinds an error is, as programs catch it."""

    def kinds(call: Any) -> List[bool]:
        try:
            call()
        except Exception as error:
            return [isinstance(error, each) for each in (HorovodInternalError, RuntimeError)]
        return []

    x = torch.ones(3)
    if hvd.size() > 1:
        wrong = torch.ones(3 + hvd.rank())
        numbers["shapes"] = kinds(lambda: hvd.allreduce(wrong, name="shapes"))
        other = torch.ones(3, dtype=[torch.float32, torch.float64][hvd.rank() % 2])
        numbers["dtypes"] = kinds(lambda: hvd.allreduce(other, name="dtypes"))
        numbers["roots"] = kinds(lambda: hvd.broadcast(x, hvd.rank(), name="roots"))
    try:
        hvd.allreduce(x, average=True, op=hvd.Sum)
    except ValueError:
        numbers["average and op"] = ["ValueError"]


def main() -> None:
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    torch.set_num_threads(1)
    hvd.init()
    numbers: Numbers = {}
    for case in (reductions, movements, gradients, training, embeddings, sets, errors):
        case(numbers)
    numbers["join"] = [hvd.join() in range(hvd.size())]
    with open(os.path.join(sys.argv[1], f"{hvd.rank()}.json"), "w") as stream:
        json.dump(numbers, stream, indent=0, sort_keys=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
