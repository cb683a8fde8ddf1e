"""The definition file that ``envbuild image`` builds from; built for real: test_image.py."""

from __future__ import annotations

from form_grammars import parse_definition
from form_tools import hostile_plan
from render_cases import CASES, make_plan

from envbuilder.model.plan import Lock
from envbuilder.render.bundle_image import render_bundle_definition


def rendered(lock: Lock) -> dict[str, str]:
    """Return the sections by their names."""
    read = parse_definition(render_bundle_definition(lock, "debian 12"))
    assert read.header == {"bootstrap": "localimage", "from": "base"}
    return read.sections


def test_the_installer_of_the_bundle_runs_and_the_bundle_goes() -> None:
    lock = CASES[0].lock
    read = rendered(lock)
    assert read["files"].split() == ["bundle", "/opt/envbuild.bundle"]
    post = read["post"].splitlines()
    install = next(n for n, line in enumerate(post) if "install.sh" in line)
    assert post[install].split() == ["bash", "/opt/envbuild.bundle/install.sh", "/opt/envbuild"]
    assert post[install + 1].split() == ["rm", "-rf", "/opt/envbuild.bundle"]


def test_a_candidate_is_built_and_tested_as_one() -> None:
    text = render_bundle_definition(CASES[0].lock, "debian 12", candidate=True)
    sections = parse_definition(text).sections
    install = next(line for line in sections["post"].splitlines() if "install.sh" in line)
    assert install.split()[2:] == ["--candidate", "/opt/envbuild"]
    proofs = [line for line in sections["test"].splitlines() if " prove --prefix " in line]
    assert proofs
    assert all(" --candidate " in each for each in proofs)
    assert "--candidate" not in render_bundle_definition(CASES[0].lock, "debian 12")


def test_its_test_compares_the_files_and_proves_each_smoke_test() -> None:
    plan = CASES[0].lock.plan
    torch = plan.model_copy(
        update={"runtime": plan.runtime.model_copy(update={"beside": "horovod"})}
    )
    for each in (plan, torch):
        lock = Lock(plan=each, artifacts=CASES[0].lock.artifacts)
        home = f"/opt/envbuild/{each.recipe}/{lock.id()}"
        test = rendered(lock)["test"]
        assert f"manifest compare {home} {home}.evidence/manifest.json" in test
        proofs = [line for line in test.splitlines() if " prove --prefix " in line]
        assert f"--ranks {each.smoke.ranks} " in proofs[0]
        for number, line in enumerate(proofs, start=1):
            assert f"--smoke-script smoke-{number}.sh" in line
            assert line.endswith(f'"$records/{number}"')


def test_what_a_document_says_stays_in_its_place() -> None:
    hostile = rendered(Lock(plan=hostile_plan(), artifacts=CASES[0].lock.artifacts))
    plain = rendered(Lock(plan=make_plan(), artifacts=CASES[0].lock.artifacts))
    assert hostile.keys() == plain.keys()
    assert "envbuild.environment" in hostile["labels"]
