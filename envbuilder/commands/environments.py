"""The verbs over what a root holds: list, info, smoke, rollback, remove."""

from __future__ import annotations

from typing import Literal

from ..errors import BuildError, SmokeError, UsageError
from ..model.evidence import TIERS, Proved
from ..model.outcome import Changed, Info, Listed, Listing, Removed, Unfinished
from ..model.plan import Lock
from ..record import read_all
from ..render import render_default
from ..root import files, locks, publish, store, usage
from .context import Context
from .prove import prove


def list_all(root: store.Root) -> Listing:
    """Return every environment of a root; reads only."""
    listed: list[Listed] = []
    unfinished: list[Unfinished] = []
    for home in root.homes():
        default = store.default_number(home)
        listed += [_listed(home, version, default) for version in publish.published(home)]
        unfinished += [
            Unfinished(environment=home.name, id=identity) for identity in publish.unpublished(home)
        ]
    return Listing(
        root=str(root.path),
        site=root.site,
        arch=root.arch,
        environments=tuple(listed),
        unfinished=tuple(unfinished),
    )


def _listed(home: store.Home, version: store.Version, default: int | None) -> Listed:
    proofs = read_all(home.evidence(version.id))
    passed = [proof for proof in proofs if proof.result.verdict == "passed"]
    plan = read_lock(home, version).plan
    tiers = sorted((proof.result.tier for proof in passed), key=TIERS.index)
    return Listed(
        environment=home.name,
        number=version.number,
        default=version.number == default,
        id=version.id,
        summary=plan.summary,
        tier=tiers[-1] if tiers else None,
        proved=passed[-1].time if passed else None,
        last_failed=bool(proofs) and proofs[-1].result.verdict == "failed",
        waived=tuple(each.id for each in plan.findings if each.status == "waived"),
        warnings=sum(each.status in ("warning", "unknown") for each in plan.findings),
    )


def read_lock(home: store.Home, version: store.Version) -> Lock:
    """Return the lock a published environment was built from."""
    path = home.build(version.id) / "lock.json"
    try:
        return Lock.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        raise BuildError(
            f"the lock of {home.name}/{version.number} is missing or damaged: {path}",
            "the environment itself may still work; create it anew to have a record of it",
        ) from error


def find(root: store.Root, environment: str) -> tuple[store.Home, store.Version]:
    """Return what ``NAME`` (its default) or ``NAME/NUMBER`` means in *root*."""
    name, slash, number = environment.partition("/")
    homes = {home.name: home for home in root.homes()}
    if name not in homes:
        there = ", ".join(homes) or "none yet"
        raise UsageError(f"there is no environment {name!r} in {root.path}", f"there: {there}")
    if slash and not (number.isascii() and number.isdigit()):
        raise UsageError(f"{environment!r}: after the name comes a number, as in {name}/2")
    return homes[name], publish.find_version(homes[name], int(number) if number else None)


def names(root: store.Root, *, numbers: bool) -> tuple[str, ...]:
    """Return the names of a root's environments; with *numbers* each published ``NAME/NUMBER``."""
    if not numbers:
        return tuple(home.name for home in root.homes())
    return tuple(
        f"{home.name}/{version.number}"
        for home in root.homes()
        for version in publish.published(home)
    )


def info(root: store.Root, environment: str) -> Info:
    """Return all that is known of one environment; reads only."""
    home, version = find(root, environment)
    return Info(
        environment=home.name,
        number=version.number,
        default=version.number == store.default_number(home),
        id=version.id,
        prefix=str(home.prefix(version.id)),
        modulefile=str(home.modulefile(version)),
        lock=read_lock(home, version),
        evidence=read_all(home.evidence(version.id)),
    )


def smoke(root: store.Root, environment: str, ranks: int | None, context: Context) -> Proved:
    """Prove a published environment again and append the evidence. Raises SmokeError."""
    home, version = find(root, environment)
    lock = read_lock(home, version)
    with context.tell.working(f"smoke test on {ranks or lock.plan.smoke.ranks} ranks"):
        proved = prove(lock, home, context, ranks=ranks)
    evidence = proved[-1]
    if evidence.result.verdict != "passed":
        raise SmokeError(
            f"{home.name}/{version.number} failed its smoke test:\n"
            + "\n".join(f"  {line}" for line in evidence.result.told()),
            f"log and records of every rank: {home.evidence(version.id) / evidence.log}",
        )
    return Proved(evidence=proved)


