"""Options of Horovod's horovodrun that mean something else here, nothing, or are refused.

Sources: horovod/runner/launch.py:286 (the options) and horovod/runner/common/util/config_parser.py
(the file of --config-file) of 0.28.1.
"""

import argparse
import importlib
from typing import Any, Dict, List, Sequence, Tuple

from distributed_dl_training.launch._hosts import UsageError

_ELASTIC = "elastic jobs are not there yet: give -np and -H, and start again from a checkpoint"
# Option, how many words follow it, why it has no effect.
_IDLE: Sequence[Tuple[str, int, str]] = (
    *(
        (option, words, "nothing is tuned while a job runs")
        for option, words in (
            ("--autotune", 0),
            ("--no-autotune", 0),
            ("--autotune-log-file", 1),
            ("--autotune-warmup-samples", 1),
            ("--autotune-steps-per-sample", 1),
            ("--autotune-bayes-opt-max-samples", 1),
            ("--autotune-gaussian-process-noise", 1),
        )
    ),
    ("--cycle-time-ms", 1, "there are no cycles of a fixed length"),
    ("--hierarchical-allgather", 0, "the way of an allgather is the MPI library's"),
    ("--no-hierarchical-allgather", 0, "the way of an allgather is the MPI library's"),
    ("--torus-allreduce", 0, "NCCL chooses its own way"),
    ("--no-torus-allreduce", 0, "NCCL chooses its own way"),
    ("--num-nccl-streams", 1, "there is one stream for each communication thread"),
    ("--thread-affinity", 1, "the communication thread runs where its rank may"),
    ("--disable-cache", 0, "no result of a check is kept"),
    ("--log-level", 1, "there is no log: what matters is an error or a report"),
    ("--log-with-timestamp", 0, "there is no log"),
    ("--log-without-timestamp", 0, "there is no log"),
    ("--log-hide-timestamp", 0, "there is no log"),
    ("--no-log-hide-timestamp", 0, "there is no log"),
    ("--stall-check", 0, "it is on"),
    ("--no-mpi-threads-disable", 0, "MPI starts with threads"),
)
_REFUSED: Sequence[Tuple[str, int, str]] = (
    *(
        (option, words, _ELASTIC)
        for option, words in (
            ("--min-np", 1),
            ("--min-num-proc", 1),
            ("--max-np", 1),
            ("--max-num-proc", 1),
            ("--slots-per-host", 1),
            ("--elastic-timeout", 1),
            ("--reset-limit", 1),
            ("--blacklist-cooldown-range", 2),
            ("--host-discovery-script", 1),
        )
    ),
    ("--jsrun", 0, "start the ranks by jsrun itself (jsrun -n ... python train.py), or use --mpi"),
)
# Section and key of the file, and the option; one with True is a flag, with its opposite.
_CONFIG: Dict[Tuple[str, str], Tuple[str, str]] = {
    ("", "verbose"): ("--verbose", ""),
    ("params", "fusion_threshold_mb"): ("--fusion-threshold-mb", "X"),
    ("params", "cycle_time_ms"): ("--cycle-time-ms", "X"),
    ("params", "cache_capacity"): ("--cache-capacity", "X"),
    ("params", "hierarchical_allreduce"): (
        "--hierarchical-allreduce",
        "--no-hierarchical-allreduce",
    ),
    ("params", "hierarchical_allgather"): ("--hierarchical-allgather", ""),
    ("params", "torus_allreduce"): ("--torus-allreduce", ""),
    ("autotune", "enabled"): ("--autotune", ""),
    ("autotune", "log_file"): ("--autotune-log-file", "X"),
    ("autotune", "warmup_samples"): ("--autotune-warmup-samples", "X"),
    ("autotune", "steps_per_sample"): ("--autotune-steps-per-sample", "X"),
    ("autotune", "bayes_opt_max_samples"): ("--autotune-bayes-opt-max-samples", "X"),
    ("autotune", "gaussian_process_noise"): ("--autotune-gaussian-process-noise", "X"),
    ("timeline", "filename"): ("--timeline-filename", "X"),
    ("timeline", "mark_cycles"): ("--timeline-mark-cycles", "--no-timeline-mark-cycles"),
    ("stall_check", "enabled"): ("--stall-check", "--no-stall-check"),
    ("stall_check", "warning_time_seconds"): ("--stall-check-warning-time-seconds", "X"),
    ("stall_check", "shutdown_time_seconds"): ("--stall-check-shutdown-time-seconds", "X"),
    ("library_options", "mpi_threads_disable"): ("--mpi-threads-disable", ""),
    ("library_options", "num_nccl_streams"): ("--num-nccl-streams", "X"),
    ("library_options", "thread_affinity"): ("--thread-affinity", "X"),
    ("library_options", "gloo_timeout_seconds"): ("--gloo-timeout-seconds", "X"),
    ("logging", "level"): ("--log-level", "X"),
    ("logging", "with_timestamp"): ("--log-with-timestamp", ""),
    ("logging", "hide_timestamp"): ("--log-hide-timestamp", ""),
}


