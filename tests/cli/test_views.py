"""Results as text: what is known of an environment shows wherever it is looked at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.model.evidence import BuildFact, Evidence, FindingNote, SmokeReport
from envbuilder.model.outcome import (
    BundleResult,
    CreateResult,
    EnvironmentEntry,
    Info,
    Listing,
    LockCheck,
)
from envbuilder.model.plan import Lock, proofs_of
from envbuilder.target_tools.modulefile import SUMMARY, filled, proved_lines
from envbuilder.views import building, environments
from envbuilder.workflow.targets.root import check_tier

sys.path.insert(0, str(Path(__file__).parent.parent / "render"))
from render_cases import CASES, make_evidence

LOCK = next(case for case in CASES if case.name == "swap").lock


def listed(number: int, **changes: object) -> EnvironmentEntry:
    item = EnvironmentEntry(
        environment="horovod-nccl",
        number=number,
        default=number == 2,
        id="abc",
        summary="x",
        tier="several ranks",
        proved="2025-01-31T12:00:00Z",
        last_failed=False,
    )
    return item.model_copy(update=changes)


def lines(*items: EnvironmentEntry) -> list[str]:
    listing = Listing(root="/r", site="local", arch="x86_64", environments=items)
    return environments.listing(listing).splitlines()


def test_list_marks_what_is_known_below_each_environment() -> None:
    many = tuple(f"OMPI-{n:03}" for n in range(12))
    told = lines(
        listed(1),
        listed(2, waived=("OMPI-001", "HVD-002"), warnings=1),
        listed(3, warnings=4, last_failed=True),
        listed(4, waived=many),
    )
    assert told[1].split() == ["environment", "tier", "last", "proof"]
    assert told[2].startswith("  horovod-nccl/1  several ranks")
    assert told[3].endswith("default")
    assert told[4] == "    ! waived: OMPI-001, HVD-002; 1 warning: see envbuild info"
    assert told[5].endswith("FAILED")
    assert told[6] == "    ! 4 warnings: see envbuild info"
    assert all(name in " ".join(told[8:]) for name in many)
    assert all(len(line) <= 80 for line in told)


def test_list_of_nothing() -> None:
    assert lines()[-1].startswith("  no environment")


def test_info_tells_every_finding() -> None:
    info = info_of(LOCK, make_evidence(LOCK))
    told = environments.info(info).partition("advisories\n")[2]
    for finding in LOCK.plan.findings:
        assert finding.id in told
    assert "measured on our fabric" in told
    assert all(len(line) <= 80 for line in told.partition("smoke test")[0].splitlines())
    without = LOCK.model_copy(update={"plan": LOCK.plan.model_copy(update={"findings": ()})})
    assert "advisories" not in environments.info(info.model_copy(update={"lock": without}))


def info_of(lock: Lock, *evidence: Evidence) -> Info:
    return Info(
        environment="horovod-nccl",
        number=1,
        default=True,
        id=LOCK.id(),
        prefix="/p",
        modulefile="/m",
        lock=lock,
        evidence=evidence,
    )


def test_info_shows_what_the_built_libraries_link_as_the_newest_record_has_it() -> None:
    facts = (
        BuildFact(component="horovod", topic="flags", passed=True, text="mpi_lib.so has no NCCL"),
        BuildFact(
            component="horovod", topic="mpi", passed=None, text="links " + "libmpi.so.12 " * 9
        ),
        BuildFact(component="mpi4py", passed=False, text="MPI.so finds \x1b[31m/lib/libmpi.so"),
    )
    old = make_evidence(LOCK, build_facts=facts[:1])
    info = Info(
        environment="horovod-nccl",
        number=1,
        default=True,
        id=LOCK.id(),
        prefix="/p",
        modulefile="/m",
        lock=LOCK,
        evidence=(old, make_evidence(LOCK, build_facts=facts), make_evidence(LOCK)),
    )
    text = environments.info(info)
    after = text.partition("\nfacts about the built libraries\n")[2]
    told = after.partition("\n\n")[0].splitlines()
    assert (told[0], told[-2]) == ("  horovod", "  mpi4py")
    assert told[1].startswith("    undecided: mpi: ")
    assert told[-3] == f"    ok: flags: {facts[0].text}"
    assert told[-1] == "    WRONG: MPI.so finds \\x1b[31m/lib/libmpi.so"
    assert all(len(line) <= 80 for line in told)
    assert text.count("the built libraries") == 1
    without = info.model_copy(update={"evidence": (make_evidence(LOCK),)})
    assert "the built libraries" not in environments.info(without)


def test_create_ends_with_the_risks_that_were_taken() -> None:
    findings = (
        FindingNote(id="OMPI-001", status="waived"),
        FindingNote(id="HVD-001", status="lifted"),
    )
    created = CreateResult(
        environment="horovod-nccl",
        number=1,
        id=LOCK.id(),
        lock_sha256=LOCK.sha256(),
        root="/r",
        prefix="/p",
        enter="source /p/bin/activate",
        modulefiles="/m",
        launch=("mpiexec", "-n", "2", "python", "my_program.py"),
        evidence=make_evidence(LOCK, findings=findings),
    )
    assert "\nwaived advisories: OMPI-001\n" in building.created(created)
    calm = created.model_copy(update={"evidence": make_evidence(LOCK)})
    assert "risks" not in building.created(calm)


def test_a_proof_with_stand_ins_says_so_wherever_it_is_looked_at() -> None:
    both = ("tensorflow 2.1.0", "nccl 2.5.6")
    told = lines(listed(1, stand_ins=both), listed(2))
    assert told[2].startswith("  horovod-nccl/1  several ranks, with stand-ins  ")
    assert told[3] == "    ! 2 stand-ins: does not prove the recipe"
    assert told[4].startswith("  horovod-nccl/2  several ranks  ")
    evidence = make_evidence(LOCK).model_copy(update={"stand_ins": both})
    shown = environments.smoke(SmokeReport(evidence=(evidence,)))
    assert shown.startswith("passed: several ranks, with stand-ins, ")
    names = "tensorflow 2.1.0, nccl 2.5.6"
    (said,) = [line for line in shown.splitlines() if names in line]
    assert said.startswith("! stand-ins")
    help_text = proved_lines(evidence.plain())
    (said,) = [line for line in help_text if names in line]
    assert "stand-ins" in said
    assert proved_lines(make_evidence(LOCK).plain()) == [
        each for each in help_text if "stand-ins" not in each
    ]
    text = filled(f"help({SUMMARY})", 1, evidence.plain(), "lua")
    assert text.startswith("help(several ranks, with stand-ins, ")


def test_a_required_tier_is_not_reached_by_stand_ins() -> None:
    one = make_evidence(LOCK)
    proofs = [
        one.model_copy(
            update={
                "result": one.result.model_copy(
                    update={"api": each.api, "transport": each.transport}
                )
            }
        )
        for each in proofs_of(LOCK.plan)
    ]
    check_tier("several ranks", LOCK, proofs, "nothing was published")
    proofs[0] = proofs[0].model_copy(update={"stand_ins": ("nccl 2.5.6",)})
    with pytest.raises(BuildError) as caught:
        check_tier("several ranks", LOCK, proofs, "nothing was published")
    assert caught.value.id == "tier.stand-ins"
    assert all(each in str(caught.value) for each in ("several ranks", "nccl 2.5.6"))


def test_lock_check() -> None:
    same = LockCheck(file="/f.json", id="abc", changed=())
    assert building.lock_check(same).startswith("/f.json (abc): nothing ")
    other = same.model_copy(update={"changed": ("recipe x", "knowledge")})
    assert building.lock_check(other).splitlines()[1:] == ["  recipe x", "  knowledge"]


def test_a_bundle_says_whether_it_can_be_emulated_here() -> None:
    bundle = BundleResult(
        environment="demo",
        id="abc",
        lock_sha256="0" * 64,
        site="power",
        arch="ppc64le",
        folder="/out/demo-abc-ppc64le",
        archive="/out/demo-abc-ppc64le.tar.gz",
        bytes=1,
        files=1,
    )
    assert "--emulate" not in building.bundled(bundle)
    assert "--emulate" in building.bundled(bundle.model_copy(update={"can_emulate": True}))
