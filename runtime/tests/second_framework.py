"""A throwaway framework, as an MPI program: numpy, a gradient written by hand, and the whole seam.

    mpiexec -n 2 python second_framework.py

What torch's optimizer has of grouping, arena, late parameters, layouts, steps and broadcast it gets
by an adapter of its own and the surface of one small optimizer.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _arena, _collectives, _state, _steps
from distributed_dl_training._gradients import Options


class Parameter:
    """Values, a gradient, and who wants to know of it."""

    def __init__(self, values: Any, trains: bool = True) -> None:
        self.values = np.array(values, dtype=np.float64)
        self.grad: Optional[Any] = None
        self.trains = trains
        self.hooks: List[Callable[[Any], None]] = []

    def add(self, gradient: Any) -> None:
        """Accumulate a gradient, as a backward pass does."""
        if self.grad is None:
            self.grad = np.array(gradient)
        else:
            self.grad += gradient
        for hook in list(self.hooks):
            hook(self)


class Arrays:
    """numpy arrays that are changed in place; see ``_collectives.Adapter``."""

    views = True

    def read(self, tensor: Any) -> Any:
        return _collectives.Local(tensor.reshape(-1), tensor.shape, tensor.dtype.name)

    def write(self, tensor: Any) -> Any:
        return tensor.reshape(-1) if tensor.flags.c_contiguous else None

    def make(self, flat: Any, shape: Tuple[int, ...], like: Any) -> Any:
        return flat.reshape(shape)

    def put(self, tensor: Any, value: Any) -> None:
        tensor[...] = value

    # See ``_state.StateTensors``.

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def describe(self, tensor: Any) -> Any:
        return tensor.dtype, tensor.shape

    def empty(self, description: Any) -> Any:
        dtype, shape = description
        return np.empty(shape, dtype=dtype)


class Parameters:
    """See ``_gradients.Parameters``; nothing is sparse here."""

    adapter = Arrays()

    def trains(self, parameter: Any) -> bool:
        return bool(parameter.trains)

    def watch(self, parameter: Any, arrived: Callable[[Any], None]) -> Callable[[], None]:
        parameter.hooks.append(arrived)
        return lambda: parameter.hooks.remove(arrived)

    def gradient(self, parameter: Any) -> Any:
        return parameter.grad

    def put_gradient(self, parameter: Any, gradient: Any) -> None:
        parameter.grad = gradient

    def copy(self, target: Any, source: Optional[Any]) -> None:
        target[...] = 0 if source is None else source

    def sparse_dims(self, gradient: Any) -> int:
        return 0

    def zeros(self, parameter: Any, sparse_dims: int) -> Any:
        return np.zeros_like(parameter.values)

    def layout(self, parameter: Any) -> Any:
        values = parameter.values
        return _arena.Layout(
            values.dtype, values.size, values.itemsize, values.shape, values.dtype.name
        )

    def allocate(self, parameter: Any, count: int) -> Any:
        made = np.empty(count, dtype=parameter.values.dtype)
        return _arena.Memory(made, made)

    def view(self, tensor: Any, parameter: Any) -> Any:
        return tensor.reshape(parameter.values.shape)

    def fits(self, gradient: Optional[Any], parameter: Any) -> bool:
        return True


class NoCompression:
    @staticmethod
    def compress(tensor: Any) -> Any:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tensor


class Descent:
    """The optimizer: gradient descent with momentum, distributed if it has steps that are."""

    def __init__(self, named: Dict[str, Parameter], distribute: bool, **options: Any) -> None:
        self.named = named
        self.rate = 0.125
        self.momentum: Dict[str, Any] = {}
        self.steps: Any = None
        if distribute:
            passes, all_ranks = options.get("passes", 1), hvd.global_process_set
            how = Options(NoCompression, passes, hvd.Average, (1.0, 1.0), False, all_ranks)
            parameters, groups = list(named.values()), options.get("groups", 0)
            made = _steps.recipe(Parameters(), parameters, named.items(), how, groups)
            self.steps = _steps.Steps(made)
            self.steps.open()

    def state(self) -> Any:
        return {"rate": self.rate, "momentum": self.momentum}

    def load(self, state: Any) -> None:
        self.rate, self.momentum = state["rate"], state["momentum"]

    def step(self) -> None:
        if self.steps is not None:
            self.steps.before_step(self.named.values())
        for name, parameter in self.named.items():
            if parameter.grad is not None:
                held = self.momentum.setdefault(name, np.zeros_like(parameter.values))
                held *= 0.5
                held += parameter.grad
                parameter.values -= self.rate * held
        self.reset()

    def reset(self) -> None:
        if self.steps is not None:
            self.steps.refuse_reset()
        for parameter in self.named.values():
            parameter.grad = None


def rows(step: int) -> Any:
    """Return what all ranks together learn from: exact in binary."""
    count = 4 * hvd.size()
    return (np.arange(count * 3).reshape(count, 3) * (step + 3) % 7 - 3) / 8.0


def backward(named: Dict[str, Parameter], x: Any) -> None:
    """Give the gradients of mean((x w + b)^2), last layer first."""
    error = x @ named["weight"].values + named["bias"].values
    if named["bias"].trains:
        named["bias"].add(np.array([2 * error.mean()]))
    named["weight"].add(2 * (x * error[:, None]).mean(0))


def start_alike(named: Dict[str, Parameter], optimizer: Descent) -> None:
    """Give all ranks the last one's values and state."""
    root, tensors = hvd.size() - 1, Arrays()
    values = {name: parameter.values for name, parameter in named.items()}
    _state.broadcast_named(tensors, values, root, hvd.global_process_set)
    mine = optimizer.state()
    state = _state.broadcast_state(tensors, mine, root, hvd.global_process_set)
    assert (state is mine) == (hvd.rank() == root)
    optimizer.load(state)


