"""The verbs over what a root holds: list, info, smoke, rollback, remove."""

from __future__ import annotations

import platform
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from ..documents.source import read
from ..errors import BuildError, MissingToolError, SmokeError, UsageError
from ..machine.workspaces import workspace_of
from ..model.evidence import TIERS, SmokeReport
from ..model.outcome import (
    Attestation,
    DefaultChange,
    EnvironmentEntry,
    ExternalEntry,
    Info,
    Listing,
    RemoveResult,
    UnfinishedBuild,
)
from ..model.places import DocumentForm
from ..model.plan import Plan
from ..model.workspace import Workspace
from ..record import read_all, rows
from ..render.container import FOLDER
from ..root import Root, external, removal
from ..root.environment_lock import lock_file, read_lock
from ..root.environments import check_not_image, find, number_before_default
from ..root.inputs import kept_recipe, kept_site
from ..root.usage import count_unexamined
from ..target_tools import sharing
from ..target_tools.proving.binding import EARLIER
from ..target_tools.root import layout, locks, manifests, publish, registry, stamp, store
from ..text import counted
from ..workflow.context import Context
from ..workflow.image_contents import OpenedRoot

if TYPE_CHECKING:
    from ..workflow.launch_requests import LaunchFacts


def list_all(root: stamp.Root, context: Context) -> Listing:
    """Return every environment of a root. Writes nothing but the cache of these rows."""
    cache = rows.cache_file(root.path, context.environ)
    known, kept = rows.load(cache), dict[str, EnvironmentEntry]()
    listed: list[EnvironmentEntry] = []
    unfinished: list[UnfinishedBuild] = []
    damaged: list[str] = []
    homes, now = root.homes(), time.time_ns()
    for home in homes:
        default = registry.default_number(home)
        versions = publish.published(home)
        for version in versions:
            # Before they are read: what is put in their place meanwhile has another one.
            files = (lock_file(home, version), root.path / EARLIER)
            state = rows.state_of(home.evidence(version.id), files, now)
            row = known.get(state or "") or _listed(home, version)
            if state and not (row.damaged or row.claimed):
                kept[state] = row
            more = {"number": version.number, "default": version.number == default}
            listed.append(row.model_copy(update=more))
        unfinished += [
            UnfinishedBuild(environment=home.name, id=identity)
            for identity in publish.unpublished(home, versions)
        ]
        damaged += [f"{home.name}: {problem}" for problem in registry.problems(home)]
    others, unread = external.read_all(root.path)
    if kept.keys() != known.keys():
        rows.store(cache, kept)
    return Listing(
        root=str(root.path),
        site=root.site,
        arch=root.arch,
        shared=root.shared,
        workspace=workspace(root, context),
        misfits=_misfits(root, *homes),
        environments=tuple(listed),
        unfinished=tuple(unfinished),
        damaged=(*damaged, *unread),
        external=tuple(map(external.entry, others)),
    )


def workspace(root: stamp.Root, context: Context) -> Workspace | None:
    """Return the workspace that a root is in. Warns if the tools do not tell."""
    try:
        return workspace_of(root.path, context.environ)
    except MissingToolError as error:
        context.reporter.warn(f"it is unknown when a workspace expires: {error}")
        return None


def _listed(home: layout.Home, version: layout.Version) -> EnvironmentEntry:
    """Return the row of an environment; whether it is the default is still to be said."""
    lock, unread = None, list[str]()
    try:
        lock = read_lock(home, version)
    except BuildError as error:
        unread.append(str(error))
    plan = lock.plan if lock else None
    proofs, damaged, claimed = read_all(home, version, lock)
    passed = [proof for proof in proofs if proof.result.verdict == "passed"]
    # What another API proves is no proof of the recipe's runtime.
    of_runtime = [proof for proof in passed if proof.by is None] or passed
    best = max(of_runtime, key=lambda proof: TIERS.index(proof.result.tier), default=None)
    return EnvironmentEntry(
        environment=home.name,
        number=version.number,
        default=False,
        id=version.id,
        summary=plan.summary if plan else "",
        site=plan.site if plan else None,
        tier=best.result.tier if best else None,
        proved=passed[-1].time if passed else None,
        execution=passed[-1].execution if passed else None,
        stand_ins=passed[-1].stand_ins if passed else (),
        last_failed=bool(proofs) and proofs[-1].result.verdict == "failed",
        waived=tuple(each.id for each in plan.waived) if plan else (),
        warnings=sum(each.status in ("warning", "unknown") for each in plan.findings)
        if plan
        else 0,
        damaged=(*damaged, *unread),
        claimed=claimed,
        unbound=bool(passed) and all(proof.schema_ == 1 for proof in of_runtime),
        by=best.by if best else None,
    )


