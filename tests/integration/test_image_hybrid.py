"""Ranks of an image that a real MPI of the host starts, and one that must not."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Envbuild, run
from registry_tools import needed

pytestmark = [pytest.mark.long]

# Its MPI is that of the base.
OPEN_MPI = """
schema: 1
name: with-openmpi
summary: Collective runtime on numpy and Open MPI
arch: [x86_64]
stack: {python: ">=3.8", numpy: "*", mpi4py: ">=4", openmpi: ">=4.1,<5"}
smoke: {ranks: 2, max-bytes: 65536}
"""
PROGRAM = """
import distributed_dl_training.numpy as hvd
hvd.init()
print(hvd.rank(), "of", hvd.size(), hvd.allreduce(float(hvd.rank()), op=hvd.Sum))
"""


def built(recipe: str | Path, envbuild: Envbuild, temporary: pytest.TempPathFactory) -> Path:
    needed("apptainer")
    debian, output = debian_base(temporary), temporary.mktemp("images")
    done = envbuild(
        "image", recipe, "--base", debian, "--output", output, env=QUICK, timeout=SECONDS
    )
    assert done.code == 0, done.text
    (output / "program.py").write_text(PROGRAM)
    [found] = output.glob("*.sif")
    return found


@pytest.fixture(scope="module")
def image(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an image with an MPICH."""
    return built("allreduce", envbuild, tmp_path_factory)


@pytest.fixture(scope="module")
def open_mpi_image(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an image with Debian's Open MPI."""
    recipe = tmp_path_factory.mktemp("recipe") / "with-openmpi.yaml"
    recipe.write_text(OPEN_MPI)
    return built(recipe, envbuild, tmp_path_factory)


def path_with(mpi: str, folder: Path) -> dict[str, str]:
    """Return a search path with an MPI of the host before all others: that of a wheel."""
    assert run([sys.executable, "-m", "venv", folder]).code == 0
    done = run([folder / "bin/pip", "install", "-q", mpi], timeout=SECONDS)
    assert done.code == 0, done.text
    apptainer = Path(shutil.which("apptainer") or "").parent
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin:{apptainer}"}


def line_for(image: Path) -> tuple[str | Path, ...]:
    return ("launch", image, "--site", "local", "--ranks", "2", "--", "python", "program.py")


def started(line: str, image: Path, env: dict[str, str]) -> list[str]:
    """Run a launch line; return what its ranks print."""
    root = {f"OMPI_ALLOW_RUN_AS_ROOT{more}": "1" for more in ("", "_CONFIRM")}
    done = run(["timeout", "100", *shlex.split(line)], env=env | root, cwd=image.parent)
    return sorted(each for each in done.out.splitlines() if " of " in each)


def test_by_an_mpich(envbuild: Envbuild, image: Path, tmp_path: Path) -> None:
    env = path_with("mpich", tmp_path / "host")
    line = envbuild(*line_for(image), env=env)
    assert line.code == 0, line.text
    assert line.out == f"mpiexec -n 2 apptainer exec {image} python program.py\n"
    assert started(line.out, image, env) == ["0 of 2 1.0", "1 of 2 1.0"]


def test_by_an_open_mpi_of_its_series(envbuild: Envbuild, open_mpi_image: Path) -> None:
    needed("ompi_info")
    line = envbuild(*line_for(open_mpi_image))
    assert line.code == 0, line.text
    assert "there: openmpi 4.1" in line.err
    assert started(line.out, open_mpi_image, {}) == ["0 of 2 1.0", "1 of 2 1.0"]


def test_by_an_open_mpi_of_the_next_series_they_do_not_start_and_that_is_refused(
    envbuild: Envbuild, open_mpi_image: Path, tmp_path: Path
) -> None:
    env = path_with("openmpi>=5", tmp_path / "host")
    refused = envbuild(*line_for(open_mpi_image), env=env)
    assert (refused.code, refused.out) == (2, "")
    assert "there: openmpi 5" in refused.err
    words = ["mpiexec", "-n", "2", "apptainer", "exec", str(open_mpi_image), "python", "program.py"]
    assert started(shlex.join(words), open_mpi_image, env) == []


def test_by_another_they_do_not_find_each_other_and_that_is_refused(
    envbuild: Envbuild, image: Path
) -> None:
    needed("ompi_info")
    refused = envbuild(*line_for(image))
    assert (refused.code, refused.out) == (2, "")
    assert "there: openmpi" in refused.err
    assert "no rank finds the others" in refused.err
    words = ["mpirun", "-n", "2", "apptainer", "exec", str(image), "python", "program.py"]
    assert not [each for each in started(shlex.join(words), image, {}) if "of 2" in each]
