"""GPUDirect RDMA against recorded files: what a node shows, and what it cannot show."""

from __future__ import annotations

import pytest
import yaml

from envbuilder.commands.sites import draft
from envbuilder.machine.gpu import GpuDirect, gpu_section, gpudirect, rdma_networks
from envbuilder.machine.item_values import Item
from envbuilder.machine.local_site import local_site
from envbuilder.model.site import SiteFacts

from .conftest import Machine, host

CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
)
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder)\n"
# Lines of /proc/modules of a node of a cluster.
MODULES = "nvidia_uvm 1523712 0 - Live 0x0 (POE)\n{}ib_core 413696 9 rdma_cm,ib_ipoib, Live 0x0\n"


def node(
    machine: Machine,
    *,
    driver: str | None = CLOSED,
    modules: str | None = "",
    kernel: str = "4.18.0-477.el8.x86_64",
    links: tuple[str, ...] = ("InfiniBand",),
) -> GpuDirect:
    """Record a node and look at it."""
    if driver is not None:
        machine.file("/proc/driver/nvidia/version", driver)
    if modules is not None:
        loaded = "".join(f"{name} 16384 0 - Live 0x0\n" for name in modules.split())
        machine.file("/proc/modules", MODULES.format(loaded))
    machine.file("/proc/sys/kernel/osrelease", f"{kernel}\n")
    for number, link in enumerate(links):
        card = f"/sys/class/infiniband/mlx5_{number}/ports/1/link_layer"
        machine.file(card, f"{link}\n")
    return gpudirect(host(machine))


def item(machine: Machine) -> Item | None:
    items = gpu_section(host(machine)).items
    return next((each for each in items if each.id == "gpu.gpudirect"), None)


@pytest.mark.parametrize("module", ["nv_peer_mem", "nvidia_peermem"])
def test_a_peer_memory_module_is_the_way(module: str, machine: Machine) -> None:
    assert node(machine, modules=module) == GpuDirect(("infiniband",), (module,), usable=True)
    told = item(machine)
    assert told is not None
    assert (told.status, told.facts) == ("ok", {"peer-memory": module, "usable": True})


def test_without_one_the_closed_driver_has_no_way(machine: Machine) -> None:
    assert node(machine) == GpuDirect(("infiniband",), (), usable=False)
    told = item(machine)
    assert told is not None
    assert told.status == "missing"
    assert "nvidia-peermem" in str(told.without_root)


@pytest.mark.parametrize(
    ("driver", "kernel", "usable"),
    [
        ("535.104.05", "5.14.0-362.el9", True),
        ("515.43.04", "5.12.0", True),
        ("515.43.03", "5.12.0", None),
        ("535.104.05", "5.11.22", None),
        ("535.104.05", "4.18.0-477.el8.x86_64", None),
    ],
)
def test_dma_buf_is_the_other_way(
    driver: str, kernel: str, usable: bool | None, machine: Machine
) -> None:
    """Below the numbers nothing is said: distributions carry patches back."""
    assert node(machine, driver=OPEN.format(driver), kernel=kernel).usable is usable


def test_both_modules_are_both_told(machine: Machine) -> None:
    found = node(machine, modules="nvidia_peermem nv_peer_mem")
    assert found.peer_memory == ("nv_peer_mem", "nvidia_peermem")


def test_a_name_that_only_begins_like_it_is_another(machine: Machine) -> None:
    assert node(machine, modules="nv_peer_memory nvidia_peermem2").peer_memory == ()


def test_sys_tells_where_proc_does_not(machine: Machine) -> None:
    machine.file("/sys/module/nvidia_peermem/initstate", "live\n")
    assert node(machine, modules=None).peer_memory == ("nvidia_peermem",)


def test_a_container_that_hides_both_tells_nothing(machine: Machine) -> None:
    assert node(machine, modules=None) == GpuDirect(("infiniband",), None, None)


def test_a_login_node_without_gpus_tells_nothing_of_the_others(machine: Machine) -> None:
    assert node(machine, driver=None) == GpuDirect(("infiniband",), None, None)
    assert item(machine) is None


def test_without_a_card_there_is_nowhere_to_go(machine: Machine) -> None:
    found = node(machine, links=(), modules="nvidia_peermem")
    assert found == GpuDirect((), ("nvidia_peermem",), None)
    assert item(machine) is None


def test_networks_by_their_link_layer(machine: Machine) -> None:
    node(machine, links=("InfiniBand", "Ethernet", "InfiniBand"))
    machine.file("/sys/class/infiniband/hfi1_0/ports/1/link_layer", "InfiniBand\n")
    machine.file("/sys/class/infiniband/odd_0/ports/2/link_layer", "InfiniBand\n")
    assert rdma_networks(host(machine)) == ("infiniband", "omnipath", "roce")


def drafted(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> SiteFacts:
    """Return the facts of the draft of a recorded node, once its comments are keys."""
    for module in ("commands.sites", "machine.local_site"):
        monkeypatch.setattr(f"envbuilder.{module}.LocalMachine", lambda _: host(machine))
    text = draft(local_site(machine.environ), machine.environ, "ours")
    lines = [
        line.removeprefix("# ") if line.startswith("#   ") else line for line in text.splitlines()
    ]
    return SiteFacts.model_validate(yaml.safe_load("\n".join(lines))["facts"])


def test_the_draft_shows_what_the_node_shows(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    node(machine, modules="nvidia_peermem", links=("InfiniBand",))
    facts = drafted(machine, monkeypatch)
    assert (facts.network, facts.peer_memory, facts.gpudirect) == (
        ("infiniband",),
        ("nvidia_peermem",),
        True,
    )


def test_the_draft_shows_how_it_is_written_where_the_node_shows_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    node(machine, driver=None, links=())
    facts = drafted(machine, monkeypatch)
    assert (facts.peer_memory, facts.gpudirect) == (("nvidia_peermem",), None)
