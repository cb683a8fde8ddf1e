"""The contract of TARGETS: one lock made in each of them, for real."""

from __future__ import annotations

import contextlib
import io
import platform
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest
from integration_tools import clean_environ, small_lock

from envbuilder import data
from envbuilder.build.scripts import prepare
from envbuilder.commands.create import CreateOptions, create
from envbuilder.errors import BuildError, UsageError
from envbuilder.model.evidence import TIERS
from envbuilder.model.outcome import BundleResult, CreateResult, ImageResult
from envbuilder.model.plan import Lock
from envbuilder.reporter import Report
from envbuilder.workflow.context import Context
from envbuilder.workflow.load import PlanOptions
from envbuilder.workflow.targets import TARGETS, bundle, default_target
from envbuilder.workflow.targets.protocol import CreateRequest

MACHINE = platform.machine()
# What is for another architecture alone is tried where that is: see test_emulated.py.
OF_THIS = [name for name, each in TARGETS.items() if each.OWN_ARCH]
# An image needs Apptainer and a base: see test_image.py.
MADE_HERE = [name for name in OF_THIS if name != "image"]


@pytest.fixture
def lock(built_root: Path) -> Lock:
    return small_lock(built_root, "allreduce")


def context_in(folder: Path) -> Context:
    stream = io.StringIO()
    return Context(
        environ=clean_environ(),
        cwd=folder,
        clock=lambda: datetime.now(timezone.utc),
        reporter=Report(stream, stream, as_json=False),
    )


def made(name: str, lock: Lock, folder: Path) -> CreateResult | BundleResult | ImageResult:
    """Make the lock's environment in a target; everything that it writes lies below *folder*."""
    file = folder / "lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    (folder / "output").mkdir(exist_ok=True)
    options = CreateOptions(
        PlanOptions("allreduce"),
        root=str(folder / "root"),
        locked=file,
        target=name,
        output=folder / "output",
    )
    return create(options, context_in(folder))


def finished(folder: Path) -> list[Path]:
    """Return what a user would take for a finished environment."""
    below = (*folder.rglob("modulefiles/allreduce/*"), *folder.rglob("*.tar.gz"))
    return [*below, *folder.glob("output/*")]


@pytest.mark.parametrize("name", MADE_HERE)
@pytest.mark.sample(1)
def test_what_a_target_makes(name: str, lock: Lock, tmp_path: Path) -> None:
    result = made(name, lock, tmp_path)
    # A target decides nothing: what it makes is the environment of the lock.
    assert (result.environment, result.id) == ("allreduce", lock.id())
    assert result.lock_sha256 == lock.sha256()
    assert finished(tmp_path)
    [script] = tmp_path.rglob("build.sh")
    assert "step_venv() {" in script.read_text()
    assert (script.parent / "lock.json").read_text() == lock.text()
    # Nothing half done is left, and what was proved is no more than can be there.
    assert not [*tmp_path.rglob(".*unfinished"), *tmp_path.rglob(".*locking")]
    tier = result.tier if isinstance(result, BundleResult) else result.evidence.result.tier
    assert TIERS.index(tier) <= TIERS.index(TARGETS[name].HIGHEST_TIER)
    # It is there: making it again either says so or refuses, and changes nothing.
    before = sorted(finished(tmp_path))
    with contextlib.suppress(UsageError):
        assert made(name, lock, tmp_path).id == result.id
    assert sorted(finished(tmp_path)) == before


@pytest.mark.parametrize("name", MADE_HERE)
def test_a_file_that_is_another_one_leaves_nothing_finished(
    name: str, lock: Lock, tmp_path: Path
) -> None:
    first, *rest = lock.artifacts
    other = first.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(BuildError):
        made(name, lock.model_copy(update={"artifacts": (other, *rest)}), tmp_path)
    assert finished(tmp_path) == []


@pytest.mark.parametrize("name", OF_THIS)
def test_a_tier_that_cannot_be_reached_is_refused_before_anything_is_written(
    name: str, tmp_path: Path
) -> None:
    tier = TIERS[-1]
    if tier == TARGETS[name].HIGHEST_TIER:
        pytest.skip("it can prove everything")
    options = CreateOptions(PlanOptions("allreduce"), target=name, require_tier=tier)
    with pytest.raises(BuildError) as raised:
        create(options, context_in(tmp_path))
    assert raised.value.id == "tier.unreachable"
    assert list(tmp_path.iterdir()) == []


def test_the_target_follows_from_the_architecture() -> None:
    assert default_target(MACHINE, MACHINE) == "here"
    assert default_target("another", MACHINE) == "bundle"


def test_a_further_target_is_a_module_and_a_line(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(request: CreateRequest) -> BundleResult:
        locked = bundle.lock_of(request, request.output / "downloads")
        prepare(request.output / "only-scripts", {"lock.json": locked.text()}, data.RUNTIME)
        return BundleResult(
            environment=locked.plan.recipe,
            id=locked.id(),
            lock_sha256=locked.sha256(),
            site=locked.plan.site,
            arch=locked.plan.arch,
            folder=str(request.output),
            archive="none",
            bytes=0,
            files=0,
        )

    module = SimpleNamespace(HIGHEST_TIER="rendered", OWN_ARCH=True, OTHER_ARCH=True, make=make)
    monkeypatch.setitem(TARGETS, "scripts", module)
    assert made("scripts", lock, tmp_path).id == lock.id()
    assert (tmp_path / "output" / "only-scripts" / "lock.json").is_file()
    with pytest.raises(UsageError, match="unknown target 'script': did you mean 'scripts'"):
        made("script", lock, tmp_path)
