"""Any printable text comes through bash, Lua and Tcl unchanged, and none of it is run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from render_cases import CASES, HOSTILE, make_plan, smoke_files, standard_edits
from render_tools import clean_env, lmod_folder, need

from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock
from envbuilder.render.modulefile import render_modulefile

pytestmark = pytest.mark.integration

# Pieces with a meaning in one of the languages, so that they meet more often than by chance.
PIECES = (
    *(
        "$(touch CANARY)",
        "`touch CANARY`",
        "${IFS}",
        "$HOME",
        "[exec touch CANARY]",
        "$::env(HOME)",
    ),
    *("]]", "]==]", "--[[", "\\", "\\\\", '"', "'", "{", "}", "os.execute('touch CANARY')", "\\n"),
    *(
        ";",
        "&",
        "|",
        "#",
        "!",
        "!!",
        "~",
        "*",
        "?",
        "%s",
        "\\u0041",
        "\\x41",
        "\\065",
        "\\",
        "é",
        "🚀",
    ),
)
PRINTABLE = st.characters(categories=("L", "M", "N", "P", "S"), include_characters=" ").filter(
    str.isprintable
)
TEXT = st.lists(st.one_of(st.sampled_from(PIECES), st.text(PRINTABLE, max_size=8)), min_size=1).map(
    lambda parts: "".join(parts)[:400]
)
PATHS = TEXT.map(lambda text: "/" + text.replace(":", "").replace("/", "")[:60].replace("..", ""))

# Each example starts a process; a fixed seed keeps a run of the tests repeatable.
fuzzed = settings(
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# The functions of a modulefile, each saying what it was called with. %s: the modulefile.
LUA = """
local function say(...) io.write(table.concat({...}, "\\1"), "\\0") end
help, whatis, family, depends_on, prepend_path, append_path = say, say, say, say, say, say
function pushenv(name, value) say(name, value or "unset") end
function LmodMessage(text) end
function LmodError(text) end
function mode() return "spider" end
function myShellType() return "sh" end
dofile(arg[1])
"""
TCL = """
fconfigure stdout -translation binary
rename puts original
proc puts {channel text} { say help $text }
proc say args { original -nonewline [encoding convertto utf-8 "[join $args \\1]\\0"] }
foreach name {module-whatis pushenv prepend-path append-path depends-on family} {
  interp alias {} $name {} say
}
proc module-info args { return 0 }
source -encoding utf-8 [lindex $argv 0]
ModulesHelp
"""


def make_lock(summary: str, value: str) -> Lock:
    plan = make_plan(summary=summary, environment=standard_edits(VALUE=value))
    return Lock(plan=plan, artifacts=())


def output(command: list[str | Path], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=clean_env(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (folder / "CANARY").exists()
    return done.stdout.decode("utf-8")


@fuzzed
@example(value=HOSTILE, prefix="/" + HOSTILE.replace("/", "").replace(":", ""))
@given(value=TEXT, prefix=PATHS)
def test_bash_gets_values_unchanged(tmp_path: Path, value: str, prefix: str) -> None:
    places = BuildFolders(Path(prefix), Path("/build"))
    files = smoke_files(make_lock("x", value), places)
    (tmp_path / "environment.sh").write_text(files["environment.sh"], encoding="utf-8")
    script = (
        "set -euo pipefail; source ./environment.sh; clean_environment; load_modules; "
        'enter_environment; printf "%s\\0" "$VALUE" "$VIRTUAL_ENV" "${PATH%%:*}"'
    )
    got = output([need("bash"), "-c", script], tmp_path).split("\0")
    assert got == [value, str(places.prefix), f"{places.prefix}/bin", ""]


@fuzzed
@example(value=HOSTILE, summary=HOSTILE)
@given(value=TEXT, summary=TEXT)
def test_lua_gets_values_unchanged(tmp_path: Path, value: str, summary: str) -> None:
    text = render_modulefile(make_lock(summary, value), CASES[2].places, 7, None, "lua")
    (tmp_path / "7.lua").write_text(text, encoding="utf-8")
    (tmp_path / "stub.lua").write_text(LUA, encoding="utf-8")
    lua = need("lua", "lua5.3", "lua5.4", "lua5.1")
    said = output([lua, "stub.lua", "7.lua"], tmp_path).split("\0")
    assert f"VALUE\1{value}" in said
    assert f"Description: {summary}" in said
    assert said[0].split("\n")[0] == f"allreduce/7: {summary}"
    assert f"PATH\1{CASES[2].places.prefix}/bin" in said


@fuzzed
@example(value=HOSTILE, summary=HOSTILE)
@given(value=TEXT, summary=TEXT)
def test_tcl_gets_values_unchanged(tmp_path: Path, value: str, summary: str) -> None:
    text = render_modulefile(make_lock(summary, value), CASES[2].places, 7, None, "tcl")
    (tmp_path / "7").write_text(text, encoding="utf-8")
    (tmp_path / "stub.tcl").write_text(TCL, encoding="utf-8")
    said = output([need("tclsh"), "stub.tcl", "7"], tmp_path).split("\0")
    assert f"VALUE\1{value}" in said
    assert f"Description: {summary}" in said
    assert f"help\1allreduce/7: {summary}" in said
    assert f"PATH\1{CASES[2].places.prefix}/bin" in said


@settings(fuzzed, max_examples=12)
@example(value=HOSTILE)
@given(value=TEXT)
def test_lmod_hands_values_to_bash_unchanged(tmp_path: Path, value: str) -> None:
    text = render_modulefile(make_lock("x", value), CASES[0].places, 7, None, "lua")
    (tmp_path / "tree" / "allreduce").mkdir(parents=True, exist_ok=True)
    (tmp_path / "tree" / "allreduce" / "7.lua").write_text(text, encoding="utf-8")
    script = (
        f"source {lmod_folder() / 'init' / 'bash'}; module use tree; module load allreduce/7; "
        'printf %s "$VALUE"'
    )
    assert output([need("bash"), "-c", script], tmp_path) == value
