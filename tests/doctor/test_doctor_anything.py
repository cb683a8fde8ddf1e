"""Whatever text a machine hands out: it is read or refused, and nothing raises."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuilder.doctor.network import address, pip_options
from envbuilder.machine.host import LocalMachine, search_path
from envbuilder.machine.mpi_programs import identify
from envbuilder.target_tools.messages import one_line

pytestmark = pytest.mark.thorough


@given(st.text())
def test_any_text_becomes_a_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert 1 <= len(line) <= 500


@given(st.text())
def test_any_text_is_an_address_without_credentials(text: str) -> None:
    assert "secret" not in address(f"https://{text.replace('secret', '')}:secret@index.example/")


@given(st.text(), st.sampled_from(["mpirun", "mpicc", "srun", "jsrun"]))
def test_any_text_is_identified_or_not(text: str, command: str) -> None:
    implementation, version = identify(command, text)
    assert implementation is None or implementation
    assert version is None or version[0].isdigit()


@given(st.text())
def test_any_path_is_searched(text: str) -> None:
    folders = search_path({"PATH": text}).folders
    assert all(folder.startswith("/") and Path(folder).is_dir() for folder in folders)


@given(st.text())
def test_any_pip_configuration_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    files = tmp_path_factory.mktemp("files")
    (files / "etc").mkdir()
    (files / "etc" / "pip.conf").write_text(text, encoding="utf-8", errors="replace")
    options, read, broken = pip_options(LocalMachine({"PATH": ""}, files=files))
    assert read == ["/etc/pip.conf"]
    assert not (options and broken)


def test_recorded_answers_are_all_used() -> None:
    folder = Path(__file__).parent / "data" / "versions"
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    unused = [path.stem for path in folder.iterdir() if f'"{path.stem}"' not in tests]
    assert unused == []
