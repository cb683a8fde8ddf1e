"""Training with ``distributed_dl_training.tensorflow``, as an MPI program.

    mpiexec -n 2 python tensorflow_training.py [NAME ...]

Ranks that train on their shares of a batch get the weights of one that trains on the whole.
"""

import os
import sys
import tempfile
from typing import Any, Callable, Dict, List, Tuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import distributed_dl_training.tensorflow as hvd

CASES: Dict[str, Callable[[], None]] = {}
EAGER = tf.executing_eagerly()
ROUNDING = 1e-5  # of float32, relative


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def eager(function: Callable[[], None]) -> Callable[[], None]:
    """Register a case of the eager mode; TensorFlow 1 skips it."""
    return case(function) if EAGER else function


def batch(step: int) -> Tuple[Any, Any]:
    """Return one batch of 24 rows for all ranks together."""
    x = np.random.RandomState(step).randn(24, 5).astype(np.float32)
    return x, np.sin(x).sum(1, keepdims=True).astype(np.float32)


def share(array: Any) -> Any:
    rows = array.shape[0] // hvd.size()
    return array[hvd.rank() * rows : (hvd.rank() + 1) * rows]


def network(seed: int = 3) -> Any:
    random = np.random.RandomState(seed)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(7, activation="tanh"), tf.keras.layers.Dense(1)]
    )
    model.build((None, 5))
    model.set_weights(
        [random.randn(*value.shape).astype(np.float32) for value in model.get_weights()]
    )
    return model


def compile_with(model: Any, hvd_keras: Any, optimizer: Any) -> None:
    model.compile(optimizer=hvd_keras.DistributedOptimizer(optimizer), loss="mse")


def assert_close(weights: List[Any], expected: List[Any]) -> None:
    for weight, value in zip(weights, expected):
        np.testing.assert_allclose(weight, value, rtol=ROUNDING, atol=ROUNDING)


def loss_of(model: Any, x: Any, y: Any) -> Any:
    return tf.reduce_mean(tf.square(model(x) - y))


def train_on_one_rank(make: Callable[[], Any], steps: int) -> List[Any]:
    """Train on whole batches without the runtime; return the weights."""
    model, optimizer = network(), make()
    for step in range(steps):
        x, y = batch(step)
        with tf.GradientTape() as tape:
            loss = loss_of(model, x, y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    weights: List[Any] = model.get_weights()
    return weights


OPTIMIZERS = (
    lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9),
    lambda: tf.keras.optimizers.Adam(0.05),
)


@eager
def tapes_train_like_one_rank() -> None:
    for make in OPTIMIZERS:
        for compiled in (False, True):
            model, optimizer = network(), make()

            def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> None:
                with tf.GradientTape() as tape:
                    loss = loss_of(model, x, y)
                tape = hvd.DistributedGradientTape(tape)
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(gradients, model.trainable_variables))

            run = tf.function(step) if compiled else step
            for number in range(4):
                run(*map(tf.constant, map(share, batch(number))))
            assert_close(model.get_weights(), train_on_one_rank(make, 4))


@eager
def groups_give_the_same() -> None:
    model = network()
    x, y = map(share, batch(0))
    variables = model.trainable_variables
    results = []
    for groups in (None, 2, [variables[:1], variables[2:3]]):
        with tf.GradientTape() as tape:
            loss = loss_of(model, x, y)
        tape = hvd.DistributedGradientTape(tape, groups=groups)
        results.append([gradient.numpy() for gradient in tape.gradient(loss, variables)])
    for gradients in results[1:]:
        assert_close(gradients, results[0])


@eager
def local_variables_stay_local() -> None:
    local, shared = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = (local + shared) * (hvd.rank() + 1.0)
    tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
    tape.register_local_source(local)
    local_gradient, shared_gradient = tape.gradient(loss, [local, shared])
    np.testing.assert_allclose(float(local_gradient), (hvd.rank() + 1.0) / hvd.size(), rtol=1e-6)
    assert float(shared_gradient) == hvd.size() * (hvd.size() + 1) / 2


