"""Reduction of the gradients of an optimizer or tape: options, local variables and groups."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

import tensorflow as tf

from distributed_dl_training._core import Op
from distributed_dl_training._horovod import operation
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._reductions import grouped_allreduce


class Options(NamedTuple):
    """Options of the reduction of gradients; see ``DistributedOptimizer``.

    groups: None, a number of groups, or lists of variables.
    """

    compression: Any = Compression.none
    sparse_as_dense: bool = False
    op: Any = Op.AVERAGE
    predivide: float = 1.0
    groups: Any = None
    process_set: ProcessSet = global_process_set
    scale_local: bool = True


def make_options(
    compression: Any,
    sparse_as_dense: bool,
    op: Any,
    gradient_predivide_factor: float,
    num_groups: int,
    groups: Any,
    process_set: ProcessSet,
    scale_local_gradients: bool,
) -> Options:
    """Check the options and return them.

    Raises ValueError for a factor with another op than Average, and for groups that are neither a
    positive number nor lists of variables.
    """
    operator = operation(op)
    if gradient_predivide_factor != 1.0 and operator is not Op.AVERAGE:
        raise ValueError("gradient_predivide_factor requires op=Average")
    if num_groups and groups is None:
        groups = num_groups
    if groups is not None and not isinstance(groups, list) and not groups > 0:
        raise ValueError(f"groups is a positive number or lists of variables, not {groups!r}")
    return Options(
        compression,
        sparse_as_dense,
        operator,
        gradient_predivide_factor,
        groups,
        process_set,
        scale_local_gradients,
    )


_numbers: Dict[str, int] = {}


class GradientReducer:
    """Reduces the gradients of one optimizer or tape.

    Several of one name are numbered in the order in which they are made, which is the same in
    equal programs; so a graph that only one rank traces again keeps its names.
    """

    def __init__(self, name: str, options: Options) -> None:
        _numbers[name] = _numbers.get(name, 0) + 1
        self.name = f"{name}.{_numbers[name]}"
        self.options = options
        self._local: Set[int] = set()
        self._references: List[Any] = []  # keeps the ids of local variables unique

    def add_local(self, variable: Any) -> None:
        """Do not reduce the gradients of a local variable."""
        self._local.add(id(variable))
        self._references.append(variable)

    def is_local(self, variable: Any) -> bool:
        """Tell whether a variable is local to this rank."""
        return id(variable) in self._local

    def reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """Return the gradients, reduced; None stays None.

        A local variable's gradient is divided by the number of ranks unless ``scale_local`` is
        off, as the loss of each rank is its own (horovod/tensorflow/__init__.py:795 of 0.28.1).
        A rank outside the process set keeps its gradients.
        """
        results = list(gradients)
        process_set = self.options.process_set
        if not process_set.included():
            return results
        shared = []
        for index, (gradient, variable) in enumerate(zip(gradients, variables)):
            if gradient is None:
                continue
            if not self.is_local(variable):
                shared.append(index)
            elif self.options.scale_local:
                results[index] = _divide(gradient, process_set.size())
        for number, group in enumerate(self._groups(shared, variables)):
            outputs = self._reduce_group([gradients[index] for index in group], number)
            for index, output in zip(group, outputs):
                results[index] = output
        return results

    def _groups(self, indices: List[int], variables: Sequence[Any]) -> List[List[int]]:
        """Return the indices of each group of gradients; one group unless groups are requested."""
        groups = self.options.groups
        if groups is None or not indices:
            return [indices] if indices else []
        if not isinstance(groups, list):
            length = -(-len(indices) // int(groups))
            return [indices[start : start + length] for start in range(0, len(indices), length)]
        by_variable = {id(variables[index]): index for index in indices}
        requested = [
            [by_variable.pop(id(variable)) for variable in group if id(variable) in by_variable]
            for group in groups
        ]
        return [group for group in requested if group] + [
            [index] for index in sorted(by_variable.values())
        ]

    def _reduce_group(self, gradients: List[Any], number: int) -> List[Any]:
        options = self.options
        if options.sparse_as_dense:
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        factors = (1.0, 1.0)
        if options.predivide != 1.0:
            factors = (1.0 / options.predivide, options.predivide)
        name: Optional[str] = None if tf.executing_eagerly() else f"{self.name}.{number}"
        return grouped_allreduce(
            gradients,
            compression=options.compression,
            op=options.op,
            prescale_factor=factors[0],
            postscale_factor=factors[1],
            process_set=options.process_set,
            name=name,
        )


def _divide(gradient: Any, divisor: int) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values / tf.cast(divisor, gradient.values.dtype)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient / tf.cast(divisor, gradient.dtype)
