"""Two nodes on one machine: network namespaces joined by a veth, each with a host name of its own.

Only root can make them.  Ranks of different nodes reach each other over the veth alone if their
MPI uses TCP, so that the bytes between the nodes can be counted.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from typing import Dict, List, Optional

DEVICE = "veth0"  # on both nodes

_AGENT = """#!/bin/sh
# What a launcher takes for ssh: options, a host, and a command line.
while [ "${{1#-}}" != "$1" ]; do shift; done
node=${{1##*.}}
shift
exec ip netns exec {name}-$node unshare --uts sh -c "hostname {name}-$node; $*"
"""


def why_not() -> Optional[str]:
    """Return why two nodes cannot be made here, or None."""
    for tool in ("ip", "unshare"):
        if shutil.which(tool) is None:
            return f"needs {tool} on PATH (Debian: iproute2, util-linux)"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    probe = subprocess.run(
        ["unshare", "--net", "--uts", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return probe.stdout.decode().strip() if probe.returncode else None


class TwoNodes:
    """A context in which two nodes are there; ``hosts`` are their addresses."""

    hosts = ("10.213.0.1", "10.213.0.2")

    def __init__(self) -> None:
        self._name = f"ddlt{os.getpid()}"
        self._folder = tempfile.mkdtemp()
        self.agent = os.path.join(self._folder, "agent")

    def __enter__(self) -> "TwoNodes":
        with open(self.agent, "w") as stream:
            stream.write(_AGENT.format(name=self._name))
        os.chmod(self.agent, stat.S_IRWXU)
        for node in (1, 2):
            self._ip("netns", "add", self._netns(node))
            self._inside(node, "ip", "link", "set", "lo", "up")
        link = ["link", "add", DEVICE, "netns", self._netns(1), "type", "veth"]
        self._ip(*link, "peer", "name", DEVICE, "netns", self._netns(2))
        for node, host in enumerate(self.hosts, start=1):
            self._inside(node, "ip", "address", "add", f"{host}/24", "dev", DEVICE)
            self._inside(node, "ip", "link", "set", DEVICE, "up")
        return self

    def __exit__(self, *error: object) -> None:
        for node in (1, 2):
            subprocess.run(["ip", "netns", "del", self._netns(node)], check=False)
        shutil.rmtree(self._folder)

    def command(self, words: List[str]) -> List[str]:
        """Return ``words`` as a command that runs on the first node."""
        shell = 'hostname "$0"; exec "$@"'
        start = ["ip", "netns", "exec", self._netns(1), "unshare", "--uts", "sh", "-c", shell]
        return start + [self._netns(1)] + words

    def sent(self) -> int:
        """Return how many bytes the first node has sent to the second one."""
        path = f"/sys/class/net/{DEVICE}/statistics/tx_bytes"
        return int(self._inside(1, "cat", path))

    def _netns(self, node: int) -> str:
        return f"{self._name}-{node}"

    def _inside(self, node: int, *words: str) -> str:
        return self._ip("netns", "exec", self._netns(node), *words)

    def _ip(self, *words: str) -> str:
        done = subprocess.run(["ip", *words], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()


def open_mpi_words(mpiexec: str, agent: str, hosts: Dict[str, int], alternate: bool) -> List[str]:
    """Return how Open MPI starts one rank per slot.

    alternate: put neighbours among the ranks on different nodes.
    """
    version = subprocess.run([mpiexec, "--version"], stdout=subprocess.PIPE).stdout.decode()
    # Open MPI 5 starts its ranks by PRRTE, with options of its own.
    old = "OpenRTE" in version
    slots = ",".join(f"{host}:{count}" for host, count in hosts.items())
    words = [mpiexec, "--mca" if old else "--prtemca"]
    words += ["plm_rsh_agent" if old else "plm_ssh_agent", agent, "--oversubscribe"]
    words += ["--bind-to", "none", "--map-by", "node" if alternate else "slot"]
    words += ["--host", slots, "-n", str(sum(hosts.values()))]
    for name in ("PYTHONPATH", "DDLT_HIERARCHICAL_ALLREDUCE"):
        words += ["-x", name] if name in os.environ else []
    return words