class _Idle(argparse.Action):
    """Takes an option that has no effect, and notes what to say of it."""

    reason = ""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        noted = list(namespace.without_effect)
        text = f"{option} has no effect here: {self.reason}"
        namespace.without_effect = noted if text in noted else [*noted, text]


class _Refused(argparse.Action):
    """Ends with what to do instead."""

    reason = ""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        parser.error(f"{option}: {self.reason}")


class _Config(argparse.Action):
    """Takes a file's options as if they stood here, so that later ones win, as in Horovod."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        try:
            words = config_words(str(values))
        except UsageError as error:
            parser.error(str(error))
        parser.parse_args(words, namespace)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them all; ``without_effect`` of the result holds what to say."""
    parser.set_defaults(without_effect=[])
    group = parser.add_argument_group("options of Horovod's horovodrun")
    add = group.add_argument
    text = "file with options, in YAML, as Horovod has it; later options win"
    add("--config-file", action=_Config, metavar="F", help=text)
    add("--tcp", action="store_true", help="communicate over TCP alone (Open MPI, Spectrum MPI)")
    text = "words for mpiexec in place of `--bind-to none --map-by slot`"
    add("--binding-args", metavar="WORDS", help=text)
    text = "seconds that init waits for ranks that do not join; default 300"
    add("--gloo-timeout-seconds", type=float, metavar="S", dest="DDLT_INIT_TIMEOUT_SECONDS",
        help=text)  # fmt: skip
    add("--no-stall-check", action="store_const", const="1", dest="DDLT_STALL_CHECK_DISABLE",
        help="neither report nor end jobs that make no progress")  # fmt: skip
    add("--mpi-threads-disable", action="store_const", const="1", dest="DDLT_MPI_THREADS_DISABLE",
        help="start MPI without support for threads")  # fmt: skip
    text = "put the time before each line that a rank prints"
    add("-prefix-timestamp", "--prefix-output-with-timestamp", action="store_true", help=text)
    for kind, options in ((_Idle, _IDLE), (_Refused, _REFUSED)):
        for option, words, reason in options:
            # A class for each reason: argparse hands an action nothing of ours.
            made = type(kind.__name__, (kind,), {"reason": reason})
            add(option, action=made, nargs=words, help=argparse.SUPPRESS)


def config_words(path: str) -> List[str]:
    """Return a file's options as words of the command line.  Raises UsageError."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise UsageError("--config-file needs PyYAML: pip install pyyaml") from None
    try:
        with open(path, encoding="utf-8") as stream:
            found = yaml.safe_load(stream) or {}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is no YAML: {error}") from error
    words: List[str] = []
    for section, value in found.items():
        nested = value if isinstance(value, dict) else {section: value}
        for key, one in nested.items():
            words += _config_option(path, section if isinstance(value, dict) else "", key, one)
    return words


def _config_option(path: str, section: str, key: str, value: Any) -> List[str]:
    option, other = _CONFIG.get((section, key), ("", ""))
    if not option:
        raise UsageError(f"{path}: there is no option {section}{'.' if section else ''}{key}")
    if other == "X":
        return [option, str(value)]
    if not isinstance(value, bool):
        raise UsageError(f"{path}: {key} must be true or false, not {value!r}")
    return [option] if value else [other] * bool(other)
