"""Host lists as people write them: ``-H host:4,host2:4`` and a hostfile.

All are checked here, so that a launch line never holds what is no host's name. Those of a job are
read by its scheduler's module, with the helpers below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from ..errors import Place, UsageError
from ..model.launch import Host, Hosts
from ..text import shown

# RFC 1123, and the underscore that some sites use. None begins with a hyphen: that is an option.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?"
_SLOTS = r"[1-9][0-9]{0,5}"


class HostEntry(NamedTuple):
    """A host as it was written: ``slots`` None where no number stands with it."""

    name: str
    slots: int | None
    place: Place


def visible_gpus(environ: Mapping[str, str]) -> int | None:
    """Return how many GPUs of this host CUDA_VISIBLE_DEVICES names; None where it is not set."""
    text = environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    # CUDA ignores what follows the first entry that names no GPU; schedulers write -1 for none.
    devices = (entry.strip() for entry in text.split(","))
    return len([*takewhile(lambda device: device not in ("", "-1", "NoDevFiles"), devices)])


def hosts_argument(text: str, source: str = "-H", whole: int = 1) -> Hosts:
    """Return the hosts of ``host:4,host2:4``; without a number a host has *whole* slots.

    Raises UsageError that names entry and column.
    """
    entries = []
    column = 1
    for part in text.split(","):
        word = part.strip()
        place = Place(source, 1, column + part.find(word))
        if not word:
            raise UsageError(
                "hosts.empty-entry",
                "an entry is empty: remove the extra comma",
                place=place,
            )
        entries.append(_host_and_slots(word, place))
        column += len(part) + 1
    return join_hosts(entries, whole=whole)


def hostfile(text: str, source: str = "hostfile", whole: int = 1) -> Hosts:
    """Return the hosts of a hostfile's text, in the forms of Open MPI and of MPICH.

    A line is ``host``, ``host slots=4 max_slots=8`` or ``host:4``; ``#`` begins a comment. A bare
    host has *whole* slots, or one for each of its lines if it has several, as schedulers write such
    files (Open MPI itself would take a bare host's cores). Raises UsageError with line and column.
    """
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            entries.append(_hostfile_line(words, Place(source, number, line.index(words[0]) + 1)))
    if not entries:
        raise UsageError(
            "hosts.empty-file",
            "the hostfile does not contain a host",
            "write 'host slots=4', one host a line",
            place=Place(source),
        )
    return join_hosts(entries, whole=whole)


def _host_and_slots(word: str, place: Place) -> HostEntry:
    name, colon, slots = word.partition(":")
    return HostEntry(host_name(name, place), slot_count(slots, place) if colon else None, place)


def _hostfile_line(words: Sequence[str], place: Place) -> HostEntry:
    entry = _host_and_slots(words[0], place)
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "slots" and entry.slots is None:
            entry = entry._replace(slots=slot_count(value, place))
        elif key in ("max_slots", "max-slots"):
            slot_count(value, place)
        else:
            raise UsageError(
                "hosts.unknown-keyword",
                f"unknown text after a host: '{shown(word)}'",
                "write 'host slots=4', one host a line",
                place=place,
            )
    return entry


def host_name(text: str, place: Place) -> str:
    """Return *text*; UsageError with its place for what is no host's name."""
    if not re.fullmatch(_NAME, text):
        raise UsageError(
            "hosts.malformed-name",
            f"not a host name: '{shown(text)}'",
            "use letters, digits, . _ and -; begin and end with a letter or digit",
            place=place,
        )
    return text


def slot_count(text: str, place: Place) -> int:
    """Return a number of slots; UsageError with its place for what is none."""
    if not re.fullmatch(_SLOTS, text):
        raise UsageError(
            "hosts.malformed-slots",
            f"not a number of slots: '{shown(text)}'",
            "use a number of at least 1: host:4 has slots for four ranks",
            place=place,
        )
    return int(text)


def join_hosts(entries: Sequence[HostEntry], *, add: bool = False, whole: int = 1) -> Hosts:
    """Return each host once. A bare one has *whole* slots, or one for each time if it is repeated.

    ``add``: numbers add up as well; else a host with a number that stands there twice is a slip.
    """
    by_name: dict[str, Host] = {}
    numbered: set[str] = set()
    for entry in entries:
        before = by_name.get(entry.name)
        if before and not add and (entry.slots is not None or entry.name in numbered):
            raise UsageError(
                "hosts.duplicate-host",
                f"duplicate host {entry.name}",
                "list each host once, with all its slots",
                place=entry.place,
            )
        if entry.slots is not None:
            numbered.add(entry.name)
        slots = (before.slots if before else 0) + (1 if entry.slots is None else entry.slots)
        by_name[entry.name] = Host(entry.name, slots)
    return tuple(
        replace(host, slots=whole if host.slots == 1 else host.slots, bare=True)
        if host.name not in numbered
        else host
        for host in by_name.values()
    )
