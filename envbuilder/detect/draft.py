"""A first site document for this machine: what could be found out, and what is left to fill in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from ..errors import EnvbuildError
from ..model.base import fits
from ..model.site import PlainVersion, Scheduler, Site, SitePath
from .gpu import capabilities, driver_version
from .gpudirect import GpuDirect, gpudirect, rdma_networks
from .host import Host, is_folder
from .interpreters import glibc_version
from .machine import os_release
from .module_shell import start
from .tools import scheduler_name

_VERSION: TypeAdapter[str] = TypeAdapter(PlainVersion)
_PATH: TypeAdapter[str] = TypeAdapter(SitePath)

_SCHEDULERS: Mapping[str, Scheduler] = {"Slurm": "slurm", "LSF": "lsf"}

# By which protocol srun starts MPI programs, the best one first.
_PROTOCOLS = ("pmix", "pmi2")


@dataclass(frozen=True)
class _Entry:
    """One key of the draft with what a reader should know about it. No value: a comment only."""

    key: str
    value: Any = None
    comment: str | None = None


def draft(site: Site, environ: Mapping[str, str], name: str) -> str:
    """Return a site document as YAML text under *name*. *site*: the detected one.

    What is found on this node may differ on others: the text says so where it does most often.
    """
    host = Host(environ)
    entries = [
        _Entry("schema", 1),
        _Entry("name", name),
        _Entry("summary", f"{os.uname().nodename}, a first draft"),
        _Entry("arch", list(site.arch)),
        *_modules(site, environ, name),
        _Entry("facts", _facts(host), "of this node; the compute nodes may have another system"),
        *_gpu(host),
        *_network(host),
        *_gpudirect(gpudirect(host)),
        *_scheduler(host),
        _Entry("base", None, "base: /path  # a folder for environments that all nodes see"),
    ]
    return "".join(_text(entry) for entry in entries)


def _modules(site: Site, environ: Mapping[str, str], name: str) -> Iterator[_Entry]:
    yield _Entry("module-system", site.module_system)
    if site.module_init is None:
        return
    yield _Entry("module-init", site.module_init)
    trees = [tree for tree in _trees(site, environ) if fits(_PATH, tree)]
    if trees:
        yield _Entry("module-trees", trees)
    else:
        yield _Entry("module-trees", None, "module-trees: [/path]  # MODULEPATH is empty here")
    file = f"{name}.snapshot.json"
    yield _Entry(
        "snapshot", None, f"snapshot: {file}  # envbuild sites snapshot {name}.yaml --output {file}"
    )


def _trees(site: Site, environ: Mapping[str, str]) -> Sequence[str]:
    """Return the trees in use before any module is loaded: compilers may open further ones."""
    try:
        return start(site, environ).trees
    except EnvbuildError:
        return [tree for tree in environ.get("MODULEPATH", "").split(":") if is_folder(tree)]


def _facts(host: Host) -> dict[str, str]:
    release = os_release(host)
    system = " ".join(part for part in (release.get("ID"), release.get("VERSION_ID")) if part)
    found = {
        "os": system or None,
        "glibc": glibc_version(),
        "kernel": os.uname().release,
        "driver": driver_version(host),
    }
    return {
        name: text
        for name, text in found.items()
        if text and text.isprintable() and (name == "os" or fits(_VERSION, text))
    }


def _gpu(host: Host) -> Iterator[_Entry]:
    shown = ", ".join(capabilities(host)) or "sm_70"
    yield _Entry("facts", None, f"  gpu: [{shown}]  # of the compute nodes; [] for none")


def _network(host: Host) -> Iterator[_Entry]:
    shown = ", ".join(rdma_networks(host))
    yield _Entry("facts", None, f"  network: [{shown}]  # between the compute nodes; [] for none")


def _gpudirect(found: GpuDirect) -> Iterator[_Entry]:
    shown = "nvidia_peermem" if found.peer_memory is None else ", ".join(found.peer_memory)
    yield _Entry(
        "facts",
        None,
        f"  peer-memory: [{shown}]  # kernel modules of the compute nodes: nv_peer_mem, "
        "nvidia_peermem; [] for none",
    )
    if found.usable is not None:
        shown = "true" if found.usable else "false"
        yield _Entry("facts", None, f"  gpudirect: {shown}  # as on this node; by DMA-BUF too")


def _scheduler(host: Host) -> Iterator[_Entry]:
    name = scheduler_name(host)
    scheduler = _SCHEDULERS.get(name or "")
    if scheduler is not None:
        yield _Entry("scheduler", scheduler)
    elif name is not None:
        yield _Entry("scheduler", None, f"scheduler: {name} is here, which envbuild cannot use")
    srun, jsrun = host.which("srun"), host.which("jsrun")
    if srun is not None:
        offered = host.ask(srun, "--mpi=list").text.split()
        protocol = next((each for each in _PROTOCOLS if each in offered), None)
        command = ["srun", *([f"--mpi={protocol}"] if protocol else [])]
        yield _Entry("launcher", {"kind": "srun", "command": command})
    elif jsrun is not None:
        yield _Entry("launcher", {"kind": "custom", "command": ["jsrun"]})


def _text(entry: _Entry) -> str:
    import yaml

    if entry.value is None:
        return f"# {entry.comment}\n"
    if isinstance(entry.value, list):
        text = f"{entry.key}: {yaml.safe_dump(entry.value, default_flow_style=True, width=1000)}"
    else:
        text = yaml.safe_dump({entry.key: entry.value}, default_flow_style=False, width=1000)
    return f"# {entry.comment}\n{text}" if entry.comment else text
