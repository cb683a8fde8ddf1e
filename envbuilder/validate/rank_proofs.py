"""``validate --run``: the ranks of an environment that others built are started, and judged.

The smoke tests are those of ``create``, with the same launch line and the same judge. Nothing is
written into the environment: scripts, logs and records lie in a folder of the user's choice, or are
gone when the verdict is told.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import process
from ..base import canonical_json
from ..documents.site_choice import ChosenSite
from ..errors import UsageError
from ..inspect.build_traces import build_traces
from ..inspect.facts import Environment
from ..inspect.loaded import first_launcher, loaded_mpis
from ..inspect.observation import seen
from ..inspect.stack import InstalledStack
from ..knowledge.rows import Knowledge
from ..launching.launchers import own_launcher, site_shape
from ..machine.gpu import gpus_here
from ..machine.host import LocalMachine, ask
from ..machine.mpi import COMPONENTS, identify
from ..model.launch import LaunchRequest, Mpi, Shape
from ..model.plan import Proof, SourceBuild
from ..model.runtime import ProofInputs, all_proofs, frameworks, own_component
from ..model.site import SiteLauncher
from ..model.validation import Finding, ForeignProof
from ..render.build import render_foreign_smoke
from ..runtimes import BUNDLED, RUNTIMES
from ..target_tools.files import is_below, write_atomically
from ..target_tools.proving.evidence import RECORD, TOOLS, next_run, write_run
from ..target_tools.proving.runner import LOG, SmokeRequest, run_smoke
from ..text import LONG, shown
from ..workflow.context import Context
from ..workflow.entries import api_launcher
from ..workflow.hosts import find_smoke_hosts
from ..workflow.launch_requests import foreign_request, record, start_command
from .checks.protocol import INFOS, Violation, told
from .checks.together import loaded_nccls
from .options import ProvingOptions

# Seconds for one smoke test, as recipes have it; and its largest message, in bytes.
_RANKS = 2
_TIMEOUT = 120.0
_MAX_BYTES = 1024 * 1024
# Seconds for a launcher to say its release.
_PATIENCE = 20.0


@dataclass(frozen=True)
class ForeignRun:
    """What the ranks proved; ``refused``: why none, or not all that could be, were started."""

    proofs: tuple[ForeignProof, ...] = ()
    refused: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The smoke test that failed."""
        return tuple(map(_finding, self.proofs[-1:])) if self.failed else ()

    @property
    def failed(self) -> bool:
        return any(each.result.verdict != "passed" for each in self.proofs)


def _finding(each: ForeignProof) -> Finding:
    result = each.result
    lines = result.failure_lines()
    first = shown(lines[0].removeprefix("- "), 2 * LONG) if lines else "it says nothing"
    over = f"{result.api} over {result.transport or 'anything'}"
    place = seen(each.log or each.path, "launch", result.launch)
    return told(
        INFOS["run.ranks-failed"], Violation(f"{result.ranks} ranks of {over}: {first}", (place,))
    )


@dataclass(frozen=True)
class _Subject:
    """An environment with the MPI that its modules load, and what starts its ranks."""

    environment: Environment
    stack: InstalledStack
    mpi: Mpi | None
    outside: bool
    launcher: SiteLauncher | None


def prove_ranks(
    environment: Environment,
    stack: InstalledStack,
    site: ChosenSite | None,
    options: ProvingOptions,
    context: Context,
) -> ForeignRun:
    """Start the ranks of every smoke test that an environment can pass, until one fails.

    *site*: whose launcher starts them; None: the MPI's own. Raises UsageError for a folder of
    evidence that lies in the environment.
    """
    kept = context.path(options.evidence) if options.evidence else None
    prefix = environment.prefix
    if kept and is_below(os.path.realpath(kept), os.path.realpath(prefix)):
        raise UsageError(
            "output.inside-environment",
            f"--evidence {shown(str(options.evidence))} is in the environment, which validate does "
            "not change",
            "use a folder outside of the environment",
        )
    subject = _subject(environment, stack, site)
    proofs = [*_proofs(subject, context.knowledge)]
    if not environment.native or not proofs:
        return ForeignRun(refused=_why_none(subject))
    try:
        ranks = options.ranks or _RANKS
        starts = [(each, _request(subject, each, site, ranks, context)) for each in proofs]
        for _, request in starts:
            start_command(request)
    except UsageError as error:
        return ForeignRun(refused=shown(str(error), LONG))
    starts, refused = _with_gpus(starts, environment)
    done: list[ForeignProof] = []
    for proof, request in starts:
        done.append(_prove(subject, proof, request, kept, context))
        if done[-1].result.verdict != "passed":
            break
    return ForeignRun(tuple(done), refused)


def _with_gpus(
    starts: list[tuple[Proof, LaunchRequest]], environment: Environment
) -> tuple[list[tuple[Proof, LaunchRequest]], str | None]:
    """Return what can be proved with the GPUs that are here, and why not the rest.

    NCCL refuses two ranks on one GPU; a login node has none, and its ranks prove nothing about it.
    """
    by_nccl = [each for each in starts if each[0].transport == "nccl"]
    here = gpus_here(LocalMachine(environment.environ)) if by_nccl else 0
    lacking = [each for each in by_nccl if each[1].most_per_node() > here]
    words = [f"{proof.api} over nccl" for proof, _ in lacking]
    return [each for each in starts if each not in lacking], (
        f"{', '.join(words)}: each rank needs a GPU, but this machine has {here}" if words else None
    )


