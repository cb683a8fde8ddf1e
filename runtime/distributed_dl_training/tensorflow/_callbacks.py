"""Base classes of the callbacks; the modules of Keras 2 and 3 add their own Callback."""

import sys
import warnings
from typing import Any, Callable, Dict, Iterable, Optional, Union

import numpy
import tensorflow as tf

from distributed_dl_training import _facts
from distributed_dl_training import numpy as arrays
from distributed_dl_training.tensorflow._variables import (
    broadcast_global_variables,
    broadcast_variables,
)


class BroadcastGlobalVariables:
    """Broadcasts the root's variables after the first batch, when all of them exist."""

    model: Any

    def __init__(
        self, root_rank: int = 0, device: str = "", local_variables: Iterable[Any] = ()
    ) -> None:
        """local_variables: are not broadcast; device: Horovod's, without effect."""
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False
        self._local = list(local_variables or ())

    def register_local_var(self, variable: Any) -> None:
        """Do not broadcast a local variable."""
        self._local.append(variable)

    def on_batch_end(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Broadcast once."""
        if self.broadcast_done:
            return
        self.broadcast_done = True
        if not tf.executing_eagerly():
            session = tf.compat.v1.keras.backend.get_session()
            session.run(broadcast_global_variables(self.root_rank))
            return
        local = {id(variable) for variable in self._local}
        state = _variables_of(self.model.optimizer)
        distinct = {id(variable): variable for variable in [*self.model.variables, *state]}
        shared = [variable for key, variable in distinct.items() if key not in local]
        broadcast_variables(shared, self.root_rank)


def _variables_of(optimizer: Any) -> Iterable[Any]:
    """Return an optimizer's variables: a method up to Keras 2, a property of Keras 3."""
    variables = getattr(optimizer, "variables", ())
    result: Iterable[Any] = variables() if callable(variables) else variables
    return result


class MetricAverage:
    """Averages the metrics of an epoch over all ranks; put it before callbacks that read them."""

    def __init__(self, device: str = "") -> None:
        """device: Horovod's, without effect."""
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Replace the values in ``logs`` by their averages."""
        metrics = {} if logs is None else logs
        names = sorted(metrics)
        values = numpy.array([float(metrics[name]) for name in names], dtype=numpy.float64)
        averages = arrays.allreduce(values, name=f"metrics.{'.'.join(names)}")
        for name, value in zip(names, averages):
            metrics[name] = float(value)


class LearningRateSchedule:
    """Multiplies the initial learning rate by a factor that depends on the epoch.

    Momentum is corrected for a changed rate (Goyal et al. 2017, section 2.2) where the optimizer
    keeps it in a variable.  Keras 3 keeps a number, which a compiled step does not read again.
    """

    model: Any
    params: Dict[str, Any]

    def __init__(
        self,
        initial_lr: float,
        multiplier: Union[float, Callable[[float], float]],
        start_epoch: int = 0,
        end_epoch: Optional[int] = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
    ) -> None:
        """Configure the schedule.

        multiplier: a function of the epoch, or the factor for each epoch after ``start_epoch``.
        staircase: change the rate once an epoch, else with each batch.
        steps_per_epoch: required without staircase if Keras does not report it.

        Raises ValueError if ``initial_lr`` is None.
        """
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is needed")
        if not callable(multiplier):
            factor = multiplier
            multiplier = lambda epoch: factor ** (epoch - start_epoch)  # noqa: E731
        self.initial_lr = initial_lr
        self.multiplier = multiplier
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self._momentum: Optional[float] = None

    def on_train_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Set the number of steps.  Raises ValueError if it is required and unknown."""
        if self.steps_per_epoch is None:
            self.steps_per_epoch = self.params.get("steps")
        if not self.staircase and not self.steps_per_epoch:
            raise ValueError(f"{type(self).__name__} needs steps_per_epoch here")

    def on_epoch_begin(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Store the epoch."""
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Set the learning rate."""
        if self.current_epoch < self.start_epoch:
            return
        if self.end_epoch is not None and self.current_epoch >= self.end_epoch:
            return
        if not self.staircase:
            assert self.steps_per_epoch
            self._adjust(self.current_epoch + batch / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(self.current_epoch)

    def on_batch_end(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Restore the momentum."""
        if self._momentum is not None:
            write_number(self.model.optimizer, "momentum", self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Log the rate as ``lr``."""
        if logs is not None:
            logs["lr"] = read_number(self.model.optimizer, "learning_rate")

    def _adjust(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        before = read_number(optimizer, "learning_rate")
        rate = self.initial_lr * self.multiplier(epoch)
        write_number(optimizer, "learning_rate", rate)
        if not self.momentum_correction or not hasattr(optimizer, "momentum"):
            return
        if isinstance(optimizer.momentum, (int, float)):
            if optimizer.momentum and epoch == self.start_epoch:
                text = "this Keras does not allow to correct the momentum for a changed rate"
                warnings.warn(text, stacklevel=2)
            return
        self._momentum = read_number(optimizer, "momentum")
        write_number(optimizer, "momentum", self._momentum * rate / before)


class LearningRateWarmup(LearningRateSchedule):
    """Raises the rate from initial_lr / size() to initial_lr over the first epochs."""

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
        verbose: int = 0,
    ) -> None:
        """Configure the warm-up; verbose: whether rank 0 prints the end of the warm-up."""

        def multiplier(epoch: float) -> float:
            size = _facts.size()
            assert self.steps_per_epoch
            progress = epoch + 1.0 / self.steps_per_epoch  # whole numbers at the end of an epoch
            return (progress * (size - 1) / warmup_epochs + 1) / size

        super().__init__(
            initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Log the rate, and print it at the end of the warm-up."""
        super().on_epoch_end(epoch, logs)
        assert self.end_epoch is not None
        if epoch == self.end_epoch - 1 and self.verbose and _facts.rank() == 0:
            rate = read_number(self.model.optimizer, "learning_rate")
            sys.stdout.write(f"\nEpoch {epoch + 1}: the learning rate is warmed up to {rate:g}\n")


class BestModel:
    """Saves the best model of each rank; Horovod on Spark sets ``filepath`` later."""

    def __init__(self, monitor: str = "val_loss", verbose: int = 0, mode: str = "auto") -> None:
        """See ``ModelCheckpoint`` of Keras."""
        path = "best.keras" if int(tf.keras.__version__.split(".")[0]) > 2 else ""
        super().__init__(  # type: ignore[call-arg]
            filepath=path, monitor=monitor, verbose=verbose, save_best_only=True, mode=mode
        )


def read_number(optimizer: Any, name: str) -> float:
    """Return the value of an optimizer's variable."""
    value = getattr(optimizer, name)
    if not tf.executing_eagerly():
        return float(tf.compat.v1.keras.backend.get_value(value))
    return float(numpy.asarray(value))


def write_number(optimizer: Any, name: str, value: float) -> None:
    """Set an optimizer's variable."""
    if not tf.executing_eagerly():
        tf.compat.v1.keras.backend.set_value(getattr(optimizer, name), value)
    else:
        getattr(optimizer, name).assign(value)
