"""Locks on the command line: diff, lock --check and create --locked, as far as no network goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.base import canonical_json
from envbuilder.cli import app
from envbuilder.model.plan import Plan
from tests.cli.published import publish_plan
from tests.made_up_files import locked, wheel
from tests.verbs import problem_ids

Edit = Callable[[dict[str, Any]], None]

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


def run(*words: str | Path, **env: str) -> Result:
    strings = [str(word) for word in words]
    return CliRunner().invoke(app, strings, env={"COLUMNS": "80", **env})


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return a lock of recipe allreduce as it would be planned now, with files that are made up."""
    answer = run("plan", "allreduce", "--json")
    assert answer.exit_code == 0, answer.stderr
    return locked(Plan.model_validate_json(answer.stdout)).plain()


@pytest.fixture
def lock(plain: dict[str, Any], tmp_path: Path) -> Callable[..., Path]:
    """Return what writes the lock to a file, changed by some edits."""

    def write(name: str, *edits: Edit) -> Path:
        value = json.loads(json.dumps(plain))
        for edit in edits:
            edit(value)
        path = tmp_path / f"{name}.json"
        path.write_text(canonical_json(value), encoding="utf-8")
        return path

    return write


def in_plan(key: str, value: Any) -> Edit:
    def edit(lock: dict[str, Any]) -> None:
        lock["plan"][key] = value

    return edit


def older(*kinds: str) -> Edit:
    """Return an edit that makes these inputs others than those of now."""

    def edit(lock: dict[str, Any]) -> None:
        for each in lock["plan"]["inputs"]:
            if each["kind"] in kinds:
                each["sha256"] = "0" * 64

    return edit


def newer_numpy(lock: dict[str, Any]) -> None:
    for pin in lock["plan"]["pins"]:
        if pin["component"] == "numpy":
            pin["version"] = "99.1"
    newer = wheel("numpy", "99.1").plain()
    lock["artifacts"] = [newer if each["name"] == "numpy" else each for each in lock["artifacts"]]


Write = Callable[..., Path]


def test_the_same_lock_twice(lock: Write) -> None:
    answer = run("diff", lock("one"), lock("two"))
    assert answer.exit_code == 0
    assert answer.stdout.endswith("\nno differences\n")


def test_another_version_is_drift(lock: Write, plain: dict[str, Any]) -> None:
    answer = run("diff", lock("one"), lock("two", newer_numpy))
    assert answer.exit_code == 8
    (old,) = [pin["version"] for pin in plain["plan"]["pins"] if pin["component"] == "numpy"]
    lines = answer.stdout.splitlines()
    at = lines.index(f"  - numpy: {old} <- pip:numpy")
    assert lines[at + 1] == "  + numpy: 99.1 <- pip:numpy"
    told = json.loads(run("diff", lock("one"), lock("two", newer_numpy), "--json").stdout)
    assert told["same"] is False
    assert [(each["section"], each["name"]) for each in told["differences"]] == [
        ("components", "numpy"),
        ("files", "numpy"),
    ]


def test_a_lock_and_what_a_plan_made_now_would_be(lock: Write) -> None:
    assert run("diff", lock("one"), "live").exit_code == 0
    answer = run("diff", lock("two", newer_numpy), "live")
    assert answer.exit_code == 8
    assert "  - numpy: 99.1" in answer.stdout
    answer = run("diff", lock("three", older("knowledge", "recipe")), "live")
    assert answer.exit_code == 0
    assert "  knowledge: changed\n" in answer.stdout
    assert "  recipe allreduce: changed\n" in answer.stdout
    told = json.loads(run("diff", lock("three"), "live", "--json").stdout)
    assert (told["same"], told["after"].endswith("without files")) == (True, True)


def test_a_recipe_that_is_not_found_by_name_is_named_by_its_file(
    lock: Write, tmp_path: Path
) -> None:
    file = lock("one", in_plan("recipe", "mine"))
    answer = run("diff", file, "live")
    assert answer.exit_code == 2
    assert "unknown recipe 'mine'" in answer.stderr
    text = run("recipes", "show", "allreduce").stdout
    (tmp_path / "mine.yaml").write_text(text.replace("name: allreduce", "name: mine"))
    answer = run("diff", file, "live", "--recipe", tmp_path / "mine.yaml")
    # The pins say which recipe asked for them.
    assert answer.exit_code in (0, 8), answer.stderr
    assert "components\n  - numpy: " not in answer.stdout


