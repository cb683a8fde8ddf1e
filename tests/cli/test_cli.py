"""The command line: what people and programs see of every verb that needs no network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner, Result

from envbuilder import __version__
from envbuilder.cli import app, command_line
from envbuilder.commands.render import known_forms
from envbuilder.data import RECIPES
from envbuilder.machine import detection
from envbuilder.reporter import REPORT_ISSUE
from tests.documents import hostile
from tests.verbs import problem_ids

COMMANDS = (
    ["create", "clone", "plan", "why", "why-not", "lock", "render", "doctor", "hang", "report"]
    + ["list", "info", "validate", "diagnose", "diff", "smoke", "launch", "rollback", "remove"]
    + [f"advisories {verb}" for verb in ("list", "show", "check")]
    + [f"recipes {verb}" for verb in ("list", "show", "check", "schema", "from", "import")]
    + ["ci render", "bundle verify", "bundle install"]
    + ["module render", "catalogue", "import"]
    + [f"sites {verb}" for verb in ("list", "show", "check", "schema", "detect", "snapshot")]
)


def run(*words: str, **env: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "80", **env})


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_version() -> None:
    assert run("--version").stdout == f"envbuild {__version__}\n"


def test_the_version_comes_before_all_imports() -> None:
    """What asks for the version, a configure script say, waits for no command line to be built."""
    program = (
        "import sys; from envbuilder.__main__ import main; main(); "
        "print(sorted({'typer', 'pydantic', 'yaml', 'envbuilder.cli'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"envbuild {__version__}\n[]\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_a_terminal(command: str) -> None:
    shown = run(*command.split(), "--help")
    assert shown.exit_code == 0
    assert "Usage:" in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_verb_shows_an_example(command: str) -> None:
    assert f"Example: envbuild {command}" in run(*command.split(), "--help").stdout


def test_the_help_of_render_names_exactly_the_forms_there_are() -> None:
    shown = " ".join(run("render", "--help").stdout.split())
    text = re.search(r"--as FORM (.*?) -o, --output", shown)
    assert text
    named, explained = text[1].removeprefix("One of: ").split("; ", 1)
    explained_names = re.findall(r"(?:^|; )(\w+)(?::|,)", explained)
    assert (*named.split(", "), *explained_names) == known_forms()


def test_exit_codes_are_documented() -> None:
    text = " ".join(run("--help").stdout.split())
    for code in ("0 ok", "2 usage", "3 no solution", "5 build", "6 smoke test", "9 missing", "70"):
        assert code in text


def test_a_misspelt_command_or_option_is_usage() -> None:
    assert run("creat", "allreduce").exit_code == 2
    assert run("create", "allreduce", "--rot", "x").exit_code == 2


def test_a_misspelt_recipe_names_the_nearest() -> None:
    answer = run("plan", "allreduse")
    assert answer.exit_code == 2
    assert "'allreduce'" in answer.stderr
    assert answer.stdout == ""
    assert problem_ids(run("plan", "allreduse", "--json").stdout) == ["document.not-found"]


def test_a_plan_as_text_and_as_json_say_the_same() -> None:
    text = run("plan", "allreduce")
    assert text.exit_code == 0, text.stderr
    plain = json.loads(run("plan", "allreduce", "--json").stdout)
    for pin in plain["pins"]:
        assert re.search(rf"{pin['component']} +{re.escape(pin['version'])} ", text.stdout)
    assert [step["id"] for step in plain["steps"]] == [
        "venv",
        "fetch",
        "install",
        "tools",
        "runtime",
        "check",
    ]
    assert "site local (" in text.stderr


def test_an_architecture_the_recipe_is_not_for_is_told_with_its_place() -> None:
    answer = run("plan", "ddl", "--arch", "x86_64", "--json")
    assert answer.exit_code == 2
    assert problem_ids(answer.stdout) == ["recipe.other-arch"]
    assert re.search(r"ddl\.yaml:\d+:\d+: error: .*ppc64le", answer.stderr)


def test_what_cannot_be_emulated_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    root = ("--root", str(tmp_path / "root"), "--json")
    own = run("create", "allreduce", "--site", "local", "--emulate", *root)
    assert (own.exit_code, problem_ids(own.stdout)) == (2, ["emulation.native-arch"])
    both = run("create", "allreduce", "--arch", "ppc64le", "--emulate", "--bundle", *root)
    assert (both.exit_code, problem_ids(both.stdout)) == (2, ["option.conflict"])
    power = ("create", "allreduce", "--arch", "ppc64le", "--emulate")
    nodes = run(*power, "--require-tier", "nodes", *root)
    assert (nodes.exit_code, problem_ids(nodes.stdout)) == (5, ["tier.unreachable"])
    assert all(tier in nodes.stderr for tier in ("several ranks", "several nodes"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("possible", [True, False])
def test_emulation_is_offered_to_who_asks_for_a_proof_where_it_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, possible: bool
) -> None:
    monkeypatch.setattr("envbuilder.workflow.emulate.can_be_found", lambda _: possible)
    power = ("create", "allreduce", "--arch", "ppc64le", "--root", str(tmp_path), "--require-tier")
    ranks = run(*power, "ranks")
    assert ranks.exit_code == 5
    assert ("--emulate" in ranks.stderr) is possible
    assert ("on a machine of ppc64le" in ranks.stderr) is not possible
    # Emulated ranks are never on several nodes.
    assert "--emulate" not in run(*power, "nodes").stderr


def test_on_an_architecture_a_recipe_may_have_a_stack_of_its_own(tmp_path: Path) -> None:
    answer = run("plan", "allreduce", "--arch", "ppc64le", "--json")
    assert answer.exit_code == 0, answer.stderr
    plan = json.loads(answer.stdout)
    assert plan["system-site-packages"] is True
    assert {each["component"]: each["origin"] for each in plan["pins"]} == {
        "python": "system",
        "numpy": "system",
        "mpi4py": "system",
        "openmpi": "system",
    }
    own = tmp_path / "own.yaml"
    own.write_text(
        "schema: 1\nname: own\nsummary: Another stack on one\narch: [x86_64, ppc64le]\n"
        'stack: {python: "*"}\n'
        'for-arch:\n  ppc64le:\n    stack:\n      python: "*"\n      openmpi: ">=99"\n'
    )
    answer = run("plan", str(own), "--arch", "ppc64le", "--site", "debian-ppc64le", "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (3, ["plan.no-solution"])
    assert re.search(rf"{own}:10:7: error: .* openmpi >=99", answer.stderr)
    own.write_text(own.read_text().replace("openmpi", "opnmpi"))
    answer = run("recipes", "check", str(own), "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["component.unknown"])
    assert re.search(rf"{own}:10:7: error: .*'opnmpi'", answer.stderr)


def test_no_solution_has_its_own_exit_code_and_place(tmp_path: Path) -> None:
    recipe = tmp_path / "future.yaml"
    recipe.write_text(
        "schema: 1\nname: future\nsummary: Needs what is not there yet\narch: [x86_64, aarch64]\n"
        'stack:\n  python: ">=3.8"\n  mpich: ">=99"\n'
    )
    answer = run("plan", str(recipe), "--json")
    assert answer.exit_code == 3
    assert re.search(rf"{recipe}:7:3: error: .* mpich >=99", answer.stderr)
    report = json.loads(answer.stdout)
    assert report["exit-code"] == 3
    assert report["problems"][0]["place"] == f"{recipe}:7:3"
    assert problem_ids(answer.stdout) == ["plan.no-solution"]


def test_a_root_that_is_not_there_is_told() -> None:
    answer = run("list", "--root", "/nowhere/at/all", "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["root.missing"])
    assert "/nowhere/at/all" in answer.stderr


def test_names_and_numbers_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / ".envbuild.json").write_text('{"schema": 1, "site": "local", "arch": "x86_64"}')
    for verb in ("info", "smoke", "rollback", "remove"):
        answer = run(verb, "../etc", "--root", str(tmp_path), "--json")
        assert answer.exit_code == 2, verb
        assert problem_ids(answer.stdout) == ["environment.unknown-name"], verb
        assert "'..'" in answer.stderr or "'../etc'" in answer.stderr
    assert tree(tmp_path) == [".envbuild.json"]


def test_recipes_are_listed_shown_and_checked() -> None:
    assert "allreduce" in run("recipes", "list").stdout
    shown = run("recipes", "show", "allreduce")
    assert shown.stdout.startswith("# yaml-language-server")
    assert json.loads(run("recipes", "show", "allreduce", "--json").stdout)["name"] == "allreduce"
    assert json.loads(run("recipes", "schema").stdout)["title"]


def test_further_recipes_come_from_a_folder(tmp_path: Path) -> None:
    text = run("recipes", "show", "allreduce").stdout.replace("name: allreduce", "name: mine")
    (tmp_path / "mine.yaml").write_text(text)
    assert "mine" in run("recipes", "list", "--recipes", str(tmp_path)).stdout
    listed = run("recipes", "list", ENVBUILD_PATH=str(tmp_path)).stdout.splitlines()
    at = next(n for n, line in enumerate(listed) if line.startswith("  mine "))
    assert str(tmp_path / "mine.yaml") in [line.strip() for line in listed[at + 1 : at + 3]]
    assert listed[-1].endswith(str(RECIPES))
    # A file stays whole, to be copied.
    assert all(len(line) <= 80 or line.strip().startswith("/") for line in listed[:-1])
    assert run("plan", "mine", "--recipes", str(tmp_path)).exit_code == 0


def test_all_problems_of_all_files_are_shown_at_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("schema: 1\nname: one\nsumary: x\n")
    two.write_text("schema: 2\n")
    answer = run("recipes", "check", str(one), str(two), "--json")
    assert answer.exit_code == 2
    problems = {each["place"]: each["id"] for each in json.loads(answer.stdout)["problems"]}
    assert problems[f"{one}:3:1"] == "document.unknown-key"
    assert problems[f"{two}:1:9"] == "document.unknown-schema"
    assert f"{two}:1:9: error:" in answer.stderr


def through_create() -> Iterator[object]:
    """Yield all hostile documents; those that only repeat what others show here are for later.

    documents/test_hostile.py reads each of them, on every Python. What may differ through a verb is
    how many problems there are, and whether they have a line.
    """
    for number, case in enumerate(hostile.CASES):
        own = case.id in hostile.WITHOUT_LINE or case.id.startswith(("many-", "random"))
        marks = () if own or number % 4 == 0 else (pytest.mark.long,)
        yield pytest.param(case, id=case.id, marks=marks)


@pytest.mark.thorough
@pytest.mark.parametrize("case", list(through_create()))
@pytest.mark.sample(20)
def test_hostile_documents_are_refused_and_nothing_is_written_or_run(
    case: hostile.Case, tmp_path: Path
) -> None:
    folder, root = tmp_path / "documents", tmp_path / "root"
    (folder / "sites").mkdir(parents=True)
    document = folder / hostile.file_name(case)
    document.write_bytes(case.data)
    before = tree(tmp_path)
    if case.kind == "recipe":
        words = ["create", str(document), "--root", str(root)]
    else:
        words = ["create", "allreduce", "--site", str(document), "--root", str(root)]
    answer = run(*words, "--json")
    assert answer.exit_code == 2, answer.stderr
    problems = json.loads(answer.stdout)["problems"]
    assert any(case.is_expected(each["id"], each["message"]) for each in problems)
    assert "Traceback" not in answer.stderr
    place = r"broken\.yaml" if case.id in hostile.WITHOUT_LINE else r"broken\.yaml:\d+:\d+: error: "
    assert re.search(place, answer.stderr)
    assert len(answer.stderr.splitlines()) <= 50
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", answer.stderr)
    assert tree(tmp_path) == before


def test_a_bug_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from envbuilder.commands import library

    def broken(*words: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(library, "list_documents", broken)
    answer = run("recipes", "list")
    assert answer.exit_code == 70
    assert "ZeroDivisionError: ours" in answer.stderr
    assert answer.stderr.splitlines()[-1] == f"error: {REPORT_ISSUE}"


def test_completion_knows_commands_and_recipes() -> None:
    def completed(words: str, number: int) -> list[str]:
        variables = {
            "_ENVBUILD_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(number),
        }
        answer = CliRunner().invoke(app, [], env=variables, prog_name="envbuild")
        return answer.stdout.split()

    assert completed("envbuild cre", 1) == ["create"]
    assert completed("envbuild create all", 2) == ["allreduce"]


def made(words: list[str]) -> dict[str, set[str]]:
    """Return the commands that are made for a call, and those below each group."""
    line = get_command(command_line(words))
    assert isinstance(line, TyperGroup)
    return {
        name: set(each.commands) if isinstance(each, TyperGroup) else set()
        for name, each in line.commands.items()
    }


def test_of_all_commands_a_call_makes_its_own() -> None:
    whole = made([])
    assert {"plan", "why-not", "launch", "recipes"} <= set(whole)
    assert whole["recipes"] == {"list", "show", "check", "schema", "from", "import"}
    assert made(["plan", "allreduce"]) == {"plan": set()}
    assert made(["recipes", "list"]) == {"recipes": {"list"}}
    # What helps after a slip must know all of them.
    for words in (["--help"], ["plon"], ["recipes"], ["recipes", "lst"], ["list-recipes"]):
        assert made(words) == whole


def test_a_file_of_another_tool_becomes_a_recipe(tmp_path: Path) -> None:
    source, recipe = tmp_path / "environment.yml", tmp_path / "ours.yaml"
    source.write_text(
        "name: x\nchannels: [conda-forge]\ndependencies: [python=3.12, xz]\nprefix: /x\n"
    )
    words = ("recipes", "import", str(source), "-o", str(recipe))
    made = run(*words)
    assert made.exit_code == 0, made.stderr
    assert f"{source.name}:4:1: prefix" in made.stderr
    assert run("recipes", "check", str(recipe)).exit_code == 0
    text = recipe.read_text()
    assert "conda-packages:\n- xz\n" in text
    again = run(*words, "--json")
    assert (again.exit_code, problem_ids(again.stdout)) == (2, ["output.exists"])
    assert recipe.read_text() == text
    shown = run("recipes", "import", str(source), "--name", "ours")
    assert shown.stdout == text
    plain = json.loads(run("recipes", "import", str(source), "--json").stdout)
    assert (plain["name"], plain["form"]) == ("x", "conda environment file")
    source.write_text("channels: [x]\ndependencies: &a [python]\n")
    hostile_yaml = run(*words, "--json")
    assert (hostile_yaml.exit_code, problem_ids(hostile_yaml.stdout)) == (
        2,
        ["document.not-allowed"],
    )
    assert "environment.yml:2:15: error: " in hostile_yaml.stderr


def test_a_site_that_cannot_be_read_is_named_where_sites_are_searched(tmp_path: Path) -> None:
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "ours.yaml").write_text("schema: 1\nname: ours\n")
    done = run("plan", "allreduce", ENVBUILD_PATH=str(tmp_path))
    assert done.exit_code == 0, done.stderr
    assert "warning: site ours " in done.stderr


def test_a_machine_that_does_not_answer_in_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "_ALTOGETHER", 0.0)
    done = run("plan", "allreduce", "--site", "local")
    assert (done.exit_code, detection.INCOMPLETE in done.stderr.replace("\n", " ")) == (3, True)
