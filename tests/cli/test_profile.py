"""``--profile scorep``: the variant of a recipe that Score-P measures (document 001)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.cli import app
from envbuilder.render.templates import render
from tests.verbs import problem_ids

SCOREP = {"name": "Score-P/6.0-gcccuda-2018b", "home": "/sw/installed/Score-P/6.0"}


def envbuild(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


@pytest.fixture
def site(tmp_path: Path) -> str:
    """Return taurus-ml with a Score-P stated in its site file."""
    shipped = data.RECIPES / "sites" / "taurus-ml.yaml"
    value = yaml.safe_load(shipped.read_text())
    scorep = {**SCOREP, "loads": ["gcccuda/2018b", "OpenMPI/3.1.4-gcccuda-2018b"]}
    value["modules"].append(scorep)
    value["name"] = "with-scorep"
    snapshot = shipped.with_name(value["snapshot"])
    (tmp_path / snapshot.name).write_bytes(snapshot.read_bytes())
    file = tmp_path / "with-scorep.yaml"
    file.write_text(yaml.safe_dump(value))
    return str(file)


def test_the_variant_has_its_module_its_bindings_and_a_name_of_its_own(site: str) -> None:
    code, out, said = envbuild(
        "plan", "horovod-mpi", "--site", site, "--profile", "scorep", "--json"
    )
    assert code == 0, said
    plan = json.loads(out)
    assert (plan["recipe"], plan["profile"]) == ("horovod-mpi-scorep", "scorep")
    pins = {pin["component"]: pin for pin in plan["pins"]}
    assert pins["scorep"]["locator"] == "Score-P/6.0-gcccuda-2018b"
    assert pins["scorep-python"]["origin"] == "build"
    builds = {each["component"]: each["environment"] for each in plan["builds"]}
    assert builds["horovod"]["CXX"] == "scorep-g++"
    assert builds["horovod"]["SCOREP_WRAPPER_INSTRUMENTER_FLAGS"] == "--mpp=mpi --thread=pthread"
    # What Horovod stands on is the same as without.
    assert "CXX" not in builds["scorep-python"]
    assert [each["component"] for each in plan["builds"]][-1] == "horovod"


def test_jobs_start_through_score_p_and_hints_ask_for_the_variant(site: str) -> None:
    words = ("render", "horovod-mpi", "--site", site, "--profile", "scorep", "--as")
    code, job, said = envbuild(*words, "slurm")
    assert code == 0, said
    assert "python -m scorep --mpp=mpi --thread=pthread my_program.py" in job
    _, script, _ = envbuild(*words, "script")
    assert "envbuild lock horovod-mpi --profile scorep" in script
    assert "export CXX=scorep-g++" in script
    assert "instrumented_cmake" in script


@pytest.mark.parametrize(
    ("words", "exit_code", "problem"),
    [
        (("horovod-mpi", "--site", "taurus-ml"), 3, "profile.module-missing"),
        (("allreduce", "--site", "taurus-alpha"), 2, "profile.no-horovod"),
        (("horovod-module", "--site", "taurus-ml"), 2, "profile.no-horovod"),
        (
            ("horovod-pytorch-conda", "--arch", "ppc64le"),
            *(2, "profile.unsupported-backend"),
        ),
    ],
)
def test_where_there_is_nothing_to_measure_with_it_says_so(
    words: tuple[str, ...], exit_code: int, problem: str
) -> None:
    code, out, _ = envbuild("plan", *words, "--profile", "scorep", "--json")
    assert (code, problem_ids(out)) == (exit_code, [problem])


def test_an_unknown_profile_names_the_nearest() -> None:
    code, out, said = envbuild("plan", "horovod-mpi", "--profile", "score-p", "--json")
    assert (code, problem_ids(out)) == (2, ["option.unknown-value"])
    assert "'scorep'" in said


@pytest.mark.parametrize(
    ("arguments", "wrapper"), [(("..", "-DX=1"), "off"), (("--build", "."), "unset")]
)
def test_cmake_is_instrumented_when_it_builds_and_not_when_it_configures(
    arguments: tuple[str, ...], wrapper: str, tmp_path: Path
) -> None:
    real = tmp_path / "bin" / "cmake"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\necho "${SCOREP_WRAPPER:-unset} $*"\n')
    real.chmod(0o755)
    functions = render("bash/sources.sh.j2", builds=True, links=False, scorep=True)
    script = f'HERE=$PWD\n{functions}\ninstrumented_cmake\ncmake "$@"'
    environ = {key: value for key, value in os.environ.items() if key != "SCOREP_WRAPPER"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script, "bash", *arguments],
        cwd=tmp_path,
        env={**environ, "PATH": f"{real.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{wrapper} {' '.join(arguments)}"
