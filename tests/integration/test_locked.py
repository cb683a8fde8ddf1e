"""``create --locked``: exactly the lock, without solving and without asking pip what to take."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from integration_tools import Envbuild, seed, small_lock

from envbuilder.model.decisions import earlier_sha256
from envbuilder.model.plan import Input, Lock, PlanFinding
from envbuilder.target_tools.proving.binding import EARLIER
from envbuilder.target_tools.root import publish, store


def test_create_builds_just_the_lock_and_says_what_changed_since(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "allreduce", "Allreduce as it was locked")
    plan = lock.plan
    inputs = tuple(
        Input(kind=each.kind, name=each.name, sha256="0" * 64)
        if each.kind in ("knowledge", "recipe")
        else each
        for each in plan.inputs
    )
    lock = lock.model_copy(update={"plan": plan.model_copy(update={"inputs": inputs})})
    file = tmp_path / "old.lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    root = tmp_path / "root"
    done = envbuild("create", "allreduce", "--locked", file, "--root", root, "--json")
    assert done.code == 0, done.text
    # What the recipe says now plays no part: its summary and message size are others.
    created = json.loads(done.out)
    assert (created["id"], created["lock-sha256"]) == (lock.id(), lock.sha256())
    assert f"building {file} as locked, " in done.err
    assert ": recipe allreduce, knowledge" in done.err
    assert "resolve packages against the index" not in done.err
    kept = (root / "allreduce" / f"{lock.id()}.build" / "lock.json").read_text(encoding="utf-8")
    assert kept == lock.text()
    # The same again is there already, by whatever lock decides the same.
    again = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert again.code == 0
    assert "exactly this" in again.err
    differs = envbuild("diff", "allreduce/1", file, "--root", root)
    assert (differs.code, differs.out.splitlines()[-1]) == (0, "no differences")
    live = envbuild("diff", "allreduce", "live", "--root", root)
    assert live.code == 8
    assert "- summary: Allreduce as it was locked\n" in live.out


def test_a_lock_whose_files_are_gone_publishes_nothing(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "allreduce")
    first, *rest = lock.artifacts
    other = first.model_copy(update={"sha256": "0" * 64})
    file = tmp_path / "bad.json"
    bad = lock.model_copy(update={"artifacts": (other, *rest)})
    file.write_text(bad.text(), encoding="utf-8")
    root = tmp_path / "root"
    done = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert done.code == 5
    assert "step fetch" in done.err
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []


def published_by_an_earlier_release(
    root: Path, built_root: Path, lock: Lock, identity: str | None = None
) -> str:
    """Publish *lock* in a new root under *identity*, else an id that was made otherwise; return it.

    Its prefix is empty: nothing of it is needed to find it.
    """
    seed(root, built_root)
    home = store.open_home(store.read_root(root), lock.plan.recipe)
    identity = identity or earlier_sha256(lock.text())[:12]
    home.prefix(identity).mkdir()
    home.build(identity).mkdir()
    (home.build(identity) / "lock.json").write_text(lock.text(), encoding="utf-8")
    (evidence,) = (built_root / "allreduce").glob("*.evidence/0001")
    run = shutil.copytree(evidence, home.evidence(identity) / "0001")
    # Earlier releases did not bind evidence, and kept no list of what was there before.
    record = json.loads((run / "evidence.json").read_text(encoding="utf-8"))
    about = {"id": identity, "environment": lock.plan.recipe, "lock-sha256": lock.sha256()}
    record = {**record, **about, "schema": 1, "run": None}
    (run / "evidence.json").write_text(json.dumps(record), encoding="utf-8")
    (root / "modulefiles").mkdir()
    publish.publish(home, publish.reserve(home, identity, "lua"), "-- never loaded\n")
    (root / EARLIER).unlink(missing_ok=True)
    return identity


def test_what_an_earlier_release_published_is_found_by_its_decisions(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "allreduce")
    root = tmp_path / "root"
    identity = published_by_an_earlier_release(root, built_root, lock)
    reworded = lock.model_copy(
        update={"plan": lock.plan.model_copy(update={"summary": "Other words", "inputs": ()})}
    )
    file = tmp_path / "reworded.json"
    file.write_text(reworded.text(), encoding="utf-8")
    done = envbuild("create", "allreduce", "--locked", file, "--root", root, "--json")
    assert done.code == 0, done.text
    assert "exactly this" in done.err
    created = json.loads(done.out)
    assert (created["number"], created["id"]) == (1, identity)
    assert created["prefix"].endswith(f"/allreduce/{identity}")
    assert not (root / "allreduce" / lock.id()).exists(), "nothing was built"
    listing = json.loads(envbuild("list", "--root", root, "--json").out)
    assert [(each["id"], each["default"]) for each in listing["environments"]] == [(identity, True)]
    assert listing["unfinished"] == []
    lua = envbuild("render", "allreduce", "--as", "lua", "--locked", file, "--root", root).out
    assert f"{root}/allreduce/{identity}/bin" in lua


@pytest.mark.parametrize("text", [None, '{"schema": 1, "pla'])
def test_a_lost_or_damaged_lock_of_what_is_published_is_written_anew(
    envbuild: Envbuild, built_root: Path, tmp_path: Path, text: str | None
) -> None:
    lock = small_lock(built_root, "allreduce")
    root = tmp_path / "root"
    published_by_an_earlier_release(root, built_root, lock, lock.id())
    path = root / "allreduce" / f"{lock.id()}.build" / "lock.json"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    file = tmp_path / "lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    done = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert done.code == 0, done.text
    assert "writing it again" in done.err
    assert path.read_text(encoding="utf-8") == lock.text()
    assert envbuild("info", "allreduce", "--root", root).code == 0


def test_what_was_changed_since_it_was_published_is_no_environment_to_come_back_to(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "allreduce")
    root = tmp_path / "root"
    identity = published_by_an_earlier_release(root, built_root, lock)
    prefix = root / "allreduce" / identity
    prefix.chmod(0o755)
    (prefix / "evil.pth").write_text("import os\n", encoding="utf-8")
    file = tmp_path / "lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    done = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert done.code == 8, done.text
    assert "the files of allreduce/1" in done.err
    assert "\n  evil.pth: added\n" in done.err


def test_changed_sources_of_the_runtime_are_said_to_be_why_it_is_built_anew(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "allreduce")
    runtime = lock.plan.runtime.model_copy(update={"source_sha256": "0" * 64})
    before = lock.model_copy(update={"plan": lock.plan.model_copy(update={"runtime": runtime})})
    root = tmp_path / "root"
    published_by_an_earlier_release(root, built_root, before)
    first, *rest = lock.artifacts
    # It ends in the step fetch: what is said before is what is asked about.
    bad = (first.model_copy(update={"sha256": "0" * 64}), *rest)
    file = tmp_path / "bad.json"
    file.write_text(lock.model_copy(update={"artifacts": bad}).text(), encoding="utf-8")
    done = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert done.code == 5
    assert " changed since allreduce/1 " in done.err


def test_what_became_known_since_is_told_of_what_is_published(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "allreduce")
    root = tmp_path / "root"
    published_by_an_earlier_release(root, built_root, lock)
    finding = PlanFinding(
        id="NUMPY-999",
        status="warning",
        severity="warning",
        summary="Sums are wrong on Tuesdays",
        components=("numpy@2.0",),
        link="https://example.org/1",
    )
    known = lock.model_copy(update={"plan": lock.plan.model_copy(update={"findings": (finding,)})})
    file = tmp_path / "known.json"
    file.write_text(known.text(), encoding="utf-8")
    done = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert done.code == 0, done.text
    assert "exactly this" in done.err
    assert ": NUMPY-999 (warning)" in done.err
