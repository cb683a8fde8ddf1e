"""LSF, with IBM's CSM (as on Summit) and without. Sources: IBM's documentation of bsub and of the
environment of jobs, OLCF's user guide for Summit.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from ...errors import Place, UsageError
from ...model.job import Job, JobScript
from ...model.launch import Host, Hosts, LaunchNode, Words
from ...model.site import SiteLauncher
from ...text import LONG, shown
from ..hosts import HostEntry, host_name, join_hosts, slot_count, visible_gpus
from .protocol import Ask, Which, no_job_step, no_job_task, no_pmi

TITLE = "LSF"
SUBMIT = "bsub"
SUBMIT_LINE = "bsub <"
VERSION = ""
JOB_ID = "LSB_JOBID"
PARTITION = "LSB_QUEUE"
OPTIONS = frozenset({"alloc_flags"})
SETTINGS: Words = ()
_LAUNCHER = "jsrun"
_CSM = "CSM_ALLOCATION_ID"

# jsrun starts what it is told to beside whatever runs in the job.
job_step = no_job_step
job_task = no_job_task
draft_pmi = no_pmi

_ONCE = "awk '!seen[$1]++ { print $1 }'"


_USAGE = """\
#   bsub < FILE   run the program below
#
# The launch line contains the numbers of nodes and ranks, too. To change them, render this script
# again:
"""


def job_script(job: Job) -> JobScript:
    """Return what is LSF's of a script for bsub."""
    return JobScript(
        directives=tuple(f"#BSUB {option}" for option in (*_options(job), f"-o {job.name}-%J.out")),
        usage=_USAGE,
        absent="-z ${LSB_JOBID:-} || ! -r ${LSB_DJOB_HOSTFILE:-}",
        nodes=_nodes(job),
        job_id=JOB_ID,
    )


def shell_line(job: Job, program: Words) -> Words:
    """Return bsub with a terminal; one word is the program, as a shell reads it."""
    options = (shlex.split(option) for option in _options(job))
    return (SUBMIT, *chain.from_iterable(options), "-Is", shlex.join(program))


def _options(job: Job) -> Iterator[str]:
    hours, minutes = divmod(job.minutes, 60)
    if job.account:
        yield f"-P {job.account}"
    if job.name:
        yield f"-J {job.name}"
    yield f"-W {hours}:{minutes:02}"
    yield from _size(job)
    if job.partition:
        yield f"-q {job.partition}"
    if job.alloc_flags:
        yield f'-alloc_flags "{job.alloc_flags}"'


def _size(job: Job) -> Iterator[str]:
    if job.launch_node:
        # jsrun deals out the GPUs and cores of whole nodes.
        yield f"-nnodes {job.nodes}"
        return
    cores = "" if job.cpus_per_rank is None else f" affinity[core({job.cpus_per_rank})]"
    yield f"-n {job.nodes * job.ranks_per_node}"
    yield f'-R "span[ptile={job.ranks_per_node}]{cores}"'
    if job.gpus_per_node:
        yield f'-gpu "num={job.gpus_per_node}"'


def _nodes(job: Job) -> str:
    if not job.launch_node:
        return f'mapfile -t nodes < <({_ONCE} "$LSB_DJOB_HOSTFILE")'
    return (
        "# The first line is the node that this script runs on; no rank may run there.\n"
        f'mapfile -t nodes < <(tail -n +2 "$LSB_DJOB_HOSTFILE" | {_ONCE})'
    )


def job_hosts(
    environ: Mapping[str, str],
    read: Callable[[str, str], str],
    _ask: Ask,
    launch_node: LaunchNode | None,
) -> Hosts:
    """Return the hosts of a job; the file of its hosts is whole where the variable may be cut."""
    file, variable = environ.get("LSB_DJOB_HOSTFILE"), environ.get("LSB_MCPU_HOSTS")
    csm = launch_node is not None or _CSM in environ
    if file:
        text = read(file, f"LSB_DJOB_HOSTFILE={shown(file, LONG)}")
        hosts = lsf_hostfile(text, launch_node=csm)
    elif variable:
        hosts = lsf_hosts(variable, launch_node=csm)
    else:
        raise UsageError(
            "job.variable-not-set",
            "neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set in this job of LSF",
            "give hosts: -H host:4,host2:4",
        )
    if launch_node is not None and launch_node.room is not None:
        return tuple(Host(host.name, launch_node.room, gpus=launch_node.room) for host in hosts)
    # `bsub -gpu num=N` is for every host of the job. A launch node has other ones, or none.
    gpus = None if csm else visible_gpus(environ)
    return tuple(replace(host, gpus=gpus, cpus=host.slots) for host in hosts)


def draft_launcher(which: Which, _ask: Ask) -> SiteLauncher | None:
    """Return ``jsrun`` where it is."""
    return SiteLauncher(kind=_LAUNCHER, command=(_LAUNCHER,)) if which(_LAUNCHER) else None


def lsf_hosts(text: str, *, launch_node: bool) -> Hosts:
    """Return the hosts of LSB_MCPU_HOSTS, ``batch2 1 a01n02 42 a01n03 42``.

    ``launch_node``: the first host is the one that the script runs on, with one slot, and no rank
    may run there (LSF with IBM's CSM, as on Summit). The slots are those of LSF, which are cores
    on Summit. Raises UsageError.
    """
    place = Place("LSB_MCPU_HOSTS")
    words = text.split()
    if not words or len(words) % 2:
        raise UsageError(
            "job.malformed-hosts",
            "the value must be pairs of a host and its slots",
            "LSF sets it inside a job",
            place=place,
        )
    entries = [
        HostEntry(host_name(name, place), slot_count(slots, place), place)
        for name, slots in zip(words[::2], words[1::2], strict=True)
    ]
    return _without_launch_node(join_hosts(entries, add=True), place, launch_node=launch_node)


def lsf_hostfile(text: str, *, launch_node: bool) -> Hosts:
    """Return the hosts of the file that LSB_DJOB_HOSTFILE names: a line for each slot.

    ``launch_node`` as for ``lsf_hosts``.
    """
    place = Place("LSB_DJOB_HOSTFILE")
    entries = [
        HostEntry(host_name(line.strip(), Place(place.file, number, 1)), 1, place)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]
    return _without_launch_node(join_hosts(entries, add=True), place, launch_node=launch_node)


def _without_launch_node(hosts: Hosts, place: Place, *, launch_node: bool) -> Hosts:
    if not launch_node and hosts:
        return hosts
    if len(hosts) < 2:
        raise UsageError(
            "job.no-hosts",
            "the list does not contain a host for ranks"
            + (" beyond the launch node" if hosts else ""),
            "LSF sets it inside a job",
            place=place,
        )
    if hosts[0].slots != 1:
        raise UsageError(
            "job.no-launch-node",
            f"the first host, {hosts[0].name}, has {hosts[0].slots} slots; a launch node has one",
            "only LSF with IBM CSM has launch nodes; check the site file",
            place=place,
        )
    return hosts[1:]
