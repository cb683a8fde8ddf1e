"""``envbuild launch``: the exact line that starts a program on all ranks of an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..launching import (
    KINDS,
    Kind,
    LaunchRequest,
    Scheduler,
    Wire,
    launch_line,
    site_shape,
)
from ..model.outcome import LaunchLine
from ..model.plan import Pin, Plan
from ..model.proofs import mpi_of
from ..root.store import Home, Root, Version
from ..text import LONG, shown, unknown
from .choose import ChosenSite, choose_site, with_partition
from .context import Context
from .environments import find, read_lock
from .hosts import FoundHosts, LaunchNode, find_hosts
from .job import launcher_in, mpi_named, uses_gpus
from .load import folders_and_knowledge, snapshot_of

# Networks that Open MPI reaches by UCX; on others `--mca pml ucx` ends the program.
_UCX_NETWORKS = frozenset({"infiniband", "roce"})

# Launchers that start remote ranks by ssh and hand on what they are told to, and no more.
_HAND_ON_NAMED = frozenset({"openmpi", "spectrum-mpi"})
# What the site's modules may set for what lies in them.
_OF_MODULES = ("LD_LIBRARY_PATH", "PYTHONPATH")

# Where schedulers say in which partition or queue a job is.
_PARTITIONS = ("SLURM_JOB_PARTITION", "LSB_QUEUE")


@dataclass(frozen=True)
class LaunchOptions:
    """What is to be started; None: not said.

    ``hosts``: as ``host:4,host2:4``. ``gloo``: by Gloo, without MPI. ``rdma``, ``cuda_aware``: see
    ``Wire``. ``launcher``: another than the site's or the MPI's own.
    """

    environment: str
    program: tuple[str, ...]
    ranks: int | None = None
    hosts: str | None = None
    hostfile: Path | None = None
    rdma: bool = False
    gloo: bool = False
    cuda_aware: bool = False
    exports: tuple[str, ...] = ()
    launcher: str | None = None
    site: str | None = None
    partition: str | None = None


def launch(root: Root, options: LaunchOptions, context: Context) -> LaunchLine:
    """Return the line for a published environment; starts nothing.

    Raises UsageError for what could not start, or would start every rank as rank 0 of 1.
    """
    home, version = find(root, options.environment)
    plan = read_lock(home, version).plan
    chosen = _site(plan, options, context)
    shape = site_shape(chosen.site, chosen.partition)
    gpus = uses_gpus(plan, shape)
    # Slots of LSF with a launch node are cores, and jsrun is what such a machine has.
    room = shape.gpus_per_node if gpus else None
    csm = LaunchNode(room) if plan.launcher.kind == "jsrun" else None
    found = find_hosts(options.hosts, options.hostfile, csm, context)
    gloo = _by_gloo(plan, options)
    kind, command = _started_by(plan, options, found.scheduler, gloo=gloo)
    request = LaunchRequest(
        kind=kind,
        program=options.program,
        ranks=_ranks(plan, options, found),
        hosts=found.hosts,
        scheduler=found.scheduler,
        allocated=found.allocated,
        command=command,
        mpi=mpi_named(plan),
        wire=Wire(
            ucx=kind == "openmpi" and not gloo and _has_ucx(mpi_of(plan), chosen, context),
            rdma=options.rdma,
            gloo=gloo,
            cuda_aware=options.cuda_aware,
        ),
        gpus=gpus,
        exports=(*_handed_on(plan, kind, found, options.exports), *options.exports),
        shape=shape,
    )
    line = LaunchLine(
        environment=home.name,
        number=version.number,
        launcher=kind,
        ranks=request.ranks,
        hosts=tuple(map(str, found.hosts or ())),
        # Outside of a job srun asks for one itself.
        hosts_from="a job that srun asks for"
        if kind == "srun" and found.scheduler is None
        else found.source,
        words=launch_line(request),
    )
    _tell(line, plan, home, version, context)
    return line


def _site(plan: Plan, options: LaunchOptions, context: Context) -> ChosenSite:
    """Return the environment's site, with the partition that was said or that the job is in."""
    folders, knowledge = folders_and_knowledge(context)
    named = options.site or context.environ.get("ENVBUILD_SITE") or plan.site
    chosen = choose_site(named, context, folders, knowledge.value)
    if chosen.site.name != plan.site:
        if options.site:
            raise UsageError(
                f"{plan.recipe} was made for site {plan.site}, not for {chosen.site.name}",
                f"use --site {plan.site}, or the file of that name",
            )
        chosen = choose_site(plan.site, context, folders, knowledge.value)
    here = (context.environ.get(name) for name in _PARTITIONS)
    job = next((each for each in here if each in chosen.site.partitions), None)
    return with_partition(chosen, options.partition or job)


