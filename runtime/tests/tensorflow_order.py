"""Two independent collectives that each rank builds in another order, as an MPI program."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import distributed_dl_training.tensorflow as hvd

hvd.init()
names = ["first", "second"] if hvd.rank() == 0 else ["second", "first"]
graph = tf.Graph()
with graph.as_default(), tf.compat.v1.Session() as session:
    results = []
    for name in names:
        # Each depends on the one before, as in a graph whose executor has chosen that order.
        with tf.control_dependencies([result.op for result in results]):
            results.append(hvd.allreduce(tf.ones(3), name=name))
    session.run(results)
