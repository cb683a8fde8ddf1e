"""What a published image adds to a root: the link of its number, and what starts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envbuilder.errors import UsageError
from envbuilder.render.modulefile import render_image_start
from envbuilder.root.environments import check_not_image
from envbuilder.target_tools.root import publish
from envbuilder.target_tools.root.layout import Home

ID = "0123456789ab"
# Says how it was called, as the real one would start it.
ECHO = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


def start(folder: Path, program: str, *words: str, tools: str = "tools") -> tuple[int, list[str]]:
    """Start a program of an image; return its exit code and the words that Apptainer got."""
    (folder / "bin").mkdir(exist_ok=True)
    file = folder / "start"
    text = render_image_start(folder / "my image.sif", "run", ("--bind", "/a b:/c", "--nv"))
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    link = folder / "bin" / program
    link.symlink_to("../start")
    env = {"PATH": f"{folder / tools}:/usr/bin:/bin"}
    done = subprocess.run([link, *words], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("builder", ["apptainer", "singularity"])
def test_a_program_starts_the_image_with_its_name(tmp_path: Path, builder: str) -> None:
    tool = tmp_path / "tools" / builder
    tool.parent.mkdir()
    tool.write_text(ECHO)
    tool.chmod(0o755)
    image = str(tmp_path / "my image.sif")
    own = ["run", "--bind", "/a b:/c", "--nv", image, "python3", "-c", "a b"]
    assert start(tmp_path, "python3", "-c", "a b") == (0, own)


def test_without_apptainer_it_ends(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("sh", "echo"):
        (tmp_path / "empty" / name).symlink_to(f"/bin/{name}")
    text = render_image_start(tmp_path / "x.sif", "exec", ())
    (tmp_path / "start").write_text(text, encoding="utf-8")
    env = {"PATH": str(tmp_path / "empty")}
    words = ["/bin/sh", tmp_path / "start"]
    assert subprocess.run(words, env=env, capture_output=True, check=False).returncode == 127


def test_a_withdrawn_number_has_no_image(tmp_path: Path) -> None:
    home = Home(tmp_path, "allreduce")
    versions = [publish.reserve(home, f"{number}{ID[1:]}", "tcl") for number in (1, 2)]
    for version in versions:
        (home.prefix(version.id)).mkdir()
        image = home.prefix(version.id) / "x.sif"
        image.touch()
        (home.folder / f"{version.number}-x86_64.sif").symlink_to(f"{version.id}/x.sif")
    assert [path.name for path in home.images(2)] == ["2-x86_64.sif"]
    with pytest.raises(UsageError) as refused:
        check_not_image(home, versions[1])
    assert (refused.value.id, "2-x86_64.sif" in str(refused.value.problems)) == (
        "environment.is-image",
        True,
    )
    publish.withdraw(home, versions[1])
    assert (home.images(1), home.images(2)) == ((home.folder / "1-x86_64.sif",), ())
    check_not_image(home, versions[1])
