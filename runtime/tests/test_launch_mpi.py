"""The launcher over MPI: which mpiexec is which, its options, and jobs where one is there."""

import os
import re
import signal
import subprocess
import sys

import pytest

from distributed_dl_training.launch import _mpiexec
from distributed_dl_training.launch._hosts import Host, UsageError, place_ranks
from distributed_dl_training.launch._mpiexec import MpiLauncher

from launcher import why_not
from launching import Launched, job_environ, launch, pids, program

REASON = why_not()
needs_mpi = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.mark.parametrize(
    "text, known",
    [
        ("mpiexec (OpenRTE) 4.1.4\n\nReport bugs to", ("Open MPI", "Open MPI", "4.1.4")),
        ("mpirun (Open MPI) 2.1.1\n", ("Open MPI", "Open MPI", "2.1.1")),
        ("mpiexec (Open MPI) 5.0.11\n", ("Open MPI", "Open MPI", "5.0.11")),
        ("mpirun (IBM Spectrum MPI) 10.3.0.0\n", ("Open MPI", "Spectrum MPI", "10.3.0.0")),
        (
            "HYDRA build details:\n    Version:                                 5.0.2\n",
            ("MPICH", "MPICH", "5.0.2"),
        ),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307\n",
            ("Intel MPI", "Intel MPI", "2021.9"),
        ),
        ("slurm 22.05.8\n", None),
        ("", None),
    ],
)
def test_version_texts(text, known):
    assert _mpiexec.identify(text) == known


def command(kind, **options):
    places = place_ranks([Host("a", 2), Host("b", 2)], 3, False)
    mpi = MpiLauncher("/mpi/bin/mpiexec", kind, kind, "1")
    return _mpiexec.mpi_command(mpi, places, ["PATH", "DDLT_ENGINE"], "/machines", **options)


def test_options_of_open_mpi():
    words = command("Open MPI", interfaces="ib0", extra=["--mca", "pml", "ucx"])
    text = " ".join(words[: words.index("-n") + 2])
    assert text == (
        "/mpi/bin/mpiexec --bind-to none --map-by slot -H a:2,b:1"
        " --mca btl_tcp_if_include ib0 --mca oob_tcp_if_include ib0"
        " -x DDLT_ENGINE -x PATH --mca pml ucx -n 3"
    )
    assert "slot:OVERSUBSCRIBE" in command("Open MPI", oversubscribe=True)


def test_options_of_hydras():
    words = command("MPICH", interfaces="ib0,ib1")
    assert words[: words.index("-n")] == "/mpi/bin/mpiexec -hosts a:2,b:1 -iface ib0".split()
    words = command("Intel MPI")
    assert words[: words.index("-n")] == "/mpi/bin/mpiexec -machinefile /machines".split()


def test_unknown_mpiexec_is_named(tmp_path):
    path = tmp_path / "mpiexec"
    path.write_text("#!/bin/sh\necho other launcher 1.0\n")
    path.chmod(0o755)
    with pytest.raises(UsageError, match="its --version says: other launcher"):
        _mpiexec.load(str(path))
    with pytest.raises(UsageError, match="does not tell its version"):
        _mpiexec.load(str(tmp_path / "none"))


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 4])
def test_ranks_are_one_world(ranks):
    result = launch("--mpi", "-np", str(ranks), *program("mpi_sum"))
    assert result.code == 0, result.err
    total = ranks * (ranks + 1) // 2
    expected = [f"[{rank}]<stdout>:sum {total} of {ranks}" for rank in range(ranks)]
    assert sorted(result.out.splitlines()) == expected


# As in `srun --mpi=pmix --pty` and in a job of another launcher, and of torchrun.
OUTER = {"PMIX_RANK": "0", "PMIX_SERVER_URI4": "none", "OMPI_COMM_WORLD_RANK": "0", "RANK": "0"}


@needs_mpi
def test_ranks_have_numbers_of_their_own_inside_another_job():
    code = "from mpi4py import MPI; print('of', MPI.COMM_WORLD.Get_size())"
    options = ["--mpi", "-np", "2", "--start-timeout", "20"]
    result = launch(*options, sys.executable, "-c", code, environ=OUTER)
    assert result.code == 0, result.err
    assert sorted(result.out.splitlines()) == ["[0]<stdout>:of 2", "[1]<stdout>:of 2"]


