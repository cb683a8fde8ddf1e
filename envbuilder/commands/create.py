"""``envbuild create``: the whole way from a recipe to a published, proven environment."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..build import BuildPlaces, build, hand_over, prepare, tidy
from ..errors import BuildError, SmokeError, UsageError
from ..model.evidence import TIERS, Evidence, Tier
from ..model.outcome import Bundled, Created
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..model.profiles import program
from ..record import read_all
from ..render import launch_by_hand, render_build, render_default, render_modulefile
from ..root import files, locks, publish, store
from . import kept
from .buildable import check_buildable
from .bundle import make_bundle
from .context import Context
from .load import Choice, Material, load, plan
from .locked import LOCKS, changed_inputs, check_is_for, check_runtime, obtain_lock, question_of
from .patches import patch_files
from .places import root_path
from .prove import prove


@dataclass(frozen=True)
class CreateOptions:
    """What a user may say to ``create`` beside the recipe. ``locked``: build just this lock."""

    choice: Choice
    root: str | None = None
    resume: bool = False
    relock: bool = False
    locked: Path | None = None
    bundle: bool = False
    output: Path | None = None
    require_tier: Tier | None = None


def create(options: CreateOptions, context: Context) -> Created | Bundled:
    """Build, prove and publish an environment; or find that it is there already.

    For an architecture that this machine is not: make a bundle, which is built there. Raises
    NoSolutionError, BuildError or SmokeError; then nothing was published and what was published
    before is as it was.
    """
    material = load(options.choice, context)
    if options.bundle or material.arch != platform.machine():
        return _bundle(options, material, context)
    path = root_path(options.root, material.site, material.arch, context)
    given = _given_lock(options, material, context)
    if given:
        # What cannot be built is told before anything is written.
        home = store.Home(path, given.plan.recipe)
        render_build(given, Places(prefix=home.prefix(given.id()), build=home.build(given.id())))
    planned = given.plan if given else plan(material)
    check_buildable(planned)
    root = store.open_root(path, material.site.name, material.arch)
    home = store.open_home(root, planned.recipe)
    with locks.hold(home.lock_file, say=context.tell.say) as held, files.scratch(home.scratch):
        context = replace(context, environ=held.environ(context.environ))
        lock = given or _lock_for(options, material, planned, home, context)
        files.write_atomically(home.last_lock, lock.text())
        there = _already_published(home, lock)
        if there:
            context.tell.say(f"{home.name}/{there.number} holds exactly this already")
        else:
            there = _build(options, material, lock, home, context)
        _make_default(home, there, context)
        return _created(home, there, lock)


def _bundle(options: CreateOptions, material: Material, context: Context) -> Bundled:
    tier = options.require_tier
    if tier is not None and TIERS.index(tier) > TIERS.index("rendered"):
        raise BuildError(
            f"a bundle is of tier rendered, and {tier} is required",
            f"this machine is {platform.machine()}: what is for {material.arch} is proved on one",
        )
    target = context.path(options.output or Path())
    scratch = target / f".{material.recipe.value.name}.locking"
    given = _given_lock(options, material, context)
    lock = given or obtain_lock(material, plan(material), context, scratch)
    return make_bundle(lock, material, target, context)


def _given_lock(options: CreateOptions, material: Material, context: Context) -> Lock | None:
    """Return the lock of ``--locked``, and say what has changed since it was made.

    Raises UsageError for a lock that is for something else, or asked for with what would change it.
    """
    if options.locked is None:
        return None
    if options.relock or options.choice.allow:
        other = "--relock" if options.relock else "--allow"
        raise UsageError(f"--locked takes a lock as it is: {other} would change it")
    file = context.path(options.locked)
    lock = LOCKS.load(file)
    check_is_for(lock, file, material)
    check_runtime(lock, file, material)
    changed = changed_inputs(lock, material)
    if changed:
        context.tell.warn(f"changed since {file} was locked: {', '.join(changed)}; built as locked")
    return lock


def _lock_for(
    options: CreateOptions,
    material: Material,
    planned: Plan,
    home: store.Home,
    context: Context,
) -> Lock:
    """Return the last lock if it decides the same, one made elsewhere just now, or a new one."""
    last = None if options.relock else _last_lock(home)
    if last and _same_decisions(last.plan, planned):
        context.tell.say("the lock of the last create still fits (--relock asks pip again)")
        return last
    scratch = home.scratch / "asking"
    file = kept.kept_file(question_of(planned, material, context, scratch), context)
    found = kept.find(file, context.clock()) if file and not options.relock else None
    if found:
        context.tell.say(f"a lock made {found.told()} fits (--relock asks pip again)")
        return found.lock
    lock = obtain_lock(material, planned, context, scratch, _downloads(home))
    if file:
        kept.keep(file, lock, context)
    return lock


def _downloads(home: store.Home) -> Path:
    """Return where wheels are that pip had to download to say what it would install."""
    return home.scratch / "downloads"


def _last_lock(home: store.Home) -> Lock | None:
    try:
        return Lock.model_validate_json(home.last_lock.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None  # a lock of an older schema or a damaged one is simply made anew


def _same_decisions(one: Plan, other: Plan) -> bool:
    return one.model_copy(update={"inputs": ()}) == other.model_copy(update={"inputs": ()})


def _already_published(home: store.Home, lock: Lock) -> store.Version | None:
    version = store.read_registry(home).of_id(lock.id())
    return version if version and publish.is_published(home, version) else None


def _build(
    options: CreateOptions,
    material: Material,
    lock: Lock,
    home: store.Home,
    context: Context,
) -> store.Version:
    places = BuildPlaces(home.prefix(lock.id()), home.build(lock.id()))
    if not options.resume:
        files.remove_tree(places.prefix)
        files.remove_tree(places.folder)
    rendered = render_build(lock, Places(prefix=places.prefix, build=places.folder))
    patches = patch_files(lock.plan, material.folders)
    files_of_it = {**rendered, **patches, "lock.json": lock.text()}
    prepare(places.folder, files_of_it, material.runtime_source)
    hand_over(lock, _downloads(home), places)
    symptoms = material.knowledge.value.symptoms
    with context.tell.steps(lock.plan.steps) as listener:
        build(lock, places, context.environ, listener, symptoms)
    with context.tell.working(f"smoke test on {lock.plan.smoke.ranks} ranks"):
        proved = prove(lock, home, context)
    if proved[-1].result.verdict != "passed":
        raise _smoke_error(home, lock, proved[-1])
    _reached(options.require_tier, proved)
    tidy(places)
    return _publish(material, lock, home, _telling(proved))


def _reached(required: Tier | None, proved: Sequence[Evidence]) -> None:
    lowest = min((each.result.tier for each in proved), key=TIERS.index)
    if required is not None and TIERS.index(lowest) < TIERS.index(required):
        raise BuildError(
            f"what was proved is of tier {lowest}, and {required} is required",
            "nothing was published; a job over several nodes proves more",
        )


def _telling(proved: Sequence[Evidence]) -> Evidence:
    """Return the proof that says most: the recipe's own runtime, if it is not the bundled one."""
    return next((each for each in proved if each.result.api != "numpy"), proved[0])


