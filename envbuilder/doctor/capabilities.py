"""What the machine can do now, concluded from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..machine.item_values import Capability, Fact, Item, Section
from ..target_tools.messages import one_line

# Architectures for which the index has an MPI as a wheel.
_MPI_WHEELS = ("x86_64", "aarch64")


_Verdict = tuple[bool, str]
"""Whether it can be done, and why."""


def abilities(sections: Sequence[Section]) -> tuple[Capability, ...]:
    """Return what can be built, proved and published here, each with its reason."""
    items = {item.id: item for section in sections for item in section.items}
    return tuple(
        Capability(id=ability, title=title, can=can, why=one_line(why))
        for ability, title, (can, why) in (
            ("virtualenv", "build environments with backend virtualenv", _virtualenv(items)),
            ("conda", "use conda packages (backend conda)", _conda(items)),
            ("container", "build container images (envbuild image)", _container(items)),
            ("module", "load environments as modules", _module(items)),
            ("smoke", "start ranks and test their communication (smoke test)", _smoke(items)),
            ("jobs", "run jobs on several nodes", _jobs(items)),
        )
    )


Items = Mapping[str, Item]


def _there(items: Items, *ids: str) -> Item | None:
    """Return the first of these items that is in order."""
    return next((items[i] for i in ids if i in items and items[i].status == "ok"), None)


def _fact(items: Items, item_id: str, key: str) -> Fact | None:
    return items[item_id].facts.get(key) if item_id in items else None


def _virtualenv(items: Items) -> _Verdict:
    arch = _fact(items, "machine.arch", "arch")
    able = [
        item.facts
        for item_id, item in items.items()
        if item_id.startswith("pythons.")
        and item.facts.get("can-make-venv") is True
        and item.facts.get("too-old") is False
        and item.facts.get("arch") == arch
    ]
    if not able:
        return False, "no Python on this machine can make a virtualenv"
    if not _there(items, "compilers.bash"):
        return False, "build.sh needs bash, which is missing"
    return True, f"Python {able[0]['version']} at {able[0]['path']}"


def _conda(items: Items) -> _Verdict:
    rattler = _there(items, "conda.py-rattler")
    if rattler:
        return True, f"{rattler.title} {rattler.found}"
    tool = _there(items, "conda.micromamba", "conda.mamba", "conda.conda")
    lacking = "envbuild needs py-rattler to read channels: pip install 'envbuild[conda]'"
    return False, f"{tool.title} links packages, but {lacking}" if tool else lacking


def _container(items: Items) -> _Verdict:
    # As envbuilder/images/apptainer.py looks for what builds.
    builder = _there(items, "containers.apptainer", "containers.singularity")
    root = _fact(items, "machine.user", "root") is True
    if builder and (root or _fact(items, "containers.userns", "usable") is True):
        return True, f"{builder.title} {builder.found}"
    if builder:
        return False, f"{builder.title} is available, but user namespaces are not"
    other = _there(items, "containers.podman", "containers.docker")
    lacking = "neither apptainer nor singularity works"
    if other:
        return False, f"{lacking}, and envbuild does not build with {other.title}"
    return False, lacking


def _module(items: Items) -> _Verdict:
    system = _there(items, "modules.system")
    if system and system.facts.get("init"):
        return True, system.found
    return False, "no module system: use 'source PREFIX/bin/activate' instead"


def _smoke(items: Items) -> _Verdict:
    launcher = _there(items, "mpi.mpiexec", "mpi.mpirun")
    arch = _fact(items, "machine.arch", "arch")
    if launcher:
        return True, f"{launcher.title}: {launcher.found}"
    if arch in _MPI_WHEELS and _fact(items, "machine.glibc", "version"):
        return True, "with the MPI wheel of the recipe allreduce"
    return False, f"no working MPI on PATH, and no MPI wheel for {arch}"


def _jobs(items: Items) -> _Verdict:
    scheduler = _there(items, "scheduler")
    if scheduler is None:
        return False, "no scheduler: ranks run only on this machine"
    return True, scheduler.found
