from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from envbuilder.machine.host import (
    LocalMachine,
    ask,
    first_line,
    quiet_environment,
    search_path,
    together,
)
from envbuilder.target_tools.messages import LINE_LENGTH, one_line

from .conftest import Machine


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "-"),
        ("\n\t ", "-"),
        ("two\nlines", "two lines"),
        ("bell\x07 and \x1b[31mred", "bell and [31mred"),
        ("lone \udcff surrogate", "lone surrogate"),
        ("späť", "späť"),
    ],
)
def test_what_programs_print_becomes_one_printable_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_long_line_is_cut_and_says_so() -> None:
    assert len(one_line("x" * 10_000)) == LINE_LENGTH
    assert one_line("x" * 10_000).endswith("...")


def test_a_traceback_is_told_by_its_last_line() -> None:
    text = "Traceback (most recent call last):\n  File x\nImportError: no zlib\n"
    assert first_line(text) == "ImportError: no zlib"
    assert first_line("\nfirst\nsecond\n") == "first"
    assert first_line("") == ""


def test_results_come_in_the_order_of_the_jobs() -> None:
    jobs = [lambda number=number: number for number in range(50)]
    assert together(jobs, 10.0) == list(range(50))
    assert together([], 10.0) == []


def test_a_job_that_never_ends_is_left_behind_and_the_others_count() -> None:
    never = threading.Event()
    try:
        results = together([lambda: "quick", lambda: str(never.wait()), lambda: "also"], 0.2)
    finally:
        never.set()
    assert results == ["quick", None, "also"]


def test_a_failure_in_a_thread_reaches_the_caller() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        together([fails], 10.0)


def test_programs_are_asked_in_plain_words_and_leave_no_compiled_files() -> None:
    quiet = quiet_environment({"LC_ALL": "de_DE", "BASH_ENV": "/init", "LANGUAGE": "de", "A": "b"})
    assert quiet == {"LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1", "A": "b"}


def test_path_entries_that_are_odd_are_named_and_not_searched(tmp_path: Path) -> None:
    good, file = tmp_path / "good", tmp_path / "file"
    good.mkdir()
    file.touch()
    (tmp_path / "link").symlink_to(good)
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    entries = [
        str(good), "", ".", "relative/bin", "~/bin", str(good), f"{good}/", str(tmp_path / "link"),
        str(tmp_path / "nowhere"), str(tmp_path / "broken"), str(file), "/bin\0",
    ]  # fmt: skip
    path = search_path({"PATH": ":".join(entries)})
    assert path.folders == (str(good),)
    # The broken link and the folder it names are one and the same.
    assert len(path.notes) == 7
    assert sum("current folder" in note for note in path.notes) == 5


def test_without_path_the_system_folders_are_searched() -> None:
    path = search_path({})
    assert path.folders == ("/usr/bin", "/bin")
    (note,) = path.notes
    assert "PATH is not set" in note
    assert "/usr/bin:/bin" in note


def test_an_empty_path_finds_nothing() -> None:
    assert LocalMachine({"PATH": ""}).which("sh") is None


def test_only_programs_that_may_be_started_are_found(machine: Machine) -> None:
    (machine.bin / "folder").mkdir()
    (machine.bin / "plain").touch(0o644)
    (machine.bin / "gone").symlink_to(machine.folder / "nowhere")
    (machine.bin / "loop").symlink_to(machine.bin / "loop")
    host = LocalMachine(machine.environ)
    assert [host.which(name) for name in ("folder", "plain", "gone", "loop")] == [None] * 4
    machine.tool("tool", "exit 0")
    assert host.which("tool") == str(machine.bin / "tool")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("echo 1.0", None),
        ("exec /bin/sleep 1000", "did not answer within 0.5 s"),
        ("/bin/sleep 1000 & echo 1.0; wait", "did not answer within 0.5 s"),
        ("echo no >&2; exit 3", "exit code 3: no"),
        ("kill -9 $$", "was ended by signal 9"),
    ],
)
def test_a_program_answers_or_its_trouble_is_told(
    script: str, trouble: str | None, machine: Machine
) -> None:
    path = machine.tool("tool", script)
    assert ask([str(path)], machine.environ, patience=0.5).trouble == trouble


@pytest.mark.integration
def test_megabytes_and_garbage_are_cut(machine: Machine) -> None:
    path = machine.tool("tool", "/usr/bin/head -c 20000000 /dev/urandom; echo; exit 1")
    answer = ask([str(path)], machine.environ, patience=30)
    assert len(answer.text) < 100_000
    assert answer.trouble is not None
    assert answer.trouble.startswith("exit code 1")
    assert answer.trouble.isprintable()


@pytest.mark.integration
def test_what_cannot_be_started_is_told(machine: Machine) -> None:
    plain = machine.bin / "no-format"
    plain.write_bytes(b"\x7fELF but not really")
    plain.chmod(0o755)
    missing_shell = machine.bin / "no-shell"
    missing_shell.write_text("#!/no/such/shell\n")
    missing_shell.chmod(0o755)
    for command in (plain, missing_shell, machine.bin / "nothing", machine.bin):
        answer = ask([str(command)], machine.environ)
        assert str(answer.trouble).startswith("cannot start"), command
    assert str(ask(["a\0b"], os.environ).trouble).endswith("embedded null byte")