@eager
def fit_trains_like_one_rank() -> None:
    import distributed_dl_training.tensorflow.keras as hvd_keras

    for make in OPTIMIZERS:
        model = network(seed=3 + hvd.rank())  # the callback makes them equal after one batch
        model.set_weights(network().get_weights())
        model.compile(optimizer=hvd_keras.DistributedOptimizer(make()), loss="mse")
        pairs = [batch(number) for number in range(4)]
        x = np.concatenate([share(inputs) for inputs, _ in pairs])
        y = np.concatenate([share(targets) for _, targets in pairs])
        callbacks = [
            hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
            hvd_keras.callbacks.MetricAverageCallback(),
        ]
        rows = 24 // hvd.size()
        history = model.fit(
            x, y, batch_size=rows, epochs=1, shuffle=False, verbose=0, callbacks=callbacks
        )
        assert_close(model.get_weights(), train_on_one_rank(make, 4))
        losses = hvd.allgather_object(history.history["loss"])
        assert all(loss == losses[0] for loss in losses), losses


@eager
def callbacks_broadcast() -> None:
    import distributed_dl_training.tensorflow.keras as hvd_keras

    model = network(seed=hvd.rank())
    compile_with(model, hvd_keras, tf.keras.optimizers.Adam(0.01))
    x, y = map(share, batch(0))
    callback = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
    model.fit(x, y, batch_size=3, epochs=2, verbose=0, callbacks=[callback])
    rank_weights = hvd.allgather_object(model.get_weights())
    for weights in rank_weights[1:]:
        assert_close(weights, rank_weights[0])


@eager
def variables_are_broadcast_in_functions() -> None:
    model, plain = network(seed=hvd.rank()), tf.Variable(float(hvd.rank()))

    @tf.function
    def broadcast() -> None:
        hvd.broadcast_variables([*model.variables, plain], root_rank=hvd.size() - 1)

    broadcast()
    assert_close(model.get_weights(), network(seed=hvd.size() - 1).get_weights())
    assert float(plain) == hvd.size() - 1
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1))
    assert len(optimizer.variables()) > 0


@eager
def rates_follow_schedules() -> None:
    import distributed_dl_training.tensorflow.keras as hvd_keras

    x, y = map(share, batch(0))
    rates = []
    for callback in (
        hvd_keras.callbacks.LearningRateWarmupCallback(0.8, warmup_epochs=2),
        hvd_keras.callbacks.LearningRateScheduleCallback(0.8, 0.5),
    ):
        model = network()
        compile_with(model, hvd_keras, tf.keras.optimizers.SGD(0.8))
        history = model.fit(
            x, y, batch_size=x.shape[0] // 2, epochs=3, verbose=0, callbacks=[callback]
        ).history
        rates.append(history["lr"])
    size = hvd.size()
    np.testing.assert_allclose(rates[0], [0.8 * ((size - 1) / 2 + 1) / size, 0.8, 0.8], rtol=1e-6)
    np.testing.assert_allclose(rates[1], [0.8, 0.4, 0.2], rtol=1e-6)


@eager
def passes_add_up() -> None:
    import distributed_dl_training.tensorflow.keras as hvd_keras

    def make() -> Any:
        return tf.keras.optimizers.SGD(0.05)

    for compiled in (False, True):
        model = network()
        optimizer = hvd_keras.DistributedOptimizer(
            make(), backward_passes_per_step=2, average_aggregated_gradients=True
        )

        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> None:
            with tf.GradientTape() as tape:
                loss = loss_of(model, x, y)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

        run = tf.function(step) if compiled else step
        for number in range(3):
            x, y = map(share, batch(number))
            half = x.shape[0] // 2
            run(tf.constant(x[:half]), tf.constant(y[:half]))
            before = model.get_weights()
            if number:
                assert_close(before, after)  # noqa: F821 - of the step before
            run(tf.constant(x[half:]), tf.constant(y[half:]))
            after = model.get_weights()
        assert_close(after, train_on_one_rank(make, 3))


