"""Whether a host's MPI can take the place of an image's: small libraries, compiled for it.

Real ones, with their ranks: tests/integration/test_image_hybrid.py.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

from envbuilder.images.host_mpi import FOLDER, HostMpiFiles, HostSearch, ImageMpi, replace_mpi
from envbuilder.model.base_image import Bind
from envbuilder.model.host_contract import Fit
from envbuilder.render.image import bases

KNOWN = bases().host_libraries
INSIDE = "opt/env/lib"
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc makes the libraries")


def library(path: Path, code: str, *words: str | Path) -> Path:
    """Compile a library that names itself by its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    own = f"-Wl,-soname,{path.name}"
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", own, "-x", "c", "-", "-x", "none"]
    subprocess.run([*command, "-o", path, *words], input=code, text=True, check=True)
    return path


class Lab(NamedTuple):
    image: ImageMpi
    host: Path
    mpi: Path

    def asked(self, *candidates: Path, path: str = "") -> HostMpiFiles:
        """Ask with the host's own MPI, or others."""
        environ = {"LD_LIBRARY_PATH": path or str(self.host)}
        return replace_mpi(self.image, HostSearch(candidates or (self.mpi,), (), environ), KNOWN)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """An image whose program calls two functions of its MPI, and a third where that is there.

    The host's MPI has the two under another name, and stands on a library with plug-ins.
    """
    root, host = tmp_path_factory.mktemp("image"), tmp_path_factory.mktemp("host")
    calls = "int MPI_Init_thread(){return 0;} int MPI_Send(){return 0;}"
    own = library(root / INSIDE / "libmpi.so.12", f"{calls} int MPI_New(){{return 0;}}")
    weak = "int MPI_New() __attribute__((weak));"
    code = f"int MPI_Send(); {weak} int f(){{return MPI_Send() + MPI_New();}}"
    library(root / "opt/env/mpi4py/MPI.so", code, own)
    ucs = library(host / "libucs.so.0", "int ucs(){return 0;}")
    library(host / "ucx" / "libuct_ib.so.0", "int ib(){return 0;}")
    mpi = library(host / "libmpich.so.12", f"{calls} int ucs(); int g(){{return ucs();}}", ucs)
    users = (PurePosixPath("/opt/env/mpi4py/MPI.so"),)
    return Lab(ImageMpi(root, PurePosixPath(f"/{INSIDE}/libmpi.so.12"), users), host, mpi)


def fits(answer: HostMpiFiles) -> dict[str, Fit]:
    return {row.subject: row.fit for row in answer.rows}


def test_it_covers_the_image_s_own_and_brings_what_it_needs(lab: Lab) -> None:
    answer = lab.asked()
    assert fits(answer) == {"mpi library": "fits", "mpi symbols": "fits", "glibc": "fits"}
    own = lab.image.library
    assert answer.binds == (
        Bind(lab.mpi, own),
        Bind(lab.mpi, FOLDER / "libmpi.so.12"),
        Bind(lab.mpi, FOLDER / "libmpich.so.12"),
        Bind(lab.host / "libucs.so.0", FOLDER / "libucs.so.0"),
        Bind(lab.host / "ucx", FOLDER / "ucx"),
    )
    # A name of MPICH's ABI leads to it, whoever asks for it by which.
    assert answer.places == (own, FOLDER / "libmpi.so.12", FOLDER / "libmpich.so.12")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("libmpi.so.40", "int MPI_Init_thread(){return 0;} int MPI_Send(){return 0;}"),
        # For Fortran: of the interface, and no MPI by itself.
        ("libmpichfort.so.12", "int mpi_send_(){return 0;}"),
    ],
)
def test_another_interface_is_none(lab: Lab, tmp_path: Path, name: str, code: str) -> None:
    answer = lab.asked(library(tmp_path / name, code))
    (row,) = answer.rows
    assert (row.subject, row.fit, row.image, row.host) == (
        "mpi library",
        "broken",
        "libmpi.so.12",
        name,
    )
    assert answer.binds == ()


def test_what_is_no_library_is_passed_over(lab: Lab, tmp_path: Path) -> None:
    text = tmp_path / "libmpi.so.12"
    text.write_text("INPUT(libmpi.so.12)")
    assert lab.asked(text, tmp_path / "gone.so.12", lab.mpi).binds == lab.asked().binds


