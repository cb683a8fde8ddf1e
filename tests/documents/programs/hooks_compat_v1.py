import tensorflow.compat.v1 as tf
import distributed_dl_training.tensorflow as hvd

tf.disable_v2_behavior()

# Initialize Distributed-DL-training
hvd.init()

# Pin GPU to be used to process local rank (one GPU per process)
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())

# Build model...
features = tf.random_normal([16, 4], seed=hvd.rank()); weights = tf.get_variable("weights", [4, 1]); loss = tf.reduce_mean((tf.matmul(features, weights) - 1.0) ** 2)
opt = tf.train.AdagradOptimizer(0.01 * hvd.size())

# Add Distributed-DL-training Distributed Optimizer
opt = hvd.DistributedOptimizer(opt)

# Add hook to broadcast variables from rank 0 to all other processes during
# initialization.
hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=20)]

# Make training operation
train_op = opt.minimize(loss, global_step=tf.train.get_or_create_global_step())

# Save checkpoints only on worker 0 to prevent other workers from corrupting them.
checkpoint_dir = "train_logs" if hvd.rank() == 0 else None

# The MonitoredTrainingSession takes care of session initialization,
# restoring from a checkpoint, saving to a checkpoint, and closing when done
# or an error occurs.
with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir,
                                       config=config,
                                       hooks=hooks) as mon_sess:
  while not mon_sess.should_stop():
    # Perform synchronous training.
    values, _ = mon_sess.run([weights, train_op])

values = [round(float(value), 5) for value in values.flatten()]
print("rank %d of %d: weights %s" % (hvd.rank(), hvd.size(), values))
