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

PROGRAM = """
import distributed_dl_training.numpy as hvd
hvd.init()
print(hvd.rank(), "of", hvd.size(), hvd.allreduce(float(hvd.rank()), op=hvd.Sum))
"""


@pytest.fixture(scope="module")
def image(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed("apptainer")
    debian, output = debian_base(tmp_path_factory), tmp_path_factory.mktemp("images")
    words = ("image", "allreduce", "--base", debian, "--output", output)
    done = envbuild(*words, env=QUICK, timeout=SECONDS)
    assert done.code == 0, done.text
    (output / "program.py").write_text(PROGRAM)
    [found] = output.glob("*.sif")
    return found


@pytest.fixture(scope="module")
def mpich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an MPICH of the host."""
    folder = tmp_path_factory.mktemp("host")
    words = [sys.executable, "-m", "pip", "install", "-q", "--target", folder, "mpich"]
    done = run(words, timeout=SECONDS)
    assert done.code == 0, done.text
    return folder / "bin"


def test_by_the_mpi_that_fits(envbuild: Envbuild, image: Path, mpich: Path) -> None:
    env = {"PATH": f"{mpich}:/usr/bin:/bin:{Path(shutil.which('apptainer') or '').parent}"}
    words = ("launch", image, "--site", "local", "--ranks", "2", "--", "python", "program.py")
    line = envbuild(*words, env=env)
    assert line.code == 0, line.text
    assert line.out == f"mpiexec -n 2 apptainer exec {image} python program.py\n"
    done = run([mpich / "mpiexec", *shlex.split(line.out)[1:]], env=env, cwd=image.parent)
    assert sorted(done.out.splitlines()) == ["0 of 2 1.0", "1 of 2 1.0"], done.text


def test_by_another_they_do_not_find_each_other_and_that_is_refused(
    envbuild: Envbuild, image: Path
) -> None:
    needed("ompi_info")
    words = ("launch", image, "--site", "local", "--ranks", "2", "--", "python", "program.py")
    refused = envbuild(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "there: openmpi" in refused.err
    assert "no rank finds the others" in refused.err
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    line = [*mpirun, "timeout", "60", "apptainer", "exec", str(image), "python", "program.py"]
    done = run(line, cwd=image.parent)
    assert "of 2" not in done.out
