"""The table of launch lines: every launcher at every shipped site, for every use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from envbuilder import data
from envbuilder.documents.library import catalogue
from envbuilder.documents.load import load_site
from envbuilder.errors import UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.launching.launchers import LAUNCHERS, launch_line, site_shape
from envbuilder.model.job import Job
from envbuilder.model.launch import Host, Hosts, LaunchRequest, Shape, TaskRequest, Words
from envbuilder.model.plan import Pin, Plan, Proof, RuntimePlan
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import Site, SiteLauncher
from envbuilder.render.quoting import bash
from envbuilder.workflow.entries import entries
from envbuilder.workflow.hosts import HostList
from envbuilder.workflow.launch_requests import (
    LaunchFacts,
    base_request,
    example,
    programs_launcher,
    script_start,
    smoke_request,
)
from envbuilder.workflow.texts import job_words
from tests.shipped import read_shipped

NODES = 2
# The launchers of the site documents that no MPI of a stack brings are started with this one.
USUAL_MPI = ("openmpi", "4.0.5")
MPI_OF: Mapping[str, tuple[str, str]] = {
    "hydra": ("mpich", "4.2.0"),
    "spectrum-mpi": ("spectrum-mpi", "10.3.1.2"),
    "jsrun": ("spectrum-mpi", "10.3.1.2"),
    "ddlrun": ("spectrum-mpi", "10.3.1.2"),
}
# One that has no name of its own.
COMMAND_OF: Mapping[str, Words] = {"custom": ("start",)}
PROGRAM = ("python", "PROGRAM.py")

HEAD = """\
# Every launch line

