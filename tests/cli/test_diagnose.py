"""``envbuild diagnose`` as people and programs see it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.diagnosis.command import build_hints
from envbuilder.knowledge.rows import Knowledge
from envbuilder.knowledge.symptoms import Symptom
from tests.verbs import problem_ids

FULL = "OSError: [Errno 28] No space left on device: 'x'\n"
MISSING = "ImportError: libgone.so.1: cannot open shared object file: No such file or directory\n"


def run(*words: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["diagnose", *map(str, words)], input=given)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_log_with_an_error(tmp_path: Path) -> None:
    shown = run(written(tmp_path / "log", f"start\n{FULL}end\n"))
    assert shown.exit_code == 4
    assert (
        shown.stdout
        == f"""\
1 log, 3 lines

cause    file-system-full (likely): the file system is full
         {tmp_path}/log:2 of 3
         | OSError: [Errno 28] No space left on device: 'x'
         do: free some space, or use another --root
         to confirm: df -h and df -i of that folder, on the node that wrote the
             log

1 error
"""
    )


def test_all_shows_the_lines_around(tmp_path: Path) -> None:
    shown = run("--all", written(tmp_path / "log", f"start\n{FULL}end\n"))
    assert "| start\n         | OSError" in shown.stdout
    assert "         | end\n" in shown.stdout


@pytest.mark.parametrize("text", ["", "epoch 1: error 0.1\n"])
def test_a_log_without_a_known_error(tmp_path: Path, text: str) -> None:
    shown = run(written(tmp_path / "log", text))
    assert shown.exit_code == 0
    assert json.loads(run("--json", tmp_path / "log").stdout)["findings"] == []


def test_a_warning_makes_no_exit_code(tmp_path: Path) -> None:
    shown = run(
        written(tmp_path / "log", "There was an error initializing an OpenFabrics device\n")
    )
    assert shown.exit_code == 0
    assert "warning  ompi-openib-warning" in shown.stdout


def test_a_pipe_beside_a_file(tmp_path: Path) -> None:
    log = written(tmp_path / "log", "fine\n")
    shown = run("--json", "-", log, given=FULL.encode() + b"\xff\x00\n")
    plain = json.loads(shown.stdout)
    assert shown.exit_code == 4
    assert plain["logs"] == [{"log": "-", "lines": 2}, {"log": str(log), "lines": 1}]
    assert [each["id"] for each in plain["findings"]] == ["file-system-full"]
    assert plain["ranks"][0] == {"rank": "-", "id": "file-system-full", "line": 1}
    assert plain["ranks-differ"].startswith("- failed first")


def test_a_folder_of_logs_of_ranks(tmp_path: Path) -> None:
    """As mpiexec --output-filename writes it; what is no file in it holds nothing up."""
    for rank, text in enumerate(["fine\n", FULL, "fine\n"]):
        written(tmp_path / f"out/1/rank.{rank}/stderr", text)
    os.mkfifo(tmp_path / "out" / "fifo")
    (tmp_path / "out" / "loop").symlink_to(".")
    shown = run(tmp_path / "out")
    assert "rank 1 failed" in shown.stdout


def test_a_fifo_is_read_where_it_is_named(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=(FULL,))
    writer.start()
    shown = run(fifo)
    writer.join()
    assert shown.exit_code == 4


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "log.not-readable"),
        (lambda path: path.mkdir(), "log.folder-empty"),
        (lambda path: path.write_bytes(b"\x7fELF\x02core"), "log.not-text"),
    ],
    ids=["absent", "empty-folder", "core"],
)
def test_what_is_no_log(tmp_path: Path, make: object, problem: str) -> None:
    path = tmp_path / "log"
    make(path)  # type: ignore[operator]
    shown = run(path, "--json")
    assert (shown.exit_code, problem_ids(shown.stdout)) == (2, [problem])
    assert str(path) in shown.stderr


def test_symptoms_of_a_folder_of_ones_own(tmp_path: Path) -> None:
    text = """\
schema: 1
symptoms:
  - id: licence-server
    pattern: 'FLEXlm error: *(?P<number>-\\d+)'
    cause: 'the compiler gets no licence (error {number})'
    hint: 'load the module licences first'
