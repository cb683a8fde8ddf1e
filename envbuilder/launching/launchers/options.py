"""Words that several launchers share."""

from __future__ import annotations

from ...errors import UsageError
from ...knowledge.entries import option_name
from ...model.launch import JobHosts, LaunchRequest, Words, text_of, used_hosts


def hosts_option(request: LaunchRequest, option: str) -> Words:
    """Return the hosts for an MPI's launcher, which finds those of a job by itself."""
    return (option, text_of(request.named)) if request.named else ()


def hosts_and_slots(request: LaunchRequest) -> Words:
    """Return ``-H host:4,host2:4`` for a launcher that asks no scheduler; () for this machine."""
    hosts = request.hosts
    if not isinstance(hosts, JobHosts):
        return ("-H", text_of(hosts)) if hosts else ()
    if hosts.nodes == 1:
        return ()
    if hosts.names is None:
        raise needs_hosts(request)
    return ("-H", hosts.names)


def host_names(request: LaunchRequest, *, known: bool) -> str:
    """Return the hosts with ranks, ``host,host2``; empty where they are the whole job's.

    ``known``: the launcher knows the job's hosts. Of those some are named: else the scheduler would
    choose which.
    """
    hosts = request.hosts if isinstance(request.hosts, tuple) else ()
    used = used_hosts(hosts, request.ranks)
    return "" if known and len(used) == len(hosts) else ",".join(host.name for host in used)


def exports_by(request: LaunchRequest, option: str, more: Words = ()) -> Words:
    """Return *option* before every variable that the ranks are to be handed."""
    exports = dict.fromkeys((*request.exports, *more))
    return tuple(word for export in exports for word in (option, export))


def option_words(request: LaunchRequest) -> Words:
    """Return the words of the options that site and recipe state."""
    words: list[str] = []
    for option in request.options:
        name = option_name(option)
        has_words = option.removeprefix(name).startswith(" ")
        words += option.split() if has_words else [option]
    return tuple(words)


def is_stated(request: LaunchRequest, *names: str) -> bool:
    """Return whether site or recipe state one of these options."""
    return not {option_name(option) for option in request.options}.isdisjoint(names)


def even_ranks(request: LaunchRequest) -> int:
    """Return the ranks of each node. Raises UsageError where they differ."""
    per_node = request.per_node()
    if per_node is None:
        raise UsageError(
            "launch.uneven-ranks",
            f"{request.kind} needs the same number of ranks on every node",
            "give each host the same number of slots: -H host:2,host2:2",
        )
    return per_node


def endpoint(request: LaunchRequest) -> str:
    """Return ``host:port`` of the first host, where ranks without MPI meet."""
    hosts = request.hosts
    if isinstance(hosts, JobHosts) and hosts.endpoint is not None:
        return hosts.endpoint
    if isinstance(hosts, tuple) and hosts:
        return f"{hosts[0].name}:{request.port}"
    raise needs_hosts(request)


def endpoint_parts(request: LaunchRequest) -> tuple[str, str]:
    """Return host and port of ``endpoint``."""
    if isinstance(request.hosts, JobHosts) and request.hosts.endpoint_parts:
        return request.hosts.endpoint_parts
    host, _, port = endpoint(request).rpartition(":")
    return host, port


def needs_hosts(request: LaunchRequest) -> UsageError:
    """Return the error that a launcher which asks no scheduler is told no hosts."""
    return UsageError(
        "launch.hosts-required",
        f"{request.kind} does not query a scheduler: it needs hosts for {request.nodes} nodes",
        "give hosts: -H host:4,host2:4",
        "or start the program in a job: envbuild render RECIPE --as job writes its script",
    )
