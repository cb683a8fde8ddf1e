"""``envbuild launch``: the exact line that starts a program on all ranks of an environment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..build.backends import entering
from ..documents.site_choice import with_partition
from ..errors import UsageError
from ..knowledge.entries import check_choice
from ..launching.launchers import LAUNCHERS, launch_line
from ..launching.schedulers import SCHEDULERS, current_scheduler
from ..model.launch import JobHosts, LaunchRequest, Words, slots_of
from ..model.outcome import LaunchLine
from ..model.plan import Plan
from ..model.profiles import recipe_arguments
from ..model.site import SiteLauncher
from ..record import read_all
from ..render.job import PYTHON, guarded
from ..root.environments import find
from ..runtimes import RUNTIMES
from ..text import LONG, counted, shown
from ..workflow.context import Context
from ..workflow.hosts import HostList, find_hosts, with_room
from ..workflow.image_contents import is_image
from ..workflow.launch_requests import (
    LaunchFacts,
    base_request,
    environment_program,
    facts_at,
    facts_of,
    missing_launcher,
    programs_launcher,
    reads_tf_config,
)
from ..workflow.load import Planned, load
from ..workflow.options import LaunchOptions
from ..workflow.places import existing_root
from ..workflow.plan_options import PlanOptions
from ..workflow.published import (
    Published,
    check_programs,
    environments_of,
    find_published,
    is_recipe_file,
    read_published,
    select,
)
from ..workflow.site_contents import partition_of_job

if TYPE_CHECKING:
    from ..workflow.image_contract import HostedImage

# What the site's modules may set for what lies in them.
_OF_MODULES = ("LD_LIBRARY_PATH", "PYTHONPATH")


@dataclass(frozen=True)
class _Environment:
    """What a line is for.

    ``published``: where it is in a root; None for a recipe's plan, and for ``image``.
    """

    name: str
    facts: LaunchFacts
    published: Published | None = None
    image: HostedImage | None = None


def launch(environment: str, options: LaunchOptions, context: Context) -> LaunchLine:
    """Return the line for a published environment, an image or what a recipe would be.

    Starts nothing. The line of an environment ends with an error where that is not loaded.

    Raises UsageError for what could not start, or would start every rank as rank 0 of 1; DriftError
    for an environment without its prefix, Python or launcher.
    """
    found = _environment(environment, options, context)
    facts = found.facts
    in_job = options.nodes is None
    scheduler = current_scheduler(context.environ) if in_job else facts.scheduler
    launcher, gloo = _launcher(facts.plan, options, scheduler)
    hosts = _find_hosts(facts, launcher, options, context)
    request = _request(found, options, hosts, launcher, gloo=gloo)
    # Outside of a job such a launcher asks for one itself.
    own_job = LAUNCHERS[request.kind].TRAITS.job.scheduler is not None and hosts.scheduler is None
    counted_ranks = _is_counted(request, options)
    named = hosts.hosts if isinstance(hosts.hosts, tuple) else ()
    line = LaunchLine(
        environment=found.name,
        number=found.published.version.number if found.published else None,
        contract=found.image.rows if found.image else (),
        launcher=request.kind,
        ranks=request.ranks if counted_ranks else None,
        hosts=tuple(str(host) if counted_ranks or not host.bare else host.name for host in named),
        hosts_from=f"a job that {request.kind} requests" if own_job else hosts.source,
        words=_guarded(found, request),
    )
    _report(line, found, context)
    if unstated := _unstated(request):
        context.reporter.say(
            f"the ranks are not compared with the size of a node: site {facts.plan.site} does not "
            f"state {' and '.join(unstated)}"
        )
    return line


def _unstated(request: LaunchRequest) -> tuple[str, ...]:
    """Return the facts that a check of the nodes lacks; in a job its slots were checked."""
    if request.hosts is None or request.allocated:
        return ()
    gpus = request.gpus and request.shape.gpus_per_node is None
    cores = request.shape.cores_per_node is None
    return (*(["gpus-per-node"] if gpus else []), *(["cores-per-node"] if cores else []))


def _environment(environment: str, options: LaunchOptions, context: Context) -> _Environment:
    """Return the image; the environment of the root; else the plan of the recipe of that name."""
    if is_image(environment, context.path(environment)):
        return _in_image(environment, options, context)
    if options.host_mpi or options.binds:
        raise UsageError(
            "option.only-for-image",
            f"--host-mpi and --bind apply only to an image (NAME.sif or a sandbox), not to "
            f"{environment}",
            "leave them out",
        )
    where = options.where
    choice = PlanOptions(environment, where.site, where.arch, options.partition)
    published = find_published(choice, where.root, context)
    if published is None and where.root and not is_recipe_file(environment):
        # Raises UsageError: nothing of that name is in the root that was named.
        published = read_published(*find(existing_root(where, context), environment))
    if published is None:
        plan_inputs = load(choice, context)
        environments = environments_of(plan_inputs, where.root, context)
        found = select(environments, plan_inputs, choice, context)
        if isinstance(found, Planned):
            if environments:
                context.reporter.warn(
                    f"{environment} has changed since {environments[0]} was built"
                )
            return _of_plan(found, options, context)
        published = found
    known = published.context(context)
    facts = facts_at(published.plan, where.site, options.partition, known)
    return _Environment(published.home.name, facts, published)


def _guarded(found: _Environment, request: LaunchRequest) -> Words:
    """Return the line; of a published environment it checks Python and launcher before."""
    words, environment = launch_line(request), found.published
    if environment is None:
        return words
    launcher = SiteLauncher.model_construct(kind=request.kind, command=request.command)
    program = environment_program(environment.plan, launcher)
    in_prefix = [program.name] if program and program.module is None else []
    check_programs(environment, PYTHON, *in_prefix)
    return guarded(words, environment.prefix, environment.name, program)


def _in_image(name: str, options: LaunchOptions, context: Context) -> _Environment:
    """Return an image that the host's launcher starts a container of for each rank.

    Raises UsageError where the two do not fit: each rank would be rank 0 of 1.
    """
    # lazy import: only of an image
    from ..workflow.image_contract import check_fits, hosted_image

    image = hosted_image(
        name,
        options.where.site,
        options.partition,
        context,
        host_mpi=options.host_mpi,
        binds=tuple(options.binds or ()),
    )
    check_fits(image)
    return _Environment(image.plan.recipe, image.facts(context), image=image)


def _of_plan(planned: Planned, options: LaunchOptions, context: Context) -> _Environment:
    """Return what the recipe would be at the site: nothing of it is built."""
    plan_inputs, plan = planned.inputs, planned.plan
    if options.partition is None:
        chosen = plan_inputs.chosen
        chosen = with_partition(chosen, partition_of_job(chosen, context))
        plan_inputs = replace(plan_inputs, chosen=chosen)
    return _Environment(plan.recipe, facts_of(plan, plan_inputs))


def _find_hosts(
    facts: LaunchFacts, launcher: SiteLauncher, options: LaunchOptions, context: Context
) -> HostList:
    """Return the hosts; those of a job that is still to be asked for have no names."""
    nodes, scheduler = options.nodes, facts.scheduler
    if nodes is None:
        gpus = facts.shape.gpus_per_node
        # A host's name alone is the whole node for one that takes no number (document 003).
        whole = gpus if gpus and LAUNCHERS[launcher.kind].TRAITS.job.on_every_gpu else 1
        hosts = find_hosts(options.hosts, options.hostfile, facts.launch_node, context, whole)
        hosts = with_room(hosts, launcher.kind, gpus, options.ranks, gpus=facts.gpus)
        return _with_count(hosts, launcher.kind, gpus)
    if options.hosts is not None or options.hostfile is not None:
        raise UsageError(
            "option.conflict",
            "--nodes cannot be combined with -H or --hostfile: the scheduler chooses the hosts of "
            "a job",
            "leave one of them out",
        )
    if nodes < 1:
        raise UsageError("job.invalid-size", f"a job cannot have {nodes} nodes", "use 1 or more")
    if scheduler is None:
        raise UsageError(
            "site.no-scheduler",
            f"site {facts.plan.site} has no scheduler, so --nodes {nodes} cannot be used",
            "name the hosts: -H host:4,host2:4",
        )
    slots = math.ceil((options.ranks or facts.plan.smoke.ranks * nodes) / nodes)
    source = f"a job of {SCHEDULERS[scheduler].TITLE} with {counted(nodes, 'node')}"
    return HostList(JobHosts(nodes, slots), source, scheduler)


def _with_count(hosts: HostList, kind: str, gpus: int | None) -> HostList:
    """Return the hosts; their source states what a host without a number counts for.

    One slot, as for Open MPI (mpirun(1), ``--host``) and the runtime's launcher; all GPUs of the
    node for a launcher that counts them itself (IBM's page on ddlrun).
    """
    if not (isinstance(hosts.hosts, tuple) and any(host.bare for host in hosts.hosts)):
        return hosts
    if LAUNCHERS[kind].TRAITS.job.on_every_gpu:
        count = f"GPUs of a node: {f'{gpus}, by the site' if gpus else 'unknown'}"
    else:
        count = "a host without a number has 1 slot each time it is named"
    return replace(hosts, source=f"{hosts.source}; {count}")


def _is_counted(request: LaunchRequest, options: LaunchOptions) -> bool:
    """Whether the number of ranks is known: ddlrun starts one on every GPU that it finds."""
    if not LAUNCHERS[request.kind].TRAITS.job.on_every_gpu or options.ranks:
        return True
    stated = request.shape.gpus_per_node is not None or options.nodes is not None
    return stated or slots_of(request.hosts) > request.nodes


def _request(
    found: _Environment,
    options: LaunchOptions,
    hosts: HostList,
    launcher: SiteLauncher,
    *,
    gloo: bool,
) -> LaunchRequest:
    facts, image = found.facts, found.image
    plan, traits = facts.plan, LAUNCHERS[launcher.kind].TRAITS
    if options.cpus_per_rank is not None and not traits.line.cores:
        raise UsageError(
            "launcher.no-cpus-per-rank",
            f"{launcher.kind} has no option for the cores of a rank",
            "request the cores when you submit the job, and leave --cpus-per-rank out",
        )
    ranks = options.ranks
    if ranks is None:
        ranks = slots_of(hosts.hosts) or plan.smoke.ranks
    request = base_request(facts, launcher, ranks, hosts.scheduler, gloo=gloo)
    exports = options.exports or ()
    program = tuple(options.program or ())
    command = request.command
    # Of none, the request is refused.
    if image and program:
        if traits.job.one_per_node:
            # It is the image's, and starts the ranks in its own container.
            command = image.program(command or LAUNCHERS[launcher.kind].COMMAND, gpus=facts.gpus)
        else:
            program = image.program(program, gpus=facts.gpus)
    return replace(
        request,
        command=command,
        program=program,
        hosts=hosts.hosts,
        allocated=hosts.allocated,
        step=hosts.step,
        task=hosts.task,
        port=hosts.port,
        cores_per_rank=options.cpus_per_rank,
        transport=request.transport._replace(rdma=options.rdma, cuda_aware=options.cuda_aware),
        # An image sets its own variables.
        exports=(*(() if image else _handed_on(plan, launcher, hosts, exports)), *exports),
    )


def _launcher(
    plan: Plan, options: LaunchOptions, scheduler: str | None
) -> tuple[SiteLauncher, bool]:
    """Return the launcher, with the words that the site states for it, and whether it is by Gloo.

    The launcher that is asked for; for Gloo the one of the environment's own; else the plan's. By
    Gloo if that is asked for, or if nothing else is and the environment's Horovod knows no MPI.
    Raises UsageError where Gloo is asked for and nothing there knows it.
    """
    # Document 004 spells the runtime's launcher with capitals.
    kind = options.launcher.lower() if options.launcher else None
    if kind not in LAUNCHERS:
        check_choice("launcher", options.launcher or None, LAUNCHERS)
    own = _gloo_launcher(plan)
    if options.gloo and own is None:
        raise UsageError(
            "launch.no-gloo",
            f"{plan.recipe} cannot use Gloo: it has neither Horovod nor PyTorch",
            "leave --gloo out",
        )
    builds = (*plan.builds, *plan.verified)
    built = next((each for each in builds if each.component in RUNTIMES), None)
    runtime = RUNTIMES[built.component] if built else None
    parts = runtime.meaning(built.flags, built.version).parts if runtime and built else {}
    is_own = runtime is not None and runtime.TRAITS.launcher == (kind or own or plan.launcher.kind)
    gloo = options.gloo or (not parts.get("mpi", True) and (kind is None or is_own))
    if gloo and built and is_own and not parts.get("gloo", True):
        raise UsageError(
            "launch.no-gloo",
            f"{plan.recipe} cannot use Gloo: its {built.component} {built.version} is built "
            "without it",
            "leave --gloo out",
        )
    kind = kind or (own if gloo else None)
    if kind is None:
        return programs_launcher(plan, scheduler), gloo
    if kind == plan.launcher.kind:
        return plan.launcher, gloo
    # No words of the site: it takes the launcher's own name, if it has one.
    return SiteLauncher.model_construct(kind=kind, command=()), gloo


def _gloo_launcher(plan: Plan) -> str | None:
    """Return what starts the environment's programs by Gloo; None: nothing in it knows Gloo."""
    asked = {pin.component for pin in plan.pins} | {*plan.runtime.aliases}
    for components in (asked, {pin.component for pin in plan.brought}):
        # A runtime of its own before the bundled one.
        for each in sorted(RUNTIMES.values(), key=lambda each: each.TRAITS.bundled):
            if each.TRAITS.gloo_with in components:
                return each.TRAITS.launcher
    return None


def _handed_on(
    plan: Plan, launcher: SiteLauncher, hosts: HostList, asked: Sequence[str]
) -> tuple[str, ...]:
    """Return the variables of the environment that the ranks on named hosts must be handed.

    A scheduler hands on all of them, and so do the launchers that inherit them.
    """
    named = isinstance(hosts.hosts, tuple) and not hosts.allocated
    if LAUNCHERS[launcher.kind].TRAITS.line.inherits or not named:
        return ()
    names = {edit.name for edit in plan.environment if edit.kind != "unset"} | {"PATH"}
    if plan.modules.loads:
        names.update(_OF_MODULES)
    return tuple(sorted(names - {each.partition("=")[0] for each in asked}))


def _report(line: LaunchLine, environment: _Environment, context: Context) -> None:
    """Say which ranks go where, and what must be loaded before."""
    plan, say = environment.facts.plan, context.reporter.say
    hosts = shown(", ".join(line.hosts), LONG)
    where = f"{hosts} ({line.hosts_from})" if hosts else line.hosts_from
    ranks = "a rank for every GPU" if line.ranks is None else counted(line.ranks, "rank")
    say(f"{ranks} on {where}")
    if (kind := missing_launcher(plan)) and line.launcher not in (kind, None):
        context.reporter.warn(
            f"the program must set RANK and MASTER_ADDR: this PyTorch has no {kind}, and "
            f"{line.launcher} does not set them"
        )
    if environment.image:
        for row in environment.image.rows:
            say(
                f"{row.subject}: {row.image} in the image, {row.host} on the host"
                + (f": {row.why}" if row.why else "")
            )
    elif environment.published is None:
        recipe = f"{recipe_arguments(plan)} --site {plan.site}"
        say(f"not published in this root; run envbuild create {recipe}")
    else:
        published = environment.published
        home, version = published.home, published.version
        prefix = str(published.prefix)
        if prefix not in (context.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")):
            load = (
                f"module use '{home.modulefiles.parent}'; module load {home.name}/{version.number}"
            )
            bare = (
                ""
                if plan.modules.loads
                else f", or: {entering(plan.backend, home.prefix(version.id))}"
            )
            say(f"load it first: {load}{bare}")
        proofs = read_all(home, version, published.lock).evidence
        passed = [each for each in proofs if each.result.verdict == "passed"]
        if passed and passed[-1].execution != "native":
            say(
                f"the smoke test ran {passed[-1].execution}: the line is for a machine of "
                f"{plan.arch}, and its speed is unknown"
            )
    if reads_tf_config(plan):
        say("the program must set TF_CONFIG; the script of envbuild render --as job sets it")
