"""GPUs: what the driver tells in /proc, and what nvidia-smi says where /proc is silent."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .gpudirect import gpudirect_items
from .host import LocalMachine, ProgramOutput, first_line, is_there
from .item_values import Item, Section
from .items import make, section

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
