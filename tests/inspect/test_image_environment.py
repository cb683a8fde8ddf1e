"""``validate IMAGE``: an environment in a SIF file or a sandbox, as it is in the image."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import zoo
from zoo import Made

from envbuilder.errors import DriftError, UsageError
from envbuilder.images.system import ImageEntry, check_listing, entries
from envbuilder.inspect.libraries import glibc_of
from envbuilder.model.validation import Validation
from envbuilder.target_tools.elf import read_library
from envbuilder.target_tools.files import real_in
from envbuilder.target_tools.ld_so import Search
from envbuilder.target_tools.manifest import look
from envbuilder.validate.command import validate
from envbuilder.validate.options import ProvingOptions, ValidateOptions
from envbuilder.workflow.context import Context
from tests.images.image_files import sif, squashfs

Look_ = Callable[..., Validation]


@pytest.fixture
def outside(context: Context) -> Context:
    """Return a world with the programs of this machine, and the usual search paths of a shell."""
    changed = copy.copy(context)
    more = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/nowhere", "PYTHONPATH": "/nowhere"}
    object.__setattr__(changed, "environ", {**context.environ, **more})
    return changed


@pytest.fixture
def system(first: Made, tmp_path: Path) -> Made:
    """Make a sandbox whose virtualenv and libraries are linked by paths of the image alone."""
    folder = tmp_path / "sandbox"
    made = zoo.copy(first, folder / "opt" / "venv")
    python = Path("/usr/bin") / f"python{zoo.SERIES}"
    (folder / "usr" / "bin").mkdir(parents=True)
    shutil.copy2(Path(os.path.realpath(first.prefix / "bin" / "python")), f"{folder}{python}")
    for name in ("python", "python3", python.name):
        (made.prefix / "bin" / name).unlink(missing_ok=True)
    (made.prefix / "bin" / "python").symlink_to("/etc/alternatives/python")
    (folder / "etc" / "alternatives").mkdir(parents=True)
    (folder / "etc" / "alternatives" / "python").symlink_to(python)
    text = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {zoo.SERIES}.0\n"
    made.write(made.prefix / "pyvenv.cfg", text)
    (folder / ".singularity.d").mkdir()
    (folder / "lib64").mkdir()
    search = Search(read_library(f"{folder}{python}"), {})
    base = Path(os.path.realpath(first.prefix / "bin" / "python"))
    landmark = folder / "usr" / "lib" / python.name / "os.py"
    made.write(landmark, "")
    for each in (base, *made.packages.rglob("*.so")):
        for name, library in search.tree(str(each)).items():
            shutil.copy2(library or "/nowhere", folder / "lib64" / name)
    return made


def folder_of(system: Made) -> Path:
    return system.prefix.parent.parent


def as_sif(folder: Path) -> Path:
    file = folder.parent / "image.sif"
    return sif(file, squashfs(folder, folder.parent / "image.squashfs"))


def test_a_healthy_one(system: Made, outside: Context) -> None:
    folder = folder_of(system)
    before = look(folder)
    image = as_sif(folder)
    for name in (folder, image):
        value = validate(str(name), None, outside, ValidateOptions(verify=True))
        assert value.findings == ()
        assert (value.path, value.kind) == (f"{name}:/opt/venv", "virtualenv")
        assert value.arch == os.uname().machine
    assert look(folder) == before


def test_what_is_found_is_named_by_its_path_in_the_image(system: Made, outside: Context) -> None:
    (system.packages / "yaml" / "loader.py").unlink()
    system.write(system.prefix / "bin" / "tool", "#!/nowhere/bin/python\n")
    # This machine has it, and the image does not.
    (folder_of(system) / "lib64" / "libc.so.6").unlink()
    value = validate(str(as_sif(folder_of(system))), None, outside)
    assert {each.id for each in value.findings} == {
        *("package.gone", "python.moved", "library.missing", "python.library-missing")
    }
    for each in value.findings:
        for place in each.evidence:
            assert not place.file.startswith("/tmp"), place


def test_a_library_is_found_where_the_image_has_it(
    system: Made, outside: Context, need: Callable[[str], str]
) -> None:
    """Its RPATH and the links on the way are the image's, and never lead to this machine."""
    need("gcc")
    folder = folder_of(system)
    library = zoo.compile_c(folder / "sw" / "libown.so.1.2", soname="libown.so.1")
    (folder / "sw" / "libown.so.1").symlink_to("/sw/libown.so.1.2")
    target = system.packages / f"tool{zoo.SUFFIX}"
    zoo.compile_c(target, "", str(library), "-Wl,-rpath,/sw")
    assert validate(str(folder), None, outside).findings == ()
    library.unlink()
    (found,) = validate(str(folder), None, outside).findings
    assert found.id == "library.missing"
    # A link that leads out leads nowhere.
    (folder / "sw" / "libown.so.1").unlink()
    there = zoo.compile_c(folder.parent / "libown.so.1", soname="libown.so.1")
    (folder / "sw" / "libown.so.1").symlink_to(f"../../{there.name}")
    assert [each.id for each in validate(str(folder), None, outside).findings] == [
        "library.missing"
    ]


