"""Small parts: templates refuse what is not quoted, lists of files, places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import pytest
from render_cases import ARTIFACTS, CASES, build_files, make_artifact, make_plan

from envbuilder import data
from envbuilder.errors import UsageError
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Edit, Lock, Modules, Step
from envbuilder.render import templates
from envbuilder.render.dialects import edit_line
from envbuilder.render.modulefile import render_modulefile
from envbuilder.render.quoting import bash, comment, lua, tcl
from envbuilder.render.requirements import requirement_files

PLACES = CASES[0].places


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that renders the text of a template."""

    def render(text: str, **values: object) -> str:
        (tmp_path / "one.j2").write_text(text, encoding="utf-8")
        return templates.render("one.j2", **values)

    monkeypatch.setattr(data, "TEMPLATES", tmp_path)
    return render


def test_a_template_cannot_print_what_is_not_quoted(template: Any) -> None:
    with pytest.raises(TypeError, match="without a quoting filter: 'x y'"):
        template("echo {{ value }}", value="x y")
    assert template("echo {{ value|bash }}", value="x y") == "echo 'x y'"


def test_a_missing_value_is_an_error(template: Any) -> None:
    with pytest.raises(jinja2.UndefinedError, match="'missing' is undefined"):
        template("{{ missing|bash }}")
    with pytest.raises(jinja2.UndefinedError, match="'missing' is undefined"):
        template("{{ missing }}")


@pytest.mark.parametrize("quote", [bash, lua, tcl])
def test_no_quoting_admits_nul(quote: Any) -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


@pytest.mark.parametrize("text", ["$(x)", "a\nb", "a\\", "[x]", "a{", 'a"'])
def test_a_comment_holds_only_plain_text(text: str) -> None:
    with pytest.raises(ValueError, match="comment"):
        comment(text)


@pytest.mark.parametrize(
    ("kind", "in_bash", "in_lua", "in_tcl"),
    [
        ("set", "export X='/p q/v'", 'pushenv("X", "/p q/v")', 'pushenv X "/p q/v"'),
        ("unset", "unset X", 'pushenv("X", false)', "unsetenv X"),
        (
            "prepend",
            "export X='/p q/v'\"${X:+:$X}\"",
            'prepend_path("X", "/p q/v")',
            'prepend-path X "/p q/v"',
        ),
        (
            "append",
            "export X=\"${X:+$X:}\"'/p q/v'",
            'append_path("X", "/p q/v")',
            'append-path X "/p q/v"',
        ),
    ],
)
def test_each_kind_of_edit_in_each_dialect(
    kind: Any, in_bash: str, in_lua: str, in_tcl: str
) -> None:
    edit = Edit(kind=kind, name="X", value="v", in_prefix=True)
    prefix = Path("/p q")
    lines = [edit_line(language, edit, prefix) for language in ("bash", "lua", "tcl")]
    assert lines == [in_bash, in_lua, in_tcl]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filename": "../../numpy-1.26.4-py3-none-any.whl"}, "not the name of a wheel"),
        ({"filename": "numpy-1.26.4.tar.gz"}, "not the name of a wheel"),
        ({"filename": "numpy-1.26.5-py3-none-any.whl"}, "another name or version"),
        ({"filename": "scipy-1.26.4-py3-none-any.whl"}, "another name or version"),
        ({"filename": "numpy-1.26.4-py3-none-a y.whl"}, "not safe"),
        ({"version": "1.26.4 --hash=sha256:0"}, "not the name of a wheel"),
        ({"url": "https://index.example/scipy.whl"}, "does not end in"),
        ({"url": "https://u:p@index.example/numpy-1.26.4-py3-none-any.whl"}, "user or password"),
        ({"url": "https://index.example/${HOME}/numpy-1.26.4-py3-none-any.whl"}, "its URL: "),
        ({"url": "https://index.example/ /numpy-1.26.4-py3-none-any.whl"}, "its URL: "),
        ({"url": "https://index.example/#/numpy-1.26.4-py3-none-any.whl"}, "its URL: "),
        ({"url": "git+https://index.example/numpy-1.26.4-py3-none-any.whl"}, "its URL: "),
        ({"imports": "os; print(1)"}, "module name"),
    ],
)
def test_artifact_that_cannot_stand_in_a_file_is_refused(
    changes: dict[str, str], message: str
) -> None:
    artifact = make_artifact("numpy", "1.26.4").model_copy(update=changes)
    with pytest.raises(UsageError, match=message) as caught:
        requirement_files(Lock(plan=make_plan(), artifacts=(artifact,)))
    assert caught.value.id == "lock.invalid-artifact"
    assert caught.value.problems[0].hints


def test_lists_do_not_depend_on_the_order_in_the_lock() -> None:
    one = requirement_files(Lock(plan=make_plan(), artifacts=ARTIFACTS))
    other = requirement_files(Lock(plan=make_plan(), artifacts=tuple(reversed(ARTIFACTS))))
    assert one == other