def rollback(root: store.Root, name: str, number: int | None, context: Context) -> Changed:
    """Change the default only: to *number*, or to the newest one before the default.

    Running jobs and the modules themselves are not touched. It waits for no build: the lock it
    takes only keeps a ``remove`` from taking away the number that becomes the default.
    """
    home, _ = find(root, name)
    with locks.hold(home.default_lock, say=context.tell.say):
        return _rollback(home, number)


def _rollback(home: store.Home, number: int | None) -> Changed:
    before = store.default_number(home)
    if number is None:
        number = _number_before(home, before)
    version = publish.find_version(home, number)
    _, text = render_default(home.name, version.number, version.dialect)
    publish.set_default(home, version.dialect, text)
    return Changed(environment=home.name, before=before, now=version.number)


def _number_before(home: store.Home, default: int | None) -> int:
    """Return the newest number before the default."""
    hint = f"envbuild list shows what there is; envbuild rollback {home.name} --to N takes it"
    if default is None:
        raise UsageError(f"{home.name} has no default to go back from", hint)
    earlier = [each.number for each in publish.published(home) if each.number < default]
    if not earlier:
        raise UsageError(f"there is nothing before {home.name}/{default} to go back to", hint)
    return max(earlier)


What = Literal["number", "unfinished", "all"]


def remove(root: store.Root, environment: str, context: Context, *, what: What) -> Removed:
    """Remove one published number, the builds that were never published, or all of it.

    Raises UsageError for what is in use on this host, and for the default unless all goes.
    """
    name = environment.partition("/")[0]
    homes = {home.name: home for home in root.homes()}
    if what == "unfinished" and environment in homes:
        return _remove_unfinished(homes[name], context)
    if what == "all" and environment in homes:
        return _remove_all(homes[name], context)
    home, version = find(root, environment)
    _refuse_default(home, version)
    _refuse_in_use(home, version)
    with locks.hold(home.lock_file, say=context.tell.say):
        with locks.hold(home.default_lock, say=context.tell.say):
            # Again: what was waited for may have changed it.
            _refuse_default(home, version)
            _refuse_in_use(home, version)
            publish.withdraw(home, version)
        publish.remove_prefix(home, version.id)
    return Removed(environment=name, removed=(f"{name}/{version.number}",))


def _refuse_default(home: store.Home, version: store.Version) -> None:
    if version.number == store.default_number(home):
        raise UsageError(
            f"{home.name}/{version.number} is the default",
            f"envbuild rollback {home.name} makes another the default first",
            f"envbuild remove {home.name} --all takes all of it away",
        )


def _refuse_in_use(home: store.Home, version: store.Version) -> None:
    users = usage.processes_using(home.prefix(version.id))
    if users:
        first = ", ".join(f"{user.pid} ({user.program})" for user in users[:5])
        raise UsageError(
            f"{home.name}/{version.number} is in use by {len(users)} processes here: {first}",
            "processes on other nodes cannot be seen from here",
        )


def _remove_unfinished(home: store.Home, context: Context) -> Removed:
    with locks.hold(home.lock_file, say=context.tell.say):
        files.remove_tree(home.scratch)
        identities = publish.unpublished(home)
        for identity in identities:
            publish.remove_prefix(home, identity)
    return Removed(environment=home.name, removed=identities)


def _remove_all(home: store.Home, context: Context) -> Removed:
    """Remove every number and every unfinished build; the numbers stay used up."""
    with locks.hold(home.lock_file, say=context.tell.say):
        with locks.hold(home.default_lock, say=context.tell.say):
            versions = publish.published(home)
            for version in versions:
                _refuse_in_use(home, version)
            publish.unset_default(home)
            for version in versions:
                publish.withdraw(home, version)
        files.remove_tree(home.scratch)
        for identity in publish.unpublished(home):
            publish.remove_prefix(home, identity)
    return Removed(
        environment=home.name, removed=tuple(f"{home.name}/{v.number}" for v in versions)
    )
