"""GPUs: what the driver tells in /proc, and what nvidia-smi says where /proc is silent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from packaging.version import Version

from ..knowledge.terms import PeerMemory
from .host import LocalMachine, ProgramOutput, first_line, is_folder, is_there
from .item_values import Item, Section, Status
from .items import make, section

# Whether network cards can reach the memory of GPUs on this node (GPUDirect RDMA). Two ways lead
# there. A kernel module registers GPU memory with the InfiniBand drivers: nv_peer_mem, or
# nvidia_peermem, which is part of NVIDIA's driver from 470 (CUDA 11.4) on and takes its place. Or
# the kernel shares the buffers itself (DMA-BUF), which needs Linux 5.12, NVIDIA's open kernel
# modules and driver 515.43.04; NCCL uses it from 2.13 on. Sources:
# https://docs.nvidia.com/cuda/gpudirect-rdma/ (Using nvidia-peermem),
# https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html,
# https://github.com/NVIDIA/nccl/pull/682, https://github.com/NVIDIA/nccl/issues/1676.

MODULES: tuple[PeerMemory, ...] = get_args(PeerMemory)

DMA_BUF_KERNEL = Version("5.12")
DMA_BUF_DRIVER = Version("515.43.04")

# Cards of these drivers say InfiniBand too.
_OMNI_PATH = ("hfi1_", "qib")
_LINKS: Mapping[str, str] = {"InfiniBand": "infiniband", "Ethernet": "roce"}


@dataclass(frozen=True)
class GpuDirect:
    """What a node shows. None: it cannot be told here, as on a login node without GPUs.

    ``networks``: what its RDMA cards are on, ``peer_memory``: kernel modules that are loaded,
    ``usable``: whether there is a way from these cards to the memory of its GPUs.
    """

    networks: tuple[str, ...]
    peer_memory: tuple[PeerMemory, ...] | None
    usable: bool | None


def gpudirect(host: LocalMachine) -> GpuDirect:
    """Look at /proc and /sys; starts nothing."""
    networks, loaded = rdma_networks(host), _loaded(host)
    driver = host.read("/proc/driver/nvidia/version")
    if driver is None:
        # Without a driver nothing follows for the nodes that have one.
        return GpuDirect(networks, loaded or None, None)
    usable = True if loaded else _by_dma_buf(driver, host, loaded)
    return GpuDirect(networks, loaded, usable if networks else None)


def rdma_networks(host: LocalMachine) -> tuple[str, ...]:
    """Return the kinds of network that RDMA cards of this node are on, sorted: infiniband, ..."""
    networks = set()
    for card in host.names("/sys/class/infiniband"):
        link = (host.read(f"/sys/class/infiniband/{card}/ports/1/link_layer") or "").strip()
        kind = "omnipath" if card.startswith(_OMNI_PATH) else _LINKS.get(link)
        networks |= {kind} if kind else set()
    return tuple(sorted(networks))


def _loaded(host: LocalMachine) -> tuple[PeerMemory, ...] | None:
    """Return those of the peer memory modules that are loaded; None: that cannot be seen."""
    listed = host.read("/proc/modules")
    if listed is not None:
        names = {line.split(" ", 1)[0] for line in listed.splitlines()}
        return tuple(name for name in MODULES if name in names)
    if not is_folder(host.at("/sys/module")):
        return None
    return tuple(name for name in MODULES if is_folder(host.at(f"/sys/module/{name}")))


def _by_dma_buf(
    driver: str, host: LocalMachine, loaded: tuple[PeerMemory, ...] | None
) -> bool | None:
    """Return whether DMA-BUF leads from card to GPU; None: that cannot be told."""
    if "Open Kernel Module" not in driver:
        return False if loaded is not None else None
    number = re.search(r"(\d+(?:\.\d+)+)", driver)
    kernel = re.match(
        r"\d+(?:\.\d+)+", host.read("/proc/sys/kernel/osrelease") or os.uname().release
    )
    if number is None or kernel is None:
        return None
    # Below the numbers nothing is said: distributions bring what a kernel's does not say.
    enough = Version(number[1]) >= DMA_BUF_DRIVER and Version(kernel[0]) >= DMA_BUF_KERNEL
    return True if enough else None


def gpudirect_items(host: LocalMachine) -> Iterator[Item]:
    """Yield the items of doctor's report: only where there are a driver and RDMA cards."""
    state = gpudirect(host)
    if not state.networks or host.read("/proc/driver/nvidia/version") is None:
        return
    unknown = state.peer_memory is None
    modules = ", ".join(state.peer_memory or ()) or "none"
    words: dict[bool | None, tuple[Status, str]] = {
        True: ("ok", "network cards can reach GPU memory"),
        False: ("missing", "off: neither a peer memory module nor DMA-BUF"),
        None: ("note", "unknown on this machine"),
    }
    yield make(
        "gpu.gpudirect",
        *words[state.usable],
        details=[
            f"network of the RDMA cards: {', '.join(state.networks)}",
            f"loaded peer memory modules: {'?' if unknown else modules}",
        ],
        facts={"peer-memory": None if unknown else modules, "usable": state.usable},
    )


