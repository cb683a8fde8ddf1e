"""Launch requests: what each use of the one launch line asks for.

Smoke test, bundle, job, module help, ``create``'s last lines and ``launch`` all make theirs here,
from the same facts, so that what was proved is what users run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..documents.site_choice import ChosenSite
from ..errors import UsageError
from ..knowledge.components import Component
from ..launching.launchers import LAUNCHERS, launch_line, launch_words, own_launcher, site_shape
from ..launching.schedulers import SCHEDULERS
from ..model.evidence import LaunchRecord
from ..model.launch import (
    RENDEZVOUS_PORT,
    EnvironmentProgram,
    Host,
    Hosts,
    JobHosts,
    LaunchNode,
    LaunchRequest,
    Mpi,
    Shape,
    StartCommand,
    TransportOptions,
    text_of,
    used_hosts,
)
from ..model.plan import Pin, Plan, Proof, mpi_of, proofs_of
from ..model.profiles import program
from ..model.site import SiteLauncher, Snapshot
from ..runtimes import RUNTIMES
from .context import Context
from .entries import runtime_launcher
from .hosts import HostList
from .site_contents import site_of, snapshot_of

if TYPE_CHECKING:
    from .load import PlanInputs

# Networks that Open MPI reaches by UCX; on others `--mca pml ucx` ends the program.
_UCX_NETWORKS = frozenset({"infiniband", "roce"})

# What the help and the last lines of create show: enough to see that ranks talk.
EXAMPLE_RANKS = 2


@dataclass(frozen=True)
class LaunchFacts:
    """What a plan and its site say of every launch line of the environment.

    ``components``: all that are known, by name. ``scheduler``, ``partition``: the site's.
    ``ucx``: says whether its MPI reaches the site's network by UCX.
    """

    plan: Plan
    components: Mapping[str, Component]
    shape: Shape = field(default_factory=Shape)
    scheduler: str | None = None
    partition: str | None = None
    ucx: Callable[[], bool] = lambda: False

    @property
    def gpus(self) -> bool:
        """Whether each rank gets a GPU: so the stack says, or TensorFlow's strategies find some."""
        gpus = self.shape.gpus_per_node
        if gpus is not None and reads_tf_config(self.plan):
            return gpus > 0
        pins = (*self.plan.pins, *self.plan.brought)
        known = (self.components.get(pin.component) for pin in pins)
        return any(each.gpu for each in known if each)

    @property
    def mpi(self) -> Mpi | None:
        """The MPI of the plan, as a launch line asks for it."""
        pin = mpi_of(self.plan)
        return None if pin is None else Mpi(pin.component, pin.version)

    @property
    def launch_node(self) -> LaunchNode | None:
        """How a job of LSF is read: where it has launch nodes its slots are cores."""
        if not LAUNCHERS[self.plan.launcher.kind].TRAITS.job.launch_node:
            return None
        return LaunchNode(self.shape.gpus_per_node if self.gpus else None)


def reads_tf_config(plan: Plan) -> bool:
    """Return whether the programs of the recipe's runtime read TF_CONFIG."""
    runtime = RUNTIMES.get(plan.runtime.beside or "")
    return runtime is not None and runtime.TRAITS.tf_config


def launch_facts(
    plan: Plan,
    components: Mapping[str, Component],
    chosen: ChosenSite,
    snapshot: Callable[[str], Snapshot],
) -> LaunchFacts:
    """Return the facts of *plan* at its site; *snapshot*: says what that holds of a component."""
    scheduler = chosen.site.scheduler if chosen.site.scheduler in SCHEDULERS else None
    shape = site_shape(chosen.site, chosen.partition)
    return LaunchFacts(
        plan,
        components,
        shape,
        scheduler,
        chosen.partition_name,
        ucx=lambda: _has_ucx(mpi_of(plan), chosen, snapshot),
    )


