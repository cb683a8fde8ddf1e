"""MXNet is not served yet: importing this module says what is."""

raise ImportError(
    "distributed_dl_training has no module for MXNet yet; it comes next.  There are "
    "distributed_dl_training.torch and distributed_dl_training.numpy"
)
