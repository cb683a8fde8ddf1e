"""A lock is held against itself wherever it is read: each edited one that was once believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.errors import DocumentError
from envbuilder.locking.lock_check import contradictions
from envbuilder.model.plan import Lock, Plan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.entries import entries
from envbuilder.workflow.lock import LOCKS
from tests.cli.published import planned
from tests.made_up_files import locked, sdist, wheel
from tests.verbs import problem_ids

STORED = Path(__file__).parent / "stored_locks"


@pytest.fixture(scope="module")
def lock() -> Lock:
    return locked(Plan.model_validate_json(json.dumps(planned("allreduce"))))


def stored(name: str) -> Lock:
    return Lock.model_validate_json((STORED / "1" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(STORED.glob("*/*.json")), ids=lambda path: path.stem)
def test_locks_of_every_release_are_whole(path: Path) -> None:
    lock = Lock.model_validate_json(path.read_text(encoding="utf-8"))
    assert contradictions(lock, entries().backends, RUNTIMES) == ()


def with_plan(lock: Lock, **changes: object) -> Lock:
    return lock.model_copy(update={"plan": lock.plan.model_copy(update=changes)})


def with_modules(lock: Lock, **changes: object) -> Lock:
    return with_plan(lock, modules=lock.plan.modules.model_copy(update=changes))


def with_file(lock: Lock, file: str, /, **changes: object) -> Lock:
    artifacts = (
        each.model_copy(update=changes) if each.name == file else each for each in lock.artifacts
    )
    return lock.model_copy(update={"artifacts": tuple(artifacts)})


def without(lock: Lock, name: str) -> Lock:
    kept = tuple(each for each in lock.artifacts if each.name != name)
    return lock.model_copy(update={"artifacts": kept})


def with_more(lock: Lock, *files: object) -> Lock:
    return lock.model_copy(update={"artifacts": (*lock.artifacts, *files)})


def swapped(lock: Lock, name: str, version: str) -> Lock:
    """Another release in the place of a file, in all that is said of it."""
    other = wheel(name, version)
    return with_file(lock, name, **{key: getattr(other, key) for key in type(other).model_fields})


def without_step(lock: Lock, step: str) -> Lock:
    return with_plan(lock, steps=tuple(each for each in lock.plan.steps if each.id != step))


NCCL = stored("horovod-nccl")
TORCH = stored("horovod-torch-cpu")
Edit = Callable[[Lock], Lock]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lock: swapped(lock, "numpy", "0.1"), "numpy-0.1-py3"),
        (
            lambda lock: with_modules(lock, final=("NCCL/2.3.7", "envbuild-stand-in/1")),
            "envbuild-stand-in is loaded",
        ),
        (
            lambda lock: with_modules(lock, stand_ins=("NCCL/2.3.7",)),
            "NCCL/2.3.7 is not",
        ),
        (lambda lock: with_file(lock, "numpy", version="9.9"), "numpy 9.9"),
        (
            lambda lock: with_file(lock, "numpy", url="https://index.example/evil-1-py3-none-a.whl"),
            "evil-1-py3-none-a.whl",
        ),
        (lambda lock: without(lock, "numpy"), "<- pip:numpy has no file"),
        (lambda lock: with_more(lock, wheel("evil", "1")), "needs evil-1-py3-none-any.whl"),
        (lambda lock: with_more(lock, wheel("numpy", "1.0")), "two files have the name numpy"),
        (lambda lock: with_more(lock, sdist("evil", "1")), "uses evil-1.tar.gz"),
        (lambda lock: with_file(lock, "numpy", build_only=True), "only to build"),
        (lambda lock: with_file(lock, "numpy", needs=("six",)), "numpy needs six"),
        (lambda lock: without_step(lock, "check"), "without check"),
        (lambda lock: without_step(lock, "venv"), "without "),
        (lambda lock: with_plan(lock, steps=lock.plan.steps[::-1]), "do not match"),
        (lambda lock: with_plan(lock, python="/tmp/python3"), "uses /tmp/python3"),
        (lambda _: without_step(NCCL, "verify"), "without verify"),
        (lambda _: with_plan(NCCL, builds=NCCL.plan.builds[1:]), "uses mpi4py-"),
        (lambda _: without(NCCL, "horovod"), "horovod 0.19.5 is built"),
        (
            lambda _: with_plan(NCCL, proofs=NCCL.plan.proofs[:1]),
            "horovod.tensorflow over nccl",
        ),
        (
            lambda _: with_plan(TORCH, proofs=TORCH.plan.proofs[1:]),
            "numpy over mpi",
        ),
        (lambda _: with_plan(NCCL, proofs=()), "horovod.tensorflow over nccl"),
    ],
)  # fmt: skip
def test_what_was_edited_is_named(lock: Lock, edit: Edit, said: str) -> None:
    for backends in (None, entries().backends):
        found = contradictions(edit(lock), backends, RUNTIMES)
        assert any(said in line for line in found), found


def test_a_plan_of_the_bundled_runtime_need_not_name_its_proof(lock: Lock) -> None:
    assert contradictions(with_plan(lock, proofs=()), entries().backends, RUNTIMES) == ()


def test_a_tool_that_an_installed_wheel_requires_is_to_be_installed(lock: Lock) -> None:
    """Locks of before had it among the tools alone; with one that is, the environment is whole."""
    tool = lock.plan.build_pins[0].locator
    needed = with_file(lock, "numpy", needs=(tool,))
    assert contradictions(with_file(needed, tool, build_only=False)) == ()
    assert contradictions(needed) == ()
    said = contradictions(with_file(lock, tool, build_only=False))
    assert any("to be installed" in line for line in said)


def test_what_is_whole_is_read_and_what_is_not_is_an_error_of_the_document(
    lock: Lock, tmp_path: Path
) -> None:
    file = tmp_path / "lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    assert LOCKS.load(file) == lock
    file.write_text(swapped(lock, "numpy", "0.1").text(), encoding="utf-8")
    with pytest.raises(DocumentError, match="numpy-0.1") as caught:
        LOCKS.load(file)
    assert caught.value.id == "lock.contradiction"


def test_a_smaller_smoke_test_than_its_recipe_makes_is_not_built(
    lock: Lock, tmp_path: Path
) -> None:
    """Where no document changed since, what follows from them is derived again and compared."""
    smoke = lock.plan.smoke.model_copy(update={"max_bytes": 4})
    file = tmp_path / "lock.json"
    file.write_text(with_plan(lock, smoke=smoke).text(), encoding="utf-8")
    words = ["create", "allreduce", "--locked", str(file), "--root", str(tmp_path / "root")]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["lock.recipe-mismatch"])
    assert '"max_bytes": 4,' in done.stderr
    assert not (tmp_path / "root").exists()
