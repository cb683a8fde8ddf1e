"""``envbuild image`` that goes wrong, with a real Apptainer: no image is left, a log is.

What is refused before anything is built: tests/cli/test_cli_image.py. Ranks that do not talk:
test_image.py. All of it takes minutes.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Done, Envbuild, run
from place_tools import small_disk
from registry_tools import needed

from tests.users import NUMBERS, Users, make_users

pytestmark = [pytest.mark.long]

# The log of a failed build is read in the namespace that the disk is in.
QUICK_WORDS = [f"{name}={value}" for name, value in QUICK.items()]
SHOW = 'out=$1; shift; "$@"; code=$?; ls -A "$out" >&2; exit $code'
# Its Python runs this first, in virtualenvs too; the packed image has a file for a name.
NO_RANKS_WHEN_PACKED = """
import os
if "PMI_RANK" in os.environ and os.environ.get("APPTAINER_CONTAINER", "").endswith(".sif"):
    os._exit(0)
"""


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed("apptainer")
    return debian_base(tmp_path_factory)


def changed(debian: Path, folder: Path) -> Path:
    """Return a copy of a base whose files are links: one is changed by another in its place."""
    assert run(["cp", "-al", str(debian), str(folder)]).code == 0
    return folder


def left(output: Path) -> list[str]:
    return sorted(each.name for each in output.iterdir() if each.suffix != ".log")


def test_post_that_fails(envbuild: Envbuild, debian: Path, tmp_path: Path) -> None:
    base, output = changed(debian, tmp_path / "base"), tmp_path / "output"
    shutil.rmtree(base / "usr/lib/python3.11/venv")
    done = envbuild("image", "allreduce", "--base", base, "--output", output, timeout=SECONDS)
    assert done.code == 5, done.text
    assert "No module named venv" in done.err
    [log] = output.glob("*.log")
    assert f"complete log: {log}" in done.err
    assert left(output) == []


def test_test_of_the_packed_image_that_fails(
    envbuild: Envbuild, debian: Path, tmp_path: Path
) -> None:
    base, output = changed(debian, tmp_path / "base"), tmp_path / "output"
    custom = base / "usr/lib/python3.11/sitecustomize.py"
    custom.unlink(missing_ok=True)
    custom.write_text(NO_RANKS_WHEN_PACKED)
    words = ("image", "allreduce", "--base", base, "--output", output)
    done = envbuild(*words, env=QUICK, timeout=SECONDS)
    assert done.code == 6, done.text
    assert "[3/3] test the packed image: FAILED" in done.err
    assert "none of 2 reported" in done.err
    assert left(output) == []


def test_a_full_disk(envbuild: Envbuild, debian: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    through = [*small_disk(output, 200 * 1024), "bash", "-c", SHOW, "show", str(output)]
    words = ("image", "allreduce", "--base", debian, "--output", output)
    done = envbuild(*words, timeout=SECONDS, through=through)
    assert done.code == 5, done.text
    assert "no space left on device" in done.err.lower()
    # All that is on the disk.
    assert done.err.splitlines()[-1].endswith("-x86_64.log"), done.err
    assert done.err.splitlines()[-2].startswith("hint: no image "), done.err


@pytest.fixture
def users() -> Iterator[Users]:
    yield from make_users()


def test_a_user_without_subordinate_ids(debian: Path, users: Users, tmp_path: Path) -> None:
    """A base of root's cannot be copied with its owners; an archive of it is the user's own."""
    home = users.folder / "home" / "ann"

    def image(base: Path | str) -> Done:
        words = [sys.executable, "-m", "envbuilder", "image", "allreduce", "--base", base]
        with users.start("ann", "env", *QUICK_WORDS, *words, "--output", "images") as running:
            out, err = running.communicate(timeout=SECONDS)
        return Done(running.returncode, out, err)

    for closed in (str(debian), f"oci:{debian}"):
        unread = image(closed)
        assert unread.code == 2, unread.text
        assert str(debian) in unread.err
    base = users.folder / "debian"
    assert run(["cp", "-a", debian, base]).code == 0
    refused = image(base)
    assert refused.code == 2, refused.text
    assert "/etc/subuid" in refused.err
    assert not (home / "images").exists()
    archive = home / "debian.tar"
    assert run(["tar", "-C", debian, "--exclude=./dev/*", "-cf", archive, "."]).code == 0
    os.chown(archive, NUMBERS["ann"], NUMBERS["ann"])
    done = image(archive.name)
    assert done.code == 0, done.text
    assert done.out.endswith("; the packed image was tested\n")
    assert [each.rpartition(".")[2] for each in left(home / "images")] == ["evidence", "sif"]