"""
    written(tmp_path / "ours/knowledge/symptoms.yaml", text)
    log = written(tmp_path / "log", "FLEXlm error:  -5,357\n")
    shown = run("--recipes", tmp_path / "ours", log)
    assert "licence-server (likely)" in shown.stdout
    assert "(error -5)" in shown.stdout


def test_a_group_that_the_pattern_lacks_is_an_error(tmp_path: Path) -> None:
    text = "schema: 1\nsymptoms:\n  - {id: x, pattern: abcd, hint: 'see {name}'}\n"
    written(tmp_path / "ours/knowledge/symptoms.yaml", text)
    shown = run("--recipes", tmp_path / "ours", written(tmp_path / "log", ""))
    assert shown.exit_code == 2
    assert "'name'" in shown.stderr


def test_what_a_step_of_a_build_is_told(tmp_path: Path) -> None:
    """Causes where there are any, else what failed; never what merely followed."""
    one = Symptom(id="one", pattern="first", cause="the cause", hint="do this")
    two = Symptom(id="two", pattern="second", hint="it failed", tells="failure")
    three = Symptom(id="three", pattern="third", hint="and so on", tells="effect")
    knowledge = Knowledge(symptoms=(one, two, three))
    every = written(tmp_path / "every", "third\nsecond\nfirst\n")
    assert build_hints(every, knowledge) == ("the cause: do this",)
    assert build_hints(written(tmp_path / "some", "third\nsecond\n"), knowledge) == ("it failed",)
    assert build_hints(written(tmp_path / "last", "third\n"), knowledge) == ()


def test_follow_ends_with_the_pipe() -> None:
    """Findings come one after another, each once; the exit code is that of the findings."""
    text = f"step 1\n{FULL}{MISSING}{FULL}\n".encode()
    shown = run("--follow", "-", given=text)
    assert shown.exit_code == 4
    assert shown.stdout.count("file-system-full") == 2  # when it comes, and at the end
    assert shown.stdout.index("file-system-full") < shown.stdout.index("library-not-found")
    plain = json.loads(run("--follow", "--json", "-", given=text).stdout)
    assert plain["logs"] == [{"log": "-", "lines": 5}]


@pytest.mark.parametrize("option", ["--all", "--environment=x"])
def test_follow_refuses_other_options(option: str) -> None:
    shown = run("--follow", option, "--json", "-", given=b"")
    assert (shown.exit_code, problem_ids(shown.stdout)) == (2, ["option.conflict"])


def follow(log: Path) -> subprocess.Popen[str]:
    """Start ``diagnose --follow`` and wait until it shows its first finding."""
    command = [sys.executable, "-m", "envbuilder", "diagnose", "--follow", str(log)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout
    assert "file-system-full" in started.stdout.readline()
    return started


@pytest.mark.long
def test_follow_shows_findings_as_a_log_grows(tmp_path: Path) -> None:
    """A line without its end is read when the end has come; the log shows that the job ended."""
    log = written(tmp_path / "log", FULL)
    started = follow(log)
    with log.open("a") as stream:
        stream.write(MISSING[:20])
        stream.flush()
        time.sleep(1)
        stream.write(MISSING[20:] + "srun: error: n1: task 0: Exited with exit code 1\n")
    out, _ = started.communicate(timeout=60)
    assert "library-not-found" in out
    assert f"{log}:2 of 3" in out
    assert started.returncode == 4


def test_follow_ends_with_a_signal(tmp_path: Path) -> None:
    started = follow(written(tmp_path / "log", FULL))
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=60)
    assert (started.returncode, out.splitlines()[-1]) == (4, "1 error")


SEAT = "LIC: lmgrd: feature solver_17 has no free seat (host lic03:27000, code -5)\n"
ANSWERS = b"all seats are taken\nwait for one\nhttps://tickets.example/4711\n"


def add(folder: Path, place: str, given: bytes = ANSWERS) -> Result:
    folder.mkdir(exist_ok=True)
    return run("--recipes", folder, "--add-symptom", place, "--json", given=given)


def check(folder: Path) -> Result:
    return CliRunner().invoke(app, ["recipes", "check", "--json", str(folder)])


def test_a_symptom_of_a_line_and_its_case(tmp_path: Path) -> None:
    log = written(tmp_path / "log", f"start\n[3] {SEAT}ERROR: step 4 failed\n")
    plain = json.loads(add(tmp_path / "site", f"{log}:2").stdout)
    (tmp_path / "other").write_text(SEAT.replace("17", "2").replace("lic03", "lic9"))
    shown = json.loads(run("--recipes", tmp_path / "site", tmp_path / "other", "--json").stdout)
    assert [each["id"] for each in shown["findings"]] == [plain["id"]]
    assert json.loads(check(tmp_path / "site").stdout)["good"] == [plain["case"]]
    written(Path(plain["case"]), "a line without it\n")
    refused = check(tmp_path / "site")
    assert (refused.exit_code, problem_ids(refused.stdout)) == (2, ["symptom.case-differs"])


def test_a_symptom_of_a_site_refutes_a_shipped_one(tmp_path: Path) -> None:
    """In a log with the site's line, the shipped symptom counts nowhere; others stay."""
    line = "OSError: [Errno 28] No space left on device: '/fast/x'\n"
    log = written(tmp_path / "log", line)
    site = tmp_path / "site"
    written(
        site / "knowledge/symptoms.yaml",
        "schema: 1\nsymptoms:\n- {id: x, pattern: abcd, hint: y}\n",
    )
    plain = json.loads(add(site, f"{log}:1").stdout)
    assert plain["refutes"] == "file-system-full"
    log.write_text("write failed: No space left on device\n" + MISSING + line)
    found = json.loads(run("--recipes", site, log, "--json").stdout)["findings"]
    assert [each["id"] for each in found] == ["library-not-found", plain["id"]]


@pytest.mark.parametrize(
    ("place", "given", "problem"),
    [
        ("log", ANSWERS, "symptom.malformed-place"),
        ("log:9", ANSWERS, "symptom.no-line"),
        ("log:2", ANSWERS, "symptom.no-words"),
        ("log:1", b"all seats are taken\n", "symptom.no-answer"),
    ],
)
def test_a_symptom_that_cannot_be_written(
    tmp_path: Path, place: str, given: bytes, problem: str
) -> None:
    written(tmp_path / "log", SEAT + "7 8 9\n")
    shown = add(tmp_path / "site", str(tmp_path / place), given)
    assert (shown.exit_code, problem_ids(shown.stdout)) == (2, [problem])
    assert not list((tmp_path / "site").iterdir())


def test_a_symptom_needs_a_folder(tmp_path: Path) -> None:
    log = written(tmp_path / "log", SEAT)
    shown = run("--add-symptom", f"{log}:1", "--json", given=ANSWERS)
    assert (shown.exit_code, problem_ids(shown.stdout)) == (2, ["symptom.no-folder"])


def test_a_refuted_symptom_exists(tmp_path: Path) -> None:
    text = "schema: 1\nsymptoms:\n  - {id: x, pattern: abcd, hint: y, refutes: [file-sytem-full]}\n"
    written(tmp_path / "site/knowledge/symptoms.yaml", text)
    shown = check(tmp_path / "site")
    assert (shown.exit_code, problem_ids(shown.stdout)) == (2, ["symptom.unknown"])
