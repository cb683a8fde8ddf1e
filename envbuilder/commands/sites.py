"""The verbs that look at a live site: snapshot, detect."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import data
from ..base import fits
from ..documents.library import NAME, find
from ..documents.load import load_site
from ..documents.site_choice import DESCRIBE, LOCAL
from ..documents.snapshots import snapshot_command, snapshot_file, text_with_snapshot
from ..errors import EnvbuildError, UsageError
from ..files import write_atomically
from ..knowledge.terms import PlainVersion
from ..launching.schedulers import SCHEDULERS
from ..machine.detection import DetectionResult, live_snapshot, snapshot, snapshot_text
from ..machine.hardware import os_release
from ..machine.host import LocalMachine, glibc_version, is_folder
from ..machine.local_site import local_site
from ..machine.modules.module_probe import probe as probe_modules
from ..machine.modules.site_modules import read_modules
from ..machine.tools import scheduler_name
from ..machine.visible_modules import base_trees, has_visible_trees
from ..model.launch import Words
from ..model.site import Site, SiteLauncher, SitePath, Snapshot
from ..text import shown
from ..workflow.context import Context
from ..workflow.entries import entries

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
        *_scheduler_lines(host, scheduler, launcher),
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


def _scheduler_lines(
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


__all__ = ["attach_snapshot", "detect_site", "draft_site", "snapshot_text", "take_snapshot"]


# What a draft is called that goes to the screen.
DRAFT_NAME = "this-site"


def take_snapshot(
    site: str,
    context: Context,
    *,
    probe: bool = False,
    trees: Sequence[str] | None = None,
) -> DetectionResult:
    """Look at a site's module trees on this machine; *trees*: other folders than the site's.

    What is wrong with single modules is in the notes. Writes nothing.
    """
    if site == LOCAL:
        document = local_site(context.environ)
    else:
        file = find("site", site, context.folders)
        document = load_site(file, context.knowledge, entries()).value
    places = [str(context.path(tree)) for tree in trees] if trees else None
    if site == LOCAL and places is None and has_visible_trees(document, context.environ):
        places = list(base_trees(document, context.environ)) or None
    with context.reporter.working(f"read the modules of site {document.name}"):
        site_modules = read_modules(document, context.environ, places)
    if probe:
        with context.reporter.working("load the modules of Python, MPI and Python packages"):
            site_modules = probe_modules(site_modules, context.knowledge.components)
    with context.reporter.working("examine this machine"):
        return live_snapshot(document, context.environ, context.clock().date(), site_modules)


class SnapshotUse(NamedTuple):
    """The site's file that uses a snapshot. ``note``: why none does."""

    site_file: Path | None = None
    note: str | None = None


def attach_snapshot(
    site: str, snapshot_path: Path, context: Context, *, trial: bool
) -> SnapshotUse:
    """Have the site's file use a snapshot that was just written, unless it is a *trial*.

    A file that names another snapshot, is shipped, or cannot be changed stays as it is.
    """
    if site == LOCAL:
        return SnapshotUse(note=f"no site file uses this snapshot; {DESCRIBE} writes a site file")
    path = find("site", site, context.folders)
    loaded = load_site(path, context.knowledge, entries())
    used = snapshot_file(loaded)
    if used is not None:
        if used.exists() and used.samefile(snapshot_path):
            return SnapshotUse(path)
        return SnapshotUse(note=f"{path} uses another snapshot: {used}")
    near = snapshot_path.is_relative_to(path.parent.absolute())
    name = str(snapshot_path.relative_to(path.parent.absolute()) if near else snapshot_path)
    note = f"{path} does not use this snapshot: add the line 'snapshot: {name}' to it"
    shipped = path.is_relative_to(data.RECIPES)
    text = text_with_snapshot(loaded, name, context.knowledge, entries())
    if trial or shipped or text is None:
        return SnapshotUse(note=note)
    try:
        write_atomically(path.resolve(), text, stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        return SnapshotUse(note=f"{note} ({error.strerror})")
    return SnapshotUse(path)


def detect_site(context: Context) -> tuple[Site, Snapshot]:
    """Return the site that this machine is, and what was found on it."""
    site = local_site(context.environ)
    return site, snapshot(site, context.environ).snapshot


def draft_site(context: Context, output: str | None = None) -> str:
    """Return the draft of a site document for this machine, named after the file it is for."""
    name = Path(output).name.removesuffix(".yaml") if output else DRAFT_NAME
    if output and (not output.endswith(".yaml") or not NAME.fullmatch(name)):
        raise UsageError(
            "site.invalid-file-name",
            f"'{shown(output)}' is not a valid name of a site document",
            "use the site's name in lower case: our-cluster.yaml",
        )
    return draft(local_site(context.environ), context.environ, name, *_scheduler(context))


def next_steps(site_file: Path, draft_text: str) -> Iterator[str]:
    """Yield what to do with a draft until plans use it."""
    if "\nsnapshot: " in draft_text:
        yield f"to record its modules: {snapshot_command(site_file)}"
    name = shlex.quote(str(site_file))
    yield f"to plan for it: --site {name}, or export ENVBUILD_SITE={name}"


def _scheduler(context: Context) -> tuple[str | None, SiteLauncher | None, Words]:
    """Return the first scheduler whose program for submitting jobs is here, its launcher, and what
    that starts ranks by.
    """
    host = LocalMachine(context.environ)

    def ask(program: str, *words: str) -> str:
        path = host.which(program)
        return host.ask(path, *words).text if path else ""

    for name, scheduler in SCHEDULERS.items():
        # Others may have a program of that name.
        if host.which(scheduler.SUBMIT) and scheduler.VERSION in (
            ask(scheduler.SUBMIT, "--version") if scheduler.VERSION else ""
        ):
            return name, scheduler.draft_launcher(host.which, ask), scheduler.draft_pmi(ask)
    return None, None, ()
