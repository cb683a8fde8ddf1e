"""``render --as image`` writes what ``envbuild image`` builds from, byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from envbuilder import data
from envbuilder.cli import app
from envbuilder.model.plan import Lock
from envbuilder.workflow.context import Context
from envbuilder.workflow.load import Planned
from envbuilder.workflow.targets import bundle as target
from tests.debian_system import system
from tests.made_up_files import locked
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

# It keeps what it is to build from, and builds nothing.
APPTAINER = (
    '#!/bin/sh\nfor last; do :; done\ncp -a . "$KEPT"\necho "$last" >"$KEPT.named"\nexit 1\n'
)


def run(*words: object) -> Result:
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "80", "ENVBUILD_SITE": None})
    assert "Traceback" not in done.output
    return done


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return system(tmp_path / "base system")


@pytest.fixture
def lock(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of made-up files for that base; whatever fetches a file of it writes its name."""

    def fetch(build: Path, context: Context) -> None:
        (build / "wheelhouse").mkdir(exist_ok=True)
        found = Lock.model_validate_json((build / "lock.json").read_text(encoding="utf-8"))
        for each in found.wheelhouse:
            (build / "wheelhouse" / each.filename).write_text(each.filename, encoding="utf-8")

    def obtain(planned: Planned, *_: object) -> Lock:
        return locked(planned.plan)

    monkeypatch.setattr(target, "_run_fetch", fetch)
    monkeypatch.setattr(target, "obtain_lock", obtain)
    done = run("render", "allreduce", "--as", "image", "--base", base, "-o", tmp_path / "first")
    assert done.exit_code == 0, done.stderr
    return tmp_path / "first" / "bundle" / "build" / "lock.json"


def files(folder: Path) -> dict[str, bytes | str]:
    """Return the contents of files, and where links lead."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_the_same_bytes(
    base: Path, lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tools" / "apptainer"
    program.parent.mkdir()
    program.write_text(APPTAINER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("KEPT", str(tmp_path / "kept"))
    words = ("allreduce", "--base", base, "--locked", lock, "--output")
    built = run("image", *words, tmp_path / "images")
    assert built.exit_code == 5, built.stderr
    rendered = run("render", "--as", "image", *words, tmp_path / "rendered")
    assert rendered.exit_code == 0, rendered.stderr
    kept = files(tmp_path / "kept")
    assert files(tmp_path / "rendered") == kept == files(tmp_path / "first")
    assert kept["base"] == str(base)
    assert (tmp_path / "kept.named").read_text() == "allreduce.def\n"
    printed = run("render", "--as", "def", "--base", base, "--locked", lock, "allreduce")
    assert printed.stdout.encode() == kept["allreduce.def"]


def test_what_a_base_cannot_be_for(base: Path, lock: Path, tmp_path: Path) -> None:
    for form in ("dockerfile", "lua", "all"):
        words = ("--as", form, "--base", base, "-o", tmp_path / "x", "--json")
        done = run("render", "allreduce", *words)
        assert (done.exit_code, problem_ids(done.stdout)) == (2, ["option.only-for-image"])
        assert form in done.stderr
    done = run("render", "allreduce", "--as", "def", "--base", base, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["lock.missing"])
    done = run("render", "allreduce", "--as", "image", "--base", base, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["output.missing"])


def test_a_site_that_states_a_debian_begins_with_it(lock: Path, tmp_path: Path) -> None:
    words = ("allreduce", "--site", "debian-ppc64le", "--arch", "ppc64le")
    done = run("render", *words, "--as", "image", "-o", tmp_path / "ppc")
    assert done.exit_code == 0, done.stderr
    text = (tmp_path / "ppc" / "allreduce.def").read_text()
    assert "Bootstrap: localimage\nFrom: base\n" in text
    found = json.loads((tmp_path / "ppc" / "bundle" / "bundle.json").read_text())
    assert (found["site"], found["arch"]) == ("debian-ppc64le", "ppc64le")
    assert str(tmp_path / "ppc" / "base") in done.stderr.replace("\n", "")


def written(path: Path, shipped: str, **more: object) -> Path:
    """Write a shipped recipe or site with more in it."""
    value = yaml.safe_load((data.RECIPES / f"{shipped}.yaml").read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**value, **more}, sort_keys=False), encoding="utf-8")
    return path


def test_a_recipe_or_a_site_states_what_an_image_begins_with(
    base: Path, lock: Path, tmp_path: Path
) -> None:
    other = system(tmp_path / "other")
    recipe = written(tmp_path / "allreduce.yaml", "allreduce", image={"base": base.name})
    site = tmp_path / "lab.yaml"
    stated = {"schema": 1, "name": "lab", "summary": "A lab", "arch": ["x86_64"]}
    site.write_text(yaml.safe_dump({**stated, "image": {"base": other.name}}), encoding="utf-8")

    def begins(number: int, *words: object) -> str:
        folder = tmp_path / f"made-{number}"
        done = run("render", *words, "--as", "image", "-o", folder)
        assert done.exit_code == 0, done.stderr
        return str((folder / "base").readlink())

    assert begins(1, recipe) == str(base)
    # The recipe's own comes first, and an option before both.
    assert begins(2, recipe, "--site", site) == str(base)
    assert begins(3, "allreduce", "--site", site) == str(other)
    assert begins(4, recipe, "--base", other) == str(other)
    made = json.loads((tmp_path / "made-1/bundle/build/lock.json").read_text())
    assert made["plan"]["pins"] == json.loads(lock.read_text())["plan"]["pins"]


def test_a_recipe_takes_the_modules_that_its_site_binds(lock: Path, tmp_path: Path) -> None:
    init = "/usr/share/lmod/lmod/init/bash"
    base = system(tmp_path / "power", arch="ppc64el")
    (base / init[1:]).parent.mkdir(parents=True)
    (base / init[1:]).touch()
    (tmp_path / "sw/modules/taurus/environment").mkdir(parents=True)
    recipe = written(tmp_path / "allreduce.yaml", "allreduce", image={"stack": "modules"})
    shutil.copy(data.RECIPES / "sites" / "taurus-ml.snapshot.json", tmp_path)

    def rendered(name: str, *words: object, **stated: object) -> Result:
        site = written(tmp_path / f"{name}.yaml", "sites/taurus-ml", name=name, image=stated)
        line = ("render", recipe, "--site", site, "--as", "image", "-o", tmp_path / f"of-{name}")
        return run(*line, *words)

    binds = [f"{tmp_path}/sw:/sw"]
    done = rendered("both", base=str(base), binds=binds)
    assert done.exit_code == 0, done.stderr
    text = (tmp_path / "of-both" / "allreduce.def").read_text()
    assert "    envbuild.binds /sw\n" in text
    assert "apptainer run --bind /sw allreduce.sif mpiexec -n 2 python PROGRAM.py" in text
    named = rendered("option", "--bind", binds[0], base=str(base))
    assert named.exit_code == 0, named.stderr
    assert "envbuild.binds /sw\n" in (tmp_path / "of-option" / "allreduce.def").read_text()
    none = rendered("none", "--json", base=str(base))
    assert (none.exit_code, problem_ids(none.stdout)) == (2, ["bind.missing"])
    dockerfile = run("render", "allreduce", "--as", "dockerfile", "--bind", tmp_path, "-o", "x")
    assert (dockerfile.exit_code, "--bind" in dockerfile.stderr) == (2, True)
