"""Broadcast of variables and objects from one rank."""

from typing import Any, Callable, List, Optional, Sequence

import tensorflow as tf

from distributed_dl_training import _objects
from distributed_dl_training import numpy as arrays
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._movement import broadcast_all


def broadcast_variables(
    variables: Sequence[Any],
    root_rank: int = 0,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Any:
    """Replace variables on every rank by the root's; return the operation in a graph.

    variables: of TensorFlow or Keras, the same on all ranks in the same order.  Variables of
        strings are not broadcast.
    inplace: Horovod's, without effect.

    Raises as ``broadcast``.
    """
    numeric = [variable for variable in variables if _is_numeric(variable)]
    name = None if tf.executing_eagerly() else "variables"
    values = broadcast_all([_value(variable) for variable in numeric], root_rank, name, process_set)
    if tf.executing_eagerly():
        for variable, value in zip(numeric, values):
            variable.assign(value)
        return None
    updates = [_assign(variable, value) for variable, value in zip(numeric, values)]
    return tf.group(*[update for update in updates if update is not None])


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Replace variables on every rank by the root's; return their values."""
    values = broadcast_all(
        [_value(variable) for variable in variables], root_rank, name, process_set
    )
    updates = [variable.assign(value) for variable, value in zip(variables, values)]
    if tf.executing_eagerly():
        updates = []
    with tf.control_dependencies([update for update in updates if update is not None]):
        return [tf.identity(_value(variable)) for variable in variables]


def broadcast_global_variables(root_rank: int) -> Any:
    """Return the operation that replaces all global variables by the root's.

    Raises RuntimeError in eager mode, which has no global variables: use ``broadcast_variables``.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "there are no global variables in eager mode: call "
            "broadcast_variables(model.variables, root_rank)"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Broadcasts the root's variables when a session starts, also from a checkpoint."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        """device: Horovod's, without effect."""
        super().__init__()
        self.root_rank = root_rank
        self.bcast_op: Any = None
        self.device = device

    def begin(self) -> None:
        """Add the operation to the graph, once for each graph."""
        graph = tf.compat.v1.get_default_graph()
        if self.bcast_op is None or self.bcast_op.graph is not graph:
            self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Run the operation."""
        session.run(self.bcast_op)


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the root's ``obj`` on every rank, by pickle; no session of TensorFlow is needed."""
    return _objects.broadcast(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """Return a function of an object that calls ``broadcast_object``."""

    def broadcast_argument(obj: Any) -> Any:
        return broadcast_object(obj, root_rank, session, name, process_set)

    return broadcast_argument


def allgather_object(
    obj: Any,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Return every rank's ``obj``, by pickle, in rank order."""
    return arrays.allgather_object(obj, name, process_set)


def _is_numeric(variable: Any) -> bool:
    """Tell whether a variable has a numeric dtype; Keras 3 has variables of strings."""
    return "string" not in str(getattr(variable, "dtype", ""))


def _value(variable: Any) -> Any:
    if hasattr(variable, "read_value"):
        return variable.read_value()
    return tf.convert_to_tensor(getattr(variable, "value", variable))


def _assign(variable: Any, value: Any) -> Any:
    """Return the operation that sets a variable; None for Keras 3, whose graphs run it anyway."""
    update = variable.assign(tf.ensure_shape(value, variable.shape))
    return getattr(update, "op", update)