For every launcher at every shipped site, and on a machine without a scheduler (`local`): the words
before the program. Several nodes are two, with a rank for each GPU, or two where the site states
none; `smoke test` is one on the same nodes with as many ranks (on one where the launcher asks no
scheduler), `smoke.sh` the script of a build folder or bundle, which has two ranks. Open MPI is
4.0.5. `tests/launchers/test_table.py` makes this page (`ENVBUILD_UPDATE_GOLDENS=1`) from the
function that every use takes its line from.
"""


@dataclass(frozen=True)
class Row:
    """The lines of one launcher at one site by their use, or why there is none."""

    site: str
    launcher: str
    lines: Mapping[str, str]


@cache
def knowledge() -> Knowledge:
    return read_shipped().value


def sites() -> Iterator[Site]:
    """Yield the shipped sites and a machine without a scheduler."""
    known = knowledge()
    for _, path in catalogue("site", [data.RECIPES]):
        yield load_site(path, known, entries()).value
    yield Site(schema=1, name="local", summary="A machine without a scheduler", arch=("x86_64",))


def plan_of(kind: str, site: Site) -> Plan:
    """Return a plan that is started by this launcher, with the words that the site has for it."""
    component, version = MPI_OF.get(kind, USUAL_MPI)
    own = site.launcher
    command = own.command if own and own.kind == kind else LAUNCHERS[kind].COMMAND
    launcher = SiteLauncher(kind=kind, command=command or COMMAND_OF[kind])
    stack = {component: version, **({"nccl": "2.8.3"} if site.facts.gpus_per_node else {})}
    pins = (
        Pin(component=name, version=number, origin="pip", locator=name, why="asked")
        for name, number in stack.items()
    )
    return Plan(
        recipe="any",
        summary="Any",
        site=site.name,
        arch=site.arch[0],
        backend="virtualenv",
        system_site_packages=False,
        python="/usr/bin/python3",
        pins=tuple(pins),
        runtime=RuntimePlan(package="runtime", version="1", source_sha256="a" * 64),
        launcher=launcher,
        environment=(),
        smoke=Smoke(),
        steps=(),
    )


def facts_of(kind: str, site: Site) -> LaunchFacts:
    scheduler = site.scheduler if site.scheduler not in (None, "none") else None
    return LaunchFacts(plan_of(kind, site), knowledge().components, site_shape(site), scheduler)


def proof_of(facts: LaunchFacts) -> Proof:
    return Proof(api="numpy", transport="mpi", launcher=facts.plan.launcher)


def ranks_a_node(shape: Shape) -> int:
    return shape.gpus_per_node or 2


def hosts_of(facts: LaunchFacts) -> HostList:
    """Return two nodes of a job; where the site has no scheduler it is this machine."""
    if facts.scheduler is None:
        return HostList(None, "this machine")
    slots = ranks_a_node(facts.shape)
    hosts = tuple(Host(f"node{number}", slots) for number in range(1, NODES + 1))
    return HostList(hosts, "the job", facts.scheduler, allocated=True)


def users_request(facts: LaunchFacts, hosts: Hosts | None) -> LaunchRequest:
    """Return what ``envbuild launch`` asks for, a rank on every slot; None: on one node."""
    ranks = sum(host.slots for host in hosts or ()) or ranks_a_node(facts.shape)
    launcher = programs_launcher(facts.plan, facts.scheduler)
    request = base_request(facts, launcher, ranks, facts.scheduler)
    if hosts and LAUNCHERS[launcher.kind].TRAITS.job.one_per_node and not facts.gpus:
        # The job script asks for a CPU for each rank that the one task of a node starts.
        hosts = tuple(replace(host, cpus=host.slots) for host in hosts)
        request = replace(request, task=TaskRequest(cpus=hosts[0].slots))
    return replace(request, program=PROGRAM, hosts=hosts, allocated=hosts is not None)


def smoke_on(facts: LaunchFacts, hosts: HostList) -> LaunchRequest:
    """Return what a smoke test asks for on the same hosts, with as many ranks.

    Launchers that reach other nodes by ssh, or not at all, are proved on one node.
    """
    ranks = users_request(facts, hosts.hosts).ranks
    request = smoke_request(facts, proof_of(facts), ranks, hosts)
    if request.hosts is None and hosts.hosts:
        return smoke_on(facts, HostList(None, "one node", facts.scheduler))
    return replace(request, program=PROGRAM)


def row(kind: str, site: Site) -> Row:
    facts = facts_of(kind, site)
    hosts = hosts_of(facts)
    proof = proof_of(facts)
    return Row(
        site.name,
        kind,
        {
            "launch, several nodes": text(lambda: launch_line(users_request(facts, hosts.hosts))),
            "launch, one node": text(lambda: launch_line(users_request(facts, None))),
            "job script": text(lambda: _script(facts)),
            "smoke test": text(lambda: launch_line(smoke_on(facts, hosts))),
            "module help, create": text(lambda: example(facts).words),
            "smoke.sh": text(lambda: (*script_start(facts, proof).words, *PROGRAM)),
        },
    )


def _script(facts: LaunchFacts) -> Words:
    if facts.scheduler is None:
        raise UsageError("hosts.no-scheduler", "the site has no scheduler")
    slots = ranks_a_node(facts.shape)
    job = Job("any", NODES, slots, 30, gpus_per_node=slots if facts.gpus else 0)
    words = job_words(facts, job, facts.scheduler)
    return (*words[: words.index("python")], *PROGRAM)


def text(make: Callable[[], Words]) -> str:
    """Return a line without its program, or why there is none."""
    try:
        words = make()
    except UsageError as error:
        return f"(none: {error.problems[0].message})"
    assert words[-len(PROGRAM) :] == PROGRAM, words
    return " ".join(bash(word) for word in words[: -len(PROGRAM)])


def rows() -> tuple[Row, ...]:
    """Return the whole table."""
    return tuple(row(kind, site) for site in sites() for kind in LAUNCHERS)


def page() -> str:
    """Return docs/launch-lines.md."""
    parts = [HEAD]
    site = None
    for each in rows():
        if each.site != site:
            parts.append(f"\n## {each.site}\n")
            site = each.site
        uses: dict[str, list[str]] = {}
        for use, line in each.lines.items():
            uses.setdefault(line, []).append(use)
        parts.append(f"\n### {each.launcher}\n\n")
        parts += [f"- {'; '.join(names)}\n\n      {line}\n" for line, names in uses.items()]
    return "".join(parts)
