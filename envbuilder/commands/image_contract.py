"""An image on a host: what both must agree on, and how its ranks are started from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..doctor.system import mpi_on_path
from ..documents.site_choice import ChosenSite, choose_site, with_partition
from ..errors import UsageError
from ..host import Host
from ..images import check_contract, fitting
from ..launchers import LAUNCHERS, own_launcher
from ..launchers.srun import PMI
from ..model.host_contract import ContractRow, HostedMpi, HostOffer, ImageNeeds
from ..model.launch import Mpi
from ..model.module_names import stem, stems, version_part
from ..model.outcome import Info
from ..model.plan import Plan
from ..model.proofs import mpi_of
from ..model.site import Launcher, Snapshot
from ..render.image import bases
from ..root.environment_lock import read_lock
from ..root.environments import find
from .context import Context
from .image_contents import opened
from .site_contents import site_search, snapshot_of

# Of Singularity before it was called so the words are the same.
RUNNER = "apptainer"
# The components of CUDA, as a module or package of all of it and as its libraries alone.
_CUDA = ("cuda", "cudatoolkit")
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)*")


class HostedImage(NamedTuple):
    """An image, what it holds, where it is to run, and whether they fit."""

    file: str
    plan: Plan
    chosen: ChosenSite
    rows: tuple[ContractRow, ...]
    launcher: Launcher | None

    def program(self, words: tuple[str, ...], *, gpus: bool) -> tuple[str, ...]:
        """Return the words that start a program in a container of its own."""
        # What loads the modules of a host is the image's runscript.
        verb = "run" if self.plan.modules.loads else "exec"
        return (RUNNER, verb, *(("--nv",) if gpus else ()), self.file, *words)


def hosted_image(
    name: str, site: str | None, partition: str | None, context: Context
) -> HostedImage:
    """Read an image, look at a host, and compare them; runs nothing of the image.

    Raises UsageError, DriftError or MissingToolError as ``opened`` does.
    """
    with opened(name, _no_root, context) as found:
        home, version = find(found.root, found.environment)
        plan = read_lock(home, version).plan
        arch = found.image.arch if found.image else None
    search = site_search(context)
    chosen = with_partition(choose_site(site or search.from_environ or "local", search), partition)
    return hosted(name, plan, arch, chosen, context)


def _no_root() -> NoReturn:
    raise UsageError("an image is meant, and this is a name of an environment")


def hosted(
    name: str, plan: Plan, arch: str | None, chosen: ChosenSite, context: Context
) -> HostedImage:
    """Compare what an image holds with a site."""
    pin = mpi_of(plan)
    mpi = Mpi(pin.component, pin.version) if pin else None
    cuda = next((each.version for each in plan.pins if each.component in _CUDA), None)
    host = host_offer(chosen, context)
    rows = check_contract(ImageNeeds(arch, mpi, cuda), host, bases().host_mpi)
    launcher = host.launcher
    if mpi and launcher is None:
        started = fitting(mpi, host, bases().host_mpi)
        launcher = own_launcher(started.mpi.component) if started else None
    return HostedImage(str(Path(name)), plan, chosen, rows, launcher)


def host_offer(chosen: ChosenSite, context: Context) -> HostOffer:
    """Return what a site has that images must fit."""
    site, own = chosen.site, chosen.facts
    known = context.knowledge.components
    kinds = frozenset(name for name, each in known.items() if "mpi" in each.fulfils)
    launcher = site.launcher
    by_scheduler = launcher and LAUNCHERS[launcher.kind].TRAITS.scheduler is not None
    holds = snapshot_of(chosen, context, kinds)[0]
    if site.snapshot is None or chosen.path is None:
        # It is this machine: what counts is what the shell runs, a virtualenv's too.
        found = mpi_on_path(Host(context.environ), kinds)
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
        own = named.get(stem(module.name))
        by_name = {own: version_part(module.name)} if own else {}
        for component, version in (module.provides or by_name).items():
            if component in kinds and (numbers := _NUMBERS.match(version)):
                yield HostedMpi(Mpi(component, numbers[0]), f"module {module.name}")


def fits_at(value: Info, site: str, context: Context) -> Info:
    """Return what is known of an image with whether it fits a site."""
    chosen = site_search(context).named(site, "asked for")
    arch = value.image.arch if value.image else None
    found = hosted(value.environment, value.lock.plan, arch, chosen, context)
    return value.model_copy(update={"contract": found.rows})


def check_fits(hosted: HostedImage) -> None:
    """Raise UsageError where image and host do not fit: ranks would not find one another."""
    broken = [each for each in hosted.rows if each.fit == "broken"]
    if not broken:
        return
    first, *_ = broken
    raise UsageError(
        "\n".join(
            [f"{hosted.file} does not fit {hosted.chosen.site.name}:"]
            + [f"  {row.subject}: {row.image}; there: {row.host}: {row.why}" for row in broken]
        ),
        "load the MPI that fits, or name another --site"
        if first.subject == "mpi"
        else "envbuild info IMAGE --site NAME shows all that the two must agree on",
    )
