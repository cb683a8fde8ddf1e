"""What programs written for Horovod import, as an MPI program; run with the alias on the path."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from horovod.common.exceptions import HorovodInternalError
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.functions import broadcast_variables
from horovod.tensorflow.keras.callbacks import MetricAverageCallback
from horovod.tensorflow.mpi_ops import allreduce

assert hvd.allreduce is allreduce and hvd.broadcast_variables is broadcast_variables
assert hvd.Compression is Compression
assert issubclass(MetricAverageCallback, tf.keras.callbacks.Callback)
assert issubclass(hvd.MismatchError, HorovodInternalError)
hvd.init()
average = hvd.allreduce(tf.constant([3 * hvd.rank()], tf.int32))  # of 0 and 3, rounded down
if not tf.executing_eagerly():  # TensorFlow 1
    average = tf.compat.v1.Session().run(average)
sys.stdout.write(f"averages of integers: {int(np.asarray(average)[0])}\n")
