"""A first site document for this machine: what could be found out, and what is left to fill in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from ..errors import EnvbuildError
from ..host import Host, glibc_version, is_folder
from ..model.base import fits
from ..model.site import Launcher, PlainVersion, Site, SitePath
from ..module_system.shell import start
from .gpu import capabilities, driver_version
from .gpudirect import GpuDirect, gpudirect, rdma_networks
from .machine import os_release
from .tools import scheduler_name

_VERSION: TypeAdapter[str] = TypeAdapter(PlainVersion)
_PATH: TypeAdapter[str] = TypeAdapter(SitePath)


@dataclass(frozen=True)
class _Entry:
    """One key of the draft with what a reader should know about it. No value: a comment only."""

    key: str
    value: Any = None
    comment: str | None = None


@dataclass(frozen=True)
class SchedulerDraft:
    """The scheduler of a machine, and what starts ranks by it (None: the MPI's own launcher)."""

    name: str
    launcher: Launcher | None


def draft(
    site: Site, environ: Mapping[str, str], name: str, scheduler: SchedulerDraft | None = None
) -> str:
    """Return a site document as YAML text under *name*.

    *site*: the detected one. *scheduler*: one that envbuild can use; None: there is none such here.

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
        *_scheduler(host, scheduler),
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
    facts = {
        "os": system or None,
        "glibc": glibc_version(),
        "kernel": os.uname().release,
        "driver": driver_version(host),
    }
    return {
        name: text
        for name, text in facts.items()
        if text and text.isprintable() and (name == "os" or fits(_VERSION, text))
    }


def _gpu(host: Host) -> Iterator[_Entry]:
    shown = ", ".join(capabilities(host)) or "sm_70"
    yield _Entry("facts", None, f"  gpu: [{shown}]  # of the compute nodes; [] for none")


def _network(host: Host) -> Iterator[_Entry]:
    shown = ", ".join(rdma_networks(host))
    yield _Entry("facts", None, f"  network: [{shown}]  # between the compute nodes; [] for none")


def _gpudirect(state: GpuDirect) -> Iterator[_Entry]:
    shown = "nvidia_peermem" if state.peer_memory is None else ", ".join(state.peer_memory)
    yield _Entry(
        "facts",
        None,
        f"  peer-memory: [{shown}]  # kernel modules of the compute nodes: nv_peer_mem, "
        "nvidia_peermem; [] for none",
    )
    if state.usable is not None:
        shown = "true" if state.usable else "false"
        yield _Entry("facts", None, f"  gpudirect: {shown}  # as on this node; by DMA-BUF too")


def _scheduler(host: Host, scheduler: SchedulerDraft | None) -> Iterator[_Entry]:
    other = scheduler_name(host)
    if scheduler is not None:
        yield _Entry("scheduler", scheduler.name)
        if scheduler.launcher is not None:
            yield _Entry("launcher", scheduler.launcher.plain())
    elif other is not None:
        yield _Entry("scheduler", None, f"scheduler: {other} is here, which envbuild cannot use")


def _text(entry: _Entry) -> str:
    import yaml

    if entry.value is None:
        return f"# {entry.comment}\n"
    if isinstance(entry.value, list):
        text = f"{entry.key}: {yaml.safe_dump(entry.value, default_flow_style=True, width=1000)}"
    else:
        text = yaml.safe_dump({entry.key: entry.value}, default_flow_style=False, width=1000)
    return f"# {entry.comment}\n{text}" if entry.comment else text
