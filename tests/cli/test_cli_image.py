"""What ``envbuild image`` refuses before anything is built; images: tests/integration."""

from __future__ import annotations

from pathlib import Path
from platform import machine

import pytest
from typer.testing import CliRunner, Result

from envbuilder.build.emulation import system as emulated
from envbuilder.cli import app
from tests.debian_system import PACKAGES, system
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a search path with an Apptainer that must not be started."""
    program = tmp_path / "tools" / "apptainer"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 70\n")
    program.chmod(0o755)
    return program.parent


def image(path: Path, output: Path, *words: object) -> Result:
    line = ["image", "allreduce", "--output", str(output), *map(str, words), "--json"]
    env = {"PATH": str(path), "COLUMNS": "80", "ENVBUILD_SITE": None}
    done = CliRunner().invoke(app, line, env=env)
    assert not output.exists() or list(output.iterdir()) == []
    return done


def test_no_base(tools: Path, tmp_path: Path) -> None:
    done = image(tools, tmp_path / "output", "--site", "local")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["base.not-stated"])
    assert "--base FOLDER" in done.stderr


def test_a_base_that_is_none(tools: Path, tmp_path: Path) -> None:
    done = image(tools, tmp_path / "output", "--base", tmp_path)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["base.not-a-system"])
    assert "var/lib/dpkg/status" in done.stderr


@pytest.mark.parametrize("name", ["nosuchfolder", "nosuch.tar"])
def test_a_base_that_is_not_there(name: str, tools: Path, tmp_path: Path) -> None:
    done = image(tools, tmp_path / "output", "--base", tmp_path / name)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["base.missing"])
    assert str(tmp_path / name) in " ".join(done.stderr.split())
    assert "docker://NAME" in done.stderr


def test_a_base_and_a_site(tools: Path, tmp_path: Path) -> None:
    base = system(tmp_path / "base")
    done = image(tools, tmp_path / "output", "--base", base, "--site", "debian-ppc64le")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["option.conflict"])


def test_no_apptainer(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    base = system(tmp_path / "base")
    done = image(tmp_path / "empty", tmp_path / "output", "--base", base)
    assert (done.exit_code, problem_ids(done.stdout)) == (9, ["image.no-apptainer"])


def test_programs_that_do_not_run_here(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulated, "emulator", lambda _host, _arch: None)
    monkeypatch.setattr(emulated, "machine_arch", lambda: "riscv64")
    base = system(tmp_path / "base", arch="amd64")
    done = image(tools, tmp_path / "output", "--base", base)
    assert (done.exit_code, problem_ids(done.stdout)) == (9, ["emulation.no-emulator"])
    assert "x86_64" in done.stderr


def test_a_dockerfile_is_refused_before_anything_is_fetched_for_it(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text("FROM debian:12\nONBUILD USER me\nCOPY gone /x\n")
    done = image(tools, tmp_path / "output", "--base", file)
    assert (done.exit_code, problem_ids(done.stdout)) == (
        2,
        ["base.unsupported-instruction", "base.source-missing"],
    )
    assert f"{file}:2: " in done.stderr.replace("\n", "")
    assert f"{file}:3: " in done.stderr.replace("\n", "")
    assert "ONBUILD" in done.stderr
    assert "buildah build" in done.stderr
    monkeypatch.setattr(emulated, "emulator", lambda _host, _arch: None)
    done = image(tools, tmp_path / "output", "--base", file, "--arch", "ppc64le")
    assert (done.exit_code, problem_ids(done.stdout)) == (9, ["emulation.no-emulator"])
    assert "ppc64le" in done.stderr


@pytest.mark.parametrize(
    ("base", "options", "problem_id"),
    [
        ("system", ("--build-arg", "A=1"), "option.without-dockerfile"),
        ("ours.def", ("--context", "."), "option.without-dockerfile"),
        (None, ("--build-arg", "A=1"), "option.without-dockerfile"),
        ("Dockerfile", ("--build-arg", "A"), "option.malformed-build-arg"),
        ("Dockerfile", ("--build-arg", "A-B=1"), "option.malformed-build-arg"),
        ("Dockerfile", ("--context", "none"), "option.not-a-folder"),
    ],
)
def test_options_of_a_dockerfile_need_one(
    base: str | None, options: tuple[str, str], problem_id: str, tools: Path, tmp_path: Path
) -> None:
    system(tmp_path / "system")
    (tmp_path / "ours.def").write_text("Bootstrap: docker\nFrom: debian:12\n")
    (tmp_path / "Dockerfile").write_text("FROM debian:12\n")
    of_base = ("--base", tmp_path / base) if base else ("--site", "debian-ppc64le")
    done = image(tools, tmp_path / "output", *of_base, *options)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem_id])


def test_a_base_that_lacks_what_the_recipe_needs(tools: Path, tmp_path: Path) -> None:
    old = {"dpkg": "1.19", "libc6": "2.28-10", "python3": "3.7.3-1", "python3.7-venv": "3.7.3-2"}
    base = system(tmp_path / "base", old)
    done = image(tools, tmp_path / "output", "--base", base)
    assert done.exit_code == 3
    assert "python" in done.stderr


def test_another_architecture_than_the_base_has(tools: Path, tmp_path: Path) -> None:
    base = system(tmp_path / "base", arch="arm64")
    done = image(tools, tmp_path / "output", "--base", base, "--arch", "x86_64")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["site.other-arch"])
    assert all(each in done.stderr for each in ("debian-12", "aarch64", "x86_64"))


POWER = ("--site", "taurus-ml", "--arch", "ppc64le")


@pytest.mark.parametrize(
    ("bind", "problem"),
    [
        ("none", "bind.not-a-folder"),
        (".:sw", "bind.invalid-target"),
        (".:/sw/..", "bind.invalid-target"),
        (".:/", "bind.invalid-target"),
        (".:/sw:ro", "bind.reserved-character"),
        (".:/s,w", "bind.reserved-character"),
    ],
)
def test_what_cannot_be_bound(tools: Path, tmp_path: Path, bind: str, problem: str) -> None:
    base = system(tmp_path / "base", arch="ppc64el")
    done = image(tools, tmp_path / "output", *POWER, "--base", base, "--bind", bind)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem]), done.stderr
    assert bind in done.stderr


def test_a_base_in_which_the_bound_programs_do_not_run(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "sw").mkdir()
    words = (*POWER, "--bind", f"{tmp_path}/sw:/sw", "--base")
    other = image(tools, tmp_path / "output", *words, system(tmp_path / "base"))
    assert (other.exit_code, problem_ids(other.stdout)) == (2, ["base.other-arch"])
    assert all(each in other.stderr for each in ("x86_64", "ppc64le"))
    packages = {**PACKAGES, "libc6": "2.12-1"}
    older = system(tmp_path / "older", packages, arch="ppc64el")
    old = image(tools, tmp_path / "output", *words, older)
    assert (old.exit_code, problem_ids(old.stdout)) == (2, ["base.old-glibc"])
    assert all(each in old.stderr for each in ("2.12", "taurus-ml", "2.17"))


def test_a_site_without_a_glibc_is_not_compared_with_the_base(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "sw").mkdir()
    base = system(tmp_path / "base", arch={"x86_64": "amd64", "aarch64": "arm64"}[machine()])
    words = ("--site", "local", "--base", base, "--bind", f"{tmp_path}/sw:/sw")
    done = image(tools, tmp_path / "output", *words)
    # It goes on: this machine has no Python on the path.
    assert (done.exit_code, problem_ids(done.stdout)) == (3, ["plan.no-solution"])
    assert "facts: {glibc: " in done.stderr.partition("error:")[0]


def test_modules_that_the_image_would_not_have(tools: Path, tmp_path: Path) -> None:
    base = system(tmp_path / "base", arch="ppc64el")
    (tmp_path / "sw").mkdir()
    words = (*POWER, "--base", base, "--bind", f"{tmp_path}/sw:/sw")
    done = image(tools, tmp_path / "output", *words)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["bind.missing"])
    assert "/usr/share/lmod/lmod/init/bash" in done.stderr
    lmod = base / "usr/share/lmod/lmod/init/bash"
    lmod.parent.mkdir(parents=True)
    lmod.touch()
    tree = image(tools, tmp_path / "output", *words)
    assert problem_ids(tree.stdout) == ["bind.missing"]
    assert "/sw/modules/taurus/environment" in tree.stderr
    own = ("--site", "debian-ppc64le", "--base", base, "--bind", tmp_path)
    none = image(tools, tmp_path / "output", *own)
    assert (none.exit_code, problem_ids(none.stdout)) == (2, ["bind.no-modules"])
