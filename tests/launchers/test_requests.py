"""What each use asks for: a smoke test's hosts in a job, its launcher, what the evidence keeps."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from launch_table import facts_of, sites

from envbuilder.errors import UsageError
from envbuilder.launching.launchers import launch_words
from envbuilder.model.launch import Host, JobStep, Shape
from envbuilder.model.plan import Proof
from envbuilder.model.site import SiteLauncher
from envbuilder.reporter import Report
from envbuilder.workflow.context import Context
from envbuilder.workflow.hosts import HostList, find_smoke_hosts
from envbuilder.workflow.launch_requests import (
    LaunchFacts,
    example,
    image_start,
    plan_in_image,
    programs_launcher,
    record,
    script_start,
    smoke_request,
    start_command,
)

SITES = {site.name: site for site in sites()}


def proof(facts: LaunchFacts, **changes: object) -> Proof:
    plain = Proof(api="numpy", transport="mpi", launcher=facts.plan.launcher)
    return plain.model_copy(update=changes)


def job(*slots: int, scheduler: str = "slurm", step: JobStep | None = None) -> HostList:
    hosts = tuple(Host(f"n{number}", each) for number, each in enumerate(slots, start=1))
    return HostList(hosts, "the job", scheduler, allocated=True, step=step)


def srun(ranks: int, where: HostList) -> str:
    facts = facts_of("srun", SITES["taurus-ml"])
    return " ".join(launch_words(smoke_request(facts, proof(facts), ranks, where)))


@pytest.mark.parametrize(
    ("ranks", "slots", "expected"),
    [
        # On every node of the job, where the ranks can be dealt out evenly.
        (2, (4, 4), "--nodes=2 --ntasks=2 --ntasks-per-node=1"),
        (4, (4, 4), "--nodes=2 --ntasks=4 --ntasks-per-node=2"),
        (3, (4, 4), "--nodes=1 --ntasks=3 --ntasks-per-node=3"),
        (4, (2, 2, 2), "--nodes=2 --ntasks=4 --ntasks-per-node=2"),
        (1, (4, 4), "--nodes=1 --ntasks=1 --ntasks-per-node=1"),
        # One for every slot, as users do.
        (3, (2, 1), "--nodes=2 --ntasks=3"),
        # More than there are slots: the only place where the line says so.
        (4, (1,), "--nodes=1 --ntasks=4 --ntasks-per-node=4 --overcommit"),
    ],
)
def test_a_smoke_test_takes_as_many_nodes_as_it_can(
    ranks: int, slots: tuple[int, ...], expected: str
) -> None:
    line = srun(ranks, job(*slots)).replace(" --kill-on-bad-exit=1", "")
    assert line == f"srun --mpi=pmix {expected}"


def test_launchers_that_reach_nodes_by_ssh_are_tried_on_this_one() -> None:
    facts = facts_of("horovodrun", SITES["local"])
    gloo = proof(facts, transport="gloo")
    request = smoke_request(facts, gloo, 2, job(2, 2))
    assert " ".join(launch_words(request)) == "horovodrun --gloo -np 2"


def test_in_a_job_of_another_scheduler_its_mpi_starts_the_ranks() -> None:
    facts = facts_of("jsrun", SITES["summit"])
    request = smoke_request(facts, proof(facts), 2, job(2, 2))
    assert request.kind == "spectrum-mpi"
    assert programs_launcher(facts.plan, "lsf").kind == "jsrun"
    without = facts.plan.model_copy(update={"pins": ()})
    with pytest.raises(UsageError) as raised:
        programs_launcher(without, "slurm")
    assert raised.value.id == "launcher.wrong-scheduler"


def test_ddl_s_programs_are_started_by_ddlrun_alone() -> None:
    facts = facts_of("jsrun", SITES["summit"])
    runtime = facts.plan.runtime.model_copy(update={"beside": "ddl"})
    ddl = replace(facts, plan=facts.plan.model_copy(update={"runtime": runtime}))
    shown = example(ddl)
    # It takes no number: as many ranks as there are GPUs.
    assert (shown.ranks, shown.words[0]) == (6, "ddlrun")
    # What is proved of it is the bundled runtime, by the site's own launcher.
    assert script_start(ddl, proof(ddl)).words[0] == "jsrun"


def test_a_jsrun_without_a_job_is_refused_before_anything_is_built() -> None:
    facts = facts_of("jsrun", SITES["summit"])
    request = smoke_request(facts, proof(facts), 2, HostList(None, "this machine"))
    with pytest.raises(UsageError) as raised:
        start_command(request)
    assert raised.value.id == "launch.outside-job"


def test_an_image_has_the_launcher_of_its_own_mpi() -> None:
    facts = facts_of("srun", SITES["taurus-ml"])
    torchrun = SiteLauncher(kind="torchrun", command=("torchrun",))
    proofs = (proof(facts), proof(facts, launcher=torchrun))
    inside = plan_in_image(facts.plan.model_copy(update={"proofs": proofs}))
    own = SiteLauncher(kind="openmpi", command=("mpiexec",))
    assert inside.launcher == own
    assert [each.launcher for each in inside.proofs] == [own, torchrun]
    start = image_start(inside, facts.components)
    assert start.words[:3] == ("mpiexec", "-n", "2")
    assert start.root_variables[0] == "OMPI_ALLOW_RUN_AS_ROOT"


def test_gloo_is_no_word_for_what_starts_mpi() -> None:
    """Ranks of torch's Gloo may be started by any launcher, which knows nothing of it."""
    facts = facts_of("openmpi", SITES["local"])
    request = smoke_request(facts, proof(facts, transport="gloo"), 2)
    assert not request.transport.gloo
    assert launch_words(request)[0] == "mpirun"


def test_the_evidence_keeps_what_the_line_was_made_for() -> None:
    facts = replace(facts_of("srun", SITES["taurus-ml"]), shape=Shape(6, 44))
    step = JobStep("--overlap", "SLURM_OVERLAP=1")
    kept = record(smoke_request(facts, proof(facts), 4, job(4, 4, step=step)))
    assert kept.plain() == {
        "launcher": "srun",
        "ranks": 4,
        "nodes": 2,
        "ranks-per-node": 2,
        "hosts": "n1:2,n2:2",
        "scheduler": "slurm",
        "in-job-step": True,
        "mpi": "openmpi@4.0.5",
        "transport": [],
        "gpus": True,
        "gpus-per-node": 6,
        "cores-per-node": 44,
        "oversubscribe": True,
    }


def test_a_job_that_says_no_hosts_is_proved_on_one_node(tmp_path: Path) -> None:
    err = io.StringIO()
    context = Context(
        {"SLURM_JOB_ID": "17"}, tmp_path, lambda: datetime.now(timezone.utc), Report(err, err)
    )
    hosts = find_smoke_hosts(None, context)
    assert (hosts.hosts, hosts.scheduler, hosts.step) == (None, "slurm", None)
    assert "job of Slurm" in err.getvalue()
    assert srun(2, hosts).split()[:4] == ["srun", "--mpi=pmix", "--nodes=1", "--ntasks=2"]
