"""The proof is a proof: ranks that do not talk are never published, whatever else looks well.

A story is told in one root: the runtime is sabotaged, then the launcher, and each is repaired.
Every test looks at one moment of it.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import Done, Envbuild, marked, small_recipe
from module_tools import MY_ALLREDUCE, SUMS, in_lmod

from envbuilder import data
from envbuilder.model.plan import Lock, Plan

# In the runtime of every build: once rank 1 sums 4096 bytes it does what a file says at that time.
# So what was built is proved again without a new build, whatever its ranks do.
SABOTAGE = """

_allreduce = allreduce


def allreduce(tensor, name=None, op=Average, **factors):
    result = _allreduce(tensor, name=name, op=op, **factors)
    if rank() == 1 and result.nbytes == 4096:
        known = {{"result": result}}
        with open({what!r}) as what:
            exec(what.read(), known)
        return known["result"]
    return result
"""

KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
HANGS = "import time; time.sleep(600)"
ONE_MORE = "result = result + result.dtype.type(1)"
EXITS = "import os; os._exit(3)"

# A launcher of the site, which says that all went well when the file beside it says so.
LAUNCHER = """\
#!/bin/sh
if [ -e "{liar}" ]; then
    echo "2 ranks started, all checks passed"
    exit 0
fi
exec mpiexec.hydra "$@"
"""

SITE = """\
schema: 1
name: cluster
summary: A cluster with a launcher of its own
arch: [x86_64, aarch64]
launcher: {{kind: hydra, command: ["{launcher}"]}}
"""


@dataclass(frozen=True)
class Moment:
    """A command that ended, and what it left."""

    done: Done
    listing: dict[str, Any]
    modulefiles: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    processes: tuple[str, ...]

    @property
    def published(self) -> dict[int, bool]:
        """The numbers that can be loaded, and whether each is the default."""
        return {each["number"]: each["default"] for each in self.listing["environments"]}


@dataclass
class Story:
    """One root, one environment, and commands that run there one after the other."""

    envbuild: Envbuild
    folder: Path
    name: str
    site: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def create(self, summary: str, sabotage: str = "", *options: str, timeout: int = 120) -> Moment:
        """Create from a recipe whose ranks are good, or sabotaged so.

        *timeout* in seconds: one that hangs is waited for so long.
        """
        more = f"  timeout: {timeout}\n"
        recipe = small_recipe(self.folder, self.name, summary=summary, more=more)
        sources = self.folder / "runtime"
        shutil.rmtree(sources, ignore_errors=True)
        kept = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(data.RUNTIME, sources, ignore=kept)
        what = self.folder / "what"
        what.write_text(sabotage, encoding="utf-8")
        with (sources / "distributed_dl_training" / "numpy.py").open("a") as module:
            module.write(SABOTAGE.format(what=str(what)))
        text = recipe.read_text(encoding="utf-8")
        recipe.write_text(text.replace("runtime:\n", "runtime:\n  source: runtime\n"))
        self._keep_files(str(recipe))
        return self.run("create", str(recipe), *self.site, *options)

    def _keep_files(self, recipe: str) -> None:
        """Spare the question which files to fetch: the runtime's sources change none of them."""
        path = self.root / self.name / "lock.json"
        if path.is_file():
            last = Lock.model_validate_json(path.read_text(encoding="utf-8"))
            plan = Plan.model_validate_json(self.envbuild("plan", recipe, *self.site, "--json").out)
            path.write_text(Lock(plan=plan, artifacts=last.artifacts).text(), encoding="utf-8")

    def run(self, *words: str) -> Moment:
        mark = str(self.folder)
        done = self.envbuild(*words, "--root", self.root, env={"TEST_MARK": mark})
        modules = self.root / "modulefiles" / self.name
        files = sorted((self.root / self.name).glob("*.evidence/*/evidence.json"))
        return Moment(
            done,
            json.loads(self.envbuild("list", "--root", self.root, "--json").out),
            tuple(sorted(path.name for path in modules.glob("*"))),
            tuple(json.loads(path.read_text(encoding="utf-8")) for path in files),
            tuple(marked(mark).values()),
        )


def _sabotaged_again(story: Story) -> dict[str, Moment]:
    return {
        "good": story.create("good"),
        "one more": story.create("bad", ONE_MORE),
        "exit": story.create("bad", EXITS, "--resume"),
    }


# Seconds after which ranks that are to hang count as hung; those that are not have as many.
HUNG = 30


def _launched(story: Story) -> dict[str, Moment]:
    liar = story.folder / "liar"
    launcher = story.folder / "mpiexec"
    launcher.write_text(LAUNCHER.format(liar=liar), encoding="utf-8")
    launcher.chmod(0o755)
    site = story.folder / "cluster.yaml"
    site.write_text(SITE.format(launcher=launcher), encoding="utf-8")
    story.site = ("--site", str(site))
    told = {"killed": story.create("first", KILLED)}
    told["good"] = story.create("first", "", "--resume")
    liar.touch()
    told["smoke"] = story.run("smoke", story.name)
    told["info"] = story.run("info", story.name)
    told["liar"] = story.create("second", timeout=HUNG)
    liar.unlink()
    told["hangs"] = story.create("second", HANGS, "--resume", timeout=HUNG)
    told["resumed"] = story.create("second", "", "--resume", timeout=HUNG)
    return told


