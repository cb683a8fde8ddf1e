"""What all ranks start from: variables and objects, broadcast from one rank."""

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
    """Give every rank the root's values; return the operation where there is a graph.

    variables: of TensorFlow or Keras, the same on all ranks in the same order.  Those without
        numbers, such as the state of a random generator, are broadcast as well.
    inplace: Horovod's, without effect.

    Raises as ``broadcast``.
    """
    own = [variable for variable in variables if _travels(variable)]
    name = None if tf.executing_eagerly() else "variables"
    values = broadcast_all([_value(each) for each in own], root_rank, name, process_set)
    if tf.executing_eagerly():
        for variable, value in zip(own, values):
            variable.assign(value)
        return None
    updates = [_assign(variable, value) for variable, value in zip(own, values)]
    return tf.group(*[update for update in updates if update is not None])


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Give every rank the root's values; return the values of the variables."""
    values = broadcast_all([_value(each) for each in variables], root_rank, name, process_set)
    updates = [variable.assign(value) for variable, value in zip(variables, values)]
    if tf.executing_eagerly():
        updates = []
    with tf.control_dependencies([update for update in updates if update is not None]):
        return [tf.identity(_value(variable)) for variable in variables]


def broadcast_global_variables(root_rank: int) -> Any:
    """Return the operation that gives every rank the root's values of all global variables.

    Raises RuntimeError in eager mode, in which there are none: use ``broadcast_variables``.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "there are no global variables in eager mode: call "
            "broadcast_variables(model.variables, root_rank)"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Gives every rank the root's values when a session is made, also from a checkpoint."""

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
    """Return a function that does what ``broadcast_object`` does."""

    def broadcast_given(obj: Any) -> Any:
        return broadcast_object(obj, root_rank, session, name, process_set)

    return broadcast_given


def allgather_object(
    obj: Any,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Return every rank's ``obj``, by pickle, in rank order."""
    return arrays.allgather_object(obj, name, process_set)


def _travels(variable: Any) -> bool:
    """Tell whether a variable has numbers; Keras 3 has variables of strings."""
    return "string" not in str(getattr(variable, "dtype", ""))


def _value(variable: Any) -> Any:
    if hasattr(variable, "read_value"):
        return variable.read_value()
    return tf.convert_to_tensor(getattr(variable, "value", variable))


def _assign(variable: Any, value: Any) -> Any:
    """Return the operation that sets a variable; None for Keras 3, whose graphs run it anyway."""
    update = variable.assign(tf.ensure_shape(value, variable.shape))
    return getattr(update, "op", update)