def test_the_glibc_is_the_image_s(system: Made) -> None:
    root = str(folder_of(system))
    program = read_library(f"{root}/usr/bin/python{zoo.SERIES}")
    assert glibc_of(root, program) == glibc_of("", program)
    banner = b"GNU C Library (made up) stable release version 9.87.\n"
    library = Path(root, "lib64", "libc.so.6")
    data = library.read_bytes()
    library.unlink()
    library.write_bytes(data.replace(b"GNU C Library ", b"GNU C Nothing ") + banner)
    assert glibc_of(root, program) == "9.87"


def test_several_are_named(system: Made, outside: Context) -> None:
    folder = folder_of(system)
    shutil.copytree(system.prefix, folder / "srv" / "other", symlinks=True)
    with pytest.raises(UsageError, match="/opt/venv, /srv/other") as caught:
        validate(str(folder), None, outside)
    assert caught.value.id == "image.several-environments"
    other = validate(str(folder), None, outside, ValidateOptions(inside="/srv/other"))
    assert other.path.endswith(":/srv/other")
    with pytest.raises(UsageError) as caught:
        validate(str(folder), None, outside, ValidateOptions(inside="srv/other"))
    assert caught.value.id == "image.path-not-absolute"


def test_what_an_image_is_not_asked(system: Made, outside: Context, tmp_path: Path) -> None:
    folder = folder_of(system)
    with pytest.raises(UsageError) as caught:
        validate(str(folder), None, outside, ValidateOptions(proving=ProvingOptions(run=True)))
    assert caught.value.id == "option.not-for-image"
    text = tmp_path / "text"
    text.write_text("no image\n")
    with pytest.raises(UsageError) as caught:
        validate(str(text), None, outside)
    assert caught.value.id == "environment.not-python"
    image = as_sif(folder)
    image.write_bytes(image.read_bytes()[:-9000])
    with pytest.raises(DriftError):
        validate(str(image), None, outside)


LISTED = {
    "a bomb": "-rw-r--r-- root/root 999999999999999 2020-01-01 00:00 squashfs-root/a",
    "out of it": "-rw-r--r-- root/root 1 2020-01-01 00:00 squashfs-root/../../a",
    "below a link": (
        "lrwxrwxrwx root/root 1 2020-01-01 00:00 squashfs-root/a -> /etc\n"
        "-rw-r--r-- root/root 1 2020-01-01 00:00 squashfs-root/a/b"
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_bombs_are_not_unpacked(name: str, tmp_path: Path) -> None:
    with pytest.raises(DriftError) as caught:
        check_listing(tmp_path / "image.sif", entries(LISTED[name]))
    assert caught.value.id == "image.unsafe-contents"


def test_a_listing_is_read() -> None:
    text = (
        "drwxr-xr-x root/root                37 2020-01-01 00:00 squashfs-root\n"
        "-rwsr-xr-x 1000/1000             12345 2020-01-01 00:00 squashfs-root/a b\n"
        "crw-rw-rw- root/root            1,   3 2020-01-01 00:00 squashfs-root/null\n"
    )
    assert list(entries(text)) == [
        ImageEntry("d", 37, "/"),
        ImageEntry("-", 12345, "/a b"),
        ImageEntry("c", 0, "/null"),
    ]


LINKS: Mapping[str, str] = {"a": "/b", "b": "c", "up": "../../../d", "loop": "loop", "c": "e/../f"}


@pytest.mark.parametrize(
    ("path", "real"), [("/a", "/f"), ("/up/x", "/d/x"), ("/../../b", "/f"), ("/n/./m/", "/n/m")]
)
def test_links_stay_in_a_system(path: str, real: str, tmp_path: Path) -> None:
    for name, target in LINKS.items():
        (tmp_path / name).symlink_to(target)
    assert real_in(str(tmp_path), path) == f"{tmp_path}{real}"
    with pytest.raises(OSError, match="/loop/x"):
        real_in(str(tmp_path), "/loop/x")