def _ranks(plan: Plan, options: LaunchOptions, found: FoundHosts) -> int:
    if options.ranks is not None:
        return options.ranks
    return sum(host.slots for host in found.hosts or ()) or plan.smoke.ranks


def _by_gloo(plan: Plan, options: LaunchOptions) -> bool:
    """Whether Gloo is asked for, or nothing else is and the environment's Horovod knows no MPI.

    Raises UsageError where it is asked for and nothing there knows Gloo.
    """
    if not options.gloo:
        asked = options.launcher in (None, "horovodrun")
        return asked and _horovod_flags(plan).get("HOROVOD_WITHOUT_MPI") == "1"
    if _gloo_launcher(plan) is None:
        raise UsageError(
            f"nothing in {plan.recipe} talks by Gloo: it has neither Horovod nor PyTorch",
            "leave --gloo out",
        )
    return True


def _horovod_flags(plan: Plan) -> Mapping[str, str]:
    builds = (*plan.builds, *plan.verified)
    return next((each.flags for each in builds if each.component == "horovod"), {})


def _started_by(
    plan: Plan, options: LaunchOptions, scheduler: Scheduler | None, *, gloo: bool
) -> tuple[Kind, tuple[str, ...]]:
    """Return the launcher, and the words that the site states for it.

    That asked for; for Gloo the one of the environment's own; else the plan's.
    """
    kind = _kind(options.launcher) or (_gloo_launcher(plan) if gloo else None)
    if kind == "horovodrun" and gloo and _horovod_flags(plan).get("HOROVOD_WITHOUT_GLOO") == "1":
        raise UsageError(
            f"the Horovod of {plan.recipe} is built without Gloo (HOROVOD_WITHOUT_GLOO=1)",
            "leave --gloo out",
        )
    if kind is None:
        own = launcher_in(plan, scheduler)
        return own.kind, own.command
    return kind, plan.launcher.command if kind == plan.launcher.kind else ()


def _kind(asked: str | None) -> Kind | None:
    # Document 004 spells the runtime's launcher with capitals.
    kind = next((each for each in KINDS if asked and each == asked.lower()), None)
    if asked and kind is None:
        raise UsageError(unknown("launcher", asked, KINDS), f"there are: {', '.join(KINDS)}")
    return kind


def _gloo_launcher(plan: Plan) -> Kind | None:
    """Return what starts the environment's programs by Gloo; None: nothing in it knows Gloo."""
    if plan.pin("horovod") or "horovod" in plan.runtime.aliases:
        return "horovodrun"
    there = any(pin.component == "pytorch" for pin in (*plan.pins, *plan.brought))
    return "distributed-dl-trainingrun" if there else None


def _has_ucx(mpi: Pin | None, chosen: ChosenSite, context: Context) -> bool:
    """Whether the site's network is one for UCX, and its Open MPI is known to have UCX."""
    own, site = chosen.facts.network, chosen.site.facts.network
    networks = (site if own is None else own) or ()
    if mpi is None or mpi.origin not in ("module", "system") or not _UCX_NETWORKS & {*networks}:
        return False
    snapshot, _, _ = snapshot_of(chosen, context, frozenset({mpi.component}))
    modules = (each.facts for each in snapshot.modules if each.name == mpi.locator)
    system = (each.facts for each in snapshot.system if each.locator == mpi.locator)
    return any(facts.get("ucx") is True for facts in (*modules, *system))


def _handed_on(plan: Plan, kind: Kind, found: FoundHosts, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the variables of the environment that the ranks on named hosts must be handed.

    A scheduler hands on all of them, and so do the launchers that are not listed above.
    """
    if kind not in _HAND_ON_NAMED or found.hosts is None or found.allocated:
        return ()
    names = {edit.name for edit in plan.environment if edit.kind != "unset"} | {"PATH"}
    if plan.modules.loads:
        names.update(_OF_MODULES)
    return tuple(sorted(names - {each.partition("=")[0] for each in asked}))


def _tell(line: LaunchLine, plan: Plan, home: Home, version: Version, context: Context) -> None:
    """Say which ranks go where, and what must be loaded before."""
    hosts = shown(", ".join(line.hosts), LONG)
    where = f"{hosts} ({line.hosts_from})" if hosts else line.hosts_from
    ranks = "1 rank" if line.ranks == 1 else f"{line.ranks} ranks"
    context.tell.say(f"{ranks} on {where}")
    prefix = home.prefix(version.id)
    if str(prefix) not in (context.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")):
        load = f"module use '{home.modulefiles.parent}'; module load {home.name}/{version.number}"
        bare = "" if plan.modules.loads else f", or: source '{prefix}/bin/activate'"
        context.tell.say(f"load it first: {load}{bare}")
    if plan.runtime.beside == "tf-distribute":
        context.tell.say(
            "TF_CONFIG is left to the program; envbuild render --as job makes a script that sets it"
        )
