"""Results as text: what is known of an environment shows wherever it is looked at."""

from __future__ import annotations

import sys
from pathlib import Path

from envbuilder import views
from envbuilder.model.evidence import Noted
from envbuilder.model.outcome import Created, Info, Listed, Listing, LockCheck

sys.path.insert(0, str(Path(__file__).parent.parent / "render"))
from render_cases import CASES, make_evidence

LOCK = next(case for case in CASES if case.name == "swap").lock


def listed(number: int, **changes: object) -> Listed:
    item = Listed(
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


def lines(*items: Listed) -> list[str]:
    listing = Listing(root="/r", site="local", arch="x86_64", environments=items)
    return views.listing(listing).splitlines()


def test_list_marks_what_is_known_below_each_environment() -> None:
    many = tuple(f"OMPI-{n:03}" for n in range(12))
    told = lines(
        listed(1),
        listed(2, waived=("OMPI-001", "HVD-002"), warnings=1),
        listed(3, warnings=4, last_failed=True),
        listed(4, waived=many),
    )
    assert told[1].split() == ["environment", "proved", "last", "proof"]
    assert told[2].startswith("  horovod-nccl/1  several ranks")
    assert told[3].endswith("default")
    assert told[4] == "    ! waived: OMPI-001, HVD-002; 1 warning: envbuild info tells"
    assert told[5].endswith("newest test FAILED")
    assert told[6] == "    ! 4 warnings: envbuild info tells"
    assert all(name in " ".join(told[8:]) for name in many)
    assert all(len(line) <= 80 for line in told)


def test_list_of_nothing() -> None:
    assert lines()[-1] == "  no environment is published here yet"


def test_info_tells_every_finding() -> None:
    info = Info(
        environment="horovod-nccl",
        number=1,
        default=True,
        id=LOCK.id(),
        prefix="/p",
        modulefile="/m",
        lock=LOCK,
        evidence=(make_evidence(LOCK),),
    )
    told = views.info(info).partition("known of this stack\n")[2]
    for finding in LOCK.plan.findings:
        assert finding.id in told
    assert "measured on our fabric" in told
    assert all(len(line) <= 80 for line in told.partition("smoke test")[0].splitlines())
    without = LOCK.model_copy(update={"plan": LOCK.plan.model_copy(update={"findings": ()})})
    assert "known of this stack" not in views.info(info.model_copy(update={"lock": without}))


def test_create_ends_with_the_risks_that_were_taken() -> None:
    findings = (Noted(id="OMPI-001", status="waived"), Noted(id="HVD-001", status="lifted"))
    created = Created(
        environment="horovod-nccl",
        number=1,
        id=LOCK.id(),
        lock_sha256=LOCK.sha256(),
        root="/r",
        prefix="/p",
        modulefiles="/m",
        launch=("mpiexec", "-n", "2", "python", "my_program.py"),
        evidence=make_evidence(LOCK, findings=findings),
    )
    assert "\nrisks that were taken: OMPI-001\n" in views.created(created)
    calm = created.model_copy(update={"evidence": make_evidence(LOCK)})
    assert "risks" not in views.created(calm)


def test_lock_check() -> None:
    same = LockCheck(file="/f.json", id="abc", changed=())
    assert views.lock_check(same) == "/f.json (abc): nothing has changed since it was made"
    other = same.model_copy(update={"changed": ("recipe x", "knowledge")})
    assert views.lock_check(other).splitlines()[1:] == ["  recipe x", "  knowledge"]
