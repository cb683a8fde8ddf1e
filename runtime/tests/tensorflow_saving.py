"""Train on all ranks and save on rank 0 into FOLDER, for ``tensorflow_loading.py``; a MPI program.

mpiexec -n 2 python tensorflow_saving.py FOLDER
"""

import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import distributed_dl_training.tensorflow as hvd
import distributed_dl_training.tensorflow.keras as hvd_keras

v1 = tf.compat.v1
INPUTS = np.random.RandomState(0).randn(6, 4).astype(np.float32)


def save_session(folder: str) -> Any:
    """Save a checkpoint whose graph has the nodes of the training; return the outputs."""
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="input")
        weights = v1.get_variable("weights", [4, 2])
        outputs = tf.identity(tf.matmul(x, weights), name="output")
        loss = tf.reduce_mean(tf.square(outputs - 1.0))
        optimizer = hvd.DistributedOptimizer(v1.train.AdagradOptimizer(0.1))
        step = v1.train.get_or_create_global_step()
        train = optimizer.minimize(loss, global_step=step)
        hooks = [hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=3)]
        feed = {x: INPUTS + hvd.rank()}
        directory = folder if hvd.rank() == 0 else None
        with v1.train.MonitoredTrainingSession(checkpoint_dir=directory, hooks=hooks) as session:
            while not session.should_stop():
                session.run(train, feed)
        values = v1.train.NewCheckpointReader(v1.train.latest_checkpoint(folder))
        return INPUTS @ values.get_tensor("weights") if hvd.rank() == 0 else None


def make_model(normalization: Any) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Dense(3, input_shape=(4,)), normalization(), layers.Dense(1)]
    )
    optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.Adam(0.01))
    model.compile(optimizer=optimizer, loss="mse")
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)]
    targets = np.ones((len(INPUTS), 1))
    model.fit(INPUTS + hvd.rank(), targets, epochs=2, verbose=0, callbacks=callbacks)
    return model


def export(model: Any, folder: str) -> None:
    """Write a SavedModel."""
    if hasattr(model, "export"):
        model.export(folder, verbose=False)
    else:
        v1.saved_model.simple_save(
            v1.keras.backend.get_session(), folder, {"x": model.inputs[0]}, {"y": model.outputs[0]}
        )


def main() -> None:
    folder = sys.argv[1]
    hvd.init()
    outputs = {"session": save_session(os.path.join(folder, "session"))}
    plain = make_model(tf.keras.layers.BatchNormalization)
    synchronized = make_model(hvd.SyncBatchNormalization)
    ending = "keras" if int(tf.keras.__version__.split(".")[0]) > 2 else "h5"
    # In sessions, Keras computes the moments of a batch for predictions as well: on all ranks.
    outputs["plain"], outputs["synchronized"] = (
        model.predict(INPUTS, verbose=0) for model in (plain, synchronized)
    )
    if hvd.rank() == 0:
        plain.save(os.path.join(folder, f"plain.{ending}"))
        synchronized.save(os.path.join(folder, f"synchronized.{ending}"))
        export(plain, os.path.join(folder, "exported"))
        np.savez(os.path.join(folder, "outputs.npz"), inputs=INPUTS, **outputs)


if __name__ == "__main__":
    main()
