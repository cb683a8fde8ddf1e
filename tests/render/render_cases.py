"""Locks, places and evidence that the tests of the render stage share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from envbuilder.build.backends import prefix_parts
from envbuilder.knowledge.artifacts import Wheel
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.backend import PrefixParts
from envbuilder.model.evidence import Evidence, LoadedLibrary, ResultCheck, SmokeResult, Timing
from envbuilder.model.launch import StartCommand
from envbuilder.model.places import BuildFolders, Dialect
from envbuilder.model.plan import (
    Edit,
    FindingStatus,
    Lock,
    Modules,
    Pin,
    Plan,
    PlanFinding,
    Proof,
    Replacement,
    RuntimePlan,
    Step,
    proofs_of,
)
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import SiteLauncher
from envbuilder.render.build import render_build, render_smoke
from envbuilder.render.modulefile import render_modulefile
from envbuilder.runtimes import RUNTIMES
from envbuilder.target_tools.modulefile import default_text
from envbuilder.target_tools.root.layout import DEFAULT_FILES
from envbuilder.workflow.launch_requests import LaunchFacts, example, script_start
from tests.shipped import read_shipped

HOSTILE = (
    "$(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] "
    "{open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
)

STEPS = ("venv", "fetch", "install", "tools", "runtime", "check")
TITLES = {
    "modules": "load the site's modules and compare",
    "venv": "make the virtualenv",
    "fetch": "fetch the locked packages",
    "install": "install them",
    "tools": "unpack the build tools",
    "runtime": "build the collective runtime",
    "check": "import every package and compare",
}


@cache
def shipped_knowledge() -> Knowledge:
    return read_shipped().value


def prefix_of(plan: Plan) -> PrefixParts:
    return prefix_parts(plan, shipped_knowledge().components)


def build_files(
    lock: Lock, places: BuildFolders, start: StartCommand | None = None
) -> dict[str, str]:
    prefix, begin = prefix_of(lock.plan), start or start_of(lock.plan)
    return render_build(lock, places, prefix, RUNTIMES, begin)


def smoke_files(
    lock: Lock,
    places: BuildFolders,
    proof: Proof | None = None,
    scheduler: str | None = None,
) -> dict[str, str]:
    start = start_of(lock.plan, proof, scheduler)
    return render_smoke(lock, places, prefix_of(lock.plan), start, proof)


def start_of(plan: Plan, proof: Proof | None = None, scheduler: str | None = None) -> StartCommand:
    """Return what starts the ranks of a smoke test, of the first one if none is given."""
    return script_start(LaunchFacts(plan, {}, scheduler=scheduler), proof or proofs_of(plan)[0])


@dataclass(frozen=True)
class Case:
    """One lock, where it goes, and what was proved of it."""

    name: str
    lock: Lock
    places: BuildFolders
    evidence: Evidence | None

    def files(self) -> dict[str, str]:
        """Return everything that is rendered for it, by relative name."""
        modulefiles = {}
        dialects: tuple[Dialect, ...] = ("lua", "tcl")
        shown = example(LaunchFacts(self.lock.plan, {}))
        for dialect in dialects:
            text = render_modulefile(self.lock, self.places, 3, self.evidence, dialect, shown)
            modulefiles[f"modulefile.{dialect}"] = text
            default = default_text(self.lock.plan.recipe, 3, dialect)
            modulefiles[DEFAULT_FILES[dialect]] = default
        return {**build_files(self.lock, self.places), **modulefiles}


def standard_edits(**variables: str) -> tuple[Edit, ...]:
    """Return what planning puts into every environment, and these variables."""
    return (
        Edit(kind="set", name="VIRTUAL_ENV", in_prefix=True),
        Edit(kind="set", name="PYTHONNOUSERSITE", value="1"),
        Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        *(Edit(kind="set", name=name, value=value) for name, value in variables.items()),
    )


def make_steps(*ids: str) -> tuple[Step, ...]:
    return tuple(Step(id=each, title=TITLES[each]) for each in ids)


def make_plan(**changes: object) -> Plan:
    """Return a small plan without modules; *changes* replace its fields."""
    plan = Plan(
        recipe="allreduce",
        summary="An allreduce over MPI, and nothing else",
        site="local",
        arch="x86_64",
        backend="virtualenv",
        system_site_packages=False,
        python="/usr/bin/python3.11",
        pins=(
            Pin(
                component="python",
                version="3.11.7",
                origin="system",
                locator="/usr/bin/python3.11",
                why="newest that fits",
            ),
            Pin(
                component="numpy",
                version="1.26.4",
                origin="pip",
                locator="numpy",
                why="the runtime",
            ),
            Pin(
                component="mpich", version="5.0.2", origin="pip", locator="mpich", why="the default"
            ),
        ),
        environment=standard_edits(),
        runtime=RuntimePlan(
            package="distributed-dl-training", version="0.1.0", source_sha256="a" * 64
        ),
        launcher=SiteLauncher(kind="hydra", command=("mpiexec",)),
        smoke=Smoke(),
        steps=make_steps(*STEPS),
    )
    return plan.model_copy(update=changes)


def with_openmpi(version: str, module: str) -> tuple[Pin, ...]:
    """Return the pins of the small plan with a module's Open MPI."""
    mpi = Pin(component="openmpi", version=version, origin="module", locator=module, why="asked")
    return (*(pin for pin in make_plan().pins if pin.component != "mpich"), mpi)


