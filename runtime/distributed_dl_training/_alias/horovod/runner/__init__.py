"""``horovod.runner.run``: call a function on several ranks."""

from distributed_dl_training.launch._function import run

__all__ = ["run"]

# What horovodrun's options are called as attributes (horovod/runner/__init__.py of 0.28.1).
_OPTIONS = """\
check_build ssh_port ssh_identity_file disable_cache start_timeout nic output_filename verbose
command run_func config_file nics executable fusion_threshold_mb cycle_time_ms cache_capacity
hierarchical_allreduce hierarchical_allgather torus_allreduce autotune autotune_log_file
autotune_warmup_samples autotune_steps_per_sample autotune_bayes_opt_max_samples
autotune_gaussian_process_noise min_num_proc max_num_proc slots elastic_timeout reset_limit
cooldown_range timeline_filename timeline_mark_cycles no_stall_check
stall_check_warning_time_seconds stall_check_shutdown_time_seconds mpi_threads_disable mpi_args
tcp_flag binding_args num_nccl_streams thread_affinity gloo_timeout_seconds log_level
log_with_timestamp prefix_output_with_timestamp hosts hostfile host_discovery_script use_gloo
use_mpi use_jsrun
""".split()


class _HorovodArgs:
    """Options with nothing chosen, as Horovod's tests make them."""

    def __init__(self) -> None:
        self.num_proc = 1
        for name in _OPTIONS:
            setattr(self, name, None)
