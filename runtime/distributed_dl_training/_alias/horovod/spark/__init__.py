"""``horovod.spark`` is not served: importing this module says what to do."""

raise ImportError(
    "horovod.spark is not there: start the ranks by horovodrun, mpiexec or srun, and see"
    " docs/api.md of distributed-dl-training"
)
