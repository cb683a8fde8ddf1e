"""A private Slurm of two nodes on this machine, with its own munge, ports and folders."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration_tools import Done, clean_environ, run

NODES = ("node1", "node2")
DAEMONS = ("munged", "slurmctld", "slurmd")
PROGRAMS = (*DAEMONS, "sbatch", "srun", "scontrol", "scancel", "sinfo", "squeue", "unshare")
# Seconds for the daemons to come up, and for a job of these tests.
PATIENCE = 60.0

CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
TmpFS={folder}/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 Gres=gpu:2\n"
PARTITION = "PartitionName=test Nodes=ALL Default=YES MaxTime=10 State=UP\n"


@dataclass(frozen=True)
class Slurm:
    """A running Slurm; ``folder`` holds its logs."""

    folder: Path

    def __call__(self, *words: str | Path, env: Mapping[str, str] | None = None) -> Done:
        """Run one of its commands, ``sbatch`` and so on, to its end."""
        variables = {"SLURM_CONF": str(self.folder / "slurm.conf"), **(env or {})}
        return run(words, env=variables, cwd=self.folder, timeout=PATIENCE)

    def in_step(self, script: str, *options: str, env: Mapping[str, str] | None = None) -> Done:
        """Run a script of bash in the shell of ``srun --pty bash``, whose step holds its CPUs."""
        if shutil.which("script") is None:
            pytest.skip("needs a terminal: script is not on this machine")
        file = self.folder / "in-step.sh"
        file.write_text(f"set -eu\n{script}\n", encoding="utf-8")
        line = shlex.join(["srun", *options, "--pty", "bash", str(file)])
        done = self("script", "--quiet", "--return", "--command", line, "/dev/null", env=env)
        return Done(done.code, done.out.replace("\r", ""), done.err)

    def typed(self, command: Sequence[str], lines: Sequence[str], home: Path) -> int:
        """Run a command in a terminal, type lines into it, and return its exit code."""
        env = {"SLURM_CONF": str(self.folder / "slurm.conf"), "HOME": str(home), "TERM": "dumb"}
        ours, its = os.openpty()
        try:
            process = subprocess.Popen(
                command,
                env=clean_environ(env),
                cwd=self.folder,
                stdin=its,
                stdout=its,
                stderr=its,
                start_new_session=True,
            )
        finally:
            os.close(its)
        os.write(ours, "".join(f"{line}\n" for line in lines).encode())
        shown = b""
        with suppress(OSError):  # EIO: nobody has the terminal any more.
            while select.select([ours], [], [], PATIENCE)[0]:
                shown += os.read(ours, 65536)
        print(shown.decode(errors="replace"))
        os.close(ours)
        try:
            return process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"the shell did not end: {shown.decode(errors='replace')}")

    def ended(self, job: str) -> int:
        """Wait for a job's end and return its exit code; sbatch --wait looks every 10 s only."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self("scontrol", "--oneliner", "show", "job", job).out
            state = re.search(r"JobState=([A-Z]+)", shown)
            code = re.search(r"ExitCode=(\d+):", shown)
            if state and code and state[1] not in ("PENDING", "RUNNING", "COMPLETING"):
                return int(code[1])
            if time.monotonic() > end:
                pytest.fail(f"the job did not end within {PATIENCE:.0f} s: {shown}")
            time.sleep(0.1)

    def end_jobs(self) -> None:
        """End all jobs and wait for it: their processes outlive the daemons."""
        self("scancel", "--partition=test")
        end = time.monotonic() + PATIENCE
        while self("squeue", "--noheader").out.strip() and time.monotonic() < end:
            time.sleep(0.1)


def need_slurm() -> None:
    """Skip where Slurm cannot be started, and say why."""
    missing = [name for name in PROGRAMS if not _found(name)]
    if missing:
        pytest.skip(f"needs Slurm and munge; not on this machine: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("needs root: a node of Slurm with a host name of its own")
    tried = run(["unshare", "--uts", "hostname", "node1"])
    if tried.code != 0:
        pytest.skip(f"no node can have a host name of its own here: {tried.text.strip()}")


@contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Start munge, the controller and two nodes; end all of them."""
    _write_config(folder)
    env = clean_environ({"SLURM_CONF": str(folder / "slurm.conf")})
    with ExitStack() as stack:
        for command in _daemons(folder):
            _start(stack, command, env, folder)
        running = Slurm(folder)
        _wait_until_idle(running)
        try:
            yield running
        finally:
            running.end_jobs()


def _found(name: str) -> str | None:
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def _write_config(folder: Path) -> None:
    for name in ("state", *(f"{kind}/{node}" for kind in ("spool", "tmp") for node in NODES)):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    host = socket.gethostname()
    controller, *ports = _free_ports(1 + len(NODES))
    text = CONFIG.format(host=host, controller=controller, folder=folder)
    for name, port in zip(NODES, ports, strict=True):
        text += NODE.format(name=name, host=host, port=port)
    (folder / "slurm.conf").write_text(text + PARTITION)
    # Files in the place of devices: Slurm counts them and hands out their numbers.
    for number in range(2):
        (folder / f"gpu{number}").touch()
    (folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={folder}/gpu[0-1]\n")


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _daemons(folder: Path) -> Iterator[list[str]]:
    munged, controller, node = (str(_found(name)) for name in DAEMONS)
    yield [
        *(munged, "--foreground", "--force", f"--key-file={folder}/munge.key"),
        *(f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid"),
        *(f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"),
    ]
    yield [controller, "-D", "-i"]
    for name in NODES:
        inside = f"hostname {name} && exec {node} -D -N {name}"
        yield ["unshare", "--uts", "sh", "-c", inside]


def _start(stack: ExitStack, command: list[str], env: dict[str, str], folder: Path) -> None:
    log = stack.enter_context((folder / "daemons.log").open("ab"))
    process = subprocess.Popen(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    stack.callback(_end, process)
    _wait_for_munge(command, folder)


def _wait_for_munge(command: list[str], folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    while "munged" in command[0] and not (folder / "munge.socket").exists():
        if time.monotonic() > end:
            pytest.fail("munge did not start: " + (folder / "daemons.log").read_text())
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_until_idle(running: Slurm) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        asked = running("sinfo", "--noheader", "--format=%t %D")
        if asked.out.split() == ["idle", str(len(NODES))]:
            return
        if time.monotonic() > end:
            log = (running.folder / "daemons.log").read_text()
            pytest.fail(f"Slurm did not come up: {asked.text}\n{log}")
        time.sleep(0.1)
