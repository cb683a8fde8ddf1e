import keras
import numpy as np
import tensorflow as tf
import distributed_dl_training.keras as hvd


# Initialize Distributed-DL-training
hvd.init()

# Pin GPU to be used to process local rank (one GPU per process)
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

# Build model...
features = np.random.RandomState(hvd.rank()).randn(320, 4)
weights = keras.layers.Dense(1, use_bias=False)
model = keras.Sequential([keras.Input((4,)), weights])
opt = keras.optimizers.Adagrad(0.01 * hvd.size())

# Add Distributed-DL-training Distributed Optimizer
opt = hvd.DistributedOptimizer(opt)

# Add callback to broadcast variables from rank 0 to all other processes during
# initialization.
hooks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]

# Make training operation
model.compile(opt, loss="mse")

# Save checkpoints only on worker 0 to prevent other workers from corrupting them.
if hvd.rank() == 0:
    hooks.append(keras.callbacks.ModelCheckpoint("train_logs/checkpoint.keras"))

# Perform synchronous training.
model.fit(features, np.ones([320, 1]), batch_size=16, callbacks=hooks, verbose=0)
values = weights.get_weights()[0]

values = [round(float(value), 5) for value in values.flatten()]
print("rank %d of %d: weights %s" % (hvd.rank(), hvd.size(), values))
