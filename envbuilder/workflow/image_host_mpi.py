"""The host's MPI that an image takes in place of its own: looked for on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..errors import DriftError, UsageError
from ..images import read_header, unpack_system
from ..images.host_mpi import HostMpiFiles, HostSearch, ImageMpi, replace_mpi, wanted_files
from ..machine.host import LocalMachine
from ..model.base_image import BIND_UNFIT
from ..model.evidence import newest_passed
from ..record import read_all
from ..render.container import FOLDER
from ..render.image import bases
from ..root.environment_lock import read_lock
from ..root.environments import find
from ..runtimes import RUNTIMES
from ..target_tools import manifest
from ..target_tools.elf import ElfError
from ..target_tools.files import is_below
from ..target_tools.proving.mpi_library import library_folders
from ..target_tools.root.layout import Home
from .context import Context
from .image_contents import OpenedRoot

# As the doctor looks for one.
_LAUNCHERS = ("mpirun", "mpiexec")
# What of a prefix is linked with an MPI: by packages, as its manifest names their files.
_LINKED = {"mpi4py", *(name for name, each in RUNTIMES.items() if each.TRAITS.is_component)}


def host_mpi_files(found: OpenedRoot, image: Path, context: Context) -> HostMpiFiles:
    """Say whether this machine's MPI can take the place of an image's, and by which files.

    *image*: its file or folder. Raises UsageError where nobody knows which MPI its ranks loaded, or
    where this machine has none; DriftError for a damaged image, MissingToolError.
    """
    library, users = loaded_mpi(found), _users(found)
    if library is None:
        raise UsageError(
            "image.no-mpi",
            "the ranks of its smoke test loaded no MPI, so the host's cannot replace one",
        )
    files = (library, *users)
    bad = [each for each in files if ".." in each.parts or not each.is_absolute()]
    if bad:
        raise DriftError(
            "image.unsafe-library-path",
            f"the evidence of {image} names an unsafe library path: {bad[0]}",
            "the file was not read",
        )
    known, host = bases().host_libraries, _search(LocalMachine(context.environ))
    with tempfile.TemporaryDirectory(prefix="envbuild-") as scratch:
        root = image
        if image.is_file():
            root = Path(scratch, "system")
            only = wanted_files(files, known)
            unpack_system(image, read_header(image), root, LocalMachine(context.environ), only)
        try:
            answer = replace_mpi(ImageMpi(root.resolve(), library, users), host, known)
        except (ElfError, OSError) as error:
            raise DriftError(
                "image.library-not-readable", f"cannot read {library} of {image}: {error}"
            ) from error
    unfit = [each for each in answer.binds if BIND_UNFIT.search(str(each.source))]
    if unfit:
        raise UsageError(
            "bind.reserved-character",
            f"{unfit[0].source}: Apptainer does not accept ',' or ':' in a path",
        )
    return answer


def loaded_mpi(found: OpenedRoot) -> PurePosixPath | None:
    """Return the MPI that the ranks of an image loaded as it was proved; where, in the image."""
    home, version = find(found.root, found.environment)
    # Not as in an image: where the MPI lies is no proof, and images of earlier releases state it.
    proofs = newest_passed(read_all(home, version, read_lock(home, version)).evidence)
    every = (each.path for proof in proofs for each in proof.result.libraries if each.kind == "mpi")
    return next(map(PurePosixPath, every), None)


def _users(found: OpenedRoot) -> tuple[PurePosixPath, ...]:
    """Return what in an image may be linked with an MPI."""
    home, version = find(found.root, found.environment)
    prefix = Home(FOLDER, home.name).prefix(version.id)
    recorded = manifest.read(home.manifest(version.id)) or {"files": {}}
    return tuple(
        PurePosixPath(prefix, name)
        for name in recorded["files"]
        if name.endswith(".so") and not _LINKED.isdisjoint(name.split("/"))
    )


def _search(host: LocalMachine) -> HostSearch:
    """Return where the MPI lies whose launcher a shell runs. Raises UsageError without one."""
    launcher = next(filter(None, map(host.which, _LAUNCHERS)), None)
    if launcher is None:
        raise UsageError(
            "host-mpi.not-found",
            "this machine has no MPI on PATH: neither mpirun nor mpiexec",
            "load the site's MPI first",
        )
    # A module sets it for what it brings.
    loaded = (Path(each) for each in host.environ.get("LD_LIBRARY_PATH", "").split(":") if each)
    tree = (each for each in loaded if is_below(str(each), str(Path(launcher).parent.parent)))
    folders = dict.fromkeys((*tree, *library_folders(Path(launcher))))
    files = (path.resolve() for folder in folders for path in sorted(folder.glob("libmpi*.so.*")))
    own = tuple(_folders(Path(launcher).with_name("ompi_info"), host))
    return HostSearch(tuple(dict.fromkeys(files)), own, host.environ)


def _folders(info: Path, host: LocalMachine) -> Iterator[Path]:
    """Yield where an Open MPI has its plug-ins and texts, as the ompi_info of it says."""
    words = ("--parsable", "--path", "pkglibdir", "--path", "pkgdatadir")
    for line in host.ask(str(info), *words).stdout.splitlines() if info.is_file() else ():
        path = Path(line.rpartition(":")[2])
        if line.startswith("path:") and path.is_dir():
            yield path
