"""``create --locked``: exactly the lock, without solving and without asking pip what to take."""

from __future__ import annotations

import json
from pathlib import Path

from integration_tools import Envbuild, small_lock

from envbuilder.model.plan import Input


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
    assert f"changed since {file} was locked: recipe allreduce, knowledge; built as" in done.err
    assert "ask the package index" not in done.err
    kept = (root / "allreduce" / f"{lock.id()}.build" / "lock.json").read_text(encoding="utf-8")
    assert kept == lock.text()
    # The same again is there already, by whatever lock decides the same.
    again = envbuild("create", "allreduce", "--locked", file, "--root", root)
    assert again.code == 0
    assert "allreduce/1 holds exactly this already" in again.err
    differs = envbuild("diff", "allreduce/1", file, "--root", root)
    assert (differs.code, differs.out.splitlines()[-1]) == (0, "nothing differs")
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