def facts_of(planned: Plan, plan_inputs: PlanInputs) -> LaunchFacts:
    """Return what every launch line of the plan is made from."""
    components = plan_inputs.knowledge.value.components
    return launch_facts(
        planned, components, plan_inputs.chosen, lambda _component: plan_inputs.snapshot
    )


def facts_at(plan: Plan, asked: str | None, partition: str | None, context: Context) -> LaunchFacts:
    """Return what every launch line of an environment is made from; see ``site_of``."""
    return facts_there(plan, site_of(plan, asked, partition, context), context)


def facts_there(plan: Plan, chosen: ChosenSite, context: Context) -> LaunchFacts:
    """Return what every launch line of an environment is made from at its site."""

    def snapshot(component: str) -> Snapshot:
        return snapshot_of(chosen, context, frozenset({component}))[0]

    return launch_facts(plan, context.knowledge.components, chosen, snapshot)


def _has_ucx(mpi: Pin | None, chosen: ChosenSite, snapshot: Callable[[str], Snapshot]) -> bool:
    """Whether the site's network is one for UCX, and its Open MPI is known to have UCX."""
    own, site = chosen.facts.network, chosen.site.facts.network
    networks = (site if own is None else own) or ()
    if mpi is None or mpi.origin not in ("module", "system") or not _UCX_NETWORKS & {*networks}:
        return False
    holds = snapshot(mpi.component)
    modules = (each.facts for each in holds.modules if each.name == mpi.locator)
    system = (each.facts for each in holds.system if each.locator == mpi.locator)
    return any(facts.get("ucx") is True for facts in (*modules, *system))


def programs_launcher(plan: Plan, scheduler: str | None) -> SiteLauncher:
    """Return what starts the plan's programs in a job of *scheduler*; None: outside of one.

    It is the one that the recipe's runtime needs, else the plan's; where that is of another
    scheduler it is the one of the plan's MPI.
    """
    only, _ = _of_runtime(plan)
    return only or _of_scheduler(plan, plan.launcher, scheduler)


def missing_launcher(plan: Plan) -> str | None:
    """Return the kind of the launcher that the recipe's runtime needs and its release lacks."""
    only, kind = _of_runtime(plan)
    return None if only else kind


def _of_runtime(plan: Plan) -> tuple[SiteLauncher | None, str | None]:
    """Return the launcher of the recipe's runtime, if this release has it; and its kind."""
    only = runtime_launcher(plan.runtime.beside)
    if only and RUNTIMES[plan.runtime.beside or ""].TRAITS.apis:
        # One that is proved itself.
        proved = (each.launcher for each in plan.proofs if each.launcher.kind == only.kind)
        return next(proved, None), only.kind
    return only, only.kind if only else None


def _of_scheduler(plan: Plan, launcher: SiteLauncher, scheduler: str | None) -> SiteLauncher:
    home = LAUNCHERS[launcher.kind].TRAITS.job.scheduler
    if scheduler is None or home in (None, scheduler):
        return launcher
    mpi = mpi_of(plan)
    own = own_launcher(mpi.component) if mpi else None
    if own is None:
        raise UsageError(
            "launcher.wrong-scheduler",
            f"{launcher.kind} does not start ranks in a job of {scheduler}, and no other launcher "
            "is known for this MPI",
            f"the stack is for {plan.site} and its scheduler",
        )
    return own


def environment_program(plan: Plan, launcher: SiteLauncher) -> EnvironmentProgram | None:
    """Return the launcher's program if the environment brings it; None: site or system has it."""
    entry = LAUNCHERS[launcher.kind]
    command = launcher.command or entry.COMMAND
    own_commands = (entry.COMMAND, *entry.TRAITS.mpi.own_of.values())
    # Another program is the site's own, which starts the launcher.
    if command[:1] not in {words[:1] for words in own_commands if words}:
        return None
    bringing = [name for name, each in RUNTIMES.items() if each.TRAITS.launcher == launcher.kind]
    owners = {
        *entry.TRAITS.mpi.own_of,
        *(RUNTIMES[name].TRAITS.holder or name for name in bringing),
    }
    pin = next((each for each in (*plan.pins, *plan.brought) if each.component in owners), None)
    if pin is None:
        own = plan.runtime.package in owners
        return EnvironmentProgram(command[0]) if own else None
    if pin.origin == "system":
        return None
    return EnvironmentProgram(command[0], pin.locator if pin.origin == "module" else None)


