"""Whether an image and a host fit, before a job of many nodes finds out.

In the hybrid model the host's launcher starts a container for each rank, and the MPI inside talks
to it. Where that launcher is of another MPI nothing fails: each rank is rank 0 of 1, or waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..knowledge.ranges import series
from ..model.host_contract import ContractRow, HostedMpi, HostMpi, HostOffer, ImageNeeds
from ..model.launch import Mpi

# CUDA's releases are compatible by these; the driver says up to which it runs programs.
_CUDA_SERIES = 2
# From this release on a driver runs programs of later minor ones: docs.nvidia.com/deploy/
# cuda-compatibility, "Minor Version Compatibility".
_MINOR_SINCE = 11


def check_contract(
    needs: ImageNeeds, host: HostOffer, known: Mapping[str, HostMpi]
) -> tuple[ContractRow, ...]:
    """Return what image and host must agree on, each with whether they do. *known*: by MPI."""
    return tuple(_rows(needs, host, known))


def _rows(
    needs: ImageNeeds, host: HostOffer, known: Mapping[str, HostMpi]
) -> Iterator[ContractRow]:
    fits = needs.arch in host.arches
    yield ContractRow(
        subject="architecture",
        image=needs.arch or "an unknown one",
        host=", ".join(host.arches),
        fit="fits" if fits else "broken",
        why=None if fits else f"its programs do not run on {host.name}",
    )
    if needs.mpi and host.speaks is not None:
        yield _pmi(needs.mpi, host, host.speaks)
    elif needs.mpi:
        yield _mpi(needs.mpi, host, known)
    if needs.cuda or needs.gpus:
        yield _cuda(needs.cuda, host)


def _pmi(mpi: Mpi, host: HostOffer, speaks: Mapping[str, str]) -> ContractRow:
    """Return the row of a scheduler's own launcher: it has no MPI, and speaks PMI with one."""
    wanted = speaks.get(mpi.component)
    stated = (
        next((w for w in host.launcher.command if w.startswith("--mpi=")), None)
        if (host.launcher)
        else None
    )
    offered = (stated.partition("=")[2],) if stated else host.pmi
    said = f"{mpi.component} {mpi.version}"
    row = ContractRow(
        subject="pmi",
        image=f"{wanted}, of {said}" if wanted else said,
        host=", ".join(offered) if offered else "not stated",
        fit="unknown",
        why="state facts: {pmi: [...]} in the site file, as srun --mpi=list reports",
    )
    if wanted is None or not offered:
        return row
    # pmix_v4 is a release of pmix.
    if any(each == wanted or each.startswith(f"{wanted}_") for each in offered):
        return row.model_copy(update={"fit": "fits", "why": None})
    why = "each rank would be rank 0 of 1: its MPI does not support the interface of the launcher"
    return row.model_copy(update={"fit": "broken", "why": why})


def fitting(mpi: Mpi, host: HostOffer, known: Mapping[str, HostMpi]) -> HostedMpi | None:
    """Return the host's MPI that starts ranks of an image's, the newest; None: it has none."""
    starts = known[mpi.component].starts if mpi.component in known else {mpi.component: 1}

    def suits(each: HostedMpi) -> bool:
        numbers = starts.get(each.mpi.component)
        if numbers is None:
            return False
        return not numbers or series(each.mpi.version, numbers) == series(mpi.version, numbers)

    # The image's own kind first.
    found = [each for each in host.mpis if suits(each)]
    return max(found, key=lambda each: _order(each, mpi), default=None)


def _order(each: HostedMpi, mpi: Mpi) -> tuple[bool, tuple[int, ...]]:
    numbers = each.mpi.version.replace("-", ".").split(".")
    return each.mpi.component == mpi.component, tuple(int(n) for n in numbers if n.isdigit())


def _mpi(mpi: Mpi, host: HostOffer, known: Mapping[str, HostMpi]) -> ContractRow:
    called = known[mpi.component].called if mpi.component in known else mpi.component
    found = fitting(mpi, host, known)
    there = (found,) if found else host.mpis
    had = ", ".join(f"{each.mpi.component} {each.mpi.version} ({each.locator})" for each in there)
    by = called.format(major=mpi.series)
    return ContractRow(
        subject="mpi",
        image=f"{mpi.component} {mpi.version}",
        host=had[:400] or "none",
        fit="fits" if found else "broken",
        why=None if found else f"without {by} the ranks do not find each other",
    )


def _cuda(cuda: str | None, host: HostOffer) -> ContractRow:
    driver = host.driver_cuda
    row = ContractRow(
        subject="cuda",
        image=f"CUDA {cuda or 'of an unknown release'}",
        host=f"a driver for CUDA {driver}" if driver else "not stated",
        fit="unknown",
        why="state facts: {driver-cuda: ...} in the site file, as nvidia-smi reports",
    )
    if driver is None:
        return row
    if cuda is None:
        reason = "its packages bring a CUDA whose release the lock does not state"
        return row.model_copy(update={"why": reason})
    wanted, there = _numbers(cuda), _numbers(driver)
    if wanted <= there:
        return row.model_copy(update={"fit": "fits", "why": None})
    if wanted[0] == there[0] >= _MINOR_SINCE:
        why = "within a major release (11 or later), only code compiled for its GPUs runs"
        return row.model_copy(update={"fit": "unknown", "why": why})
    why = "the driver is too old; NVIDIA's cuda-compat in the image helps on data center GPUs"
    return row.model_copy(update={"fit": "broken", "why": why})


def _numbers(version: str) -> list[int]:
    return [int(each) for each in version.split(".")[:_CUDA_SERIES] if each.isdigit()]
