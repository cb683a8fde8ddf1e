"""A first site document for this machine: what could be found out, and what is left to fill in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base import fits
from ..errors import EnvbuildError
from ..knowledge.terms import PlainVersion
from ..model.site import Site, SiteLauncher, SitePath
from .hardware import os_release
from .host import LocalMachine, glibc_version, is_folder
from .tools import scheduler_name
from .visible_modules import base_trees

_PEERS = "kernel modules of the compute nodes: nv_peer_mem, nvidia_peermem; [] for none"


def draft(
    site: Site,
    environ: Mapping[str, str],
    name: str,
    scheduler: str | None = None,
    launcher: SiteLauncher | None = None,
    pmi: Sequence[str] = (),
) -> str:
    """Return a site document as YAML text under *name*.

    *site*: the detected one. *scheduler*: one that envbuild can use; None: there is none such here.
    *launcher*: what starts ranks by it; None: the MPI's own launcher. *pmi*: by which interfaces.

    What is found on this node may differ on others: the text says so where it does most often.
    """
    host = LocalMachine(environ)
    found = site.facts
    gpus, networks = ", ".join(found.gpu or ("sm_70",)), ", ".join(found.network or ())
    peers = "nvidia_peermem" if found.peer_memory is None else ", ".join(found.peer_memory)
    direct = {True: "true", False: "false", None: None}[found.gpudirect]
    lines = [
        _entry("schema", 1),
        _entry("name", name),
        _entry("summary", f"{os.uname().nodename}, a first draft"),
        _entry("arch", list(site.arch)),
        *_modules(site, environ, name),
        "# of this node; the compute nodes may have another system\n",
        _entry("facts", {**_facts(site, host), **({"pmi": [*pmi]} if pmi else {})}),
        f"#   gpu: [{gpus}]  # of the compute nodes; [] for none\n",
        f"#   network: [{networks}]  # between the compute nodes; [] for none\n",
        f"#   peer-memory: [{peers}]  # {_PEERS}\n",
        f"#   gpudirect: {direct}  # as on this node; also through DMA-BUF\n" if direct else "",
        *_scheduler(host, scheduler, launcher),
        "# base: /path  # a folder for environments that all nodes see\n",
    ]
    return "".join(lines)


def _modules(site: Site, environ: Mapping[str, str], name: str) -> Iterator[str]:
    yield _entry("module-system", site.module_system)
    if site.module_init is None:
        return
    yield _entry("module-init", site.module_init)
    trees = [tree for tree in _trees(site, environ) if fits(SitePath, tree)]
    nothing = "# module-trees: [/path]  # MODULEPATH is empty here\n"
    yield _entry("module-trees", trees) if trees else nothing
    if trees:
        # A plan refuses a snapshot that is not there: what is not recorded is not planned without.
        file = f"{name}.snapshot.json"
        yield f"# recorded by: envbuild sites snapshot {name}.yaml --output {file}\n"
        yield _entry("snapshot", file)


def _trees(site: Site, environ: Mapping[str, str]) -> Sequence[str]:
    """Return the trees in use before any module is loaded: compilers may open further ones."""
    try:
        return base_trees(site, environ)
    except EnvbuildError:
        return [tree for tree in environ.get("MODULEPATH", "").split(":") if is_folder(tree)]


def _facts(site: Site, host: LocalMachine) -> dict[str, str]:
    release = os_release(host)
    system = " ".join(part for part in (release.get("ID"), release.get("VERSION_ID")) if part)
    facts = {
        "os": system or None,
        "glibc": glibc_version(),
        "kernel": os.uname().release,
        "driver": site.facts.driver,
    }
    return {
        name: text
        for name, text in facts.items()
        if text and text.isprintable() and (name == "os" or fits(PlainVersion, text))
    }


def _scheduler(
    host: LocalMachine, scheduler: str | None, launcher: SiteLauncher | None
) -> Iterator[str]:
    if scheduler is not None:
        yield _entry("scheduler", scheduler)
        if launcher is not None:
            yield _entry("launcher", launcher.plain())
    elif other := scheduler_name(host):
        yield f"# scheduler: a submit program of {other} is on PATH, but envbuild cannot use it\n"


def _entry(key: str, value: Any) -> str:
    import yaml

    if isinstance(value, list):
        return f"{key}: {yaml.safe_dump(value, default_flow_style=True, width=1000)}"
    return yaml.safe_dump({key: value}, default_flow_style=False, width=1000)
