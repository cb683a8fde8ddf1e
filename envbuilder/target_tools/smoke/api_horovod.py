"""Horovod for PyTorch and for TensorFlow, from 0.16 to 0.28.

What carried the data is read from Horovod's own timeline, which rank 0 writes: its activities
name the transport of every tensor. Which transports are merely built in or enabled says less.
"""

import os
import sys

from .. import proc
from . import traffic
from .api import Api, on_device, take_cuda, torch_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .api import Array

ASKED = ("mpi_built", "mpi_enabled", "gloo_built", "gloo_enabled", "nccl_built", "ddl_built")


class Horovod(Api):
    """The common part of both. Horovod's controller compares shapes: "Mismatched ..."."""

    mismatch = "error that begins with 'Mismatched'"

    def prepare(self) -> None:
        self.timeline = self.options.out / f"horovod-timeline-{self.recorder.identity}.json"
        os.environ["HOROVOD_TIMELINE"] = str(self.timeline)
        if self.transport == "nccl":
            self.log_nccl()

    def load(self) -> "dict[str, Any]":
        said = super().load()
        self.hvd = sys.modules[self.modules[-1]]
        self.alias = getattr(sys.modules["horovod"], "__ddlt_alias__", False)
        if self.alias:
            said["said"] += f", the alias of {self.hvd.allreduce.__module__.partition('.')[0]}"
        if not hasattr(self.hvd, "barrier"):
            self.lacks["barrier"] = f"{said['said'].split(', ')[-1]} has no barrier here"
        return said

    def init(self) -> None:
        self.hvd.init()
        self.take(self.hvd)
        # After shutdown some of them cannot be asked any more.
        self.engine = self.hvd.engine_name() if self.alias else ""
        self.words = {name: self._ask(name) for name in ASKED if hasattr(self.hvd, name)}
        self.take_device()

    def _ask(self, name: str) -> bool:
        return bool(getattr(self.hvd, name)())

    def take_device(self) -> None:
        """Choose the device of the tensors: NCCL needs a GPU for each rank, others use the CPU."""

    @property
    def summing(self) -> "dict[str, Any]":
        # 0.19 brought ``op``; before, all but the average is the sum.
        return {"op": self.hvd.Sum} if hasattr(self.hvd, "Sum") else {"average": False}

    def tells_of_mismatch(self, error: Exception) -> bool:
        if self.alias:
            return isinstance(error, self.hvd.MismatchError)
        return "Mismatched" in str(error)

    def carried(self) -> "list[dict[str, str]]":
        if self.alias:
            source = f"its engine, as {sys.modules['horovod'].__file__} has it"
            return [
                traffic.claim(operation, self.engine, source)
                for operation in ("allreduce", "allgather", "broadcast")
            ]
        claims = [
            traffic.claim("negotiation", name, f"hvd.{name}_enabled() is true")
            for name in ("mpi", "gloo")
            if self.words.get(f"{name}_enabled")
        ]
        return claims + self._activities()

    def _activities(self) -> "list[dict[str, str]]":
        claims = traffic.from_timeline(proc.read(self.timeline))
        for each in claims:
            each["source"] += self.nccl_words() if each["transport"] == "nccl" else ""
        return claims


class HorovodTorch(Horovod):
    modules = ("numpy", "torch", "horovod.torch")

    def take_device(self) -> None:
        self.torch = sys.modules["torch"]
        self.device = "cpu"
        if self.transport == "nccl":
            self.device = take_cuda(self.torch, self.local_rank())

    def framework(self) -> str:
        return torch_words(self.torch, self.device)

    def _tensor(self, values: "Array") -> "Any":
        return self.torch.from_numpy(values).to(self.device)

    # The ranks' tensors find each other by name; one name for a kind of tensor spares Horovod's
    # cache of responses.
    def allreduce(self, values: "Array") -> "Array":
        tensor = self._tensor(values)
        return self.hvd.allreduce(tensor, name=f"sum.{values.dtype}", **self.summing).cpu().numpy()

    def allgather(self, values: "Array") -> "Array":
        tensor = self._tensor(values)
        return self.hvd.allgather(tensor, name=f"rows.{values.dtype}").cpu().numpy()

    def broadcast(self, values: "Array", root: int) -> "Array":
        tensor = self._tensor(values)
        return self.hvd.broadcast(tensor, root, name=f"from.{root}").cpu().numpy()


class HorovodTensorflow(Horovod):
    """Eagerly with TensorFlow 2, through a session with TensorFlow 1; the alias in tf.function."""

    modules = ("numpy", "tensorflow", "horovod.tensorflow")

    def take_device(self) -> None:
        self.tf = sys.modules["tensorflow"]
        # The API of TensorFlow 1: by its own name from 1.13 on, the only one before.
        self.v1 = getattr(self.tf.compat, "v1", self.tf)
        self.eager = self.tf.executing_eagerly()
        self.device = "/CPU:0"
        self.graph: "dict[tuple[Any, ...], tuple[Any, Any]]" = {}
        self.functions: "dict[tuple[Any, ...], Any]" = {}
        config = None if self.eager else self.v1.ConfigProto()
        if self.transport == "nccl":
            self.device = "/GPU:0"
            self._take_gpu(config)
        elif config is not None:
            config.device_count["GPU"] = 0
        self.session: "Any" = None if self.eager else self.v1.Session(config=config)

    def _take_gpu(self, config: "Any") -> None:
        """Make one GPU visible to TensorFlow, which otherwise fills the memory of all."""
        if config is None:
            gpus = self.tf.config.experimental.list_physical_devices("GPU")
            one = gpus[on_device("TensorFlow", len(gpus), self.local_rank())]
            self.tf.config.experimental.set_visible_devices(one, "GPU")
            self.tf.config.experimental.set_memory_growth(one, True)  # noqa: FBT003
        else:
            config.gpu_options.visible_device_list = str(self.local_rank())
            config.gpu_options.allow_growth = True

    def framework(self) -> str:
        words = f"tensorflow {self.tf.__version__}"
        return f"{words}: {self.hvd.build_info()['tensorflow']}" if self.alias else words

    def tells_of_mismatch(self, error: Exception) -> bool:
        # Out of a graph it comes as an error of TensorFlow.
        return super().tells_of_mismatch(error) or (self.alias and "MismatchError" in str(error))

    def _run(self, kind: str, make: "Callable[[Any], Any]", values: "Array") -> "Array":
        """Run the operation that *make* builds for a tensor on *values*.

        In a session the operation is built once and run again, because its names must agree on all
        ranks, and because a graph only grows.
        """
        if self.eager:
            function = make
            if self.alias:  # whose op is for graphs
                function = self.functions.setdefault((kind, values.dtype), self.tf.function(make))
            with self.tf.device(self.device):
                return function(self.tf.constant(values)).numpy()
        key = (kind, str(values.dtype), values.shape[1:])
        if key not in self.graph:
            with self.tf.device(self.device):
                shape = (None,) + values.shape[1:]  # noqa: RUF005
                given = self.v1.placeholder(values.dtype, shape)
                self.graph[key] = (given, make(given))
        given, made = self.graph[key]
        return self.session.run(made, {given: values})

    def allreduce(self, values: "Array") -> "Array":
        return self._run("sum", lambda given: self.hvd.allreduce(given, **self.summing), values)

    def allgather(self, values: "Array") -> "Array":
        return self._run("rows", self.hvd.allgather, values)

    def broadcast(self, values: "Array", root: int) -> "Array":
        return self._run(f"from {root}", lambda given: self.hvd.broadcast(given, root), values)