def hostile(lock: dict[str, Any]) -> None:
    for edit in lock["plan"]["environment"]:
        if edit["name"] == "PYTHONNOUSERSITE":
            edit["value"] = "\x1b[2J\n$(touch CANARY)\u202e" + "x" * 2000


def test_what_a_lock_holds_is_shown_safely_and_within_the_terminal(lock: Write) -> None:
    answer = run("diff", lock("one"), lock("two", hostile))
    assert answer.exit_code in (2, 8)
    shown = answer.stdout + answer.stderr
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 2000


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", ":1:1", "document.empty"),
        ("{", ":1:2", "document.truncated"),
        ("[]", ":1:1", "document.not-a-mapping"),
        ('{"schema": 1,\n "plan": 3}', ":2:10", "document.wrong-type"),
        ("[" * 100_000, "", "document.too-deep"),
    ],
)
def test_what_is_no_lock_is_refused_with_its_place(
    text: str, place: str, problem: str, lock: Write, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(text, encoding="utf-8")
    for words in (
        ("diff", lock("one"), broken),
        ("diff", broken, "live"),
        ("lock", "allreduce", "--check", broken),
        ("create", "allreduce", "--locked", broken, "--root", tmp_path / "root"),
    ):
        answer = run(*words, "--json")
        assert answer.exit_code == 2, answer.stderr
        assert f"{broken}{place}: error: " in answer.stderr or not place
        assert problem in problem_ids(answer.stdout)
        assert "Traceback" not in answer.stderr
    assert not (tmp_path / "root").exists()


def keyed(lock: dict[str, Any]) -> None:
    channel = {"name": "ours", "url": "https://conda.example/ours", "keys": ["a" * 64]}
    lock["plan"]["channels"] = [channel]


def verified(lock: dict[str, Any]) -> None:
    file = {"kind": "conda-package", "name": "x", "version": "1", "build": "0", "sha256": "1" * 64}
    url = "https://conda.example/ours/noarch/x-1-0.conda"
    lock["artifacts"] = [{**file, "url": url, "signed-by": ["a" * 64], "verified-by": "a" * 64}]


@pytest.mark.parametrize(
    ("edit", "key"), [(keyed, "plan.channels[0].keys"), (verified, "artifacts[0].verified-by")]
)
def test_a_lock_that_asks_for_content_trust_is_refused(
    edit: Edit, key: str, lock: Write, tmp_path: Path
) -> None:
    file, root = lock("keyed", edit), tmp_path / "root"
    for words in (
        ("diff", file, "live"),
        ("lock", "allreduce", "--check", file),
        ("create", "allreduce", "--locked", file, "--root", root),
    ):
        done = run(*words, "--json")
        assert done.exit_code == 2, done.stderr
        assert "document.invalid-value" in problem_ids(done.stdout)
        assert key in done.stderr
    assert not root.exists()


def test_a_bill_of_materials_is_no_lock(lock: Write, tmp_path: Path) -> None:
    bill = tmp_path / "bill.json"
    bill.write_text('{"bomFormat": "CycloneDX", "components": []}')
    done = run("diff", lock("lock"), bill)
    assert (done.exit_code, f"{bill}:1:" in done.stderr.replace("\n", "")) == (2, True)


def test_a_checked_lock_goes_by_the_id_that_its_folders_have(
    plain: dict[str, Any], lock: Write, tmp_path: Path
) -> None:
    """Those of an earlier release are called otherwise than the lock's id is today."""
    version = publish_plan(tmp_path / "root", plain["plan"], earlier=True)
    identity = locked(Plan.model_validate(plain["plan"])).id()
    assert version.id != identity
    answer = run("lock", "--check", lock("one"), ENVBUILD_ROOT=str(tmp_path / "root"))
    assert answer.exit_code == 0, answer.stderr
    assert f"one.json ({version.id})" in answer.stdout
    elsewhere = run("lock", "--check", lock("one"), ENVBUILD_ROOT=str(tmp_path / "other"))
    assert f"one.json ({identity})" in elsewhere.stdout


def unknown_key(lock: dict[str, Any]) -> None:
    lock["plan"]["pins"][0]["verson"] = "1"


def wrong_backend(lock: dict[str, Any]) -> None:
    lock["plan"]["backend"] = "virtuolenv"


INTO = pytest.mark.parametrize("into", [("--root",), ("--bundle", "--output")])


@INTO
@pytest.mark.parametrize(
    ("edit", "problem", "said"),
    [
        (unknown_key, "document.unknown-key", "'verson'"),
        (wrong_backend, "document.unknown-value", "'virtuolenv'"),
        (in_plan("schema", 2), "document.unknown-value", "schema"),
        (in_plan("arch", "ppc64le"), "lock.other-request", "ppc64le"),
        (in_plan("recipe", "other"), "lock.other-request", "other"),
        (in_plan("site", "elsewhere"), "lock.other-request", "elsewhere"),
        (
            lambda lock: lock["plan"]["runtime"].update({"source-sha256": "1" * 64}),
            "lock.other-sources",
            "distributed-dl-training",
        ),
        (
            lambda lock: lock["plan"]["steps"].append({"id": "evil", "title": "x"}),
            "lock.contradiction",
            "with evil",
        ),
    ],
)
def test_create_refuses_a_lock_that_was_edited_or_is_for_something_else(
    edit: Edit, problem: str, said: str, into: tuple[str, ...], lock: Write, tmp_path: Path
) -> None:
    file = lock("edited", edit)
    answer = run("create", "allreduce", "--locked", file, *into, tmp_path / "folder", "--json")
    assert answer.exit_code == 2, answer.stderr
    assert problem in problem_ids(answer.stdout)
    assert said in answer.stderr
    assert not (tmp_path / "folder").exists(), "nothing was written"


@INTO
def test_create_locked_goes_with_nothing_that_would_change_the_lock(
    into: tuple[str, ...], lock: Write, tmp_path: Path
) -> None:
    words = ("create", "allreduce", "--locked", lock("one"), *into, tmp_path / "folder")
    for more in (("--relock",), ("--allow", "OMPI-001=because")):
        answer = run(*words, *more, "--json")
        assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["option.conflict"])
        assert more[0] in answer.stderr
    assert not (tmp_path / "folder").exists()