@eager
def models_are_saved_without_the_runtime() -> None:
    import distributed_dl_training.tensorflow.keras as hvd_keras

    model = network()
    compile_with(model, hvd_keras, tf.keras.optimizers.Adam(0.05))
    x, y = map(share, batch(0))
    model.fit(x, y, epochs=1, verbose=0)
    path = os.path.join(tempfile.mkdtemp(), "model.keras")
    model.save(path)
    plain = tf.keras.models.load_model(path)
    assert not hasattr(plain.optimizer, "_ddlt_reducer"), type(plain.optimizer)
    assert_close(plain.get_weights(), model.get_weights())
    again = hvd_keras.load_model(path)
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations)
    again.fit(x, y, epochs=1, verbose=0)
    model.fit(x, y, epochs=1, verbose=0)
    assert_close(again.get_weights(), model.get_weights())


def session_graph(make: Callable[[], Any], shape: Tuple[int, int]) -> Dict[str, Any]:
    x = tf.compat.v1.placeholder(tf.float32, shape)
    y = tf.compat.v1.placeholder(tf.float32, (shape[0], 1))
    random = np.random.RandomState(5)
    hidden = tf.compat.v1.get_variable("first", initializer=random.randn(5, 7).astype(np.float32))
    output = tf.compat.v1.get_variable("second", initializer=random.randn(7, 1).astype(np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, hidden)), output) - y))
    counter = tf.compat.v1.train.get_or_create_global_step()
    train = make().minimize(loss, global_step=counter)
    return {"x": x, "y": y, "train": train, "weights": [hidden, output], "loss": loss}


@case
def sessions_train_like_one_rank() -> None:
    def plain() -> Any:
        return tf.compat.v1.train.MomentumOptimizer(0.05, 0.9)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = session_graph(plain, (24, 5))
        session.run(tf.compat.v1.global_variables_initializer())
        for number in range(4):
            x, y = batch(number)
            session.run(graph["train"], {graph["x"]: x, graph["y"]: y})
        expected = session.run(graph["weights"])
    for passes in (1, 2):
        options = {"backward_passes_per_step": passes, "average_aggregated_gradients": True}
        rows = 24 // hvd.size() // passes
        with tf.Graph().as_default():
            graph = session_graph(
                lambda options=options: hvd.DistributedOptimizer(plain(), **options), (rows, 5)
            )
            hook = hvd.BroadcastGlobalVariablesHook(0)
            with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hook]) as monitored:
                for number in range(4):
                    x, y = map(share, batch(number))
                    for part in range(passes):
                        rows_of = slice(part * rows, (part + 1) * rows)
                        feed = {graph["x"]: x[rows_of], graph["y"]: y[rows_of]}
                        monitored.run(graph["train"], feed)
                distributed = monitored.run(graph["weights"])
        assert_close(distributed, expected)


@case
def variables_are_broadcast_in_sessions() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("v", initializer=float(hvd.rank() + 1))
        update = hvd.broadcast_global_variables(0)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(update)
        assert session.run(variable) == 1.0


@case
def wrong_options_are_refused() -> None:
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    for options in (
        {"op": hvd.Sum, "gradient_predivide_factor": 2.0},
        {"groups": -1},
        {"backward_passes_per_step": 0},
    ):
        try:
            hvd.DistributedOptimizer(optimizer, **options)
        except ValueError:
            continue
        raise AssertionError(options)
    try:
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(optimizer))
    except ValueError:
        pass
    else:
        raise AssertionError("distributed twice")


def main() -> None:
    hvd.init()
    for name in sys.argv[1:] or CASES:
        CASES[name]()
        hvd.barrier()
    sys.stdout.write(f"passed {len(sys.argv[1:] or CASES)} by {hvd.build_info()['tensorflow']}\n")


if __name__ == "__main__":
    main()