def _subject(environment: Environment, stack: InstalledStack, site: ChosenSite | None) -> _Subject:
    found = [one for those in loaded_mpis(environment).values() for one in those]
    mpi, outside, launcher = None, False, None
    for each in found[:1]:
        component = COMPONENTS.get(each.mpi.name)
        if component:
            known = stack.versions.get(component) or each.mpi.version
            mpi = Mpi(component, known or _said_by_launcher(environment) or "unknown")
            outside = not is_below(each.real, os.path.realpath(environment.prefix))
            launcher = own_launcher(component)
    if site and site.site.launcher and mpi:
        launcher = site.site.launcher
    return _Subject(environment, stack, mpi, outside, launcher)


def _said_by_launcher(environment: Environment) -> str | None:
    """Return the release that mpiexec says, where no file beside the library does."""
    launcher = first_launcher(environment)
    if launcher is None:
        return None
    said = ask((launcher.path, "--version"), environment.environ, patience=_PATIENCE)
    return identify(Path(launcher.path).name, said.stdout)[1]


def _why_none(subject: _Subject) -> str:
    environment = subject.environment
    if not environment.native:
        return "its Python does not run on this machine"
    if "numpy" not in environment.found:
        return "the ranks need numpy, which is not installed"
    if subject.mpi is None:
        return "none of its modules loads an MPI"
    if subject.launcher is None:
        return f"no launcher is known for {subject.mpi.component}"
    return f"no communication library found (mpi4py, {', '.join(RUNTIMES)})"


def _proofs(subject: _Subject, knowledge: Knowledge) -> Iterator[Proof]:
    """Yield what the environment can be asked to prove, with what is there in it."""
    found = subject.environment.found
    if "numpy" not in found:
        return
    if BUNDLED not in found and "mpi4py" in found and subject.launcher:
        yield Proof(api="mpi4py", transport="mpi", launcher=subject.launcher)
    is_there = BUNDLED in found and "mpi4py" in found
    runtimes = {
        name: each for name, each in RUNTIMES.items() if is_there or not each.TRAITS.bundled
    }
    inputs = ProofInputs(
        components=subject.stack.versions,
        known=knowledge.components,
        builds=[*_builds(subject, knowledge)],
        launcher=subject.launcher,
        api_launcher=api_launcher,
        transports=("nccl", "gloo") if loaded_nccls(subject.environment) else ("gloo",),
    )
    yield from all_proofs(runtimes, inputs)


def _builds(subject: _Subject, knowledge: Knowledge) -> Iterator[SourceBuild]:
    """Yield the runtime that is a component of its own, as its record or its libraries show it."""
    found, versions = subject.environment.found, subject.stack.versions
    name = own_component(RUNTIMES, versions)
    if name is None or name not in found:
        return
    shown_by = build_traces(RUNTIMES[name], subject.environment, found[name][0])
    flags = dict(subject.stack.flags or (shown_by.flags if shown_by else {}))
    # What an environment says of itself may be no value of a plan.
    build = SourceBuild.model_construct(component=name, version=versions[name], flags=flags)
    names = frameworks(RUNTIMES, build, versions, knowledge.components)
    yield build.model_copy(update={"frameworks": names})


def _request(
    subject: _Subject, proof: Proof, site: ChosenSite | None, ranks: int, context: Context
) -> LaunchRequest:
    shape = site_shape(site.site, site.partition) if site else Shape()
    where = find_smoke_hosts(None, context)
    return foreign_request(proof, subject.mpi, shape, ranks, where)


def _prove(
    subject: _Subject,
    proof: Proof,
    request: LaunchRequest,
    kept: Path | None,
    context: Context,
) -> ForeignProof:
    environment, ranks = subject.environment, request.ranks
    start = start_command(request)
    script = render_foreign_smoke(environment.prefix, start, proof, mpi_outside=subject.outside)
    over = f"{proof.api} over {proof.transport}"
    with contextlib.ExitStack() as stack:
        above = kept or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="envbuild-run-"))
        )
        stack.enter_context(context.reporter.working(f"{ranks} ranks of {over}"))
        run = next_run(above)
        write_run(run, {"smoke.sh": script})
        said = run_smoke(
            SmokeRequest(
                command=("bash", "smoke.sh"),
                folder=run,
                ranks=ranks,
                timeout=_TIMEOUT,
                max_bytes=_MAX_BYTES,
                prefix=environment.prefix,
                env=dict(environment.environ),
                launch=(*start.words, "python", TOOLS.name, "smoke"),
                api=proof.api,
                transport=proof.transport,
                mpi_from=("wrapper" if subject.outside else "prefix") if subject.mpi else None,
            ),
            process.start,
        )
        value = ForeignProof.model_validate(
            {
                "path": shown(str(environment.prefix), 400),
                "log": shown(str(run / LOG), 400) if kept else None,
                "request": record(request).plain(),
                **said,
            }
        )
        write_atomically(run / RECORD, canonical_json(value.plain()))
    return value