def test_lock_check_names_the_inputs_that_changed(lock: Write) -> None:
    fresh, stale = lock("fresh"), lock("stale", older("knowledge", "site"))
    answer = run("lock", "allreduce", "--check", fresh)
    assert (answer.exit_code, len(answer.stdout.splitlines())) == (0, 1)
    answer = run("lock", "--check", stale)
    assert answer.exit_code == 8
    assert answer.stdout.splitlines()[1:] == ["  site local", "  knowledge"]
    told = json.loads(run("lock", "allreduce", "--check", stale, "--json").stdout)
    assert told["changed"] == ["site local", "knowledge"]


@pytest.mark.parametrize("kind", ["recipe", "site", "snapshot", "knowledge", "runtime"])
def test_lock_check_knows_every_kind_of_input(kind: str, lock: Write) -> None:
    answer = run("lock", "allreduce", "--check", lock("stale", older(kind)), "--json")
    assert answer.exit_code == 8
    assert [each.split()[0] for each in json.loads(answer.stdout)["changed"]] == [kind]


def test_lock_check_of_another_recipe_is_refused(lock: Write) -> None:
    other = lock("one", in_plan("recipe", "other"))
    answer = run("lock", "allreduce", "--check", other, "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["lock.other-request"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("diff", "live", "LOCK"), "diff.live-first"),
        (("diff", "LOCK", "nothing.json"), "document.not-found"),
        (("diff", "LOCK", "allreduce/1", "--root", "/nowhere/at/all"), "root.missing"),
        (("diff", "/dev/null", "live"), "document.not-a-file"),
        (("diff", "LOCK", "live", "--allow", "X"), "waiver.reason-missing"),
        (("lock", "allreduce", "--check", "nothing.json"), "document.not-found"),
        (("lock",), "recipe.missing"),
        (("create", "allreduce", "--locked", "nothing.json"), "document.not-found"),
    ],
)
def test_what_is_no_lock_at_all(words: tuple[str, ...], problem: str, lock: Write) -> None:
    file = lock("one")
    line = [file if word == "LOCK" else word for word in words]
    answer = run(*line, "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, [problem])
    assert run(*line).stdout == ""
