"""``envbuild create``: the whole way from a recipe to a published, proven environment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..build import BuildPlaces, build, prepare, tidy
from ..errors import BuildError, SmokeError, UsageError
from ..model.evidence import Evidence
from ..model.outcome import Created
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..record import read_all
from ..render import launch_by_hand, render_build, render_default, render_modulefile
from ..root import files, locks, publish, store
from .context import Context
from .load import Choice, Material, load, plan
from .locked import LOCKS, changed_inputs, check_is_for, check_runtime, obtain_lock
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


def create(options: CreateOptions, context: Context) -> Created:
    """Build, prove and publish an environment; or find that it is there already.

    Raises NoSolutionError, BuildError or SmokeError; then nothing was published and what was
    published before is as it was.
    """
    material = load(options.choice, context)
    path = root_path(options.root, material.site, material.arch, context)
    given = _given_lock(options, material, path, context)
    planned = given.plan if given else plan(material)
    root = store.open_root(path, material.site.name, material.arch)
    home = store.open_home(root, planned.recipe)
    with locks.hold(home.lock_file, say=context.tell.say) as held:
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


def _given_lock(
    options: CreateOptions, material: Material, root: Path, context: Context
) -> Lock | None:
    """Return the lock of ``--locked``, and say what has changed since it was made.

    Raises UsageError for a lock that is for something else or cannot be built here; nothing has
    been written then.
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
    home = store.Home(root, lock.plan.recipe)
    render_build(lock, Places(prefix=home.prefix(lock.id()), build=home.build(lock.id())))
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
    """Return the last lock if it decides the same, else a new one."""
    if not options.relock:
        last = _last_lock(home)
        if last and _same_decisions(last.plan, planned):
            context.tell.say("the lock of the last create still fits (--relock asks pip again)")
            return last
    return obtain_lock(material, planned, context, home.scratch)


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
    prepare(places, {**rendered, "lock.json": lock.text()}, material.runtime_source)
    symptoms = material.knowledge.value.symptoms
    with context.tell.steps(lock.plan.steps) as listener:
        build(lock, places, context.environ, listener, symptoms)
    with context.tell.working(f"smoke test on {lock.plan.smoke.ranks} ranks"):
        evidence = prove(lock, home, context)
    if evidence.result.verdict != "passed":
        raise _smoke_error(home, lock, evidence)
    tidy(places)
    return _publish(material, lock, home, evidence)


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
    proofs = [e for e in read_all(home.evidence(version.id)) if e.result.verdict == "passed"]
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
        launch=launch_by_hand(lock.plan.launcher, "2", ("python", "my_program.py")),
        evidence=proofs[-1],
    )
