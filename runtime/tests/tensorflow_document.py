"""A training loop with hooks, in the way of a site's documents, as an MPI program.

    mpiexec -n 2 python tensorflow_document.py FOLDER

TensorFlow 1.14 or newer; rank 0 alone writes checkpoints into FOLDER.
"""

import hashlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

import distributed_dl_training.tensorflow as hvd

hvd.init()
graph = tf.Graph()
with graph.as_default():
    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = ""
    random = np.random.RandomState(hvd.rank())  # each rank begins with other weights
    weights = tf.get_variable("weights", initializer=random.randn(5, 1).astype(np.float32))
    features = tf.constant(random.randn(16, 5).astype(np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - 1.0))
    optimizer = hvd.DistributedOptimizer(tf.train.AdagradOptimizer(0.01 * hvd.size()))
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=step)
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=20)]
    folder = sys.argv[1] if hvd.rank() == 0 else None
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder, config=config, hooks=hooks
    ) as session:
        while not session.should_stop():
            values, _ = session.run([weights, train])
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
    sys.stdout.write(f"weights {digest}\n")
