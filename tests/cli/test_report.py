"""``envbuild report`` as people see it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from envbuilder.cli import app
from tests.redaction_forms import ALONE, HARMLESS, HEX, PASSWORD, PASSWORDS, TOKEN, TOKENS

LOG = """\
cloning https://me:hunter22@git.example.org/x.git
mpiexec: error while loading shared libraries: libmpi.so.40: cannot open shared object file: No \
such file or directory
TOKEN=zzz999
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    (tmp_path / "job.log").write_text(LOG)
    return tmp_path


def run(*words: str) -> Result:
    environ = {
        "MY_API_KEY": "very-secret-value",
        "UCX_TLS": "tcp",
        "NCCL_NOTE": "very-secret-value",
    }
    return CliRunner().invoke(app, ["report", *words], env={"COLUMNS": "80", **environ})


def test_one_file_that_only_its_owner_reads(place: Path) -> None:
    done = run("--log", "job.log", "-o", "desk.txt")
    assert done.exit_code == 0, done.output
    file = place / "desk.txt"
    text = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert "library-not-found (possible)" in text
    assert "== The end of job.log ==" in text
    assert "== The machine ==" in text
    assert "UCX_TLS=tcp" in text
    assert "NCCL_NOTE=(left out)" in text
    for secret in ("hunter22", "zzz999", "very-secret-value"):
        assert secret not in text
    assert "credentials in URLs" in done.stdout
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80
    # It is not overwritten.
    again = run("-o", "desk.txt")
    assert again.exit_code == 2
    assert file.read_text() == text


def test_json_says_where_it_is_and_what_is_not_in_it(place: Path) -> None:
    done = run("--json", "-o", "desk.txt", str(place))
    assert (done.exit_code, (place / "desk.txt").exists()) == (2, False)
    done = run("--json", "--log", "job.log", "-o", "desk.txt")
    value = json.loads(done.stdout)
    assert value["file"] == os.fspath(place / "desk.txt")
    assert {"what": "credentials in URLs", "count": 1} in value["left-out"]


@pytest.mark.parametrize(
    "words", [["--log", "-"], ["--log", "gone.log"], ["-o", "no/folder.txt"], ["gone"]]
)
def test_what_cannot_be_had_writes_nothing(place: Path, words: list[str]) -> None:
    before = sorted(place.iterdir())
    assert run(*words).exit_code == 2
    assert sorted(place.iterdir()) == before


def test_no_form_of_a_secret_in_a_log_gets_into_a_report(place: Path) -> None:
    texts = [form.format(PASSWORD) for form in PASSWORDS]
    texts += [form.format(secret) for form in TOKENS for secret in (TOKEN, HEX)]
    (place / "job.log").write_text("\n".join([*texts, *ALONE, ""]))
    assert run("--log", "job.log", "-o", "desk.txt").exit_code == 0
    text = (place / "desk.txt").read_text()
    assert [each for each in (PASSWORD, TOKEN, HEX, *ALONE) if each in text] == []


def test_what_support_needs_of_a_log_is_in_the_report(place: Path) -> None:
    (place / "job.log").write_text("\n".join([*HARMLESS, ""]))
    assert run("--log", "job.log", "-o", "desk.txt").exit_code == 0
    assert "\n".join(HARMLESS) in (place / "desk.txt").read_text()


def test_of_a_line_that_is_cut_nothing_is_told(place: Path) -> None:
    """The end of a secret is one as well, and its name is no longer there."""
    log = f"password={'x' * 70_000}{PASSWORD}\nthe last line\n"
    (place / "job.log").write_text(log)
    assert run("--log", "job.log", "-o", "desk.txt").exit_code == 0
    text = (place / "desk.txt").read_text()
    assert PASSWORD not in text
    assert "the last line" in text