def trained(distribute: bool, **options: Any) -> Dict[str, Parameter]:
    """Train with a bias that is frozen at first, and one parameter that is never used.

    Distributed, only the last rank begins with what all are to begin with.
    """
    wrong = distribute and hvd.rank() < hvd.size() - 1
    named = {
        "weight": Parameter(np.array([0.5, -1.0, 2.0]) + wrong),
        "bias": Parameter([1.0 + wrong], trains=False),
        "unused": Parameter([4.0 + wrong]),
    }
    optimizer = Descent(named, distribute, **options)
    if not wrong:
        optimizer.momentum["weight"] = np.array([1.0, 0.0, -1.0])
    if distribute:
        optimizer.rate += wrong
        start_alike(named, optimizer)
    passes = options.get("passes", 1)
    for step in range(6):
        named["bias"].trains = step >= 2
        x = rows(step)
        if distribute:
            x = x.reshape(hvd.size(), -1, 3)[hvd.rank()]
        for part in np.split(x, passes):
            backward(named, part)
        optimizer.step()
    return named


def refused_reset() -> None:
    """Gradients that are being reduced are not set to zero; skipped, they are taken as they are."""
    named = {"weight": Parameter([1.0])}
    optimizer = Descent(named, True)
    named["weight"].add(np.array([float(hvd.rank())]))
    try:
        optimizer.reset()
    except AssertionError as error:
        assert "zero_grad()" in str(error)
    else:
        raise AssertionError("no error")
    optimizer.steps.synchronize(named.values())
    with optimizer.steps.skip():
        named["weight"].grad *= 2
        optimizer.step()
    mean = sum(range(hvd.size())) / hvd.size()
    assert named["weight"].values.tolist() == [1.0 - 0.125 * 2 * mean]


def main() -> None:
    hvd.init()
    alone = trained(False)
    for options in ({}, {"groups": 1}):
        ours = trained(True, **options)
        for name, parameter in ours.items():
            np.testing.assert_allclose(parameter.values, alone[name].values, rtol=1e-12)
    twice, both = trained(False, passes=2), trained(True, passes=2)
    np.testing.assert_allclose(both["weight"].values, twice["weight"].values, rtol=1e-12)
    # A parameter that was watched by an optimizer that is gone has no hooks left.
    assert all(not parameter.hooks for parameter in both.values())
    refused_reset()
    values = np.full(3, float(hvd.rank()))
    handle = _collectives.broadcast(Arrays(), values, hvd.size() - 1, "start", in_place=True)
    assert handle.synchronize() is values and values[0] == hvd.size() - 1
    hvd.barrier()
    print("the second framework trains")


if __name__ == "__main__":
    main()
