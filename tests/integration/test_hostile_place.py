"""A hostile place: long paths with spaces, umask 077, poisoned and read-only homes, odd shells."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration_tools import COMMAND, PATIENCE, Done, Envbuild, clean_environ, run, small_recipe
from place_tools import expect, lmod_bash, read_only

POISON = "raise SystemError('poison: this must never be imported')\n"
# Series that the interpreters of a machine may be of.
SERIES = [f"3.{minor}" for minor in range(8, 16)]
# Ends ranks that do not agree; the sum over two ranks of rank + 1 is 3.
PROGRAM = """
import numpy, distributed_dl_training.numpy as hvd
hvd.init()
total = hvd.allreduce(numpy.full(5, hvd.rank() + 1.0), op=hvd.Sum)
assert hvd.size() == 2 and (total == 3).all(), total
print("rank", hvd.rank(), numpy.__file__)
"""


@dataclass(frozen=True)
class Place:
    """A root in a hostile place, built there with everything against it at once."""

    root: Path
    home: Path
    old: Path
    tmp: Path
    created: Done

    def environ(self) -> dict[str, str | None]:
        configuration = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        return {
            "HOME": str(self.home),
            "PYTHONPATH": str(self.old),
            "TMPDIR": str(self.tmp),
            "LANG": "C",
            "LC_ALL": None,
            # How pip reaches its index is no part of the hostility.
            "XDG_CONFIG_HOME": configuration,
            "XDG_CACHE_HOME": None,
            "XDG_DATA_HOME": None,
        }

    def around(self) -> tuple[str, ...]:
        """Return what a command is started by: a read-only home and a strict umask."""
        return (*read_only(self.home), "bash", "-c", 'umask 077; exec "$@"', "strict")


def make_place(folder: Path) -> Place:
    home, old, tmp = folder / "home", folder / "old", folder / "a tmp with spaces"
    for series in SERIES:
        packages = home / ".local" / "lib" / f"python{series}" / "site-packages"
        for name in ("numpy", "mpi4py", "pip"):
            (packages / name).mkdir(parents=True)
            (packages / name / "__init__.py").write_text(POISON)
        for name in ("sitecustomize", "usercustomize"):
            (packages / f"{name}.py").write_text(POISON)
    (old / "numpy").mkdir(parents=True)
    (old / "numpy" / "__init__.py").write_text("__version__ = '1.7.1'\n")
    (old / "numpy-1.7.1.dist-info").mkdir()
    (old / "numpy-1.7.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: numpy\nVersion: 1.7.1\n"
    )
    tmp.mkdir()
    root = folder / "a root with spaces and ümläute"
    root = root.with_name(root.name + " " + "x" * (150 - len(str(root))))
    assert len(str(root)) > 150
    return Place(root, home, old, tmp, Done(0, "", ""))


@pytest.fixture(scope="module")
def place(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("hostile")
    place = make_place(folder)
    recipe = small_recipe(folder, "demo")
    created = envbuild(
        *("create", recipe, "--root", place.root), env=place.environ(), through=place.around()
    )
    return Place(place.root, place.home, place.old, place.tmp, created)


@pytest.mark.long
def test_create_works_with_everything_against_it(place: Place) -> None:
    assert place.created.code == 0, place.created.text
    assert "demo/1 is published and " in place.created.out
    assert "poison" not in place.created.text
    prefix = next(path for path in (place.root / "demo").glob("?" * 12))
    assert prefix.stat().st_mode & 0o777 == 0o500, "the umask holds"
    assert list(place.tmp.iterdir()) == [], "nothing is left in TMPDIR"


def test_the_module_loads_and_its_ranks_talk(place: Place) -> None:
    """The message of the module names PYTHONPATH; without it the environment's numpy is used."""
    program = place.tmp.parent / "my allreduce.py"
    program.write_text(PROGRAM)
    script = f"""
        source {shlex.quote(str(lmod_bash()))}
        module use {shlex.quote(str(place.root / "modulefiles"))}
        module load demo || exit 3
        python -c 'import numpy; print(numpy.__version__)'
        unset PYTHONPATH
        mpiexec -n 2 python {shlex.quote(str(program))}
    """
    done = run([*place.around(), "bash", "-c", script], env=place.environ(), cwd=Path("/"))
    assert done.code == 0, done.text
    assert "packages in PYTHONPATH come before this environment's own" in done.err
    old, *ranks = done.out.splitlines()
    assert old == "1.7.1"
    assert [line.split()[:2] for line in sorted(ranks)] == [["rank", "0"], ["rank", "1"]]
    assert all(str(place.root) in line for line in ranks)


# Variable and the attribute of the place that it is set to, with what follows; None: not set.
HOSTILE = {
    "an older numpy": ("PYTHONPATH", "old"),
    "a poisoned home": ("HOME", "home"),
    "spaces in TMPDIR": ("TMPDIR", "tmp"),
    "no HOME": ("HOME", None),
    "no TMPDIR there": ("TMPDIR", "root/nowhere"),
}
AT_ONCE = (
    ("an older numpy", "a poisoned home", "spaces in TMPDIR"),
    ("no HOME", "no TMPDIR there"),
)


