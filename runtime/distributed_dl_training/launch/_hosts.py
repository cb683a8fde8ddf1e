"""Which hosts a job may use, and which rank runs where: pure but for reading host files.

The sources, in this order: -H, --hostfile, the allocation of Slurm or LSF, this machine alone.
"""

import re
import subprocess
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:,=\[\]]+)(?::(\d+))?")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")
_LONGEST_RANGE = 1 << 20


class UsageError(Exception):
    """The command line or what it refers to is wrong; the text is for the user."""


class Host(NamedTuple):
    """A machine and how many ranks it takes."""

    name: str
    slots: int


class Place(NamedTuple):
    """Where one rank runs; ``node`` counts the hosts that are used."""

    rank: int
    host: str
    node: int
    local_rank: int
    local_size: int


def find_hosts(
    named: Optional[str], hostfile: Optional[str], environ: Mapping[str, str], ranks: Optional[int]
) -> List[Host]:
    """Return the hosts of the first source there is; this machine has a slot for every rank.

    Raises UsageError if a source cannot be read or understood, or if there is no source and no
    number of ranks.
    """
    if named is not None:
        return parse_hosts(named)
    if hostfile is not None:
        return parse_hostfile(_read(hostfile), hostfile)
    if environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST"):
        return slurm_hosts(environ)
    if environ.get("LSB_DJOB_HOSTFILE") or environ.get("LSB_MCPU_HOSTS"):
        return lsf_hosts(environ)
    if ranks is None:
        raise UsageError("how many ranks? give -np, or hosts with their slots (-H)")
    return [Host("localhost", ranks)]


def parse_hosts(text: str) -> List[Host]:
    """Parse ``server1:4,server2:4``; a host without a number has one slot."""
    hosts = []
    for word in text.split(","):
        match = _HOST.fullmatch(word.strip())
        if match is None:
            raise UsageError(f"{word.strip()!r} in -H is no host; write name:slots,name:slots")
        hosts.append(_host(match.group(1), match.group(2), f"-H {text}"))
    return merge(hosts)


def parse_hostfile(text: str, where: str) -> List[Host]:
    """Parse lines ``name slots=N`` or ``name:N``; ``#`` starts a comment; default is one slot."""
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        place = f"{where}:{number}"
        match = _HOST.fullmatch(words[0])
        options = dict(word.partition("=")[::2] for word in words[1:])
        if match is None or not set(options) <= {"slots", "max_slots", "max-slots"}:
            raise UsageError(f"{place}: {line.strip()!r} is not `name slots=N` or `name:N`")
        if match.group(2) and "slots" in options:
            raise UsageError(f"{place}: {line.strip()!r} gives the slots twice")
        hosts.append(_host(match.group(1), options.get("slots", match.group(2)), place))
    if not hosts:
        raise UsageError(f"{where} names no host")
    return merge(hosts)


def slurm_hosts(
    environ: Mapping[str, str], expand: Optional[Callable[[str], List[str]]] = None
) -> List[Host]:
    """Return the nodes of a Slurm allocation with their tasks."""
    nodes = environ.get("SLURM_JOB_NODELIST") or environ["SLURM_NODELIST"]
    names = (expand or scontrol_hostnames)(nodes)
    tasks = environ.get("SLURM_TASKS_PER_NODE") or f"1(x{len(names)})"
    slots = parse_tasks_per_node(tasks)
    if len(slots) != len(names):
        raise UsageError(
            f"SLURM_TASKS_PER_NODE={tasks} is for {len(slots)} nodes, SLURM_JOB_NODELIST={nodes}"
            f" names {len(names)}"
        )
    return merge([Host(name, count) for name, count in zip(names, slots)])


