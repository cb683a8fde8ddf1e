"""The id of a lock is that of its decisions: no words, no defaults, nothing that follows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from locks_otherwise import at, changed, leaves
from pydantic import create_model

from envbuilder.base import canonical_json
from envbuilder.knowledge.artifacts import (
    CondaArchive,
    GitRevision,
    GitTree,
    Patch,
    Sdist,
    Submodule,
)
from envbuilder.model.decisions import asks_the_same, spelt
from envbuilder.model.plan import Lock, Pin, Plan, PlanFinding, Proof, SourceBuild, Step
from envbuilder.workflow.lock import LOCKS

STORED = Path(__file__).parent / "stored_locks"
IDS: dict[str, str] = json.loads((STORED / "ids.json").read_text(encoding="utf-8"))


def stored(name: str) -> Lock:
    return Lock.model_validate_json((STORED / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", IDS)
def test_a_lock_of_any_release_keeps_its_id(name: str) -> None:
    lock = stored(name)
    assert lock.sha256() == IDS[name]
    assert lock.id() == IDS[name][:12]
    assert Lock.model_validate_json(lock.text()).sha256() == IDS[name], "written and read again"


@pytest.mark.parametrize("name", IDS)
def test_what_a_user_gives_is_read_like_any_document(name: str) -> None:
    assert LOCKS.load(STORED / name).sha256() == IDS[name]


def test_every_stored_lock_has_its_id() -> None:
    there = {path.relative_to(STORED).as_posix() for path in STORED.rglob("*/*.json")}
    assert there == set(IDS)
    # The first envbuild wrote fewer keys of the same decisions; later ones tell kinds of files.
    assert IDS["1/allreduce-first.json"] == IDS["1/allreduce.json"]
    assert IDS["1/horovod-torch-cpu-kinds.json"] == IDS["1/horovod-torch-cpu.json"]
    # One was written while queries with secrets were kept.
    assert IDS["1/allreduce-secret-links.json"] == IDS["1/allreduce.json"]
    assert len(set(IDS.values())) == len(IDS) - 3


def test_a_secret_in_the_query_of_a_stored_lock_is_not_read() -> None:
    lock = stored("1/allreduce-secret-links.json")
    assert "?" not in lock.text().replace("?download=1", "")
    assert lock.text().count("?download=1") == 1
    assert [each.index for each in lock.index_files].count("unknown") == 2
    assert len(lock.secret_links) == 2


def complete() -> Lock:
    """Return a lock of which every list and every optional field holds something."""
    lock = stored("1/horovod-nccl.json")
    plan = lock.plan
    pin = Pin(component="cuda", version="9.2", origin="module", locator="CUDA/9.2", why="along")
    build = plan.builds[0].model_copy(
        update={
            "homes": {"HOROVOD_NCCL_HOME": "lib/nccl"},
            "environment": {"CXXFLAGS": "-O2"},
            "pip_options": ("--no-build-isolation",),
            "build_requires": ("setuptools<60",),
            "patches": ("one", "two"),
            "tree": GitRevision(url="https://git.example/h.git", tag="v0.18.2", commit="c" * 40),
        }
    )
    waived = PlanFinding(
        id="OMPI-001",
        status="waived",
        severity="error",
        summary="hangs",
        components=("openmpi@3.1.3",),
        fix="take another",
        link="https://example.org/1",
        facts=("network",),
        remedy="another",
        reason="no hang here",
    )
    more = {
        "pins": plan.pins[:2],
        "steps": plan.steps[:1],
        "inputs": plan.inputs[:1],
        "brought": (pin, pin.model_copy(update={"component": "gcc"})),
        "build_pins": (pin.model_copy(update={"component": "cmake"}),),
        "packages": ("pandas>=2", "scipy"),
        "conda_specs": ("scipy >=1.5", "numpy ==1.16.4 py36_0"),
        "builds": (build,),
        "verified": (SourceBuild(component="horovod", version="0.18.2", flags={"A": "1"}),),
        "patches": (Patch(name="one", sha256="1" * 64), Patch(name="two", sha256="2" * 64)),
        "findings": (waived, waived.model_copy(update={"id": "NCCL-001", "status": "info"})),
        "pip_indexes": ("https://index.example/simple",),
        "find_links": ("https://index.example/wheels",),
        "runtime": plan.runtime.model_copy(update={"aliases": ("horovod",), "beside": "ddl"}),
        "profile": "scorep",
    }
    kept = tuple(
        each.model_copy(update={"build_only": each.kind == "wheel", "size": 7})
        for each in lock.index_files
        if each.name in ("horovod", "cffi")
    )
    tree = GitTree(
        name="h",
        version="0.18.2",
        filename="h-0.18.2.tar",
        url="https://git.example/h.git",
        tag="v0.18.2",
        commit="c" * 40,
        tree="d" * 40,
        submodules=(Submodule(path="s", url="https://git.example/s.git", commit="e" * 40),),
        sha256="f" * 64,
        size=7,
        build_only=True,
        imports="h",
    )
    conda = CondaArchive(
        name="_libgcc_mutex",
        version="0.1",
        build="conda_forge",
        url="https://conda.example/linux-64/_libgcc_mutex-0.1-conda_forge.conda",
        sha256="3" * 64,
        md5="4" * 32,
        size=7,
        channel="https://conda.example",
        subdir="linux-64",
        depends=("python", "__glibc >=2.28"),
        distribution="mutex",
        imports="mutex",
    )
    artifacts = (*kept, tree, conda)
    whole = lock.model_copy(update={"plan": plan.model_copy(update=more), "artifacts": artifacts})
    return Lock.model_validate(json.loads(whole.text()))


LOCK = complete()

# What says nothing of the environment: ``decisions`` says why.
SAYS_NOTHING = re.compile(
    r"""
    plan\.(summary|partition|packages|conda-specs|pip-indexes|find-links|inputs|steps)(\..*)?
    | plan\.(pins|build-pins|brought)\.\d+\.(why|fulfils)
    | plan\.(builds|verified)\.\d+\.(build-requires|frameworks|links)(\..*)?
    | plan\.builds\.\d+\.tree\.(url|tag)
    | plan\.runtime\.bundled
    | plan\.findings\.0\.(?!id$|status$).*
    | plan\.findings\.1\..*
    | plan\.proofs\.\d+\.launcher\..*
    | artifacts\.\d+\.(url|filename|size|imports|needs|index|tag|commit|tree|submodules)(\..*)?
    | artifacts\.\d+\.(md5|channel|subdir|depends|constrains|distribution)(\..*)?
    """,
    re.VERBOSE,
)
# Sets that are written as lists.
UNORDERED = re.compile(
    r"artifacts|plan\.(pins|build-pins|brought|findings|patches|modules\.final|runtime\.aliases)"
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path", list(leaves(LOCK.plain())), ids=lambda path: ".".join(map(str, path))
)
@pytest.mark.sample(60)
def test_every_field_is_a_decision_or_named_as_none(path: tuple[Any, ...]) -> None:
    name = ".".join(map(str, path))
    before = at(LOCK.plain(), path)
    for other in changed(LOCK, path):
        after = at(other.plain(), path)
        moved = isinstance(before, list) and sorted(map(str, before)) == sorted(map(str, after))
        free = SAYS_NOTHING.fullmatch(name) or (moved and UNORDERED.fullmatch(name))
        assert (other.id() == LOCK.id()) == bool(free), f"{name}: {before} -> {after}"


def with_plan(lock: Lock, **changes: object) -> Lock:
    return lock.model_copy(update={"plan": lock.plan.model_copy(update=changes)})


def test_titles_reasons_and_further_fields_change_no_id() -> None:
    """What the first id hashed as well: each release would have built everything anew."""
    plan = LOCK.plan
    titled = tuple(each.model_copy(update={"title": "other words"}) for each in plan.steps)
    reasons = tuple(each.model_copy(update={"why": "other words"}) for each in plan.pins)
    waiver = plan.findings[0].model_copy(update={"reason": "measured again"})
    for other in (
        with_plan(LOCK, summary="other words"),
        with_plan(LOCK, steps=(*titled, Step(id="more", title="a step that is new"))),
        with_plan(LOCK, pins=reasons),
        with_plan(LOCK, findings=(waiver,)),
    ):
        assert other.id() == LOCK.id()
    further = create_model("FurtherPlan", __base__=Plan, note=(str | None, None))
    later = create_model("LaterLock", __base__=Lock, plan=(further, ...), hint=(int, 7))
    for name, expected in IDS.items():
        value = json.loads((STORED / name).read_text(encoding="utf-8"))
        assert later.model_validate_json(json.dumps(value)).sha256() == expected
        value["plan"]["note"] = "only words"
        assert later.model_validate_json(json.dumps(value)).sha256() == expected


def test_a_waiver_is_a_decision_and_a_warning_is_not() -> None:
    waived, info = LOCK.plan.findings
    assert with_plan(LOCK, findings=(info,)).id() != LOCK.id()
    assert with_plan(LOCK, findings=(waived,)).id() == LOCK.id()


def test_a_patch_is_its_content_and_its_place_among_the_others() -> None:
    build, *others = LOCK.plan.builds
    renamed = tuple(
        each.model_copy(update={"name": f"renamed-{each.name}"}) for each in LOCK.plan.patches
    )
    names = tuple(f"renamed-{name}" for name in build.patches)
    same = (build.model_copy(update={"patches": names}), *others)
    assert with_plan(LOCK, patches=renamed, builds=same).id() == LOCK.id()
    turned = (build.model_copy(update={"patches": build.patches[::-1]}), *others)
    assert with_plan(LOCK, builds=turned).id() != LOCK.id()


def test_a_plan_without_proofs_proves_what_the_first_ones_did() -> None:
    launcher = LOCK.plan.launcher
    first = (Proof(api="numpy", transport="mpi", launcher=launcher),)
    assert with_plan(LOCK, proofs=first).id() == with_plan(LOCK, proofs=()).id() != LOCK.id()


def test_a_mirror_serves_the_same_files() -> None:
    moved = tuple(
        each.model_copy(update={"url": f"https://mirror.example/{each.filename}"})
        for each in LOCK.artifacts
    )
    assert LOCK.model_copy(update={"artifacts": moved}).id() == LOCK.id()


def test_every_kind_of_file_is_told_from_the_others() -> None:
    wheel = next(each for each in LOCK.index_files if each.kind == "wheel")
    sdist = Sdist(**wheel.model_dump(exclude={"kind"}, by_alias=False))
    package = {"name": wheel.name, "version": wheel.version, "sha256": wheel.sha256}
    conda = [
        CondaArchive(**package, build=build, url="https://conda.example/n.conda")
        for build in ("py36_0", "py36_1")
    ]
    locks = [LOCK.model_copy(update={"artifacts": (each,)}) for each in (wheel, sdist, *conda)]
    assert len({each.id() for each in locks}) == len(locks)
    for each in locks:
        assert Lock.model_validate_json(each.text()) == each


@given(st.data())
def test_the_order_in_which_a_recipe_names_things_decides_nothing(data: st.DataObject) -> None:
    plan = LOCK.plan
    pins = data.draw(st.permutations(plan.pins))
    files = data.draw(st.permutations(LOCK.artifacts))
    turned = with_plan(LOCK, pins=tuple(pins)).model_copy(update={"artifacts": tuple(files)})
    assert turned.id() == LOCK.id()


def test_what_is_asked_of_an_index_is_more_than_what_is_decided() -> None:
    plan = LOCK.plan
    assert asks_the_same(plan, plan.model_copy(update={"summary": "x", "inputs": ()}))
    for changes in (
        {"packages": ("pandas>=3",)},
        {"conda_specs": ("pandas >=3",)},
        {"pip_indexes": ()},
        {"find_links": ()},
        {"python": "/usr/bin/python3.12"},
    ):
        assert not asks_the_same(plan, plan.model_copy(update=changes)), changes


def test_pins_and_files_are_sorted_as_their_canonical_json_is() -> None:
    """Locks are hashed by that order, also of names that begin alike and of what is escaped."""
    texts = [
        "mpi",
        "mpi4py",
        "mpi ",
        "mpi!",
        "mpi-4",
        'a"b',
        "a\\b",
        "ä",
        "a\tb",
        "A",
        "a",
        "~",
        "\x7f",
    ]
    pairs = [{"name": one, "version": other} for one in texts for other in texts]
    values: list[dict[str, str | bool]] = [
        *pairs,
        *({**each, "build_only": True} for each in pairs),
        *({**each, "build": "py_0"} for each in pairs),
        *({"name": each["name"]} for each in pairs),
    ]
    assert sorted(values, key=spelt) == sorted(values, key=canonical_json)