@pytest.mark.parametrize(
    "names",
    [
        *(pytest.param(names, id=", ".join(names)) for names in AT_ONCE),
        *(pytest.param((name,), id=f"{name} alone", marks=pytest.mark.long) for name in HOSTILE),
    ],
)
def test_ranks_are_proved_with_this_against_them(
    names: tuple[str, ...], place: Place, envbuild: Envbuild
) -> None:
    env: dict[str, str | None] = {}
    for variable, attribute in (HOSTILE[name] for name in names):
        first, _, rest = (attribute or "").partition("/")
        env[variable] = str(getattr(place, first) / rest) if first else None
    done = envbuild("smoke", "demo", "--root", place.root, env=env)
    assert done.code == 0, done.text
    assert "38 checks passed" in done.out
    assert "poison" not in done.text


def test_no_home_to_put_the_root_in(envbuild: Envbuild) -> None:
    env: dict[str, str | None] = {"HOME": None, "XDG_DATA_HOME": None}
    done = envbuild("create", "allreduce", env=env)
    expect(done, 2, "error: HOME is not set", "--root DIR")


@pytest.mark.parametrize("name", ["with:colon", "with\nnewline", os.fsdecode(b"with\xffbyte")])
def test_a_root_that_no_shell_could_hold(name: str, envbuild: Envbuild, tmp_path: Path) -> None:
    for verb in (["create", "allreduce"], ["list"]):
        done = envbuild(*verb, "--root", tmp_path / name)
        expect(done, 2, "error: the path ", "hint: use another folder for --root")
    assert list(tmp_path.iterdir()) == []


def test_a_locale_that_lacks_the_letters_of_the_root(envbuild: Envbuild, place: Place) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = envbuild("list", "--root", place.root, env=plain)
    expect(done, 2, "contains an unprintable character", "set LC_ALL=C.UTF-8")
    done = envbuild("list", "--root", place.root, env={"LC_ALL": "C"})
    assert done.code == 0, done.text
    assert "ümläute" in done.out


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    script = f'mkdir {gone} && cd {gone} && rmdir {gone} && exec "$@"'
    for verb in (["create", "allreduce", "--root", str(tmp_path / "root")], ["list"], ["doctor"]):
        done = run(["bash", "-c", script, "gone", *COMMAND, *verb])
        expect(
            done,
            2,
            "error: the current folder no longer exists",
            "hint: cd to a folder that exists",
        )


def test_a_path_without_bash(envbuild: Envbuild, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    env = {"PATH": str(tmp_path / "bin")}
    done = envbuild("create", "allreduce", "--root", tmp_path / "root", env=env)
    expect(done, 9, "error: cannot start 'bash': no such program", "hint: envbuild doctor shows")


def test_a_path_without_anything(envbuild: Envbuild, tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path)}
    done = envbuild("create", "allreduce", "--root", tmp_path / "root", env=env)
    expect(done, 3, "nothing provides python >=3.8", "hint: envbuild doctor lists the interpreters")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_standard_streams_that_are_closed(closed: str, built_root: Path) -> None:
    command = shlex.join([*COMMAND, "list", "--root", str(built_root)])
    done = run(["bash", "-c", f"{command} {closed}"])
    assert done.code == 0, done.text
    assert done.err == ""
    assert ("allreduce/1" in done.out) == (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize(
    "words", [["list"], ["info", "allreduce"], ["info", "allreduce", "--json"], ["doctor"]]
)
def test_a_reader_that_goes_away(words: list[str], built_root: Path) -> None:
    command = shlex.join([*COMMAND, *words, *(["--root", str(built_root)] * (words != ["doctor"]))])
    done = run(["bash", "-c", f"{command} | head -n 1; echo ${{PIPESTATUS[0]}}"])
    assert done.err == ""
    assert done.out.splitlines()[-1] == "0"
    done = run(["bash", "-c", f"{command} | :; echo ${{PIPESTATUS[0]}}"])
    assert (done.out, done.err) == ("0\n", "")


def test_nobody_who_watches(place: Place) -> None:
    """The work goes on, also when no message can be written."""
    proofs = next((place.root / "demo").glob("*.evidence"))
    before = len(list(proofs.glob("*/evidence.json")))
    command = shlex.join([*COMMAND, "smoke", "demo", "--root", str(place.root)])
    done = run(["bash", "-c", f"{command} 2>&1 | :; echo ${{PIPESTATUS[0]}}"])
    assert (done.out, done.err) == ("0\n", "")
    assert len(list(proofs.glob("*/evidence.json"))) == before + 1


def test_an_output_that_is_full(built_root: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    command = shlex.join([*COMMAND, "list", "--root", str(built_root)])
    expect(
        run(["bash", "-c", f"{command} >/dev/full"]),
        5,
        "error: cannot write to standard output: No",
    )


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_an_output_that_is_full_for_what_no_verb_writes(word: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    done = run(["bash", "-c", f"{shlex.join([*COMMAND, word])} >/dev/full"])
    assert (done.code, done.err) == (
        5,
        "error: cannot write to standard output: No space left on device\n",
    )


def test_a_terminal_that_is_closed_while_one_waits(built_root: Path, tmp_path: Path) -> None:
    """What a lost connection does: the progress goes nowhere, and the session's end is told."""
    master, slave = pty.openpty()
    # Also where the tests themselves are to survive it.
    heeding = ["env", "--default-signal=HUP"]
    command = [*heeding, *COMMAND, "create", "allreduce", "--root", str(tmp_path / "root")]
    running = subprocess.Popen(
        command,
        env={**clean_environ(), "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        seen = b""
        while b"resolve packages against the index" not in seen:
            seen += os.read(master, 4096)
    finally:
        os.close(master)
        # A terminal's end would tell the leader of its session; this is what the leader does.
        running.send_signal(1)
    assert running.wait(PATIENCE) == 128 + 1
    assert not (tmp_path / "root" / "allreduce" / "in-use.lock").exists()
