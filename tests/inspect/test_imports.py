"""--run: the packages of an environment are imported by its own Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
import zoo
from ways import foreign, missing_library, relink_python
from zoo import Made, Validate

from envbuilder.validate import imports


def package(made: Made, name: str, text: str) -> None:
    """Write a package with an extension module, whose import does something."""
    made.install(name, "1", record=f"{name}/__init__.py,,\n")
    made.write(made.packages / name / "__init__.py", text)
    shutil.copy2(made.extension(), made.packages / name / f"_c{zoo.SUFFIX}")


def test_what_loads(made: Made, check: Validate) -> None:
    """Nothing is written, not even bytecode; what has no extension is not tried."""
    value = check(made, run=True)
    assert value.findings == ()
    assert {"markupsafe", "yaml"} <= set(value.imported)
    assert "jinja2" not in value.imported


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "import broken fails: "),
        ("raise SystemExit(3)", "import broken fails: "),
    ],
)
def test_what_does_not(text: str, said: str, made: Made, check: Validate) -> None:
    package(made, "broken", text)
    (found,) = check(made, run=True).findings
    assert (found.id, found.severity) == ("run.import-failed", "error")
    assert said in found.summary
    assert found.evidence[0].field == "import broken"
    assert check(made).findings == ()


def test_what_never_ends(made: Made, check: Validate, monkeypatch: pytest.MonkeyPatch) -> None:
    package(made, "broken", "import time\ntime.sleep(3600)")
    monkeypatch.setattr(imports, "PATIENCE", 0.5)
    found = [each for each in check(made, run=True).findings if each.id == "run.import-failed"]
    # On a busy machine others may take as long.
    assert "import broken" in [each.summary.partition(" fails")[0] for each in found]


def test_a_missing_library_is_the_same_twice(
    made: Made, check: Validate, need: Callable[[str], str]
) -> None:
    """What the headers say is what happens."""
    need("gcc")
    missing_library(made)
    found = {each.id: each for each in check(made, run=True).findings}
    assert set(found) == {"library.missing", "run.import-failed"}
    assert "libgone.so.1: cannot open shared object file" in found["run.import-failed"].summary


def test_what_cannot_run_here_is_not_started(made: Made, check: Validate) -> None:
    foreign(made)
    assert check(made, run=True).imported == ()
    relink_python(made)
    value = check(made, run=True)
    assert (value.imported, [each.id for each in value.findings]) == ((), ["python.missing"])