@needs_mpi
def test_results_of_a_function_inside_another_job():
    code = (
        "import operator\n"
        "from distributed_dl_training.launch._function import run\n"
        "print(run(operator.add, (1, 2), np=2, use_mpi=True))\n"
    )
    environ = dict(job_environ(), **OUTER)
    done = subprocess.run([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE)
    assert done.stdout.decode().splitlines()[-1] == "[3, 3]"


@needs_mpi
def test_mpi_is_what_is_taken_where_it_is():
    result = launch("-np", "2", *program("report", "DDLT_ENGINE", "DDLT_LAUNCH_TOKEN"))
    assert result.code == 0, result.err
    assert result.out.count('"DDLT_ENGINE": "mpi"') == 2
    assert result.out.count('"DDLT_LAUNCH_TOKEN": null') == 2


@needs_mpi
def test_output_is_whole_lines():
    result = launch("--mpi", "-np", "4", *program("lines", "300"))
    assert result.code == 0, result.err
    for text, kind in ((result.out, "out"), (result.err, "err")):
        lines = text.splitlines()
        pattern = rf"\[(\d)\]<std{kind}>:{kind} \1 \d+ x*"
        assert [line for line in lines if not re.fullmatch(pattern, line)] == []
        assert len(lines) == 4 * 300


@needs_mpi
def test_output_in_files(tmp_path):
    options = ["--mpi", "-np", "2", "--output-filename", str(tmp_path)]
    result = launch(*options, *program("lines", "3"))
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (tmp_path / "rank.1" / "stderr").read_text() == "err 1 0 \nerr 1 1 x\nerr 1 2 xx\n"


@needs_mpi
@pytest.mark.parametrize(
    "how, code, text",
    [
        ("5", 5, "ended with exit code 5"),
        ("signal9", 137, "was killed by signal 9 (SIGKILL)"),
        ("signal11", 139, "was killed by signal 11 (SIGSEGV)"),
    ],
)
def test_first_failure_is_named(how, code, text):
    result = launch("--mpi", "-np", "3", "--kill-grace", "1", *program("mpi_end", how))
    assert result.code == code, result
    assert re.search(rf"rank 2 on \S+ {re.escape(text)}\n", result.err)
    # Open MPI adds a long stack for a SIGSEGV.
    assert "[2]<stderr>:deliberate\n" in result.err and ": its last lines:\n" in result.err


@needs_mpi
def test_abort_ends_all():
    result = launch("--mpi", "-np", "3", "--kill-grace", "1", *program("mpi_end", "abort"))
    assert result.code == 7, result
    assert "distributed-dl-trainingrun: " in result.err


@needs_mpi
def test_a_rank_that_fails_before_mpi_starts():
    """mpiexec itself may wait for ever: the others are in MPI_Init."""
    code = (
        "import os, sys\n"
        "if '1' in [os.environ.get(n) for n in ('PMI_RANK', 'OMPI_COMM_WORLD_RANK')]: sys.exit(9)\n"
        "from mpi4py import MPI\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    result = launch("--mpi", "-np", "2", "--kill-grace", "1", sys.executable, "-c", code)
    assert result.code == 9, result
    assert "rank 1 on" in result.err


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_orphans_when_the_launcher_ends(number, tmp_path):
    options = ["--mpi", "-np", "3", "--kill-grace", "0.5"]
    with Launched(*options, *program("sleep", str(tmp_path), "deaf")) as job:
        os.kill(pids(tmp_path, 3)[0], signal.SIGSTOP)
        job.process.send_signal(number)
        job.process.wait(timeout=60)
        assert job.orphans() == []


@needs_mpi
def test_program_that_cannot_start():
    result = launch("--mpi", "-np", "2", "--kill-grace", "1", "no-such-program-here")
    assert result.code == 127, result
    assert "cannot start" in result.err and "no-such-program-here" in result.err


@needs_mpi
def test_host_that_cannot_be_reached():
    options = ["--mpi", "-np", "1", "-H", "nowhere.invalid:1", "--start-timeout", "20"]
    result = launch(*options, "true", limit=120)
    assert result.code != 0
    assert "mpiexec" in result.err


def test_an_agent_is_not_for_mpi():
    result = launch("--mpi", "-np", "1", "--launch-agent", "x", "true")
    assert result.code == 2 and "--launch-agent" in result.err


@needs_mpi
def test_launcher_of_another_mpi_is_refused():
    """Each of its ranks would be a job of its own, and train alone."""
    code = (
        "import os\n"
        "from mpi4py import MPI\n"
        "import distributed_dl_training.numpy as hvd\n"
        "open_mpi = MPI.Get_library_version().startswith('Open MPI')\n"
        "os.environ['PMI_SIZE' if open_mpi else 'OMPI_COMM_WORLD_SIZE'] = '3'\n"
        "try:\n"
        "    hvd.init()\n"
        "except hvd.MPIUnavailableError as error:\n"
        "    print('3 ranks' in str(error))\n"
    )
    environ = dict(job_environ(), DDLT_ENGINE="mpi")
    output = subprocess.check_output([sys.executable, "-c", code], env=environ, timeout=60)
    assert output.split() == [b"True"]
