"""GPUs: what the driver tells in /proc, and what nvidia-smi says where /proc is silent."""

from __future__ import annotations

import re

from ..host import Host, first_line, is_there
from ..model.doctor import Fact, Item, Section
from .gpudirect import gpudirect_items
from .items import make

_DRIVER = re.compile(r"Kernel Module(?:\s+for\s+\S+)?\s+(\d+(?:\.\d+)+)")


def gpu_section(host: Host) -> Section:
    """Return the driver and the GPUs. Reading /proc wakes no GPU and takes no time."""
    driver = host.read("/proc/driver/nvidia/version")
    if driver is not None:
        items = _from_proc(host, driver)
    elif smi := host.which("nvidia-smi"):
        items = _from_smi(host, smi)
    else:
        items = []
    if is_there(host.at("/dev/kfd")):
        items.append(make("gpu.amd", "AMD GPU", "note", "the kernel offers one (/dev/kfd)"))
    if not items:
        items = [make("gpu", "GPU", "missing", "no NVIDIA driver on this node")]
    items += gpudirect_items(host)
    return Section(id="gpu", title="GPU", items=tuple(items))


def driver_version(host: Host) -> str | None:
    """Return the version of the NVIDIA driver on this node, None where there is none."""
    text = host.read("/proc/driver/nvidia/version")
    if text is None:
        smi = host.which("nvidia-smi")
        answer = (
            host.ask(smi, "--query-gpu=driver_version", "--format=csv,noheader") if smi else None
        )
        text = f"Kernel Module {answer.stdout}" if answer and answer.trouble is None else ""
    match = _DRIVER.search(text)
    return match.group(1) if match else None


def capabilities(host: Host) -> tuple[str, ...]:
    """Return the compute capabilities of this node's GPUs, such as sm_90, each once; none: ()."""
    smi = host.which("nvidia-smi")
    answer = host.ask(smi, "--query-gpu=compute_cap", "--format=csv,noheader") if smi else None
    lines = answer.stdout.split() if answer and answer.trouble is None else []
    numbers = {line.replace(".", "") for line in lines}
    return tuple(sorted(f"sm_{number}" for number in numbers if number.isdigit()))


def _from_proc(host: Host, driver: str) -> list[Item]:
    match = _DRIVER.search(driver)
    version = match.group(1) if match else "unknown"
    models = []
    try:
        cards = sorted(host.at("/proc/driver/nvidia/gpus").iterdir())
    except OSError:
        cards = []
    for card in cards:
        text = host.read(f"/proc/driver/nvidia/gpus/{card.name}/information") or ""
        named = re.search(r"^Model:\s*(.+)$", text, re.MULTILINE)
        models.append(named.group(1).strip() if named else "unknown model")
    return _nvidia(version, models)


def _from_smi(host: Host, smi: str) -> list[Item]:
    answer = host.ask(smi, "--query-gpu=driver_version,name", "--format=csv,noheader")
    rows = [line.split(",", 1) for line in answer.stdout.splitlines() if "," in line]
    if answer.trouble or not rows:
        reason = answer.trouble or first_line(answer.text) or "it names no GPU"
        return [
            make(
                "gpu",
                "GPU",
                "problem",
                "nvidia-smi finds none",
                details=[reason],
                advice="gpu.driver",
            )
        ]
    return _nvidia(rows[0][0].strip(), [name.strip() for _, name in rows])


def _nvidia(version: str, models: list[str]) -> list[Item]:
    kinds = [f"{models.count(name)} x {name}" for name in sorted(set(models))]
    driver = make("gpu.driver", "NVIDIA driver", "ok", version, facts={"version": version})
    if not models:
        return [driver, make("gpu", "GPU", "missing", "the driver is here, but no GPU is visible")]
    facts: dict[str, Fact] = {"count": len(models), "models": ", ".join(sorted(set(models)))}
    return [driver, make("gpu", "GPU", "ok", ", ".join(kinds), facts=facts)]