_DRIVER = re.compile(r"Kernel Module(?:\s+for\s+\S+)?\s+(\d+(?:\.\d+)+)")


def gpu_section(host: LocalMachine) -> Section:
    """Return the driver and the GPUs. Reading /proc wakes no GPU and takes no time."""
    driver = host.read("/proc/driver/nvidia/version")
    if driver is not None:
        match = _DRIVER.search(driver)
        items = list(_nvidia(match[1] if match else "unknown", _models(host)))
    else:
        items = list(_from_smi(host))
    if is_there(host.at("/dev/kfd")):
        items.append(make("gpu.amd", "note", "the kernel provides one (/dev/kfd)"))
    if not items:
        items = [make("gpu", "missing", "no NVIDIA driver on this node")]
    return section("gpu", (*items, *gpudirect_items(host)))


def _smi(host: LocalMachine, query: str) -> ProgramOutput | None:
    """Return what nvidia-smi says of each GPU, None where it is not here."""
    smi = host.which("nvidia-smi")
    return host.ask(smi, f"--query-gpu={query}", "--format=csv,noheader") if smi else None


def driver_version(host: LocalMachine) -> str | None:
    """Return the version of the NVIDIA driver on this node, None where there is none."""
    text = host.read("/proc/driver/nvidia/version")
    if text is None:
        answer = _smi(host, "driver_version")
        text = f"Kernel Module {answer.stdout}" if answer and answer.trouble is None else ""
    match = _DRIVER.search(text)
    return match[1] if match else None


def capabilities(host: LocalMachine) -> tuple[str, ...]:
    """Return the compute capabilities of this node's GPUs, such as sm_90, each once; none: ()."""
    answer = _smi(host, "compute_cap")
    lines = answer.stdout.split() if answer and answer.trouble is None else []
    numbers = {line.replace(".", "") for line in lines}
    return tuple(sorted(f"sm_{number}" for number in numbers if number.isdigit()))


def gpus_here(host: LocalMachine) -> int:
    """Return how many of this node's GPUs a program of this shell sees: 0 without nvidia-smi."""
    answer = _smi(host, "name")
    names = answer.stdout.splitlines() if answer and answer.trouble is None else []
    chosen = host.environ.get("CUDA_VISIBLE_DEVICES")
    return len(names) if chosen is None else min(len(names), len(chosen.replace(",", " ").split()))


def _models(host: LocalMachine) -> list[str]:
    folder = "/proc/driver/nvidia/gpus"
    texts = [host.read(f"{folder}/{card}/information") or "" for card in host.names(folder)]
    matches = [re.search(r"^Model:\s*(.+)$", text, re.MULTILINE) for text in texts]
    return [match[1].strip() if match else "unknown model" for match in matches]


def _from_smi(host: LocalMachine) -> Iterator[Item]:
    answer = _smi(host, "driver_version,name")
    if answer is None:
        return
    rows = [line.split(",", 1) for line in answer.stdout.splitlines() if "," in line]
    if answer.trouble or not rows:
        reason = answer.trouble or first_line(answer.text) or "nvidia-smi lists no GPU"
        found = "nvidia-smi finds none"
        yield make("gpu", "problem", found, details=[reason], advice="gpu.driver")
    else:
        yield from _nvidia(rows[0][0].strip(), [name.strip() for _, name in rows])


def _nvidia(version: str, models: list[str]) -> Iterator[Item]:
    yield make("gpu.driver", "ok", version, facts={"version": version})
    kinds = sorted(set(models))
    if models:
        found = ", ".join(f"{models.count(name)} x {name}" for name in kinds)
        yield make("gpu", "ok", found, facts={"count": len(models), "models": ", ".join(kinds)})
    else:
        yield make("gpu", "missing", "the driver is here, but no GPU is visible")
