"""Jobs of a published environment in a real Slurm: its own Python and MPI run, or nothing does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tools import COMMAND, Done, run
from slurm_tools import Slurm, need_slurm, slurm

PROGRAM = """\
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
name = MPI.Get_library_version().split()[0]
lines = comm.gather(f"{comm.rank} of {comm.size} {sys.prefix} {name}")
if lines:
    print(*lines, *([sys.argv[1:]] if sys.argv[1:] else []), sep="\\n", flush=True)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        (running.folder / "my_program.py").write_text(PROGRAM, encoding="utf-8")
        yield running


def render(word: object, root: Path) -> str:
    words = ["render", word, "--as", "slurm", "--minutes", 5, "--site", "local", "--root", root]
    done = run([*COMMAND, *map(str, words)])
    assert done.code == 0, done.text
    return done.out


def submit(cluster: Slurm, text: str) -> Done:
    """Run a script to its end, in an environment where only the system's programs are on PATH."""
    script = cluster.folder / "job.sh"
    script.write_text(text, encoding="utf-8")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    # The names of the nodes have no address.
    env = {"PATH": path, "HYDRA_IFACE": "lo"}
    done = cluster("sbatch", "--parsable", "--output=job.out", script, env=env)
    assert done.code == 0, done.text
    code = cluster.ended(done.out.strip())
    return Done(code, (cluster.folder / "job.out").read_text(), "")


@pytest.mark.parametrize("word", ["allreduce", "allreduce/1", "FILE"])
@pytest.mark.sample(1)
def test_the_job_runs_the_environment_s_python_and_mpi(
    word: str, cluster: Slurm, built_root: Path, tmp_path: Path
) -> None:
    """The machine's own are /usr/bin/python3, and another MPI."""
    file = tmp_path / "allreduce.yaml"
    file.write_text(run([*COMMAND, "recipes", "show", "allreduce"]).out, encoding="utf-8")
    done = submit(cluster, render(file if word == "FILE" else word, built_root))
    (prefix,) = (each.parent for each in built_root.glob("allreduce/*/bin"))
    assert (done.code, done.out.splitlines()) == (
        0,
        [f"{rank} of 2 {prefix} MPICH" for rank in range(2)],
    )


def test_the_job_of_what_is_not_built_ends_before_the_first_rank(
    cluster: Slurm, tmp_path: Path
) -> None:
    text = render("allreduce", tmp_path / "root")
    assert "allreduce is not published in " in text.splitlines()[1]
    done = submit(cluster, text)
    assert done.code == 1
    assert done.out.startswith("error: allreduce is not built\nhint: ")


def test_the_job_of_a_prefix_that_moved_ends_before_the_first_rank(
    cluster: Slurm, built_root: Path, tmp_path: Path
) -> None:
    text = render("allreduce", built_root).replace(str(built_root), str(tmp_path / "moved"))
    done = submit(cluster, text)
    assert done.code == 1
    assert done.out.startswith("error: allreduce/1 is missing")


def test_the_launch_line_runs_the_environment_s_python_and_mpi_or_nothing(
    cluster: Slurm, built_root: Path
) -> None:
    launch = ["launch", "allreduce", "--root", str(built_root), "--ranks", "2"]
    line = run([*COMMAND, *launch, "--", "python", "my_program.py"]).out
    (prefix,) = (each.parent for each in built_root.glob("allreduce/*/bin"))
    head = "#!/usr/bin/env bash\n#SBATCH --ntasks=2 --time=5\n"
    done = submit(cluster, f"{head}source '{prefix}/bin/activate'\n{line}")
    assert (done.code, done.out.count(f"{prefix} MPICH\n")) == (0, 2), done.out
    done = submit(cluster, f"{head}{line}")
    assert done.code == 1
    assert done.out.startswith("error: python is ")
    assert len(done.out.splitlines()) == 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home whose start-up file puts another Python first, as conda's does."""
    other = tmp_path / "other" / "python"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho other\n", encoding="utf-8")
    other.chmod(0o755)
    (tmp_path / ".bashrc").write_text(f"export PATH='{other.parent}':$PATH\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("word", ["allreduce", "allreduce/1"])
@pytest.mark.sample(1)
def test_a_shell_in_a_job_has_the_environment(
    word: str, cluster: Slurm, built_root: Path, home: Path
) -> None:
    (prefix,) = (each.parent for each in built_root.glob("allreduce/*/bin"))
    words = ["shell", word, "--on", "slurm", "--queue", "test", "--nodes", "2", "--minutes", "5"]
    line = [*COMMAND, *words, "--site", "local", "--root", str(built_root)]
    result = home / "result"
    lines = [
        f"python -c 'import sys; print(sys.prefix)' > {result}",
        f'echo "$SLURM_NNODES $SLURM_NTASKS_PER_NODE $SLURM_JOB_PARTITION" >> {result}',
        # A second job could wait for this one.
        f"{shlex.join(line)}; echo $? >> {result}",
        "exit 7",
    ]
    assert cluster.typed(line, lines, home) == 7
    assert result.read_text().splitlines() == [str(prefix), "2 2 test", "2"]


def test_a_shell_without_its_environment_ends(cluster: Slurm, built_root: Path, home: Path) -> None:
    words = ["shell", "allreduce", "--on", "slurm", "--minutes", "5", "--print"]
    done = run([*COMMAND, *words, "--site", "local", "--root", str(built_root)])
    assert done.code == 0, done.text
    (prefix,) = (each.parent for each in built_root.glob("allreduce/*/bin"))
    line = shlex.split(done.out.replace(str(prefix), str(home / "gone")))
    assert cluster.typed(line, [f"touch {home}/typed"], home) == 1
    assert not (home / "typed").exists()


def test_a_job_starts_the_program_that_was_given(
    cluster: Slurm, built_root: Path, tmp_path: Path
) -> None:
    words = ["job", "allreduce", "--on", "slurm", "--minutes", "5", "--site", "local"]
    program = ["python", "my_program.py", "$VIRTUAL_ENV/x y", "$HOME"]
    done = run([*COMMAND, *words, "--root", str(built_root), "--", *program])
    assert done.code == 0, done.text
    (prefix,) = (each.parent for each in built_root.glob("allreduce/*/bin"))
    done = submit(cluster, done.out)
    assert (done.code, done.out.count(f"{prefix} MPICH")) == (0, 2), done.out
    assert done.out.count(f"['{prefix}/x y', '$HOME']") == 1
