"""An image on a host: what both must agree on, and how its ranks are started from outside."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple, NoReturn

from ..documents.site_choice import ChosenSite, choose_site, with_partition
from ..errors import DriftError, UsageError
from ..images.contract import check_contract, fitting
from ..images.host_mpi import FOLDER as HOST_LIBRARIES
from ..images.host_mpi import HostMpiFiles, HostSearch, ImageMpi, replace_mpi, wanted_files
from ..images.sif import read_header
from ..images.system import unpack_system
from ..launching.launchers import LAUNCHERS, own_launcher
from ..launching.launchers.srun import PMI
from ..machine.host import LocalMachine
from ..machine.modules.names import provided_by_name, stems
from ..machine.system import mpi_on_path
from ..model.base_image import BIND_UNFIT, Bind
from ..model.evidence import Evidence, newest_passed
from ..model.host_contract import ContractRow, HostedMpi, HostOffer, ImageNeeds
from ..model.launch import Mpi
from ..model.outcome import Info
from ..model.plan import Lock, Plan, mpi_of
from ..model.site import SiteLauncher, Snapshot
from ..record import read_all, read_beside
from ..render.container import FOLDER, variables
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
from .image_binds import parse_binds
from .image_contents import OpenedRoot, opened
from .launch_requests import LaunchFacts, facts_there
from .site_contents import site_search, snapshot_of

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


# Of Singularity before it was called so the words are the same.
RUNNER = "apptainer"
# The components of CUDA, as a module or package of all of it and as its libraries alone.
_CUDA = ("cuda", "cudatoolkit")
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)*")


class HostedImage(NamedTuple):
    """An image, what it holds, where it is to run, and whether they fit.

    ``binds``: the folders of the site's modules that a container takes from the host; ``mpi``: the
    files of the host's MPI, in place of the image's own. ``mpi_files``: as which of these, in the
    container, its ranks load their MPI.
    """

    file: str
    lock: Lock
    chosen: ChosenSite
    rows: tuple[ContractRow, ...]
    launcher: SiteLauncher | None
    binds: tuple[Bind, ...] = ()
    mpi: tuple[Bind, ...] = ()
    mpi_files: tuple[PurePosixPath, ...] = ()

    @property
    def plan(self) -> Plan:
        return self.lock.plan

    @property
    def prefix(self) -> Path:
        """Where the environment is in the image."""
        return Home(FOLDER, self.plan.recipe).prefix(self.lock.id())

    def container(self, *, gpus: bool) -> tuple[str, ...]:
        """Return the words that start a container, which the image and a program are to follow."""
        # What loads the modules of a host is the image's runscript.
        verb = "run" if self.plan.modules.loads else "exec"
        binds = ",".join(map(str, (*self.binds, *self.mpi)))
        return (
            *(RUNNER, verb),
            *(("--bind", binds) if binds else ()),
            *(("--env", f"LD_LIBRARY_PATH={self._library_path()}") if self.mpi else ()),
            *(("--nv",) if gpus else ()),
        )

    def program(self, words: tuple[str, ...], *, gpus: bool) -> tuple[str, ...]:
        """Return the words that start a program in a container of its own."""
        return (*self.container(gpus=gpus), self.file, *words)

    def facts(self, context: Context) -> LaunchFacts:
        """Return what every launch line of the image is made from, at its host."""
        plan = self.plan
        if self.launcher:
            plan = plan.model_copy(update={"launcher": self.launcher})
        # What the image holds has no part in how its MPI was built on the site.
        return replace(facts_there(plan, self.chosen, context), ucx=lambda: False)

    def _library_path(self) -> str:
        own = variables(self.plan, self.prefix).get("LD_LIBRARY_PATH")
        return ":".join(filter(None, (str(HOST_LIBRARIES), own)))


def hosted_image(
    name: str,
    site: str | None,
    partition: str | None,
    context: Context,
    *,
    host_mpi: bool = False,
    binds: tuple[str, ...] = (),
) -> HostedImage:
    """Read an image, look at a host, and compare them; runs nothing of the image.

    *host_mpi*: this machine's MPI takes the place of the image's. *binds*: as ``--bind`` has them;
    none: the folders that the image names, as they are here. Raises UsageError, DriftError or
    MissingToolError as ``opened`` does.
    """
    with opened(name, _no_root, context) as found:
        home, version = find(found.root, found.environment)
        lock = read_lock(home, version)
        facts = found.image
        if facts and facts.format == "oci":
            raise UsageError(
                "image.oci-not-runnable",
                f"{name} is an OCI layout, which Apptainer cannot start on a host",
                "run apptainer build NAME.sif oci:DIR to make a SIF file",
            )
        own = loaded_mpi(found)
        files = host_mpi_files(found, context.path(name), context) if host_mpi else None
    search = site_search(context)
    chosen = with_partition(choose_site(site or search.from_environ or "local", search), partition)
    image = hosted(name, lock, facts.arch if facts else None, chosen, context)
    bound = parse_binds(binds or (facts.binds if facts else ()), context)
    image = image._replace(binds=bound, mpi_files=(own,) if own else ())
    if files is None:
        return image
    if image.plan.modules.loads:
        raise UsageError(
            "image.uses-host-mpi",
            f"{image.file} already uses the host's MPI, through the site's modules",
            "leave --host-mpi out",
        )
    return image._replace(rows=(*image.rows, *files.rows), mpi=files.binds, mpi_files=files.places)


def _no_root() -> NoReturn:
    raise UsageError(
        "image.expected", "this is the name of an environment, but an image is required"
    )


def hosted(
    name: str, lock: Lock, arch: str | None, chosen: ChosenSite, context: Context
) -> HostedImage:
    """Compare what an image holds with a site."""
    plan = lock.plan
    pin = mpi_of(plan)
    mpi = Mpi(pin.component, pin.version) if pin else None
    cuda = next((each.version for each in plan.pins if each.component in _CUDA), None)
    host = host_offer(chosen, context)
    gpus = LaunchFacts(plan, context.knowledge.components).gpus
    rows = check_contract(ImageNeeds(arch, mpi, cuda, gpus), host, bases().host_mpi)
    launcher = host.launcher
    if mpi and launcher is None:
        started = fitting(mpi, host, bases().host_mpi)
        launcher = own_launcher(started.mpi.component) if started else None
    return HostedImage(str(Path(name)), lock, chosen, rows, launcher)


def host_offer(chosen: ChosenSite, context: Context) -> HostOffer:
    """Return what a site has that images must fit."""
    site, own = chosen.site, chosen.facts
    known = context.knowledge.components
    kinds = frozenset(name for name, each in known.items() if "mpi" in each.fulfils)
    launcher = site.launcher
    by_scheduler = launcher and LAUNCHERS[launcher.kind].TRAITS.job.scheduler is not None
    holds = snapshot_of(chosen, context, kinds)[0]
    if site.snapshot is None or chosen.path is None:
        # It is this machine: what counts is what the shell runs, a virtualenv's too.
        found = mpi_on_path(kinds, LocalMachine(context.environ))
        holds = holds.model_copy(update={"system": (found,) if found else ()})
    return HostOffer(
        name=site.name,
        arches=(chosen.partition.arch,) if chosen.partition else site.arch,
        mpis=tuple(_mpis(holds, kinds, stems(known))),
        launcher=launcher if by_scheduler else None,
        speaks=PMI if by_scheduler else None,
        pmi=own.pmi if own.pmi is not None else site.facts.pmi,
        driver_cuda=own.driver_cuda or site.facts.driver_cuda,
    )


def _mpis(holds: Snapshot, kinds: frozenset[str], named: dict[str, str]) -> Iterator[HostedMpi]:
    for each in holds.system:
        if each.component in kinds:
            yield HostedMpi(Mpi(each.component, each.version), each.locator)
    for module in holds.modules:
        provided = module.provides or provided_by_name(module.name, named)
        for component, version in provided.items():
            if component in kinds and (numbers := _NUMBERS.match(version)):
                yield HostedMpi(Mpi(component, numbers[0]), f"module {module.name}")


def fits_at(value: Info, site: str, context: Context) -> Info:
    """Return what is known of an image with whether it fits a site."""
    chosen = site_search(context).named(site, "asked for")
    arch = value.image.arch if value.image else None
    found = hosted(value.environment, value.lock, arch, chosen, context)
    proofs = _proved_at(chosen.site.name, value, context) if value.image else ()
    return value.model_copy(update={"contract": found.rows, "on_site": proofs})


def records_beside(image: Path) -> Path:
    """Return the folder of the records that are kept beside an image."""
    return image.with_name(f"{image.name.removesuffix('.sif')}.evidence")


def _proved_at(site: str, value: Info, context: Context) -> tuple[Evidence, ...]:
    """Return what ``smoke IMAGE`` recorded of this image at a site."""
    folder = records_beside(context.path(value.image.file)) if value.image else None
    if folder is None or not folder.is_dir():
        return ()
    found = read_beside(folder, value.lock, site).evidence
    return tuple(each for each in found if each not in value.evidence)


def check_fits(hosted: HostedImage) -> None:
    """Raise UsageError where image and host do not fit: ranks would not find one another."""
    broken = [each for each in hosted.rows if each.fit == "broken"]
    if not broken:
        return
    first, *_ = broken
    raise UsageError(
        "image.host-mismatch",
        "\n".join(
            [f"{hosted.file} does not fit {hosted.chosen.site.name}:"]
            + [f"  {row.subject}: {row.image}; host: {row.host}: {row.why}" for row in broken]
        ),
        "load an MPI that fits, or use another --site"
        if first.subject == "mpi"
        else "envbuild info IMAGE --site NAME shows the whole comparison",
    )
