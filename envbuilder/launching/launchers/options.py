"""Words that several launchers share."""

from __future__ import annotations

from ...errors import UsageError
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


def needs_hosts(request: LaunchRequest) -> UsageError:
    """Return the error that a launcher which asks no scheduler is told no hosts."""
    return UsageError(
        "launch.hosts-required",
        f"{request.kind} does not query a scheduler: it needs hosts for {request.nodes} nodes",
        "give hosts: -H host:4,host2:4",
        "or start the program in a job: envbuild render RECIPE --as job writes its script",
    )
