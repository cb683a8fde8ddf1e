"""Independent collectives that each rank executes in another order, as an MPI program."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import distributed_dl_training.tensorflow as hvd

hvd.init()
names = ["first", "second", "third"]
if hvd.rank() % 2:
    names.reverse()
# One thread executes the nodes, in the order in which this rank has built them.
threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1)
graph = tf.Graph()
with graph.as_default(), tf.compat.v1.Session(config=threads) as session:
    results = [hvd.allreduce(tf.ones(3), op=hvd.Sum, name=name) for name in names]
    for values in session.run(results):
        assert values.tolist() == [hvd.size()] * 3
sys.stdout.write("complete\n")
