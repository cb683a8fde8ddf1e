"""The engine nccl: tensors on a device, with the engine gloo for everything else."""

import os
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Iterator, Optional

import numpy

from distributed_dl_training._core import Array, Op, PeerLostError
from distributed_dl_training._gloo import NATIVE, GlooEngine
from distributed_dl_training._rendezvous import World, distributed, limit

_NAP = 0.0001  # seconds between looks whether a transfer is complete
_PARTING = 2.0  # seconds for NCCL to give the device up after the loss of a rank


class NcclEngine(GlooEngine):
    """Tensors on a device travel by NCCL; agreement, and what lies on the host, by Gloo.

    Shown with one H100 that up to four ranks shared, each as a host of its own, so that NCCL talked
    by its sockets (torch 2.11, NCCL 2.28): what tests/contract.py and tests/torch_contract.py say,
    order with the program's streams and the loss of ranks included.  Several GPUs, NVLink and
    networks have been shown on no machine yet.
    """

    name = "nccl"
    devices = True
    halves = True  # on the device; see ``_reduce.working``
    _device: Any = None  # the ranks meet before it is made

    def __init__(self, world: World, world_size: int) -> None:
        super().__init__(world, world_size)
        dist = distributed()
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = limit()
        store = self._part("device")
        with _unwatched():
            self._device = dist.ProcessGroupNCCL(store, self.rank, self.size, options)
        self._groups.append(self._device)

    def close(self) -> None:
        if not self._closed:
            _call(self._device, "shutdown", "_shutdown")  # to free it alone warns, and aborts
            self._device = None
        super().close()

    def allreduce(self, values: Array, op: Op) -> None:
        if isinstance(values, numpy.ndarray):
            super().allreduce(values, op)
        elif values.dtype.kind + str(values.itemsize) in (*NATIVE, "f2", "V2") and op is Op.SUM:
            self._reduce(values, op)
        else:  # seldom, and NCCL's own rules for NaN and small integers differ from ours
            host = numpy.asarray(values)
            host = host.astype(numpy.float32) if host.dtype == numpy.float16 else host
            super().allreduce(host, op)
            values[:] = host

    def wait(self, work: Any, longest: Optional[timedelta] = None) -> bool:
        """Wait for ``work``; what follows in this thread's stream comes after it."""
        # To wait for NCCL's with a limit, as for Gloo's, would end it when the limit passes.
        try:
            while longest is None and not work.is_completed():
                self._losses.check()
                time.sleep(_NAP)
            return self._losses.wait(work, longest)
        except PeerLostError:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """End what still waits on the device for the lost rank: the program may want to use it."""
        device = self._device

        def end() -> None:
            try:
                _call(device, "abort")
            except RuntimeError:
                pass  # of what is lost already

        ending = threading.Thread(target=end, name="end of NCCL", daemon=True)
        ending.start()
        ending.join(_PARTING)  # NCCL may wait as well: the error is told all the same

    def _group_of(self, data: Array) -> Any:
        on_device = not isinstance(data, numpy.ndarray) and data.tensor.is_cuda
        return self._device if on_device else self._data


@contextmanager
def _unwatched() -> Iterator[None]:
    """Let nobody but this runtime watch over the process groups that are made meanwhile.

    Torch's own watchdog would write files and end the process, a minute after an error that the
    program has been told of and may be busy saving its state for.  Only a variable forbids it.
    """
    import torch

    version = [int(part) for part in torch.__version__.split(".")[:2]]
    name = "TORCH_NCCL_BLOCKING_WAIT" if version >= [2, 2] else "NCCL_BLOCKING_WAIT"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _call(group: Any, *names: str) -> None:
    """Call the first of these methods that this release of torch has."""
    found = [getattr(group, name) for name in names if hasattr(group, name)]
    if found:
        found[0]()
