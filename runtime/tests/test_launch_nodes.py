"""Two nodes: network namespaces joined by a bridge, each with a host name of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from launcher import find_mpiexec, why_not
from launching import Launched, launch, pids, program

# Another run on this machine has a network, and nodes, of its own.
NET = f"10.213.{1 + os.getpid() % 250}"
PREFIX = f"ddlt{os.getpid() % 100000}"
BRIDGE = PREFIX + "br"


def ip(*words, **options):
    return subprocess.run(
        ["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )


def remove():
    for node in (1, 2):
        ip("netns", "del", f"{PREFIX}.{NET}.{node}")
    ip("link", "del", BRIDGE)


def set_up():
    """Make the bridge and both namespaces; return why that cannot be, or None."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "ip (iproute2) or unshare is not here"
    steps = [
        f"link add {BRIDGE} type bridge",
        f"addr add {NET}.254/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ]
    for node in (1, 2):
        space, outer = f"{PREFIX}.{NET}.{node}", f"{PREFIX}v{node}"
        steps += [
            f"netns add {space}",
            f"link add {outer} type veth peer name ddlt0 netns {space}",
            f"link set {outer} master {BRIDGE} up",
            f"-n {space} addr add {NET}.{node}/24 dev ddlt0",
            f"-n {space} link set ddlt0 up",
            f"-n {space} link set lo up",
        ]
    for step in steps:
        done = ip(*step.split())
        if done.returncode:
            return f"ip {step}: {done.stdout.decode().strip()}"
    return None


@pytest.fixture(scope="module")
def nodes():
    reason = set_up()
    try:
        if reason is not None:
            pytest.skip(reason)
        yield ["-H", f"{NET}.1:2,{NET}.2:2"]
    finally:
        if os.geteuid() == 0 and shutil.which("ip") is not None:
            remove()


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as stream:
        return stream.read()


def agent():
    inside = "hostname node-{host}; exec {command}"
    return f"ip netns exec {PREFIX}.{{host}} unshare -u sh -c '{inside}'"


def test_ranks_of_two_nodes_meet(nodes):
    options = ["--gloo", "-np", "4", *nodes, "--launch-agent", agent()]
    result = launch(*options, *program("meet"))
    assert result.code == 0, result.err
    met = [f"1@node-{NET}.1", f"2@node-{NET}.2", f"3@node-{NET}.2"]
    assert result.out == f"[0]<stdout>:met {' '.join(met)}\n"
    # They met over the bridge: nobody has these addresses here.
    with socket.socket() as probe, pytest.raises(OSError):
        probe.bind((f"{NET}.1", 0))


def test_gloo_of_torch_on_two_nodes(nodes):
    pytest.importorskip("torch", reason="torch is not installed")
    options = ["--gloo", "-np", "4", *nodes, "--launch-agent", agent()]
    options += ["--network-interfaces", "ddlt0"]
    result = launch(*options, *program("gloo_sum"), limit=180)
    assert result.code == 0, result.err
    assert sorted(result.out.splitlines()) == [f"[{rank}]<stdout>:sum 10" for rank in range(4)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_orphans_on_any_node(nodes, number, tmp_path):
    options = ["--gloo", "-np", "4", *nodes, "--launch-agent", agent(), "--kill-grace", "0.5"]
    with Launched(*options, *program("family", str(tmp_path), "deaf")) as job:
        ranks = pids(tmp_path, 8)
        os.kill(ranks[0], signal.SIGSTOP)
        job.process.send_signal(number)
        job.process.wait(timeout=60)
        assert job.orphans() == []


def test_failure_on_one_node_ends_the_other(nodes, tmp_path):
    options = ["--gloo", "-np", "4", *nodes, "--launch-agent", agent(), "--kill-grace", "0.5"]
    options += ["--failure-wait", "0.2"]
    with Launched(*options, *program("sleep", str(tmp_path), "deaf")) as job:
        os.kill(pids(tmp_path, 4)[3], signal.SIGKILL)
        result = job.end()
        assert job.orphans() == []
    assert result.code == 137
    assert f"rank 3 on {NET}.2 was killed by signal 9 (SIGKILL)" in result.err


def test_lost_connection_ends_both_sides(nodes, tmp_path):
    """The process that reaches a node dies, as a ssh may: its ranks end, and so do the others."""
    options = ["--gloo", "-np", "4", *nodes, "--kill-grace", "0.5", "--failure-wait", "0.2"]
    carrier = os.path.abspath(__file__)
    options += ["--launch-agent", f"{sys.executable} {carrier} {PREFIX}.{{host}}"]
    with Launched(*options, *program("sleep", str(tmp_path), "deaf")) as job:
        pids(tmp_path, 4)
        mark = f"{carrier}\0{PREFIX}.{NET}.2".encode()
        carriers = [pid for pid in job.processes() if mark in command_line(pid)]
        assert len(carriers) == 1
        os.kill(carriers[0], signal.SIGKILL)
        result = job.end()
        assert job.orphans() == []
    assert result.code == 1
    assert f"{NET}.2: the connection is lost" in result.err


def test_mpi_on_two_nodes(nodes, tmp_path):
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    mpiexec = find_mpiexec()
    version = subprocess.run([mpiexec, "--version"], stdout=subprocess.PIPE).stdout.decode()
    script = tmp_path / "remote_shell"
    # As ssh: options, the host, the command.
    script.write_text(
        "#!/bin/sh\n"
        'while [ "${1#-}" != "$1" ]; do shift; done\n'
        "host=$1; shift\n"
        f'exec ip netns exec {PREFIX}.$host unshare -u sh -c "hostname node-$host; $*"\n'
    )
    script.chmod(0o755)
    options = ["--mpi", "-np", "4", *nodes, "--kill-grace", "1"]
    environ = {}
    if "HYDRA" in version or "Intel" in version:
        options += ["--mpi-args", f"-launcher ssh -launcher-exec {script} -iface {BRIDGE}"]
        environ["FI_PROVIDER"] = "tcp"
    else:
        for name in ("plm_rsh_agent", "plm_ssh_agent"):
            environ["OMPI_MCA_" + name] = environ["PRTE_MCA_" + name] = str(script)
        options += ["--mpi-args", f"--mca btl_tcp_if_include {NET}.0/24 --mca pml ob1"]
    result = launch(*options, *program("mpi_sum"), limit=120, environ=environ)
    assert result.code == 0, result
    assert sorted(result.out.splitlines()) == [f"[{rank}]<stdout>:sum 10 of 4" for rank in range(4)]


def carry(space, command):
    """Be what carries a node's input and output, as ssh is: two processes and pipes between."""
    words = ["ip", "netns", "exec", space, *command]
    node = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    assert node.stdin is not None
    while True:
        data = os.read(0, 65536)
        if not data:
            node.stdin.close()
            sys.exit(node.wait())
        node.stdin.write(data)
        node.stdin.flush()


if __name__ == "__main__":
    carry(sys.argv[1], sys.argv[2:])
