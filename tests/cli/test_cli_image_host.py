"""``info IMAGE --site`` and ``launch IMAGE --site``: whether an image and a host fit.

With real MPIs outside and inside: tests/integration/test_image_hybrid.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.cli.published import planned, publish_plan
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

MODULES = [{"name": "OpenMPI/4.1.6-GCC-13.2.0"}, {"name": "mpi/MPICH/4.2.1-GCC-13.2.0"}]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system with an environment in it that has an MPICH."""
    folder = tmp_path_factory.mktemp("image") / "system"
    publish_plan(folder / "opt" / "envbuild", planned("allreduce", "--arch", "x86_64"))
    return folder


def site(folder: Path, modules: list[dict[str, str]] | None = None, **more: Any) -> Path:
    """Write a site, its modules in a snapshot."""
    snapshot = {"schema": 1, "modules": MODULES if modules is None else modules}
    (folder / "lab.snapshot.json").write_text(json.dumps(snapshot))
    value = {"schema": 1, "name": "lab", "summary": "A lab", "arch": ["x86_64"]}
    path = folder / "lab.yaml"
    path.write_text(yaml.safe_dump({**value, "snapshot": "lab.snapshot.json", **more}))
    return path


def run(*words: object) -> Result:
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "200", "ENVBUILD_SITE": ""})
    assert "Traceback" not in done.output
    return done


def test_an_mpi_of_the_site_that_starts_its_ranks(sandbox: Path, tmp_path: Path) -> None:
    there = site(tmp_path)
    done = run("info", sandbox, "--site", there, "--json")
    assert done.exit_code == 0, done.stderr
    rows = {each["subject"]: each for each in json.loads(done.stdout)["contract"]}
    assert rows["architecture"]["fit"] == rows["mpi"]["fit"] == "fits"
    assert rows["mpi"]["host"].startswith("mpich 4.2.1")
    assert MODULES[1]["name"] in rows["mpi"]["host"]
    words = ("launch", sandbox, "--site", there, "-H", "a:2,b:2", "--", "python", "x.py")
    line = run(*words)
    assert line.exit_code == 0, line.stderr
    assert line.stdout == f"mpiexec -n 4 -hosts a:2,b:2 apptainer exec {sandbox} python x.py\n"
    assert MODULES[1]["name"] in line.stderr
    assert run("launch", sandbox, "--site", there).exit_code == 2


def test_only_another_mpi(sandbox: Path, tmp_path: Path) -> None:
    there = site(tmp_path, MODULES[:1])
    done = run("info", sandbox, "--site", there)
    assert done.exit_code == 4
    assert "WRONG  mpi" in done.stdout
    words = ("launch", sandbox, "--site", there)
    line = run(*words, "--json", "--", "python", "x.py")
    assert (line.exit_code, problem_ids(line.stdout)) == (2, ["image.host-mismatch"])
    assert MODULES[0]["name"] in line.stderr
    assert run(*words, "--", "python", "x.py").stdout == ""
    plain = json.loads(run("info", sandbox, "--json").stdout)
    assert plain["contract"] == []


def test_the_launcher_of_a_scheduler(sandbox: Path, tmp_path: Path) -> None:
    srun = {"scheduler": "slurm", "launcher": {"kind": "srun", "command": ["srun"]}}
    speaking = site(tmp_path, [], **srun, facts={"pmi": ["pmi2"]})
    line = run("launch", sandbox, "--site", speaking, "--nodes", 2, "--", "python", "x.py")
    assert line.exit_code == 0, line.stderr
    options = "--mpi=pmi2 --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1"
    assert line.stdout == f"srun {options} apptainer exec {sandbox} python x.py\n"
    mute = site(tmp_path, [], **srun, facts={"pmi": ["pmix_v4"]})
    words = ("launch", sandbox, "--site", mute, "--nodes", 2, "--json")
    refused = run(*words, "--", "python", "x.py")
    assert (refused.exit_code, problem_ids(refused.stdout)) == (2, ["image.host-mismatch"])
    assert "pmix_v4" in refused.stderr


def test_torchrun_of_the_image_starts_the_ranks_in_one_container(
    sandbox: Path, tmp_path: Path
) -> None:
    there = site(tmp_path)
    words = ("launch", sandbox, "--site", there, "--launcher", "torchrun", "--ranks", 2)
    line = run(*words, "--", "python", "x.py")
    assert line.exit_code == 0, line.stderr
    assert line.stdout == (
        f"apptainer exec {sandbox} torchrun --standalone --nnodes=1 --nproc_per_node=2 "
        "--no_python python x.py\n"
    )


def test_another_architecture(sandbox: Path, tmp_path: Path) -> None:
    there = site(tmp_path, arch=["ppc64le"])
    assert run("info", sandbox, "--site", there).exit_code == 4
    line = run("launch", sandbox, "--site", there, "--json", "--", "python", "x.py")
    assert (line.exit_code, problem_ids(line.stdout)) == (2, ["image.host-mismatch"])
    assert all(each in line.stderr for each in ("lab", "ppc64le", "x86_64"))


def test_the_folders_that_an_image_names_are_bound(sandbox: Path, tmp_path: Path) -> None:
    there, modules = site(tmp_path), tmp_path / "sw"
    modules.mkdir()
    labels = sandbox / ".singularity.d" / "labels.json"
    labels.parent.mkdir(exist_ok=True)
    labels.write_text(json.dumps({"envbuild.binds": str(modules)}))
    words = ("launch", sandbox, "--site", there, "--ranks", 2)
    try:
        line = run(*words, "--", "python", "x.py")
        assert line.stdout.endswith(f"apptainer exec --bind {modules} {sandbox} python x.py\n")
        # Where they are elsewhere, who starts it says so.
        line = run(*words, "--bind", f"{tmp_path}:/sw", "--", "python", "x.py")
        assert f"apptainer exec --bind {tmp_path}:/sw {sandbox}" in line.stdout
        modules.rmdir()
        gone = run(*words, "--json", "--", "python", "x.py")
        assert (gone.exit_code, problem_ids(gone.stdout)) == (2, ["bind.not-a-folder"])
        assert str(modules) in gone.stderr
    finally:
        labels.unlink()


@pytest.mark.parametrize(
    "words",
    [
        ("launch", "allreduce", "--json", "--host-mpi", "--", "python", "x.py"),
        ("launch", "allreduce", "--json", "--bind", "/usr", "--", "python", "x.py"),
        ("smoke", "allreduce", "--json", "--host-mpi"),
    ],
)
def test_what_is_for_images_alone(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["option.only-for-image"])


def test_an_image_whose_mpi_nobody_saw_takes_no_other(sandbox: Path, tmp_path: Path) -> None:
    words = ("launch", sandbox, "--site", site(tmp_path), "--host-mpi", "--json")
    done = run(*words, "--", "python", "x.py")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["image.no-mpi"])
    emulated = run("smoke", sandbox, "--emulate", "--json")
    assert (emulated.exit_code, problem_ids(emulated.stdout)) == (2, ["option.not-for-image"])
