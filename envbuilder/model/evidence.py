"""Evidence: what was proved about an environment, on what, and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from ..base import Document, Line, Name, Sha256, VariableName
from ..knowledge.terms import AdvisoryId, Api, Arch, Transport
from ..text import LONG, shown
from .plan import FindingStatus

Tier = Literal["rendered", "built", "imported", "one rank", "several ranks", "several nodes"]
TIERS: tuple[str, ...] = get_args(Tier)

# So many lines of a stack are told; the record holds all.
STACK_LINES = 12


class ResultCheck(Document):
    """One thing that every rank checked; ``detail`` says what went wrong where."""

    name: Line  # allreduce, allgather, broadcast, ...
    dtype: Line | None = None
    bytes: int | None = None  # Message size per rank in bytes.
    passed: bool
    ranks: int  # Number of ranks that completed it.
    detail: Line | None = None
    said: Line | None = None  # Output of the ranks: imported versions, a greeting.


class SkippedCheck(Document):
    """A check that was not made, because what the ranks talk through cannot do it."""

    name: Line
    dtype: Line | None = None
    why: Line


class TransportUse(Document):
    """Which transport carried the data of an operation, and who says so.

    ``negotiation`` is the operation by which Horovod's ranks agree on what to send.
    """

    operation: Line  # allreduce, allgather, broadcast, negotiation.
    transport: Line  # mpi, nccl, gloo, or one that no plan can require (ddl).
    source: Line  # Source of this information: the runtime's timeline, log or answer.


class Timing(Document):
    """Speed of an allreduce of one size, slowest rank, median over its repetitions."""

    bytes: int  # Message size in bytes.
    latency_us: float  # Time of one operation in microseconds.
    bus_bandwidth: float  # 2 (n-1)/n * bytes / time, in GB/s (10^9 bytes).
    repetitions: int


class LoadedLibrary(Document):
    """A communication library that the ranks had mapped while they talked."""

    kind: Literal["mpi", "nccl", "gloo"]
    path: Line
    owner: Line  # Who provides it: prefix, system, or for an image the host.


class RankFacts(Document):
    """What one rank recorded of its process. It is shown; a reader on another node compares none
    of it.
    """

    rank: int | None
    host: Line
    boot_id: Line | None = None
    pid: int
    # Whether the runner saw the process; only possible on the launcher's node, in the same PID
    # namespace.
    observed: bool
    job_step: Line | None = None
    container: Line | None = None
    cpu: Line | None = None
    gpus: tuple[Line, ...] = ()


class RunObservation(Document):
    """What was observed on the node of the launcher, see ``target_tools.proving.judge``."""

    host: Line
    boot_id: str  # Empty where the kernel hides it.
    pid_namespace: str  # Empty where the kernel hides it.
    begin: float  # Seconds since 1970.
    end: float
    observed: tuple[Line, ...]  # Records of the ranks that were seen alive.


class SmokeResult(Document):
    """What one smoke test found, judged from what each rank recorded."""

    tier: Tier
    verdict: Literal["passed", "failed"]
    reasons: tuple[str, ...] = ()  # Why it failed; may contain several lines.
    seconds: float
    ranks: int  # Requested number of ranks.
    nodes: tuple[Line, ...] = ()
    launch: Line  # The command that started the ranks.
    api: Api = "numpy"  # API that the ranks used.
    transport: Transport | None = None  # Required transport of the data; None: not required.
    carried: tuple[TransportUse, ...] = ()  # Transports that carried the data.
    runtime: Line | None = None
    framework: Line | None = None  # Framework of the tensors that were sent.
    mpi: Line | None = None
    python: Line | None = None
    # Variables that affect communication (UCX_*, FI_*, OMPI_*, NCCL_*, LD_*, ...), without secrets
    # and variables of launchers. Empty in evidence of earlier releases.
    environment: dict[VariableName, Line] = Field(default_factory=dict)
    processes: tuple[RankFacts, ...] = ()  # Empty in evidence of earlier releases.
    libraries: tuple[LoadedLibrary, ...] = ()
    checks: tuple[ResultCheck, ...] = ()
    left_out: tuple[SkippedCheck, ...] = ()
    timings: tuple[Timing, ...] = ()
    stacks: dict[str, str] = Field(default_factory=dict)  # Stack of each hung rank.

    def failure_lines(self) -> tuple[str, ...]:
        """Return why it failed, as lines: every reason, then the stacks, innermost call first."""
        lines = [
            f"{'  ' if number else '- '}{line}"
            for reason in self.reasons
            for number, line in enumerate(reason.splitlines())
        ]
        for rank, stack in self.stacks.items():
            calls = _program_first(stack).splitlines()
            more = [f"  ... {len(calls) - STACK_LINES} more lines"] * (len(calls) > STACK_LINES)
            lines += [
                f"stack of {rank}:",
                *(f"  {line.strip()}" for line in calls[:STACK_LINES]),
                *more,
            ]
        return tuple(lines)


def _program_first(stack: str) -> str:
    """Return what faulthandler wrote: the thread that it was called in first, then the main one.

    It writes the threads newest first, those of the runtime before the program's own:
    https://docs.python.org/3/library/faulthandler.html
    """
    blocks = re.split(r"\n+(?=(?:Thread|Current thread) 0x)", stack)
    threads = [each for each in blocks if each.startswith(("Thread 0x", "Current thread 0x"))]
    head = [each for each in blocks if each not in threads]
    current = [each for each in threads if each.startswith("Current thread ")]
    return "\n".join(dict.fromkeys([*head, *current, *threads[-1:], *threads]))


# What a program says of libraries holds paths, and may hold many.
FactText = Annotated[str, BeforeValidator(lambda text: shown(str(text), 2 * LONG))]
FactTopic = Literal["installation", "flags", "linkage", "mpi", "nccl"]


class BuildFact(Document):
    """One thing that was looked at in what was built, or in what a module brings.

    ``linkage``: which libraries are found, and whether they can be loaded; ``mpi`` and ``nccl``:
    which of these, and in which release; ``flags``: what is compiled in.
    """

    component: Name
    topic: FactTopic | None = None  # None: the build did not record it.
    passed: bool | None  # None: could not be decided on this machine.
    text: FactText


class FindingNote(Document):
    """A row of knowledge that said something about what was proved, and what came of it."""

    id: AdvisoryId
    status: FindingStatus


class LaunchRecord(Document):
    """What the launch line of a smoke test was made for; the line itself is in the result."""

    launcher: Name  # Kind of launcher: openmpi, srun, ...
    ranks: int
    nodes: int
    ranks_per_node: int | None = None  # None: differs between nodes.
    hosts: Line | None = None  # host:ranks,...; None: not stated.
    scheduler: Name | None = None  # Scheduler of the job; None: outside of a job.
    in_job_step: bool = False  # Whether it ran in a step that holds the CPUs of the job.
    mpi: Line | None = None  # component@version
    transport: tuple[Name, ...] = ()  # Transports requested by options: ucx, gloo.
    gpus: bool = False  # Whether each rank needs a GPU.
    gpus_per_node: int | None = None
    cores_per_node: int | None = None
    oversubscribe: bool = False  # Whether more ranks than slots are allowed (only in smoke tests).


def _moment(text: str) -> str:
    """Return a time as it is recorded. Raises ValueError for any other text."""
    datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    return text


Moment = Annotated[Line, AfterValidator(_moment)]


class Evidence(Document):
    """The record of one smoke test. Appended beside the prefix, never changed."""

    # 1: recorded before evidence was bound.
    schema_: Literal[1, 2] = Field(default=1, alias="schema")
    environment: Name
    id: Line
    lock_sha256: Sha256
    site: Name
    partition: Name | None = None  # None: no partition was named.
    arch: Arch
    execution: Literal["native", "emulated"]
    time: Moment  # End time, ISO 8601 in UTC.
    log: Line  # File name of the log, next to this record.
    findings: tuple[FindingNote, ...] = ()  # Findings of the plan; the lock contains them in full.
    # Stand-ins for packages and modules. With them, the smoke test does not prove the recipe.
    stand_ins: tuple[Line, ...] = ()
    # Facts that the step verify found about the libraries of the environment.
    build_facts: tuple[BuildFact, ...] = ()
    request: LaunchRecord | None = None  # None: recorded by an earlier release.
    run: RunObservation | None = None  # None: schema 1.
    result: SmokeResult
    # The API of the proof where it is not one of the recipe's runtime. Derived from the lock when
    # the evidence is read.
    by: Api | None = None


class SmokeReport(Document):
    """The records of one round of smoke tests, in order; a failed one is the last."""

    evidence: tuple[Evidence, ...] = Field(min_length=1)


def newest_passed(every: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the newest of each kind of proof that passed, in the order of the first ones.

    *every*: oldest first.
    """
    passed = (each for each in every if each.result.verdict == "passed")
    return tuple({(each.result.api, each.result.transport): each for each in passed}.values())


def telling(proved: Sequence[Evidence]) -> Evidence:
    """Return the proof that says most: the recipe's own runtime, if it is not the bundled one."""
    of_runtime = [each for each in proved if each.by is None] or proved
    return next((each for each in of_runtime if each.result.api != "numpy"), of_runtime[0])
