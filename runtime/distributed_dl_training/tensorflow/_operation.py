"""The operation in C++: the library that has it, and the Python side of its interface.

``collective_op.cc`` describes the interface.  One thread takes collectives from the library, starts
them, and completes them when their handles are done.  It never waits for other ranks.
"""

import collections
import ctypes
import functools
import os
import threading
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import tensorflow as tf

from distributed_dl_training import _session
from distributed_dl_training._builds import OPERATION_HOME, OPERATION_LIBRARY, operation_facts
from distributed_dl_training._core import (
    Array,
    EngineUnavailableError,
    MismatchError,
    Threads,
    elements,
)
from distributed_dl_training._handle import Handle
from distributed_dl_training.tensorflow._collective import Collective, decode

INTERFACE = 1  # of the library
# Codes of TensorFlow's errors, as ``tf.numpy_function`` has them for exceptions of Python; and that
# of Horovod for what the ranks do not agree on.
INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED, UNKNOWN = 3, 9, 12, 2


class TensorType(NamedTuple):
    """The type of a tensor of TensorFlow."""

    dtype: Any  # of numpy
    shape: Tuple[int, ...]


class Implementation(NamedTuple):
    """How nodes of graphs carry out collectives.

    node: makes the operation's node; None: py-functions are used.
    reason: why they are.
    """

    node: Optional[Callable[..., Any]] = None
    reason: str = ""

    @property
    def name(self) -> str:
        """Return ``op`` or ``py-function``."""
        return "py-function" if self.node is None else "op"


def implementation() -> Implementation:
    """Return the implementation that DDLT_TENSORFLOW names; by default the op, if it is built.

    A node is made by what it names then.

    Raises EngineUnavailableError if it names the op and this cannot be used, and ValueError if it
    names none.
    """
    name = os.environ.get("DDLT_TENSORFLOW", "")
    if name not in ("", "op", "py-function"):
        raise ValueError(f"DDLT_TENSORFLOW={name!r} is neither 'op' nor 'py-function'")
    if name == "py-function":
        return Implementation(reason="DDLT_TENSORFLOW=py-function")
    reason = _refusal(OPERATION_HOME)
    if reason and name == "op":
        raise EngineUnavailableError(reason)
    return (
        Implementation(reason=reason) if reason else Implementation(_library(OPERATION_HOME).node)
    )


def build_info() -> Dict[str, str]:
    """Return which implementation carries out the collectives of graphs.

    ``tensorflow`` is ``op`` or ``py-function``; the latter has a ``reason``.  Raises as
    ``implementation``.
    """
    used = implementation()
    info = {"tensorflow": used.name}
    if used.reason:
        info["reason"] = used.reason
    return info


def _refusal(home: str) -> str:
    """Return why the library of a folder cannot be used; empty if it can."""
    hint = "python -m distributed_dl_training.tensorflow.build builds it"
    facts = operation_facts(home)
    if facts is None:
        return f"the operation is not built; {hint}"
    if facts["tensorflow"] != tf.__version__:
        built = facts["tensorflow"]
        return f"the operation is built for TensorFlow {built}, not {tf.__version__}; {hint}"
    return ""


class _Request:
    """A collective under way, by the address that the library has for it.

    error: why not all of its parts have been started.
    """

    def __init__(self, address: int) -> None:
        self.address = address
        self.collective: Optional[Collective] = None
        self.handles: List[Handle] = []
        self.error: Optional[Exception] = None

    def start(self, text: str, tensors: Sequence[TensorType], data: Any) -> None:
        """Start the collective ``text`` of tensors, whose memory is at the addresses ``data``."""
        self.collective = collective = decode(text)
        engine = _session.controller(collective.process_set).engine
        if engine.size > 1 and engine.threads is Threads.FUNNELED:
            raise RuntimeError("the operation needs an MPI that lets any thread call it")
        if collective.in_place:
            shapes = tuple([tensor.shape for tensor in tensors])
            flat = _array(data[0], TensorType(tensors[0].dtype, (sum(map(elements, shapes)),)))
            parts = collective.start_in_place(flat, shapes)
        else:
            arrays = [_array(data[index], tensor) for index, tensor in enumerate(tensors)]
            parts = collective.start(arrays)
        for handle in parts:
            self.handles.append(handle)

    def results(self) -> List[Array]:
        """Return what is to be stored.  Raises what the collective raises."""
        if self.error is not None:
            raise self.error
        assert self.collective is not None
        results = self.collective.results(self.handles)
        return [] if self.collective.in_place else results