def _misfits(root: stamp.Root, *homes: layout.Home) -> tuple[str, ...]:
    return tuple(why for _, why in store.misfits(root, *homes))


def info(opened: OpenedRoot, *, verify: bool = False) -> Info:
    """Return all that is known of one environment; reads only. *verify*: every file of it too.

    Nothing of an image is run, and of a packed one no file is compared: UsageError.
    """
    root, image = opened.root, opened.image
    home, version = find(root, opened.environment)
    lock = read_lock(home, version)
    changed = None
    if verify and image and image.format != "sandbox":
        raise UsageError(
            "option.not-for-image",
            f"--verify does not apply to an image: the files of {image.file} are packed",
            f"apptainer test {image.file} compares the files and runs the smoke test",
        )
    if verify:
        here = image is None and lock.plan.arch == platform.machine()
        changed = manifests.changes(home, version, hashes=True, runs_here=here)
    # An image's paths are those that its programs see.
    shown = layout.Home(FOLDER, home.name) if image else home
    records = read_all(home, version, lock, in_image=image is not None)

    def inside(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each.replace(str(home.root), str(shown.root)) for each in lines)

    return Info(
        environment=home.name,
        number=version.number,
        default=version.number == registry.default_number(home),
        id=version.id,
        shared=root.shared,
        misfits=_misfits(root, home),
        image=image,
        prefix=str(shown.prefix(version.id)),
        modulefile=str(shown.modulefile(version)),
        lock=lock,
        evidence=records.evidence,
        damaged=inside(records.damaged),
        claimed=inside(records.claimed),
        manifest=manifests.recorded(home, version),
        changed=changed,
    )


def attestation(opened: OpenedRoot, form: DocumentForm, context: Context) -> Attestation:
    """Return a document about an environment: of what, how and from what it was made; reads only.

    Raises DriftError where that contradicts its lock or manifest, UsageError if the environment
    does not have the document.
    """
    # lazy import: the other verbs need none
    from ..record.attestations import read_attestation
    from ..workflow.texts import bill_of

    home, version = find(opened.root, opened.environment)
    if form == "recipe" or form == "site":
        return _input(home, version, form)
    lock, name = read_lock(home, version), f"{home.name}/{version.number}"
    text = read_attestation(form, home.evidence(version.id), lock)
    recorded = text is not None
    if text is None and form != "provenance":
        context.reporter.say(f"{name} has no stored record; this one is derived from its lock")
        text = bill_of(lock)
    if text is None:
        raise UsageError(
            "environment.no-provenance",
            f"{name} has no provenance: the envbuild that built it did not record one",
            "remove it and run envbuild create: the new build records its provenance",
            *registry.removal_hints(home, version),
        )
    return Attestation(
        environment=home.name, number=version.number, form=form, recorded=recorded, text=text
    )


def _input(
    home: layout.Home, version: layout.Version, form: Literal["recipe", "site"]
) -> Attestation:
    build = home.build(version.id)
    file = kept_recipe(build) if form == "recipe" else kept_site(build)
    if file is None:
        raise UsageError(
            "environment.no-input",
            f"the {form} of {home.name}/{version.number} is not in its root",
            "a detected site has no document; the documents of a lock that was made from another "
            "text are not kept; and earlier development versions kept none",
        )
    text = read(file).text
    return Attestation(
        environment=home.name, number=version.number, form=form, recorded=True, text=text
    )


def smoke(
    root: stamp.Root,
    environment: str,
    ranks: int | None,
    context: Context,
    site: str | None = None,
    *,
    emulate: bool = False,
) -> SmokeReport:
    """Prove a published environment again and append the evidence.

    *emulate*: in a system of its architecture on this machine, which is another. Raises DriftError
    for one whose files are not those that were published, SmokeError; and where that system cannot
    be had UsageError, MissingToolError or BuildError.
    """
    # lazy imports: 25 ms, which those who only look need not wait for
    from ..workflow.emulate import check_emulates, prove_emulated
    from ..workflow.inputs import with_inputs
    from ..workflow.prove import prove

    home, version = find(root, environment)
    check_not_image(home, version)
    store.check_writable(root)
    lock = read_lock(home, version)
    context = with_inputs(context, home, version.id)
    check_emulates(lock.plan, home, version, emulate, context)
    manifests.check_unchanged(home, version, runs_here=not emulate)
    count = len(read_all(home, version, lock).claimed)
    if emulate:
        proved = prove_emulated(lock, home, version, site, ranks, context)
    else:
        facts = _facts(lock.plan, site, context)
        with sharing.readable(home.group):
            proved = prove(lock, home, version.id, facts, context, ranks)
    evidence = proved[-1]
    if evidence.result.verdict != "passed":
        raise SmokeError(
            "smoke.failed",
            f"{home.name}/{version.number} failed its smoke test:\n"
            + "\n".join(f"  {line}" for line in evidence.result.failure_lines()),
            f"log and records of every rank: {home.evidence(version.id) / evidence.log}",
        )
    # A proof in another partition, say.
    for claim in read_all(home, version, lock).claimed[count:]:
        context.reporter.warn(claim)
    if manifests.recorded(home, version) is None:
        context.reporter.say("recorded the manifest of its files, which was missing")
        manifests.record(home, version.id, "later")
    return SmokeReport(evidence=proved)