def test_an_older_one_lacks_what_is_called(lab: Lab, tmp_path: Path) -> None:
    answer = lab.asked(library(tmp_path / "libmpi.so.12", "int MPI_Init_thread(){return 0;}"))
    assert fits(answer)["mpi symbols"] == "broken"
    (row,) = (each for each in answer.rows if each.fit == "broken")
    assert "MPI_Send" in str(row.why)


@pytest.mark.parametrize("users", [(), ("/opt/env/gone.so",), ("/opt/env/text.so",)], ids=str)
def test_programs_that_cannot_be_read_decide_nothing(lab: Lab, users: tuple[str, ...]) -> None:
    (lab.image.root / "opt/env/text.so").write_text("no library")
    image = replace(lab.image, users=tuple(map(PurePosixPath, users)))
    answer = lab._replace(image=image).asked()
    assert fits(answer) == {"mpi library": "fits", "mpi symbols": "unknown", "glibc": "fits"}
    (row,) = (each for each in answer.rows if each.fit == "unknown")
    assert (users[0] if users else "manifest") in str(row.why)


def test_a_missing_symbol_is_broken_whatever_cannot_be_read(lab: Lab, tmp_path: Path) -> None:
    users = (*lab.image.users, PurePosixPath("/opt/env/gone.so"))
    asked = lab._replace(image=replace(lab.image, users=users))
    answer = asked.asked(library(tmp_path / "libmpi.so.12", "int MPI_Init_thread(){return 0;}"))
    assert fits(answer)["mpi symbols"] == "broken"


def versioned(path: Path, name: str, version: str) -> Path:
    script = path.parent / f"{path.name}.map"
    path.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"{version} {{ global: {name}; }};\n")
    return library(path, f"int {name}(){{return 0;}}", f"-Wl,--version-script={script}")


@pytest.mark.parametrize(("there", "fit"), [("2.34", "fits"), ("2.28", "broken")])
def test_the_c_library_stays_the_image_s(lab: Lab, tmp_path: Path, there: str, fit: Fit) -> None:
    libc = versioned(tmp_path / "libc.so.6", "own_c", "GLIBC_2.34")
    code = "int own_c(); int MPI_Init_thread(){return own_c();} int MPI_Send(){return 0;}"
    mpi = library(tmp_path / "libmpi.so.12", code, libc)
    # What the image's program needs of its system, where systems have it.
    image = tmp_path / "image"
    shutil.copytree(lab.image.root, image)
    versioned(image / "usr/lib/x86_64-linux-gnu/libc.so.6", "own_c", f"GLIBC_{there}")
    asked = ImageMpi(image, lab.image.library, lab.image.users)
    search = HostSearch((mpi,), (), {"LD_LIBRARY_PATH": str(tmp_path)})
    answer = replace_mpi(asked, search, KNOWN)
    assert fits(answer)["glibc"] == fit
    (row,) = (each for each in answer.rows if each.subject == "glibc")
    assert (row.image, row.host) == (f"GLIBC_{there}", "up to GLIBC_2.34")
    assert "libc.so.6" not in {each.target.name for each in answer.binds}


@pytest.mark.parametrize(
    ("there", "whose"),
    [("Z_1.2", "image"), ("Z_1.1", "host"), (None, "host")],
)
def test_what_programs_of_the_image_need_too_is_theirs_if_new_enough(
    lab: Lab, tmp_path: Path, there: str | None, whose: str
) -> None:
    libz = versioned(tmp_path / "libz.so.1", "inflate", "Z_1.2")
    code = "int inflate(); int MPI_Init_thread(){return inflate();} int MPI_Send(){return 0;}"
    mpi = library(tmp_path / "libmpi.so.12", code, libz)
    image = tmp_path / "image"
    shutil.copytree(lab.image.root, image)
    if there:
        versioned(image / "usr/lib64/libz.so.1.2", "inflate", there)
        (image / "usr/lib64/libz.so.1").symlink_to("libz.so.1.2")
    search = HostSearch((mpi,), (), {"LD_LIBRARY_PATH": str(tmp_path)})
    answer = replace_mpi(ImageMpi(image, lab.image.library, lab.image.users), search, KNOWN)
    bound = {each.target.name: each.source for each in answer.binds}
    assert bound.get("libz.so.1") == (libz if whose == "host" else None)
