"""Host lists: which hosts there are and how many ranks each has slots for.

They come as people and schedulers write them: ``-H host:4,host2:4``, a hostfile, and the variables
of Slurm and LSF. All are checked here, so that a launch line never holds what is no host's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import Place, UsageError
from ..text import shown

# RFC 1123, and the underscore that some sites use. None begins with a hyphen: that is an option.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_NAMED_SO = "it is of letters, digits and . _ -, and begins and ends with a letter or digit"
_SLOTS = re.compile(r"[1-9][0-9]{0,5}")
# `4(x2),3`: four tasks on each of two nodes, then three (srun(1), SLURM_TASKS_PER_NODE).
_TASKS = re.compile(r"(?P<tasks>[1-9][0-9]{0,5})(?:\(x(?P<nodes>[1-9][0-9]{0,5})\))?")
# One name or folded group of a node list: up to a comma that is not in brackets.
_GROUP = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,-]+\])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")
# More than any machine has; a slip such as n[1-99999999] would fill the memory.
_MOST_HOSTS = 100_000


@dataclass(frozen=True)
class Host:
    """One host and how many ranks there is room for."""

    name: str
    slots: int

    def __str__(self) -> str:
        return f"{self.name}:{self.slots}"


Hosts = tuple[Host, ...]


@dataclass(frozen=True)
class _Entry:
    """A host as it was written: ``slots`` None where no number stands with it."""

    name: str
    slots: int | None
    place: Place


def hosts_argument(text: str, source: str = "-H") -> Hosts:
    """Return the hosts of ``host:4,host2:4``; without a number it is one slot.

    Raises UsageError that names entry and column.
    """
    entries = []
    column = 1
    for part in text.split(","):
        word = part.strip()
        place = Place(source, 1, column + part.find(word))
        if not word:
            raise UsageError("an entry is empty: there is a comma too many", place=place)
        entries.append(_host_and_slots(word, place))
        column += len(part) + 1
    return _joined(entries)


def hostfile(text: str, source: str = "hostfile") -> Hosts:
    """Return the hosts of a hostfile's text, in the forms of Open MPI and of MPICH.

    A line is ``host``, ``host slots=4 max_slots=8`` or ``host:4``; ``#`` begins a comment. A bare
    host is one slot, and one more for each further line of it, as schedulers write such files
    (Open MPI itself would take a bare host's cores). Raises UsageError with line and column.
    """
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            entries.append(_hostfile_line(words, Place(source, number, line.index(words[0]) + 1)))
    if not entries:
        raise UsageError(
            "it names no host", "write 'host slots=4', one a line", place=Place(source)
        )
    return _joined(entries)


def slurm_hosts(nodelist: str, tasks_per_node: str) -> Hosts:
    """Return the hosts of an allocation, from SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE.

    In the order that Slurm writes them, which is the one its counts of tasks go by. Raises
    UsageError for what is no node list, and where the two variables do not fit together.
    """
    names = node_names(nodelist)
    tasks = tuple(_tasks_per_node(tasks_per_node))
    if len(names) != len(tasks):
        raise UsageError(
            f"it counts {len(tasks)} nodes, SLURM_JOB_NODELIST names {len(names)}",
            "take both variables from the same job",
            place=Place("SLURM_TASKS_PER_NODE"),
        )
    return tuple(Host(name, slots) for name, slots in zip(names, tasks, strict=True))


def node_names(nodelist: str) -> tuple[str, ...]:
    """Return the names of a folded node list such as ``taurusml[1-4,7],login1``, in its order."""
    place = Place("SLURM_JOB_NODELIST")
    names: list[str] = []
    for group in _groups(nodelist.strip(), place):
        names += _unfolded(group, place)
    wrong = next((name for name in names if not _NAME.fullmatch(name)), None)
    if wrong:
        raise UsageError(f"not a host's name: '{shown(wrong)}'", _NAMED_SO, place=place)
    twice = _first_repeated(names)
    if twice:
        raise UsageError(f"the node {twice} stands in it twice", place=place)
    return tuple(names)


def lsf_hosts(text: str, *, launch_node: bool) -> Hosts:
    """Return the hosts of LSB_MCPU_HOSTS, ``batch2 1 a01n02 42 a01n03 42``.

    ``launch_node``: the first host is the one that the script runs on, with one slot, and no rank
    may run there (LSF with IBM's CSM, as on Summit). The slots are those of LSF, which are cores
    on Summit: see ``with_slots``. Raises UsageError.
    """
    place = Place("LSB_MCPU_HOSTS")
    words = text.split()
    if not words or len(words) % 2:
        raise UsageError(
            "it must be pairs of a host and its slots", "LSF sets it inside a job", place=place
        )
    entries = [
        _Entry(_name(name, place), _slots(slots, place), place)
        for name, slots in zip(words[::2], words[1::2], strict=True)
    ]
    return _without_launch_node(_joined(entries, add=True), place, launch_node=launch_node)


def lsf_hostfile(text: str, *, launch_node: bool) -> Hosts:
    """Return the hosts of the file that LSB_DJOB_HOSTFILE names: a line for each slot.

    ``launch_node`` as for ``lsf_hosts``.
    """
    place = Place("LSB_DJOB_HOSTFILE")
    entries = [
        _Entry(_name(line.strip(), Place(place.file, number, 1)), 1, place)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]
    return _without_launch_node(_joined(entries, add=True), place, launch_node=launch_node)


def with_slots(hosts: Sequence[Host], slots: int) -> Hosts:
    """Return the hosts with room for *slots* ranks each, where their own count cores."""
    return tuple(replace(host, slots=slots) for host in hosts)


def text_of(hosts: Sequence[Host]) -> str:
    """Return the hosts as launchers take them: ``host:4,host2:4``."""
    return ",".join(str(host) for host in hosts)


def _host_and_slots(word: str, place: Place) -> _Entry:
    name, colon, slots = word.partition(":")
    return _Entry(_name(name, place), _slots(slots, place) if colon else None, place)


def _hostfile_line(words: Sequence[str], place: Place) -> _Entry:
    entry = _host_and_slots(words[0], place)
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "slots" and entry.slots is None:
            entry = replace(entry, slots=_slots(value, place))
        elif key in ("max_slots", "max-slots"):
            _slots(value, place)
        else:
            raise UsageError(
                f"'{shown(word)}' is not understood after a host",
                "write 'host slots=4', one host a line",
                place=place,
            )
    return entry


def _name(text: str, place: Place) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(f"not a host's name: '{shown(text)}'", _NAMED_SO, place=place)
    return text


def _slots(text: str, place: Place) -> int:
    if not _SLOTS.fullmatch(text):
        raise UsageError(
            f"not a number of slots: '{shown(text)}'",
            "slots are counted from 1: host:4 has room for four ranks",
            place=place,
        )
    return int(text)


def _joined(entries: Sequence[_Entry], *, add: bool = False) -> Hosts:
    """Return each host once. A bare one counts as often as it stands there.

    ``add``: numbers add up as well; else a host with a number that stands there twice is a slip.
    """
    found: dict[str, Host] = {}
    numbered: set[str] = set()
    for entry in entries:
        before = found.get(entry.name)
        if before and not add and (entry.slots is not None or entry.name in numbered):
            raise UsageError(
                f"the host {entry.name} stands there twice",
                "give each host once, with all its slots",
                place=entry.place,
            )
        if entry.slots is not None:
            numbered.add(entry.name)
        slots = (before.slots if before else 0) + (1 if entry.slots is None else entry.slots)
        found[entry.name] = Host(entry.name, slots)
    return tuple(found.values())


def _without_launch_node(hosts: Hosts, place: Place, *, launch_node: bool) -> Hosts:
    if not launch_node and hosts:
        return hosts
    if len(hosts) < 2:
        raise UsageError(
            "it names no host for ranks" + (" besides the launch node" if hosts else ""),
            "it is set inside a job only",
            place=place,
        )
    if hosts[0].slots != 1:
        raise UsageError(
            f"its first host, {hosts[0].name}, has {hosts[0].slots} slots: that is no launch node",
            "launch nodes, with one slot, are there where LSF works with IBM's CSM",
            place=place,
        )
    return hosts[1:]


def _tasks_per_node(text: str) -> Iterator[int]:
    place = Place("SLURM_TASKS_PER_NODE")
    for part in text.strip().split(","):
        found = _TASKS.fullmatch(part)
        if not found or int(found["nodes"] or 1) > _MOST_HOSTS:
            raise UsageError(
                f"'{shown(part)}' is not understood", "it reads like 4(x2),3", place=place
            )
        yield from [int(found["tasks"])] * int(found["nodes"] or 1)


def _groups(nodelist: str, place: Place) -> Iterator[str]:
    position = 0
    while True:
        found = _GROUP.match(nodelist, position)
        if not found or (found.end() < len(nodelist) and nodelist[found.end()] != ","):
            at = found.end() if found else position
            raise UsageError(
                f"not a node list, from character {at + 1} on: '{shown(nodelist)}'",
                "it reads like node[1-4,7],other1",
                place=place,
            )
        yield found[0]
        position = found.end() + 1
        if position > len(nodelist):
            return


def _unfolded(group: str, place: Place) -> Iterable[str]:
    # NodeSet sorts; Slurm does not. With one pair of brackets, the usual case, its parts are
    # given to NodeSet one by one. With more, both go through the first ones outermost.
    from ClusterShell.NodeSet import (  # type: ignore[import-untyped]
        RESOLVER_NOGROUP,
        NodeSet,
        NodeSetException,
    )

    brackets = _BRACKETS.findall(group)
    if math.prod(_size(each) for each in brackets) > _MOST_HOSTS:
        raise UsageError(f"more nodes than any machine has: '{shown(group)}'", place=place)
    parts = (
        [_BRACKETS.sub(f"[{each}]", group) for each in brackets[0].split(",")]
        if len(brackets) == 1
        else [group]
    )
    try:
        return [str(name) for part in parts for name in NodeSet(part, resolver=RESOLVER_NOGROUP)]
    except NodeSetException as error:
        raise UsageError(f"not a node list: {error}", place=place) from error


def _size(ranges: str) -> int:
    bounds = _RANGE.findall(ranges)
    return ranges.count(",") + 1 + sum(max(0, int(last) - int(first)) for first, last in bounds)


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