class _Library:
    """The library, loaded into TensorFlow, and the thread that serves its collectives."""

    def __init__(self, home: str) -> None:
        """Load it.  Raises what TensorFlow raises for a library that it cannot load."""
        path = os.path.join(home, OPERATION_LIBRARY)
        self._operations = tf.load_op_library(path)
        # What may take time is called without Python's lock, all else with it.
        self._waiting, self._quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        for functions in (self._waiting, self._quick):
            functions.ddlt_take.restype = ctypes.c_void_p
        self._quick.ddlt_allocate.restype = ctypes.c_void_p
        self._under_way: Dict[int, _Request] = {}
        self._done: Deque[int] = collections.deque()  # addresses of requests; some come twice
        interface = self._quick.ddlt_open()
        if interface != INTERFACE:
            raise EngineUnavailableError(f"{path} has interface {interface}, not {INTERFACE}")
        threading.Thread(target=self._serve, name="tensorflow op", daemon=True).start()

    def node(self, **arguments: Any) -> Any:
        """Add the operation to a graph; return its results."""
        token = self._operations.distributed_dl_token()
        return self._operations.distributed_dl_collective(token=token, **arguments)

    def _serve(self) -> None:
        text, length = ctypes.c_char_p(), ctypes.c_int64()
        numbers, data = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)()
        fields = [ctypes.byref(field) for field in (text, length, numbers, data)]
        while True:
            address = self._waiting.ddlt_take(1, *fields)
            while address:
                tensors = ctypes.string_at(numbers, 8 * length.value)
                self._start(address, text.value or b"", tensors, data)
                address = self._quick.ddlt_take(0, *fields)
            self._complete_all()

    def _start(self, address: int, text: bytes, numbers: bytes, data: Any) -> None:
        request = self._under_way[address] = _Request(address)
        try:
            request.start(text.decode(), _tensors(numbers), data)
        except Exception as error:
            request.error = error
        for handle in request.handles:
            handle.notify = functools.partial(self._notify, address)
        self._done.append(address)  # they may have been done before

    def _notify(self, address: int) -> None:
        self._done.append(address)
        self._quick.ddlt_wake()

    def _complete_all(self) -> None:
        """Complete what is done."""
        addresses, codes, messages = [], [], []
        while self._done:
            request = self._under_way.get(self._done.popleft())
            if request is not None and all(handle.done for handle in request.handles):
                del self._under_way[request.address]
                code, message = self._store_results(request)
                addresses.append(request.address)
                codes.append(code)
                messages.append(message.encode())
        if addresses:
            count = len(addresses)
            self._waiting.ddlt_complete(
                count,
                (ctypes.c_void_p * count)(*addresses),
                (ctypes.c_int * count)(*codes),
                (ctypes.c_char_p * count)(*messages),
            )

    def _store_results(self, request: _Request) -> Tuple[int, str]:
        """Give the library the results; return the code of an error, or 0, and its message."""
        try:
            for index, result in enumerate(request.results()):
                shape = (ctypes.c_int64 * result.ndim)(*result.shape)
                handle = ctypes.c_void_p(request.address)
                memory = self._quick.ddlt_allocate(handle, index, result.ndim, shape)
                if result.size:
                    _array(memory, TensorType(result.dtype, result.shape))[...] = result
        except Exception as error:
            return error_code(error), f"{type(error).__name__}: {error}"
        return 0, ""


@functools.lru_cache(maxsize=None)
def _library(home: str) -> _Library:
    return _Library(home)


def error_code(error: Exception) -> int:
    """Return the code of TensorFlow's errors for an exception."""
    if isinstance(error, (TypeError, ValueError)):
        return INVALID_ARGUMENT
    if isinstance(error, MismatchError):
        return FAILED_PRECONDITION
    return UNIMPLEMENTED if isinstance(error, NotImplementedError) else UNKNOWN


@functools.lru_cache(maxsize=1 << 12)
def _tensors(numbers: bytes) -> Sequence[TensorType]:
    """Return the tensors that the library's numbers describe."""
    values = numpy.frombuffer(numbers, numpy.int64).tolist()
    tensors, index = [], 0
    while index < len(values):
        code, dimensions = values[index : index + 2]
        index += 2
        dtype = numpy.dtype(tf.as_dtype(code).as_numpy_dtype)
        tensors.append(TensorType(dtype, tuple(values[index : index + dimensions])))
        index += dimensions
    return tensors


def _array(address: Optional[int], tensor: TensorType) -> Array:
    """Return the memory at an address as an array."""
    nbytes = elements(tensor.shape) * tensor.dtype.itemsize
    if not nbytes:
        return numpy.empty(tensor.shape, tensor.dtype)
    memory = (ctypes.c_char * nbytes).from_address(address or 0)
    array: Array = numpy.frombuffer(memory, numpy.uint8).view(tensor.dtype)
    return array.reshape(tensor.shape)