def _facts(plan: Plan, site: str | None, context: Context) -> LaunchFacts:
    """Return what the environment's site says of launch lines; nothing where it is not found."""
    from ..workflow.launch_requests import LaunchFacts, facts_at

    try:
        return facts_at(plan, site, None, context)
    except UsageError as error:
        if site:
            raise
        context.reporter.warn(f"the nodes of its site are unknown: {error}")
        return LaunchFacts(plan, context.knowledge.components)


def rollback(root: stamp.Root, name: str, number: int | None, context: Context) -> DefaultChange:
    """Change the default only: to *number*, or to the newest one before the default.

    Running jobs and the modules themselves are not touched. It waits for no build: the lock it
    takes only keeps a ``remove`` from taking away the number that becomes the default. A number
    without evidence that counts becomes the default with a warning.
    """
    # With a number no default is needed: one that is lost or damaged is written anew.
    home, _ = find(root, name if number is None else f"{name.partition('/')[0]}/{number}")
    store.check_writable(root)
    group, say = home.group, context.reporter.say
    with sharing.readable(group), locks.hold(home.default_lock, say=say, group=group):
        before = registry.default_number(home)
        wanted = number_before_default(home) if number is None else number
        version = publish.find_version(home, wanted)
        publish.set_default(home, version)
        row = _listed(home, version)
    for problem in (*row.damaged, *row.claimed):
        context.reporter.warn(problem)
    if row.tier is None:
        context.reporter.warn(f"{home.name}/{version.number} has no smoke test that passed")
    return DefaultChange(environment=home.name, before=before, now=version.number)


What = Literal["number", "unfinished", "all", "old"]


def remove(
    root: stamp.Root,
    environment: str,
    context: Context,
    *,
    what: What,
    keep: int = 0,
    older_than: int = 0,
) -> RemoveResult:
    """Remove one published number, the builds that were never published, old numbers, or all of it.

    Old are those that are not among the newest *keep* and were published over *older_than* days
    ago. Raises UsageError for what is in use on this host, and for the default unless all goes.
    """
    if external.find(root.path, environment) is not None:
        raise UsageError(
            "environment.external",
            f"{environment} was not built by envbuild, which therefore does not remove it",
            f"envbuild import --forget {environment} removes it from the list",
        )
    store.check_writable(root)
    with sharing.readable(sharing.declared_group(root.path)):
        return _remove(root, environment, context, what, keep, older_than)


def _remove(
    root: stamp.Root, environment: str, context: Context, what: What, keep: int, older_than: int
) -> RemoveResult:
    say = context.reporter.say
    name = environment.partition("/")[0]
    homes = {home.name: home for home in root.homes()}
    home = homes.get(environment)
    # Such a root may have a default that is not recognised.
    for problem in registry.problems(homes[name]) if name in homes else ():
        context.reporter.warn(problem)
    removed: tuple[str, ...]
    if home and what == "unfinished":
        removed = removal.remove_unfinished(home, say)
    elif home and what == "all":
        removed = tuple(f"{name}/{each.number}" for each in removal.remove_all(home, say))
    elif home and what == "old":
        age = timedelta(days=older_than)
        old = removal.remove_old(home, say, keep=keep, older_than=age, now=context.clock())
        removed = tuple(f"{name}/{each.number}" for each in old)
    elif what != "number" and environment != name:
        raise UsageError(
            "option.conflict",
            f"{environment} names one number, but the option removes several",
            f"name the environment without a number: {name}",
        )
    else:
        home, version = find(root, environment)
        removal.remove_number(home, version, say)
        removed = (f"{name}/{version.number}",)
    unexamined = count_unexamined() if removed and what != "unfinished" else 0
    if unexamined:
        say(
            f"{counted(unexamined, 'process', 'processes')} of other users could not be examined "
            "and may use what was removed"
        )
    return RemoveResult(environment=name, removed=removed)


def forget_external(root: Root, name: str) -> ExternalEntry:
    """Take an environment of others off the list. Raises UsageError where it is not on it."""
    record = external.find(root.path, name)
    if record is None:
        there = ", ".join(each.name for each in external.read_all(root.path)[0]) or "none"
        raise UsageError(
            "environment.not-imported",
            f"no external environment has the name {name!r}",
            f"the list contains: {there}",
        )
    store.check_writable(root)
    external.forget(root.path, name)
    return external.entry(record)