def test_build_tools_are_fetched_but_not_installed_or_expected() -> None:
    files = requirement_files(Lock(plan=make_plan(), artifacts=ARTIFACTS))
    assert "flit_core" in files["fetch.txt"]
    assert "flit_core" in files["SHA256SUMS"]
    assert "flit-core" in files["build-requirements.txt"]
    assert "flit-core" not in files["requirements.txt"]
    names = [row["name"] for row in json.loads(files["expected.json"])]
    assert names == ["mpich", "numpy", "torch", "distributed-dl-training"]


@pytest.mark.parametrize("path", ["relative", "/with:colon", "/with\nnewline", "/with\x07bell"])
def test_places_that_would_break_path_are_refused(path: str) -> None:
    with pytest.raises(UsageError):
        BuildFolders(Path(path), Path("/build"))
    with pytest.raises(UsageError):
        BuildFolders(Path("/prefix"), Path(path))


def test_modules_without_a_way_to_reach_them_are_refused() -> None:
    plan = make_plan(modules=Modules(system="lmod", loads=("GCC/12.2.0",)))
    with pytest.raises(UsageError) as caught:
        build_files(Lock(plan=plan, artifacts=()), PLACES)
    assert caught.value.id == "plan.no-module-init"


def test_help_without_evidence_says_that_nothing_was_proved() -> None:
    text = render_modulefile(CASES[0].lock, PLACES, 1, None, "lua")
    assert "Proved: nothing" in text
    proved = render_modulefile(CASES[0].lock, PLACES, 1, CASES[0].evidence, "lua")
    assert "Proved: nothing" not in proved
    assert "2025-01-31T12:00:00Z" in proved


def test_words_about_pythonpath_only_where_no_module_sets_it() -> None:
    plain, modules = (
        render_modulefile(case.lock, case.places, 1, None, "lua") for case in CASES[:2]
    )
    assert 'os.getenv("PYTHONPATH")' in plain
    assert 'os.getenv("PYTHONPATH")' not in modules


def known(text: str) -> str:
    """Return what the help says between components and proof."""
    return text.partition("<- built in this environment")[2].partition("Proved: ")[0]


def test_help_tells_the_risks_first_and_why_they_were_taken() -> None:
    case = next(case for case in CASES if case.name == "swap")
    for dialect in ("lua", "tcl"):
        told = known(render_modulefile(case.lock, case.places, 1, None, dialect))
        heads = ["Waived advisories:", "Known problems that a remedy solves:"]
        heads += ["Known problems:", "Undecided, because facts are not stated:"]
        places = [told.index(head) for head in heads]
        assert places == sorted(places)
        assert "TEST-WAIVED: What is waived (openmpi@3.1.4, nccl@2.3.7)" in told
        assert "waived: measured on our fabric" in told
        assert "lifted by variable OMPI_MCA_btl=^vader" in told
        assert "depends on: network" in told
        assert told.count("fix: take another") == 2
        assert "TEST-INFO" not in told
    text = render_modulefile(case.lock, case.places, 1, None, "lua")
    assert 'whatis("Waived: TEST-WAIVED")' in text


def test_help_without_anything_known_has_no_such_part() -> None:
    text = render_modulefile(CASES[0].lock, PLACES, 1, None, "lua")
    assert [line for line in known(text).splitlines() if line.strip(' ",')] == []
    assert "Waived" not in text


def test_a_step_that_no_template_is_for_is_refused() -> None:
    steps = (Step(id="evil", title="x"),)
    with pytest.raises(UsageError, match="evil") as caught:
        build_files(Lock(plan=make_plan(steps=steps), artifacts=()), PLACES)
    assert caught.value.id == "lock.unknown-step"


def test_a_swap_is_spelt_out_in_every_language() -> None:
    case = next(case for case in CASES if case.name == "swap")
    files = case.files()
    expected = {
        "environment.sh": [
            "  load_module modenv/ml || return 1",
            "  load_module NCCL/2.3.7-fosscuda-2018b || return 1",
            "  unload_module OpenMPI/3.1.1-gcccuda-2018b || return 1",
            "  load_module OpenMPI/3.1.4-gcccuda-2018b || return 1",
            "  compare_modules",
        ],
        "modulefile.lua": [
            'depends_on("modenv/ml")',
            'depends_on("NCCL/2.3.7-fosscuda-2018b")',
            'if mode() ~= "unload" then unload("OpenMPI/3.1.1-gcccuda-2018b") end',
            'depends_on("OpenMPI/3.1.4-gcccuda-2018b")',
        ],
        "modulefile.tcl": [
            'depends-on "modenv/ml"',
            'depends-on "NCCL/2.3.7-fosscuda-2018b"',
            'if {[module-info mode load]} { module unload "OpenMPI/3.1.1-gcccuda-2018b" }',
            'depends-on "OpenMPI/3.1.4-gcccuda-2018b"',
        ],
    }
    for name, lines in expected.items():
        assert "\n".join(lines) in files[name]
