"""A throwaway framework, as an MPI program: numpy, a gradient written by hand, and the whole seam.

    mpiexec -n 2 python second_framework.py

What torch's optimizer has of grouping, arena, late parameters, layouts and broadcast it gets by an
adapter of its own and the surface of one small optimizer.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _arena, _collectives, _gradients


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

    def read(self, tensor: Any) -> Any:
        return _collectives.Local(tensor.reshape(-1), tensor.shape, tensor.dtype.name)

    def write(self, tensor: Any) -> Any:
        return tensor.reshape(-1) if tensor.flags.c_contiguous else None

    def make(self, flat: Any, shape: Tuple[int, ...], like: Any) -> Any:
        return flat.reshape(shape)

    def put(self, tensor: Any, value: Any) -> None:
        tensor[...] = value


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
    """The optimizer: gradient descent, distributed if it has gradients that are."""

    def __init__(self, named: Dict[str, Parameter], distribute: bool, **options: Any) -> None:
        self.named = named
        self.gradients: Any = None
        if distribute:
            parameters = list(named.values())
            made = _gradients.Options(
                NoCompression,
                options.get("passes", 1),
                hvd.Average,
                (1.0, 1.0),
                False,
                hvd.global_process_set,
            )
            framework: Any = Parameters()
            pairs = _gradients.name_parameters(parameters, named.items())
            groups = _gradients.form_groups(
                parameters, options.get("groups", 0), None, framework.trains
            )
            self.gradients = _gradients.Gradients(framework, pairs, groups, made)

    def step(self) -> None:
        if self.gradients is not None:
            self.gradients.add(self.named.values())
            self.gradients.synchronize()
        for parameter in self.named.values():
            if parameter.grad is not None:
                parameter.values -= 0.125 * parameter.grad
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


def trained(distribute: bool, **options: Any) -> Dict[str, Parameter]:
    """Train with a bias that is frozen at first, and one parameter that is never used."""
    named = {
        "weight": Parameter([0.5, -1.0, 2.0]),
        "bias": Parameter([1.0], trains=False),
        "unused": Parameter([4.0]),
    }
    optimizer = Descent(named, distribute, **options)
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
    values = np.full(3, float(hvd.rank()))
    handle = _collectives.broadcast(Arrays(), values, hvd.size() - 1, "start", in_place=True)
    assert handle.synchronize() is values and values[0] == hvd.size() - 1
    hvd.barrier()
    print("the second framework trains")


if __name__ == "__main__":
    main()
