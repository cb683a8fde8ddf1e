"""How a node process is started: here, by ssh, by srun, or by a command of the user's."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from distributed_dl_training.launch import _node

_SELF = {"localhost", "127.0.0.1", "::1"}
# -E and -S: the node process needs neither PYTHONPATH nor site-packages, and starts faster.
NODE_COMMAND = [sys.executable, "-ES", os.path.abspath(_node.__file__)]
_PASSED = ("DDLT_", "HOROVOD_", "NCCL_", "GLOO_", "OMP_", "PYTHON")
_PASSED_NAMES = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
# They would shape the step that starts a single node process.
_STEP_VARIABLES = (
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_TRES_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_CPU_BIND",
    "SLURM_MEM_PER_CPU",
)


class Remote(NamedTuple):
    """What the user says about reaching other hosts."""

    agent: Optional[str] = None
    ssh_port: Optional[int] = None
    ssh_identity: Optional[str] = None
    connect_timeout: float = 30.0


def is_local(host: str) -> bool:
    """Tell whether ``host`` is this machine: by its names, or by an address that is ours."""
    mine = socket.gethostname()
    same_name = host.split(".")[0] == mine.split(".")[0] and not host[0].isdigit()
    if host in _SELF or host == mine or same_name:
        return True
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
            return True
        except OSError:
            continue
    return False


def node_command(host: str, remote: Remote, environ: Mapping[str, str]) -> List[str]:
    """Return the command that starts the node process on ``host``.

    ``{host}`` in the user's agent is replaced by the host, and ``{command}`` by the command as
    one word for a shell; without ``{command}`` the command's words follow at the end.
    """
    if remote.agent is not None and host not in _SELF:
        return agent_command(remote.agent, host)
    if is_local(host):
        return NODE_COMMAND
    chosen_ssh = remote.ssh_port is not None or remote.ssh_identity is not None
    if environ.get("SLURM_JOB_ID") and not chosen_ssh and shutil.which("srun"):
        return _srun_command(host)
    return _ssh_command(host, remote)


def agent_command(template: str, host: str) -> List[str]:
    """Fill in a ``--launch-agent``.  Raises ValueError for quotes that do not match."""
    command = " ".join(shlex.quote(word) for word in NODE_COMMAND)
    words = shlex.split(template)
    filled = [word.replace("{host}", host).replace("{command}", command) for word in words]
    return filled if "{command}" in template else filled + NODE_COMMAND


def _ssh_command(host: str, remote: Remote) -> List[str]:
    """BatchMode: a question for a password or an unknown host would never be seen."""
    command = ["ssh", "-T", "-x", "-o", "BatchMode=yes"]
    command += ["-o", f"ConnectTimeout={max(1, int(remote.connect_timeout))}"]
    command += ["-o", "ServerAliveInterval=15"]
    if remote.ssh_port is not None:
        command += ["-p", str(remote.ssh_port)]
    if remote.ssh_identity is not None:
        command += ["-i", remote.ssh_identity]
    # ssh hands its words to a shell.
    return command + [host, "exec " + " ".join(shlex.quote(word) for word in NODE_COMMAND)]


def _srun_command(host: str) -> List[str]:
    """One step on one node that shares everything the job has there."""
    shape = ["--nodes=1", "--ntasks=1", f"--nodelist={host}", "--mpi=none", "--cpu-bind=none"]
    if "--overlap" in _srun_help():
        shape.append("--overlap")
    return ["srun", *shape, "--unbuffered", "--quiet", *NODE_COMMAND]


def _srun_help() -> str:
    try:
        done = subprocess.run(
            ["srun", "--help"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def agent_environ(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment of the program that reaches another host."""
    return {name: value for name, value in environ.items() if name not in _STEP_VARIABLES}


def passed_on(environ: Mapping[str, str], named: Sequence[str]) -> Dict[str, str]:
    """Return the variables that ranks on other hosts get from here.

    named: what -x says, ``NAME`` or ``NAME=VALUE``; a NAME that is not set is left out.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name.startswith(_PASSED) or name in _PASSED_NAMES
    }
    for word in named:
        name, assigned, value = word.partition("=")
        if assigned:
            passed[name] = value
        elif name in environ:
            passed[name] = environ[name]
    return passed