def make_artifact(name: str, version: str, **changes: object) -> Wheel:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    artifact = Wheel(
        name=name,
        version=version,
        filename=filename,
        url=f"https://index.example/files/{filename.replace('+', '%2B')}",
        sha256=f"{len(name):x}" * 64,
        imports=name,
    )
    return artifact.model_copy(update=changes)


ARTIFACTS = (
    make_artifact("numpy", "1.26.4"),
    make_artifact("mpich", "5.0.2", imports=None),
    make_artifact("torch", "2.13.0+cpu"),
    make_artifact("flit-core", "3.12.0", build_only=True, imports=None),
)


def make_evidence(lock: Lock, **changes: object) -> Evidence:
    result = SmokeResult(
        tier="several ranks",
        verdict="passed",
        seconds=12.34,
        ranks=2,
        nodes=("node1",),
        launch="mpiexec -n 2 python target_tools smoke",
        mpi="MPICH 5.0.2",
        libraries=(
            LoadedLibrary(kind="mpi", path="/software/mpich/lib/libmpi.so.12", owner="prefix"),
        ),
        checks=(
            ResultCheck(name="allreduce", dtype="float32", bytes=4, passed=True, ranks=2),
            ResultCheck(name="allreduce", dtype="float64", bytes=8, passed=True, ranks=2),
            ResultCheck(name="broadcast", passed=True, ranks=2),
        ),
        timings=(Timing(bytes=4, latency_us=1.5, bus_bandwidth=0.1, repetitions=10),),
    )
    evidence = Evidence(
        environment=lock.plan.recipe,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        site=lock.plan.site,
        arch=lock.plan.arch,
        execution="native",
        time="2025-01-31T12:00:00Z",
        log="smoke.log",
        result=result,
    )
    return evidence.model_copy(update=changes)


def _plain() -> Case:
    lock = Lock(plan=make_plan(), artifacts=ARTIFACTS)
    places = BuildFolders(
        Path("/software/local/allreduce/abc"), Path("/software/local/allreduce/abc.b")
    )
    return Case("plain", lock, places, make_evidence(lock))


