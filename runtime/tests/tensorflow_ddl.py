"""What programs written for IBM DDL call, as an MPI program; run with the alias ddl on the path."""

import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import ddl
import numpy as np
import tensorflow as tf

import distributed_dl_training.tensorflow as hvd

v1 = tf.compat.v1
RANK, SIZE = ddl.rank(), ddl.size()
MEAN = (SIZE + 1) / 2  # of rank + 1


def value(tensor: Any) -> Any:
    """Return the value of a tensor, in TensorFlow 1 by a session of its graph."""
    if tf.executing_eagerly():
        return np.asarray(tensor)
    with v1.Session(graph=tensor.graph) as session:
        return session.run(tensor)


def places_are_those_of_the_runtime() -> None:
    assert (RANK, SIZE, ddl.local_rank()) == (hvd.rank(), hvd.size(), hvd.local_rank())
    assert ddl.num_hosts() == hvd.cross_size() and ddl.__ddlt_alias__


def sessions_train_alike() -> None:
    for wrap in (lambda optimizer: optimizer, hvd.DistributedOptimizer):
        with tf.Graph().as_default(), v1.Session() as session:
            weight = v1.get_variable("weight", initializer=float(RANK + 1))
            optimizer = wrap(v1.train.GradientDescentOptimizer(0.5))
            train = optimizer.minimize(weight * (RANK + 1.0))
            session.run(v1.global_variables_initializer())
            assert session.run(weight) == 1.0  # that of rank 0
            for step in (1, 2):
                session.run(train)
                assert abs(session.run(weight) - (1.0 - 0.5 * step * MEAN)) < 1e-6


def eager_optimizers_train_alike() -> None:
    if not tf.executing_eagerly():
        return
    weight = v1.Variable(RANK + 1.0)
    optimizer = v1.train.GradientDescentOptimizer(0.5)
    for step in (1, 2):
        optimizer.apply_gradients([(tf.constant(RANK + 1.0), weight)])
        assert abs(float(weight) - (1.0 - 0.5 * step * MEAN)) < 1e-6


def make_model(optimizer: Any, first: float) -> Any:
    layer = tf.keras.layers.Dense(1, use_bias=False, input_shape=(2,))
    model = tf.keras.Sequential([layer])
    model.set_weights([np.full((2, 1), first)])
    model.compile(optimizer, loss="mse")
    return model


def fitted_models_train_alike() -> None:
    """From the weights of rank 0, as one rank does that has all rows in a batch."""
    x = np.random.RandomState(0).randn(4 * SIZE, 2)
    y = np.ones((4 * SIZE, 1))
    start = np.full((2, 1), 1.0)
    expected = start - 0.1 * 2 / len(x) * x.T @ (x @ start - y)
    rows = slice(4 * RANK, 4 * RANK + 4)
    model = make_model(tf.keras.optimizers.SGD(0.1), RANK + 1.0)
    callbacks = [ddl.DDLCallback(), ddl.DDLGlobalVariablesCallback()]
    options = {"batch_size": 4, "epochs": 1, "shuffle": False, "verbose": 0}
    history = model.fit(x[rows], y[rows], callbacks=callbacks, **options).history
    np.testing.assert_allclose(model.get_weights()[0], expected, rtol=1e-5)
    np.testing.assert_allclose(history["loss"], [np.mean((x @ start - y) ** 2)], rtol=1e-5)


def optimizers_are_distributed_once() -> None:
    for optimizer in ("sgd", hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1))):
        assert hasattr(make_model(optimizer, 1.0).optimizer, "_ddlt_reducer")


def init_leaves_all_to_the_program() -> None:
    ddl.init("-mode p:2x1")
    assert not hasattr(make_model("sgd", 1.0).optimizer, "_ddlt_reducer")
    with tf.Graph().as_default():
        assert value(ddl.bcast(tf.constant(RANK + 1.0))) == 1.0
        (average,) = ddl.allreduce_n([tf.constant(RANK + 1.0)])
        assert value(average) == MEAN
        first, second = ddl.allreduce_n([tf.constant(RANK + 1.0), tf.constant([1])], average=False)
        weight = v1.get_variable("weight", initializer=0.0)
        [(gradient, variable)] = ddl.grads_reduce([(tf.constant(RANK + 1.0), weight)])
        assert variable is weight and value(gradient) == MEAN
        with v1.Session() as session:  # both at once: they are one exchange
            assert session.run([first, second]) == [SIZE * MEAN, [SIZE]]


CASES = (
    places_are_those_of_the_runtime,
    sessions_train_alike,
    eager_optimizers_train_alike,
    fitted_models_train_alike,
    optimizers_are_distributed_once,
    init_leaves_all_to_the_program,
)
for case in CASES:
    case()
sys.stdout.write(f"passed {len(CASES)}\n")
