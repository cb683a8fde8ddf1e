"""Cases of ``torch_contract.py`` that only tensors on a device have: streams, memory, halves.

Each of them fails without what it is about, and those about streams show that: see ``without``.
"""

from typing import Any, Callable, Dict, List
from unittest import mock

import torch

import distributed_dl_training.torch as hvd
from distributed_dl_training._device import DeviceArray

from torch_samples import generator, stays
from torch_training import close, network, sgd, train, trained_alone

ROWS = 1 << 10


def sleep(seconds: float) -> None:
    """Let the current stream do nothing for at least so long."""
    torch.cuda._sleep(int(seconds * 2e9))  # clock cycles of 2 GHz at most


def without(what: str) -> Any:
    """Return a context in which arrays on a device lack one of their methods."""
    return mock.patch.object(DeviceArray, what, lambda *unused: None)


def written_late(start: Callable[[Any], Any], seconds: float = 0.2) -> List[float]:
    """Return what ``start`` makes of this rank's number plus one, written in a busy stream.

    The result is read in another one.
    """
    writing, reading = torch.cuda.Stream(), torch.cuda.Stream()
    tensor = torch.zeros(hvd.size() * ROWS)
    torch.cuda.synchronize()
    with torch.cuda.stream(writing):
        sleep(seconds)
        tensor.fill_(hvd.rank() + 1.0)
        handle = start(tensor)
    got = handle.synchronize()
    with torch.cuda.stream(reading):
        read = (got[0] if isinstance(got, list) else got)[::ROWS].clone()
    reading.synchronize()
    torch.cuda.synchronize()
    values: List[float] = read.tolist()
    return values


def case_streams_of_the_program() -> None:
    """A tensor is read after what its stream does to it, whatever is asked of it."""
    size = hvd.size()
    total = size * (size + 1) / 2
    calls: Dict[str, Callable[[Any], Any]] = {
        "allreduce": lambda x: hvd.allreduce_async(x, op=hvd.Sum),
        "in place": lambda x: hvd.allreduce_async_(x, op=hvd.Sum),
        "grouped": lambda x: hvd.grouped_allreduce_async([x, x], op=hvd.Sum),
        "allgather": hvd.allgather_async,
        "broadcast": lambda x: hvd.broadcast_async(x, size - 1),
        "broadcast in place": lambda x: hvd.broadcast_async_(x, size - 1),
        "alltoall": hvd.alltoall_async,
        "reducescatter": lambda x: hvd.reducescatter_async(x, op=hvd.Sum),
    }
    every = [r + 1.0 for r in range(size)]
    wanted = dict.fromkeys(calls, [total] * size)
    wanted["allgather"] = [each for each in every for _ in range(size)]
    wanted["broadcast"] = wanted["broadcast in place"] = [float(size)] * size
    wanted["alltoall"] = every
    wanted["reducescatter"] = [total]
    for name, start in calls.items():
        got = written_late(start)
        assert got == wanted[name], (name, got)
    if stays():
        with without("order"):
            early = written_late(calls["allreduce"], 1.0)
        assert early == [0.0] * size, early


def case_results_are_there() -> None:
    """Whoever has a result may read it in any stream, also if the device was slow to make it."""
    if hvd.size() == 1 or not stays():
        return
    divide = DeviceArray.__itruediv__

    def slowly(self: Any, divisor: float) -> Any:
        sleep(0.5)
        return divide(self, divisor)

    def read() -> float:
        tensor = torch.full((ROWS,), hvd.rank() + 1.0)
        reading = torch.cuda.Stream()
        torch.cuda.synchronize()
        with mock.patch.object(DeviceArray, "__itruediv__", slowly):
            got = hvd.allreduce(tensor)
            with torch.cuda.stream(reading):
                copied = got.clone()
            reading.synchronize()
        torch.cuda.synchronize()
        return float(copied[0])

    assert read() == (hvd.size() + 1) / 2
    with without("settle"):
        assert read() == hvd.size() * (hvd.size() + 1) / 2  # not yet divided


def case_results_that_are_dropped_early() -> None:
    """A result's memory is taken again only after what has been asked to read it."""

    def read() -> bool:
        tensor = torch.full((1 << 20,), hvd.rank() + 1.0)
        reading = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(reading):
            got = hvd.allgather(tensor)
            sleep(1.0)
            copied = got.clone()
            del got
        hvd.allgather(tensor * 100)
        torch.cuda.synchronize()
        return bool(copied.max() == hvd.size())

    assert read()
    if stays():
        with without("lend"):
            assert not read()


def case_later_work_is_not_waited_for() -> None:
    """What the program asks of the device afterwards does not hold up what is under way."""
    if not stays():
        return
    tensor = torch.ones(ROWS)
    hvd.allreduce(tensor, name="overtakes")
    torch.cuda.synchronize()
    hvd.barrier()
    handle = hvd.allreduce_async(tensor, name="overtakes")
    sleep(3.0)
    handle.synchronize()
    assert not torch.cuda.current_stream().query()
    torch.cuda.synchronize()


def case_training_in_a_stream() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model = network()
        train(model, hvd.DistributedOptimizer(sgd(model)), 5)
    stream.synchronize()
    close(model, trained_alone(5))


def case_halves() -> None:
    """NCCL adds float16 and bfloat16 as they are: every addition rounds, by half a unit at most.

    In whatever order, the partial sums are not above the sum of the absolute values.
    """
    size = hvd.size()
    for dtype, unit in ((torch.float16, 2.0**-11), (torch.bfloat16, 2.0**-8)):
        parts = [torch.randn(100003, generator=generator(rank)).to(dtype) for rank in range(size)]
        got = hvd.allreduce(parts[hvd.rank()], op=hvd.Sum)
        exact: Any = sum(part.double() for part in parts)
        above: Any = sum(part.double().abs() for part in parts)
        roundings = size - 1 if stays() else 1
        # Below 2**-14 the units of float16 shrink no more.
        worst = roundings * (unit * (1 + size * unit) * above + 2.0**-25)
        assert got.dtype == dtype and bool(((got.double() - exact).abs() <= worst).all())
        everybody = hvd.allgather(got[None])
        assert all(torch.equal(everybody[0], each) for each in everybody)
        if size > 1 and stays():  # it is no sum in float32
            assert bool((got.double() - exact).any())
