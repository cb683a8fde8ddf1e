"""What an image and its host must agree on."""

from __future__ import annotations

import pytest

from envbuilder.images.contract import check_contract, fitting
from envbuilder.launching.launchers.srun import PMI
from envbuilder.model.host_contract import Fit, HostedMpi, HostOffer, ImageNeeds
from envbuilder.model.launch import Mpi
from envbuilder.model.site import SiteLauncher
from envbuilder.render.image import bases

KNOWN = bases().host_mpi


def offer(*mpis: str, **more: object) -> HostOffer:
    """A host of x86_64; of each MPI ``openmpi 4.1.4``."""
    there = (HostedMpi(Mpi(*each.split()), f"/{each}") for each in mpis)
    return HostOffer("lab", ("x86_64",), tuple(there), **more)  # type: ignore[arg-type]


def fit(needs: ImageNeeds, host: HostOffer) -> dict[str, Fit]:
    return {row.subject: row.fit for row in check_contract(needs, host, KNOWN)}


@pytest.mark.parametrize(("arch", "verdict"), [("x86_64", "fits"), ("ppc64le", "broken")])
def test_the_architecture(arch: str, verdict: Fit) -> None:
    assert fit(ImageNeeds(arch, None, None), offer()) == {"architecture": verdict}
    assert fit(ImageNeeds(None, None, None), offer()) == {"architecture": "broken"}


@pytest.mark.parametrize(
    ("inside", "there", "by"),
    [
        ("openmpi 4.1.4", ["openmpi 4.0.3"], "openmpi 4.0.3"),
        ("openmpi 4.1.4", ["openmpi 5.0.1", "openmpi 4.1.1", "mpich 4.0"], "openmpi 4.1.1"),
        ("openmpi 4.1.4", ["openmpi 4.1.9", "openmpi 4.1.10"], "openmpi 4.1.10"),
        ("openmpi 5.0.3", ["openmpi 4.1.4"], None),
        ("openmpi 4.1.4", ["mpich 4.0", "spectrum-mpi 10.3"], None),
        ("openmpi 4.1.4", [], None),
        # Of MPICH's ABI; its own first.
        ("mpich 4.0.2", ["impi 2021.6.0"], "impi 2021.6.0"),
        ("mpich 4.0.2", ["impi 2021.6.0", "mpich 3.3.2"], "mpich 3.3.2"),
        ("mpich 4.0.2", ["mvapich2 2.3.7"], "mvapich2 2.3.7"),
        ("mpich 4.0.2", ["openmpi 4.1.4"], None),
        # Nothing is known of it but itself.
        ("spectrum-mpi 10.3.1", ["spectrum-mpi 10.2", "openmpi 10.1"], "spectrum-mpi 10.2"),
    ],
)
def test_the_mpi_of_the_host(inside: str, there: list[str], by: str | None) -> None:
    mpi, host = Mpi(*inside.split()), offer(*there)
    found = fitting(mpi, host, KNOWN)
    assert (found and f"{found.mpi.component} {found.mpi.version}") == by
    rows = check_contract(ImageNeeds("x86_64", mpi, None), host, KNOWN)
    assert rows[1].fit == ("fits" if by else "broken")
    assert by is None or rows[1].host == f"{by} (/{by})"


@pytest.mark.parametrize(
    ("mpi", "pmi", "command", "verdict"),
    [
        ("openmpi 4.1.4", ("pmi2", "pmix_v4"), ("srun",), "fits"),
        ("openmpi 4.1.4", ("pmi2",), ("srun",), "broken"),
        ("openmpi 4.1.4", None, ("srun",), "unknown"),
        ("openmpi 4.1.4", None, ("srun", "--mpi=pmix"), "fits"),
        # What is stated is what is started with.
        ("mpich 4.0.2", ("pmi2", "pmix"), ("srun", "--mpi=pmix"), "broken"),
        ("mpich 4.0.2", ("pmi2", "pmix"), ("srun",), "fits"),
        ("impi 2021.6.0", ("pmi2",), ("srun",), "unknown"),
    ],
)
def test_the_protocol_of_a_scheduler(
    mpi: str, pmi: tuple[str, ...] | None, command: tuple[str, ...], verdict: Fit
) -> None:
    launcher = SiteLauncher(kind="srun", command=command)
    host = offer("openmpi 5.0.1", launcher=launcher, speaks=PMI, pmi=pmi)
    found = fit(ImageNeeds("x86_64", Mpi(*mpi.split()), None), host)
    assert found == {"architecture": "fits", "pmi": verdict}


@pytest.mark.parametrize(
    ("cuda", "driver", "verdict"),
    [
        ("10.1.243", "10.2", "fits"),
        ("12.4", "12.4", "fits"),
        ("12.10", "12.9", "unknown"),
        ("11.8.0", "11.0", "unknown"),
        ("10.2", "10.1", "broken"),
        ("12.0", "11.8", "broken"),
        ("9.2", None, "unknown"),
    ],
)
def test_cuda_and_the_driver(cuda: str, driver: str | None, verdict: Fit) -> None:
    assert fit(ImageNeeds("x86_64", None, cuda), offer(driver_cuda=driver))["cuda"] == verdict


@pytest.mark.parametrize("driver", [None, "12.4"])
def test_a_cuda_of_packages_is_not_compared(driver: str | None) -> None:
    needs = ImageNeeds("x86_64", None, None, gpus=True)
    assert fit(needs, offer(driver_cuda=driver))["cuda"] == "unknown"
    assert "cuda" not in fit(ImageNeeds("x86_64", None, None), offer(driver_cuda=driver))