def _modules() -> Case:
    plan = make_plan(
        recipe="allreduce-modules",
        pins=with_openmpi("4.1.5", "OpenMPI/4.1.5-GCC-12.3.0"),
        site="cluster",
        system_site_packages=True,
        python="/apps/Python/3.11.3/bin/python3",
        modules=Modules(
            system="lmod",
            init="/apps/lmod/init/bash",
            trees=("/apps/modules/all", "/apps/modules/extra"),
            loads=("Python/3.11.3-GCCcore-12.3.0", "OpenMPI/4.1.5-GCC-12.3.0"),
            final=(
                "GCC/12.3.0",
                "GCCcore/12.3.0",
                "OpenMPI/4.1.5-GCC-12.3.0",
                "Python/3.11.3-GCCcore-12.3.0",
            ),
        ),
        environment=(
            *standard_edits(OMP_NUM_THREADS="1"),
            Edit(kind="unset", name="PYTHONHOME"),
            Edit(kind="append", name="MANPATH", value="share/man", in_prefix=True),
        ),
        launcher=SiteLauncher(kind="openmpi", command=("mpiexec",)),
        smoke=Smoke(ranks=4),
        steps=make_steps("modules", *STEPS),
    )
    lock = Lock(plan=plan, artifacts=ARTIFACTS)
    places = BuildFolders(
        Path("/software/cluster/env/abc"), Path("/software/cluster/env/abc.build")
    )
    return Case("modules", lock, places, None)


# What a flat EasyBuild tree loads: the toolchain comes with NCCL, and brings an MPI of its own.
TAURUS = Modules(
    system="lmod",
    init="/apps/lmod/init/bash",
    trees=("/sw/modules/env",),
    loads=("modenv/ml", "NCCL/2.3.7-fosscuda-2018b", "OpenMPI/3.1.4-gcccuda-2018b"),
    final=(
        "CUDA/9.2.88-GCC-7.3.0-2.30",
        "GCC/7.3.0-2.30",
        "GCCcore/7.3.0",
        "NCCL/2.3.7-fosscuda-2018b",
        "OpenMPI/3.1.4-gcccuda-2018b",
        "fosscuda/2018b",
        "gcccuda/2018b",
        "modenv/ml",
    ),
    replaced=(Replacement(module="OpenMPI/3.1.1-gcccuda-2018b", by="OpenMPI/3.1.4-gcccuda-2018b"),),
)


def make_finding(status: FindingStatus, **changes: object) -> PlanFinding:
    finding = PlanFinding(
        id=f"TEST-{status.upper()}",
        status=status,
        severity="info" if status == "info" else "warning",
        summary=f"What is {status}",
        components=("openmpi@3.1.4", "nccl@2.3.7"),
        fix="take another",
        link="https://example.org/issues/1",
        facts=("network",) if status == "unknown" else (),
        remedy="variable OMPI_MCA_btl=^vader" if status == "lifted" else None,
        reason="measured on our fabric" if status == "waived" else None,
    )
    return finding.model_copy(update=changes)


FINDINGS = tuple(
    make_finding(status) for status in ("waived", "lifted", "warning", "unknown", "info")
)


def _swap() -> Case:
    plan = make_plan(
        recipe="allreduce-swap",
        pins=with_openmpi("3.1.4", "OpenMPI/3.1.4-gcccuda-2018b"),
        site="taurus-ml",
        arch="ppc64le",
        modules=TAURUS,
        findings=FINDINGS,
        launcher=SiteLauncher(kind="openmpi", command=("mpiexec",)),
        steps=make_steps("modules", *STEPS),
    )
    lock = Lock(plan=plan, artifacts=ARTIFACTS)
    places = BuildFolders(Path("/software/ml/env/abc"), Path("/software/ml/env/abc.build"))
    return Case("swap", lock, places, make_evidence(lock))


def _hostile() -> Case:
    plan = make_plan(
        findings=tuple(
            make_finding(
                status, summary=HOSTILE, fix=HOSTILE, link=HOSTILE, remedy=HOSTILE, reason=HOSTILE
            )
            for status in ("waived", "lifted", "warning")
        ),
        recipe="hostile",
        summary=HOSTILE,
        environment=standard_edits(HOSTILE=HOSTILE, EMPTY="", SPACE="  "),
        launcher=SiteLauncher(kind="custom", command=("/opt/m p'i/mpi$exec", HOSTILE)),
    )
    lock = Lock(plan=plan, artifacts=ARTIFACTS[:1])
    folder = Path("/software/a b 'single' \"double\" $HOME `touch CANARY` ]] {x} é")
    places = BuildFolders(folder / "hostile/abc", folder / "hostile/abc.build")
    return Case("hostile", lock, places, make_evidence(lock))


CASES = (_plain(), _modules(), _hostile(), _swap())