def _publish(material: Material, lock: Lock, home: store.Home, evidence: Evidence) -> store.Version:
    dialect: store.Dialect = "tcl" if material.site.module_system == "tcl" else "lua"
    version = publish.reserve(home, lock.id(), dialect)
    places = Places(prefix=home.prefix(lock.id()), build=home.build(lock.id()))
    text = render_modulefile(lock, places, version.number, evidence, version.dialect)
    publish.publish(home, version, text)
    return version


def _make_default(home: store.Home, version: store.Version, context: Context) -> None:
    _, text = render_default(home.name, version.number, version.dialect)
    with locks.hold(home.default_lock, say=context.tell.say):
        publish.set_default(home, version.dialect, text)


def _smoke_error(home: store.Home, lock: Lock, evidence: Evidence) -> SmokeError:
    folder = home.evidence(lock.id())
    return SmokeError(
        "the ranks did not prove that they can talk:\n"
        + "\n".join(f"  {line}" for line in evidence.result.told()),
        "nothing was published; environments published before are as they were",
        f"log and records of every rank: {folder / evidence.log}",
        f"its environment: bash '{home.build(lock.id()) / 'shell.sh'}'",
    )


def _created(home: store.Home, version: store.Version, lock: Lock) -> Created:
    proofs = _newest(e for e in read_all(home.evidence(version.id)) if e.result.verdict == "passed")
    if not proofs:
        raise BuildError(
            f"{home.name}/{version.number} is published but its evidence is gone",
            f"envbuild smoke {home.name}/{version.number} --root '{home.root}' proves it again",
        )
    return Created(
        environment=home.name,
        number=version.number,
        id=version.id,
        lock_sha256=lock.sha256(),
        root=str(home.root),
        prefix=str(home.prefix(version.id)),
        modulefiles=str(home.root / "modulefiles"),
        loads=lock.plan.modules.loads,
        launch=launch_by_hand(lock.plan.launcher, "2", program(lock.plan.profile)),
        evidence=_telling(proofs),
        proofs=proofs,
    )


def _newest(proofs: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the newest of each kind of proof, in the order in which they were first made."""
    kinds = {(each.result.api, each.result.transport): each for each in proofs}
    return tuple(kinds.values())