@pytest.fixture(scope="module")
def story(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(envbuild, tmp_path_factory.mktemp("launched"), "launched")


@pytest.fixture(scope="module")
def launched(story: Story) -> dict[str, Moment]:
    return _launched(story)


@pytest.fixture(scope="module")
def sabotaged_again(
    envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Moment]:
    return _sabotaged_again(Story(envbuild, tmp_path_factory.mktemp("again"), "sabotaged"))


def expect_refused(moment: Moment, published: dict[int, bool], *reasons: str) -> dict[str, Any]:
    """Expect exit code 6, one of the reasons in plain words, nothing new, nothing running.

    Returns the record of the failure, which is kept.
    """
    assert moment.done.code == 6, moment.done.text
    assert moment.done.out == ""
    said = moment.done.err.partition(":\n  - ")[2]
    assert said.startswith(reasons), moment.done.err
    assert "hint: nothing was published; " in moment.done.err
    assert moment.published == published
    default = {".modulerc.lua"} if published else set()
    modulefiles = set(moment.modulefiles) - {".last-number"}
    assert modulefiles == {f"{number}.lua" for number in published} | default
    assert moment.processes == ()
    log = moment.done.err.partition("log and records of every rank: ")[2].splitlines()[0]
    assert Path(log).is_file()
    record: dict[str, Any] = json.loads(Path(log).with_name("evidence.json").read_text())
    assert record["result"]["verdict"] == "failed"
    assert record["result"]["reasons"][0].startswith(reasons)
    assert record["id"] in [each["id"] for each in moment.listing["unfinished"]]
    return record


NO_RANKS = "mpiexec ended with exit code 0 but started no rank: none of 2 reported"

# The launcher ends the other rank at once, so that it cannot always be told who was first.
DEATHS = (
    "rank 1 died in allreduce int32 of 4096 bytes: ",
    "stopped without an error: rank 1 in allreduce int32 of 4096 bytes, ",
    "stopped without an error: rank 0 and rank 1 in allreduce int32 of 4096 bytes; ",
)


@pytest.mark.long
def test_a_rank_that_is_killed(launched: dict[str, Moment]) -> None:
    expect_refused(launched["killed"], {}, *DEATHS)
    # hydra ends with the signal's number; whether it also names it is as uncertain.
    assert re.search("signal 9|ended with exit code 9", launched["killed"].done.err)


def test_a_good_proof_after_a_failed_one_needs_no_new_build(launched: dict[str, Moment]) -> None:
    good = launched["good"]
    assert good.done.code == 0, good.done.text
    assert good.published == {1: True}
    assert good.done.out.endswith(" the default\n")
    assert "make the virtualenv" not in good.done.err


# What such ranks come to is the smoke test's to judge: tests/smoke/test_run.py has each of them.
@pytest.mark.long
def test_one_rank_returns_the_sum_plus_one(sabotaged_again: dict[str, Moment]) -> None:
    reason = "rank 1: allreduce int32 of 4096 bytes: element 0 is "
    record = expect_refused(sabotaged_again["one more"], {1: True}, reason)
    wrong = [check for check in record["result"]["checks"] if not check["passed"]]
    assert {check["name"] for check in wrong} == {"allreduce", "timing"}
    assert {check["bytes"] for check in wrong} == {4096}


@pytest.mark.long
def test_a_rank_that_ends_without_a_word(sabotaged_again: dict[str, Moment]) -> None:
    expect_refused(sabotaged_again["exit"], {1: True}, *DEATHS)
    # The launcher names this one, or the other, which it ended with signal 9 itself.
    assert re.search("exit code (3|9)\\b", sabotaged_again["exit"].done.err)


def test_a_launcher_that_only_prints_success(launched: dict[str, Moment]) -> None:
    expect_refused(launched["liar"], {1: True}, NO_RANKS)


def test_a_published_environment_that_fails_later_says_so(launched: dict[str, Moment]) -> None:
    smoke, info = launched["smoke"], launched["info"]
    assert smoke.done.code == 6
    assert "error: launched/1 failed " in smoke.done.err
    assert f"\n  - {NO_RANKS}\n" in smoke.done.err
    assert smoke.published == {1: True}
    listed = smoke.listing["environments"][0]
    assert (listed["tier"], listed["last-failed"]) == ("several ranks", True)
    assert [each["result"]["verdict"] for each in smoke.records] == ["failed", "passed", "failed"]
    assert "passed: several ranks" in info.done.out
    assert "failed: built" in info.done.out
    assert f"- {NO_RANKS}\n" in info.done.out


def test_the_repaired_launcher_needs_no_new_build(launched: dict[str, Moment]) -> None:
    resumed = launched["resumed"]
    assert resumed.done.code == 0, resumed.done.text
    assert resumed.published == {1: False, 2: True}
    assert "make the virtualenv" not in resumed.done.err


def test_a_rank_that_hangs(launched: dict[str, Moment]) -> None:
    record = expect_refused(launched["hangs"], {1: True}, f"hung: after {HUNG} s ")
    stacks = record["result"]["stacks"]
    assert sorted(stacks) == ["rank 0", "rank 1"]
    assert "in allreduce" in stacks["rank 1"]
    told = launched["hangs"].done.err.splitlines()
    start = told.index("  stack of rank 1:")
    assert any("in allreduce" in line for line in told[start : start + 12])
    assert "  stack of rank 0:" in told


@pytest.mark.parametrize("number", [1, 2])
def test_what_was_published_still_works(
    number: int, story: Story, launched: dict[str, Moment], tmp_path: Path
) -> None:
    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    lines = [f"module use '{story.root}/modulefiles'", f"module load launched/{number}"]
    lines += ['echo "$LOADEDMODULES"', "mpiexec -n 2 python my_allreduce.py"]
    done = in_lmod("bash", lines, tmp_path)
    loaded, *ranks = done.out.splitlines()
    assert loaded == f"launched/{number}"
    assert [SUMS in line for line in ranks] == [True, True]