def base_request(
    facts: LaunchFacts,
    launcher: SiteLauncher,
    ranks: int,
    scheduler: str | None,
    *,
    gloo: bool = False,
) -> LaunchRequest:
    """Return what every request of the environment has in common; the program is still to come."""
    traits = LAUNCHERS[launcher.kind].TRAITS
    return LaunchRequest(
        kind=launcher.kind,
        program=program(facts.plan.profile, "PROGRAM.py"),
        ranks=ranks,
        scheduler=scheduler,
        command=launcher.command,
        mpi=facts.mpi,
        transport=TransportOptions(ucx=traits.line.ucx and not gloo and facts.ucx(), gloo=gloo),
        gpus=facts.gpus,
        options=facts.plan.launch_options.get(launcher.kind, ()),
        shape=facts.shape,
        by_mpi=bool(LAUNCHERS[facts.plan.launcher.kind].TRAITS.mpi.own_of),
        # The workers of TF_CONFIG are listed so.
        in_order=reads_tf_config(facts.plan),
    )


def smoke_request(
    facts: LaunchFacts, proof: Proof, ranks: int, where: HostList | None = None
) -> LaunchRequest:
    """Return the request of a smoke test: as users start programs, but for oversubscription.

    *where*: the hosts that it runs on now; None: for a script that is run on one node, in a job if
    the site has a scheduler.
    """
    scheduler = facts.scheduler if where is None else where.scheduler
    launcher = _of_scheduler(facts.plan, proof.launcher, scheduler)
    request = base_request(facts, launcher, ranks, scheduler, gloo=_by_gloo(proof, launcher))
    return _placed(request, where)


def _by_gloo(proof: Proof, launcher: SiteLauncher) -> bool:
    return proof.transport == "gloo" and not LAUNCHERS[launcher.kind].TRAITS.mpi.only


def foreign_request(
    proof: Proof, mpi: Mpi | None, shape: Shape, ranks: int, where: HostList
) -> LaunchRequest:
    """Return the request of a smoke test of what no plan describes: on the hosts that are here.

    *mpi*: that of the environment. In a job its own launcher starts the ranks where *proof* names
    that of another scheduler.
    """
    launcher = proof.launcher
    if (
        LAUNCHERS[launcher.kind].TRAITS.job.scheduler not in (None, where.scheduler)
        and where.scheduler
    ):
        launcher = own_launcher(mpi.component) or launcher if mpi else launcher
    request = LaunchRequest(
        kind=launcher.kind,
        program=("PROGRAM.py",),
        ranks=ranks,
        scheduler=where.scheduler,
        command=launcher.command,
        mpi=mpi,
        transport=TransportOptions(gloo=_by_gloo(proof, launcher)),
        shape=shape,
    )
    return _placed(request, where)


def _placed(request: LaunchRequest, where: HostList | None) -> LaunchRequest:
    """Return the request of a smoke test with the hosts that its launcher is told."""
    traits, ranks = LAUNCHERS[request.kind].TRAITS, request.ranks
    hosts = where.hosts if where and (traits.job.asks_scheduler or traits.job.scheduler) else None
    hosts = hosts if isinstance(hosts, tuple) else None
    if where:
        request = replace(request, step=where.step, task=where.task, port=where.port)
    return replace(
        request,
        hosts=_spread(hosts, ranks) if hosts else None,
        allocated=bool(hosts),
        oversubscribe=True,
    )