def scontrol_hostnames(nodes: str) -> List[str]:
    """Expand a Slurm node list by ``scontrol show hostnames``, or without it by our own rules."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", nodes],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return expand_nodes(nodes)
    names = done.stdout.decode("utf-8", "replace").split()
    return names if done.returncode == 0 and names else expand_nodes(nodes)


def parse_tasks_per_node(text: str) -> List[int]:
    """Return the tasks of each node: ``4(x2),1`` gives [4, 4, 1].  Raises UsageError."""
    counts: List[int] = []
    for word in text.split(","):
        match = _TASKS.fullmatch(word.strip())
        if match is None:
            raise UsageError(f"SLURM_TASKS_PER_NODE={text} is not like 4(x2),1")
        counts.extend([int(match.group(1))] * int(match.group(2) or 1))
    return counts


def expand_nodes(text: str) -> List[str]:
    """Expand ``a[1-3,7],b,c[08-10]-ib[0-1]`` as Slurm does: zeros are kept, the last runs first.

    Raises UsageError.
    """
    names: List[str] = []
    for word in re.split(r",(?![^\[]*\])", text.strip()):  # outside brackets
        expanded = [""]
        for index, piece in enumerate(re.split(r"\[([^\[\]]*)\]", word)):
            values = _range_values(piece, text) if index % 2 else [piece]
            expanded = [name + value for name in expanded for value in values]
        if any(not name or "[" in name or "]" in name for name in expanded):
            raise UsageError(f"cannot understand the node list {text}")
        names.extend(expanded)
    return names


def _range_values(text: str, whole: str) -> List[str]:
    values: List[str] = []
    for word in text.split(","):
        match = _RANGE.fullmatch(word.strip())
        first, last = (match.group(1), match.group(2) or match.group(1)) if match else ("1", "0")
        count = int(last) - int(first) + 1
        if not 0 < count <= _LONGEST_RANGE:
            raise UsageError(f"cannot understand [{text}] in the node list {whole}")
        values.extend(str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return values


def lsf_hosts(environ: Mapping[str, str]) -> List[Host]:
    """Return the hosts of an LSF job, without the batch node that only runs the job script.

    LSB_DJOB_HOSTFILE has one line per slot, LSB_MCPU_HOSTS pairs of name and slots.  The first
    entry is a batch node if it has a single slot, the others have more, and either its name says
    so (Summit: batch1) or the job has a CSM allocation, as jobs with a launch node have.
    """
    if environ.get("LSB_DJOB_HOSTFILE"):
        path = environ["LSB_DJOB_HOSTFILE"]
        hosts = parse_hostfile(_read(path), path)
    else:
        text = environ["LSB_MCPU_HOSTS"]
        words = text.split()
        if len(words) % 2 or not all(word.isdigit() for word in words[1::2]):
            raise UsageError(f"LSB_MCPU_HOSTS={text} is not pairs of a host and its slots")
        hosts = merge([_host(n, c, "LSB_MCPU_HOSTS") for n, c in zip(words[::2], words[1::2])])
    first, others = hosts[0], hosts[1:]
    alone = bool(others) and first.slots == 1 and all(host.slots > 1 for host in others)
    if alone and (first.name.startswith("batch") or "CSM_ALLOCATION_ID" in environ):
        return others
    return hosts


def merge(hosts: Sequence[Host]) -> List[Host]:
    """Add up the slots of hosts that are named more than once, in the order of first mention."""
    slots: Dict[str, int] = {}
    for host in hosts:
        slots[host.name] = slots.get(host.name, 0) + host.slots
    return [Host(name, count) for name, count in slots.items()]


def place_ranks(hosts: Sequence[Host], ranks: Optional[int], oversubscribe: bool) -> List[Place]:
    """Fill the hosts one after the other with ``ranks`` ranks; None means one in every slot.

    oversubscribe: share out more ranks than slots, in proportion to the slots.
    Raises UsageError if there are more ranks than slots otherwise.
    """
    total = sum(host.slots for host in hosts)
    wanted = total if ranks is None else ranks
    if wanted > total and not oversubscribe:
        raise UsageError(
            f"{wanted} ranks were asked for, and there are {total} slots on"
            f" {len(hosts)} host{'s' if len(hosts) > 1 else ''}: "
            + ", ".join(f"{host.name}:{host.slots}" for host in hosts[:8])
            + (", ..." if len(hosts) > 8 else "")
            + "\n\nhint: give the hosts more slots, or --oversubscribe"
        )
    rounds = -(-wanted // total)
    places: List[Place] = []
    for node, host in enumerate(hosts):
        count = min(host.slots * rounds, wanted - len(places))
        first = len(places)
        places.extend(Place(first + n, host.name, node, n, count) for n in range(count))
    return places


def _host(name: str, slots: Optional[str], where: str) -> Host:
    count = "1" if slots is None else slots
    if not count.isdigit() or int(count) < 1:
        raise UsageError(f"{where}: {name} has {slots!r} slots; it must be a number above 0")
    return Host(name.strip("[]"), int(count))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError as error:
        raise UsageError(f"cannot read the hosts from {path}: {error.strerror}") from error
