"""Commands of the seed documents beside ours: each difference is named with its reason."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from envbuilder import data
from envbuilder.cli import app
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Plan
from tests.cli.conftest import SCHEDULERS
from tests.render.render_cases import build_files

from .document_rows import Difference, Row, of_kind

# pip's words of the documents, and ours: a wheel is made first, so that it can be kept and checked,
# of sources that were fetched before, beside the framework that it is built for.
PIP = ("pip", "install", "--no-cache", "horovod")
OUR_PIP = {"-m", "pip", "wheel", "--no-cache-dir", "--no-index", "--no-deps"}
OUR_PIP |= {"--no-build-isolation"}


def each_of(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", of_kind(kind), ids=lambda row: row.id)


@pytest.fixture
def envbuild(tmp_path: Path) -> Callable[[str], Result]:
    """Return a function that runs a command line of ours where no job and no root is."""
    unset = dict.fromkeys((*SCHEDULERS, "ENVBUILD_SITE", "ENVBUILD_ROOT"))
    variables = {**unset, "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "100"}
    return lambda line: CliRunner().invoke(app, shlex.split(line)[1:], env=variables)


def output(answer: Result) -> str:
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def compare(
    theirs: Sequence[str], ours: Sequence[str], differs: Sequence[Difference], *, ordered: bool
) -> None:
    """Fail unless the words differ in the named ones only, and the others are in one order."""
    missing = Counter(each.theirs for each in differs if each.theirs)
    added = Counter(each.ours for each in differs if each.ours)
    assert Counter(theirs) - Counter(ours) == missing
    assert Counter(ours) - Counter(theirs) == added
    if ordered:
        named = {*missing, *added}
        assert [word for word in theirs if word not in named] == [
            word for word in ours if word not in named
        ]


@cache
def plan(recipe: str, site: str) -> Plan:
    words = ["plan", recipe, "--site", site, "--json"]
    if site != "local":
        words += ["--arch", "ppc64le"]
    return Plan.model_validate_json(output(CliRunner().invoke(app, words)))


@cache
def build_script(recipe: str, site: str) -> str:
    folders = BuildFolders(prefix=Path("/scratch/1"), build=Path("/scratch/1.build"))
    return build_files(Lock(plan=plan(recipe, site), artifacts=()), folders)["build.sh"]


def function(script: str, name: str) -> str:
    """Return the body of a function of a script."""
    match = re.search(rf"^{re.escape(name)}\(\) {{\n(.*?)^}}", script, re.MULTILINE | re.DOTALL)
    assert match, name
    return match[1]


def exports(recipe: str, site: str) -> list[str]:
    """Return the settings that the script of the build exports for Horovod."""
    body = function(build_script(recipe, site), "step_build-horovod")
    lines = [shlex.split(line) for line in body.splitlines() if line.strip().startswith("export ")]
    return [words[1] for words in lines]


@each_of("launch")
def test_launch(row: Row, envbuild: Callable[[str], Result]) -> None:
    theirs = shlex.split(row.values.get("correction", row.theirs))
    [line] = row.ours
    compare(theirs, shlex.split(output(envbuild(line))), row.differs, ordered=True)


@each_of("build")
def test_build(row: Row) -> None:
    words = [word for word in row.theirs.split() if word not in ("env", "python3", "-m")]
    settings = [word for word in words if "=" in word]
    recipe = row.values["recipe"]
    compare(settings, exports(recipe, "taurus-ml"), row.differs, ordered=False)
    pip = [word.replace("--no-cache-dir", "--no-cache") for word in words if "=" not in word]
    assert sorted(pip) == sorted(PIP)
    script = build_script(recipe, "taurus-ml")
    wheel = re.search(r"(?:.*\\\n)*.*--wheel-dir.*", script)
    assert wheel
    assert set(shlex.split(wheel[0].replace("\\\n", " "))) >= OUR_PIP


@each_of("flag")
def test_flag(row: Row, envbuild: Callable[[str], Result], tmp_path: Path) -> None:
    [line] = row.ours
    flags = yaml.safe_load(line)["flags"]
    names = re.sub(r"{(.*)}", "", row.theirs).partition("=")[0]
    assert all(name.startswith(names.rstrip("*")) for name in flags)
    recipe, site = row.values["recipe"], row.values["site"]
    value = yaml.safe_load((data.RECIPES / f"{recipe}.yaml").read_text(encoding="utf-8"))
    value["runtime"]["flags"] |= flags
    file = tmp_path / f"{recipe}.yaml"
    file.write_text(yaml.safe_dump(value), encoding="utf-8")
    output(envbuild(f"envbuild recipes check {file}"))
    if value["runtime"].get("origin") != "module":
        exported = set(exports(str(file), site))
        assert {f"{name}={setting}" for name, setting in flags.items()} <= exported


@each_of("channel")
def test_channel(row: Row, known: Knowledge) -> None:
    recipe = yaml.safe_load((data.RECIPES / f"{row.values['recipe']}.yaml").read_text("utf-8"))
    *words, url = row.theirs.split()
    # The channel that is put in front of the others.
    assert words[-2:] == ["--prepend", "channels"]
    assert known.channels[recipe["channels"][0]].url == url.rstrip("/")


@each_of("packages")
def test_packages(row: Row) -> None:
    words = iter(row.theirs.split()[2:])
    requested = [
        word
        for word in words
        if not (word == "--name" and next(words)) and not word.startswith("--")
    ]
    pins = plan(row.values["recipe"], "taurus-ml").pins
    versions = {pin.locator.rpartition("/")[2]: pin.version for pin in pins}
    ours = [
        f"{name}={versions[name]}" if equals else name
        for name, equals, _ in (word.partition("=") for word in requested)
        if name in versions
    ]
    compare(requested, ours, row.differs, ordered=False)


@each_of("tree")
def test_tree(row: Row) -> None:
    """The sources of PyTorch: address and tag, and what is made of them."""
    [pin] = [pin for pin in plan("pytorch-source", "taurus-ml").pins if pin.component == "pytorch"]
    address, _, tag = pin.locator.partition("#")
    verb, word = row.theirs.split()[:2], row.theirs.split()[-1]
    if verb[0] == "git":
        assert word == {"clone": address, "checkout": tag}[verb[1]]
    else:
        body = function(build_script("pytorch-source", "taurus-ml"), "step_build-pytorch")
        assert [line.split()[0] for line in body.splitlines() if line.split()[1:2] == ["pytorch"]]
        assert "build_wheel pytorch" in body


@each_of("command")
def test_command(row: Row, envbuild: Callable[[str], Result]) -> None:
    [line] = row.ours
    answer = envbuild(line)
    assert answer.exit_code == row.values["code"], answer.output
    assert [word for word in row.values["ids"] if word not in answer.stdout] == []


def job_scripts() -> dict[str, tuple[Row, ...]]:
    """Return the rows of each script: its directives together, every other line alone."""
    scripts: dict[str, tuple[Row, ...]] = {}
    for row in of_kind("job"):
        name = "-".join(row.ours) if row.theirs.startswith("#BSUB") else row.id
        scripts[name] = (*scripts.get(name, ()), row)
    return {script[0].id: script for script in scripts.values()}


@pytest.mark.parametrize("script", job_scripts().values(), ids=job_scripts())
def test_job(script: tuple[Row, ...], envbuild: Callable[[str], Result]) -> None:
    first = script[0]
    text = output(envbuild(first.ours[0]))
    if first.theirs.startswith("#!"):
        compare([first.theirs], text.splitlines()[:1], first.differs, ordered=True)
        return
    ours = re.findall(r"^#(?:BSUB|SBATCH) (.*)$", text, re.MULTILINE)
    theirs = [
        option
        for row in script
        for option in re.split(r"\s+(?=-)", row.theirs)
        if option.startswith("-")
    ]
    compare(theirs, ours, first.differs, ordered=False)