def _spread(hosts: Hosts, ranks: int) -> Hosts | JobHosts:
    """Return the hosts of a job with as many ranks on each: on as many of them as that allows.

    They are the job's own where there is a rank for every slot.
    """
    if ranks == sum(host.slots for host in hosts):
        return hosts
    nodes = max(n for n in range(1, min(len(hosts), ranks) + 1) if ranks % n == 0)
    used = tuple(Host(host.name, ranks // nodes) for host in hosts[:nodes])
    return JobHosts(
        nodes,
        min(host.slots for host in hosts[:nodes]),
        names=text_of(used),
        endpoint=f"{used[0].name}:{RENDEZVOUS_PORT}",
    )


def record(request: LaunchRequest) -> LaunchRecord:
    """Return the request as the evidence keeps it."""
    hosts, wanted = request.hosts, request.transport
    if isinstance(hosts, JobHosts):
        names = hosts.names
    else:
        names = text_of(used_hosts(hosts, request.ranks)) if hosts else None
    return LaunchRecord(
        launcher=request.kind,
        ranks=request.ranks,
        nodes=request.nodes,
        ranks_per_node=request.per_node(),
        hosts=names,
        scheduler=request.scheduler,
        in_job_step=request.step is not None,
        mpi=f"{request.mpi.component}@{request.mpi.version}" if request.mpi else None,
        transport=tuple(name for name in ("ucx", "gloo") if getattr(wanted, name)),
        gpus=request.gpus,
        gpus_per_node=request.shape.gpus_per_node,
        cores_per_node=request.shape.cores_per_node,
        oversubscribe=request.oversubscribe,
    )


def start_command(request: LaunchRequest) -> StartCommand:
    """Return what a script needs to start the ranks. Raises UsageError where nothing can."""
    scheduler = SCHEDULERS.get(request.scheduler or "")
    return StartCommand(
        ranks=request.ranks,
        words=launch_words(request),
        root_variables=LAUNCHERS[request.kind].TRAITS.line.root_variables,
        settings=scheduler.SETTINGS if scheduler else (),
    )


def script_start(facts: LaunchFacts, proof: Proof | None = None) -> StartCommand:
    """Return what starts a smoke test, else the first, in a script run by hand, on one node."""
    proof = proof or proofs_of(facts.plan)[0]
    return start_command(smoke_request(facts, proof, facts.plan.smoke.ranks))


def example(facts: LaunchFacts, script: str = "PROGRAM.py") -> StartCommand:
    """Return the launch line of the module's help and of create's last lines: on one node."""
    launcher = programs_launcher(facts.plan, facts.scheduler)
    every_gpu = LAUNCHERS[launcher.kind].TRAITS.job.on_every_gpu and facts.shape.gpus_per_node
    ranks = every_gpu or EXAMPLE_RANKS
    request = base_request(facts, launcher, ranks, facts.scheduler)
    words = launch_line(replace(request, program=program(facts.plan.profile, script)))
    return StartCommand(ranks, words)


def plan_in_image(plan: Plan) -> Plan:
    """Return the plan with the launchers that an image has: of its own MPI, not of a site."""
    own = next(filter(None, (own_launcher(pin.component) for pin in plan.pins)), None)

    def inside(launcher: SiteLauncher) -> SiteLauncher:
        return own or launcher if LAUNCHERS[launcher.kind].TRAITS.job.outside_image else launcher

    proofs = (each.model_copy(update={"launcher": inside(each.launcher)}) for each in plan.proofs)
    return plan.model_copy(update={"launcher": own or plan.launcher, "proofs": tuple(proofs)})


def image_start(plan: Plan, components: Mapping[str, Component]) -> StartCommand:
    """Return what starts the first smoke test of an image's plan, which is as small as can be."""
    request = smoke_request(LaunchFacts(plan, components), proofs_of(plan)[0], EXAMPLE_RANKS)
    return start_command(replace(request, in_image=True))
