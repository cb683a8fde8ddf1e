"""Commands killed at moments that nothing singles out, then repeated: the next run succeeds.

The moments of a ``create`` that differ in kind: test_killed.py. ENVBUILD_TEST_KILLS states how
often each command is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest
from conda_tools import make_channel
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import COMMAND, MARK, Done, finish, marked, run, start
from test_conda import Quiet, recipes, words

from tests.serving import serving_by
from tests.verbs import problem_ids

pytestmark = [pytest.mark.long]

KILLS = int(os.environ.get("ENVBUILD_TEST_KILLS", "2"))


class Command(ABC):
    """A command whose runs begin in an empty folder each."""

    env: Mapping[str, str | None] = MappingProxyType({})

    @abstractmethod
    def words(self, folder: Path) -> tuple[str | Path, ...]:
        """Return the command, without ``envbuild``."""

    def has_begun(self, folder: Path) -> bool:
        """Return whether it does what it shall be killed at."""
        return folder.is_dir()

    @abstractmethod
    def check(self, folder: Path) -> None:
        """Check what a whole run leaves."""

    def is_whole(self, folder: Path) -> bool:
        """Return whether a run has put in place all that the next one would refuse to replace."""
        return False

    def kill(self, folder: Path, delay: float, children: bool) -> Done | None:
        """Kill a run *delay* seconds after it has begun, or return what ended before."""
        mark = uuid.uuid4().hex
        command = [*COMMAND, *self.words(folder)]
        running = start(command, env={**self.env, MARK: mark}, cwd=folder)
        while running.poll() is None and not self.has_begun(folder):
            time.sleep(0.005)
        time.sleep(delay)
        ended = running.poll() is not None
        running.kill()
        for pid in started(running.pid, mark) if children else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done = finish(running, SECONDS)
        until = time.monotonic() + SECONDS
        while started(running.pid, mark) and time.monotonic() < until:
            time.sleep(0.1)
        assert ended or done.code == -signal.SIGKILL, done
        return done if ended else None

    def run(self, folder: Path) -> float:
        """Run it undisturbed; return the seconds that it takes after it has begun."""
        running = start([*COMMAND, *self.words(folder)], env=self.env, cwd=folder)
        while running.poll() is None and not self.has_begun(folder):
            time.sleep(0.005)
        begin = time.monotonic()
        done = finish(running, SECONDS)
        assert done.code == 0, done.text
        self.check(folder)
        return time.monotonic() - begin


def started(leader: int, mark: str) -> list[int]:
    """Return what a command has started: some have another session, some another environment."""
    found = list(marked(mark))
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name of the program may contain blanks and brackets: proc(5).
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(entry.name))
    return found


class Image(Command):
    """An image with Apptainer."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.env = {**QUICK}

    def words(self, folder: Path) -> tuple[str | Path, ...]:
        return ("image", "allreduce", "--base", self.base, "--output", folder / "images")

    def is_whole(self, folder: Path) -> bool:
        return any((folder / "images").glob("*.sif"))

    def check(self, folder: Path) -> None:
        [image] = (folder / "images").glob("*.sif")
        done = run([*COMMAND, "info", image, "--json"], env=self.env)
        assert done.code == 0, done.text
        told = json.loads(done.out)
        assert [each["result"]["tier"] for each in told["evidence"]] == ["several ranks"]
        left = (each for each in (folder / "images").iterdir() if each.suffix != ".log")
        assert sorted(each.suffix for each in left) == [".evidence", ".sif"]


class PublishedImage(Image):
    """An image that is published under a number."""

    def words(self, folder: Path) -> tuple[str | Path, ...]:
        return ("image", "allreduce", "--base", self.base, "--to", folder / "images")

    def check(self, folder: Path) -> None:
        listing = json.loads(run([*COMMAND, "list", "--root", folder / "images", "--json"]).out)
        [entry] = listing["environments"]
        assert (entry["tier"], entry["default"]) == ("several ranks", True)
        assert listing["unfinished"] == []
        [image] = (folder / "images" / "allreduce").glob("*.sif")
        assert image.name.startswith(f"{entry['number']}-")
        assert image.exists()


class CondaEnvironment(Command):
    """A conda environment, killed while its packages are linked or later."""

    def __init__(self, folder: Path, lock: Path) -> None:
        self.recipes = folder
        self.lock = lock

    def words(self, folder: Path) -> tuple[str | Path, ...]:
        return (*words("create", self.recipes), "--locked", self.lock, "--root", folder / "root")

    def has_begun(self, folder: Path) -> bool:
        return any((folder / "root" / "conda-allreduce").glob(f"{'[0-9a-f]' * 12}/conda-meta"))

    def check(self, folder: Path) -> None:
        place = ("--root", folder / "root")
        listing = json.loads(run([*COMMAND, "list", *place, "--json"]).out)
        assert [each["tier"] for each in listing["environments"]] == ["several ranks"]
        assert listing["unfinished"] == []
        verified = run([*COMMAND, "info", "conda-allreduce", "--verify", *place])
        assert verified.code == 0, verified.text


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("apptainer") is None:
        pytest.skip("apptainer is not on PATH: bash ci/apptainer.sh FOLDER unpacks it")
    return debian_base(tmp_path_factory)


@pytest.fixture
def image(base: Path) -> Command:
    return Image(base)


@pytest.fixture
def published(base: Path) -> Command:
    return PublishedImage(base)


@pytest.fixture
def conda(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    pytest.importorskip("rattler", reason="needs py-rattler")
    channel = make_channel(tmp_path_factory)
    with serving_by(partial(Quiet, directory=str(channel))) as url:  # type: ignore[arg-type]
        folder = recipes(tmp_path_factory.mktemp("recipes") / "r", url)
        lock = folder / "lock.json"
        done = run([*COMMAND, *words("lock", folder), "--output", lock])
        assert done.code == 0, done.text
        yield CondaEnvironment(folder, lock)


@pytest.mark.parametrize("name", ["image", "published", "conda"])
def test_the_next_run_succeeds(
    name: str, index: None, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The moments are spread over a run, and every second kill spares the child processes."""
    command: Command = request.getfixturevalue(name)

    def folder(number: int) -> Path:
        path = tmp_path / str(number)
        path.mkdir()
        return path

    command.run(folder(0))  # which fills the caches
    seconds, killed, tries = command.run(folder(1)), 0, 0
    while killed < KILLS:
        place = folder(tries + 2)
        ended = command.kill(place, seconds * (killed + 0.5) / KILLS, children=tries % 2 == 0)
        killed, tries = killed + (ended is None), tries + 1
        if ended:
            assert ended.code == 0, ended.text
            assert tries <= 2 * KILLS, f"only {killed} runs could be killed"
            seconds *= 0.9  # a run is faster now than the first one was
        if command.is_whole(place):
            # The next run replaces nothing, and removes what the killed one left beside it.
            refused = run([*COMMAND, *command.words(place), "--json"], env=command.env)
            assert (refused.code, problem_ids(refused.out)) == (2, ["output.exists"]), refused.text
            command.check(place)
        else:
            command.run(place)
        shutil.rmtree(place)
    print(f"{killed} runs of {seconds:.1f} s were killed, in {tries} tries")
