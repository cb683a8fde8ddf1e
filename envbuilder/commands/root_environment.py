"""An environment in a root: locked, built, proved and published while nobody else does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import files
from ..build import build, hand_over, prepare
from ..errors import BuildError, SmokeError, UsageError
from ..locking import lock_cache
from ..model.decisions import asks_the_same
from ..model.evidence import TIERS, Evidence
from ..model.lock_check import contradictions
from ..model.outcome import CreateResult
from ..model.plan import Lock, Plan
from ..record import read_all
from ..render.modulefile import render_modulefile
from ..root import environment_lock
from ..root.environments import places_of
from ..target_tools.root import locks, manifests, publish, store
from ..target_tools.trust import distrust
from .context import Context
from .launch_requests import example, facts_of, script_start
from .load import PlanInputs, plan
from .lock import check_buildable, fingerprint, obtain_lock
from .options import CreateOptions
from .places import root_path
from .prove import prove, smoke_starts
from .texts import build_texts, dialect_of


@contextlib.contextmanager
def hold_environment(
    options: CreateOptions, given: Lock | None, plan_inputs: PlanInputs, context: Context
) -> Iterator[RootEnvironment]:
    """Open the root, and hold the environment's folder until the block ends; *given*: its lock.

    Raises UsageError for what cannot be built, or not on this machine, before anything is written.
    """
    path = root_path(options.root, plan_inputs.site, plan_inputs.arch, context)
    if given:
        home = store.Home(path, given.plan.recipe)
        build_texts(given, places_of(home, given.id()), plan_inputs)
    planned = given.plan if given else plan(plan_inputs)
    check_buildable(planned, plan_inputs.prefix_of(planned))
    _check_machine(options, plan_inputs)
    root = store.open_root(path, plan_inputs.site.name, plan_inputs.arch)
    home = store.open_home(root, planned.recipe)
    with locks.hold(home.lock_file, say=context.reporter.say) as held, files.scratch(home.scratch):
        context = replace(context, environ=held.environ(context.environ))
        yield RootEnvironment(options, given, plan_inputs, planned, home, context)


def _check_machine(options: CreateOptions, plan_inputs: PlanInputs) -> None:
    """Raise UsageError if the chosen site has module trees and none of them is on this machine.

    A site without module trees states nothing that a machine could be recognised by.
    """
    site, choice = plan_inputs.site, options.choice
    trees = site.module_trees
    if not trees or any(Path(tree).is_dir() for tree in trees):
        return
    more = f", nor are {len(trees) - 1} more" if len(trees) > 1 else ""
    words = f"{choice.recipe} --site {choice.site or site.name}"
    raise UsageError(
        f"this machine is not site {site.name}: its module tree {trees[0]} is not here{more}",
        f"envbuild create {words} --bundle makes a bundle that is built there, without network",
        "--site local builds for this machine, with what it has",
    )


@dataclass(frozen=True)
class RootEnvironment:
    """What a target does with the environment of a root. See ``targets.Environment``."""

    options: CreateOptions
    given: Lock | None
    plan_inputs: PlanInputs
    planned: Plan
    home: store.Home
    context: Context

    def lock(self) -> Lock:
        lock = self.given or self._lock()
        files.write_atomically(self.home.last_lock, lock.text())
        return lock

    def _lock(self) -> Lock:
        """Return the last lock if it decides the same, one made elsewhere, or a new one."""
        home, context, relock = self.home, self.context, self.options.relock
        last = None if relock else _last_lock(home, context)
        if last and asks_the_same(last.plan, self.planned):
            again = Lock(plan=self.planned, artifacts=last.artifacts)
            wrong = contradictions(again)
            if not wrong:
                context.reporter.say("reusing the existing lock (use --relock to resolve again)")
                return again
            context.reporter.warn(f"{home.last_lock} is left out: {'; '.join(wrong)}")
        scratch = home.scratch / "asking"
        request = fingerprint(self.planned, self.plan_inputs, context, scratch)
        file = lock_cache.cache_file(request, context.environ, context.cwd)
        usable = file is not None and not relock and _is_trusted(file, context)
        found = lock_cache.find(file, context.clock()) if file and usable else None
        if found:
            context.reporter.say(
                f"reusing a lock made {found.age_text()} (use --relock to resolve again)"
            )
            return found.lock
        lock = obtain_lock(self.plan_inputs, self.planned, context, scratch, _downloads(home))
        if file:
            try:
                lock_cache.store(file, lock, context.clock())
            except OSError as error:
                context.reporter.warn(f"the lock is not cached: {error}")
        return lock

    def published_number(self, lock: Lock) -> int | None:
        home = self.home
        version = environment_lock.find_published(home, lock)
        if version is None:
            return None
        self.context.reporter.say(f"{home.name}/{version.number} holds exactly this already")
        manifests.check_unchanged(home, version)
        _tell_new_findings(home, version, lock, self.context)
        return version.number

    def build(self, lock: Lock) -> None:
        _explain_rebuild(self.home, lock, self.context)
        # What cannot be started is told before it is built.
        facts = facts_of(lock.plan, self.plan_inputs)
        smoke_starts(facts, self.context)
        places = places_of(self.home, lock.id())
        version = publish.find_reserved(self.home, lock.id())
        if version and publish.is_published(self.home, version):
            # Jobs may run in it: a published prefix is never removed to be built anew.
            raise BuildError(
                f"{self.home.name}/{version.number} is published in {places.prefix}",
                f"envbuild remove {self.home.name}/{version.number} removes it",
            )
        if not self.options.resume:
            files.remove_tree(places.prefix)
            files.remove_tree(places.build)
        publish.mark(self.home, lock.id())
        texts = build_texts(lock, places, self.plan_inputs, script_start(facts))
        prepare(places.build, texts, self.plan_inputs.runtime_source)
        hand_over(lock, _downloads(self.home), places.build)
        symptoms = self.plan_inputs.knowledge.value.symptoms
        with self.context.reporter.steps(lock.plan.steps) as listener:
            build(lock, places.build, self.context.environ, listener, symptoms)

    def prove(self, lock: Lock) -> tuple[Evidence, ...]:
        facts = facts_of(lock.plan, self.plan_inputs)
        proofs = prove(lock, self.home, lock.id(), facts, self.context)
        if proofs[-1].result.verdict != "passed":
            raise _smoke_error(self.home, lock, proofs[-1])
        _check_tier(self.options.require_tier, proofs)
        return proofs

    def publish(self, lock: Lock, proofs: tuple[Evidence, ...]) -> int:
        dialect, places = dialect_of(self.plan_inputs), places_of(self.home, lock.id())
        publish.tidy(places.build)
        version = publish.reserve(self.home, lock.id(), dialect)
        shown = example(facts_of(lock.plan, self.plan_inputs))
        text = render_modulefile(lock, places, version.number, _telling(proofs), dialect, shown)
        publish.publish(self.home, version, text)
        return version.number

    def make_default(self, number: int) -> None:
        version = publish.find_version(self.home, number)
        with locks.hold(self.home.default_lock, say=self.context.reporter.say):
            publish.set_default(self.home, version)

    def result(self, lock: Lock, number: int) -> CreateResult:
        home, version = self.home, publish.find_version(self.home, number)
        every = read_all(home.evidence(version.id))
        passed = (each for each in every if each.result.verdict == "passed")
        # The newest of each kind of proof, in the order in which they were first made.
        kinds = {(each.result.api, each.result.transport): each for each in passed}
        if not kinds:
            raise BuildError(
                f"{home.name}/{number} is published but its evidence is gone",
                f"envbuild smoke {home.name}/{number} --root '{home.root}' proves it again",
            )
        proofs = tuple(kinds.values())
        return CreateResult(
            environment=home.name,
            number=number,
            id=version.id,
            lock_sha256=lock.sha256(),
            root=str(home.root),
            prefix=str(home.prefix(version.id)),
            modulefiles=str(home.root / "modulefiles"),
            loads=lock.plan.modules.loads,
            launch=example(facts_of(lock.plan, self.plan_inputs), "my_program.py").words,
            evidence=_telling(proofs),
            proofs=proofs,
        )


def _downloads(home: store.Home) -> Path:
    """Return where wheels are that pip had to download to say what it would install."""
    return home.scratch / "downloads"


def _last_lock(home: store.Home, context: Context) -> Lock | None:
    """Return the lock of the last create; None where there is none that counts."""
    if not _is_trusted(home.last_lock, context):
        return None
    try:
        return Lock.model_validate_json(home.last_lock.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None  # a lock of an older schema or a damaged one is simply made anew


def _is_trusted(file: Path, context: Context) -> bool:
    """Whether a file may choose what is installed and run; one that may not is named."""
    reason = distrust(file)
    if reason:
        context.reporter.warn(f"{file} is left out: {reason}")
    return reason is None


def _explain_rebuild(home: store.Home, lock: Lock, context: Context) -> None:
    """Say that the runtime's sources are not those of the newest environment, if they are not."""
    newest = next(reversed(publish.published(home)), None)
    if newest is None:
        return
    with contextlib.suppress(BuildError):
        before, now = environment_lock.read_lock(home, newest).plan.runtime, lock.plan.runtime
        if before.source_sha256 != now.source_sha256:
            what = "the bundled runtime" if now.bundled else f"the runtime {now.package}"
            context.reporter.say(
                f"{what} changed since {home.name}/{newest.number} was built: building anew"
            )


def _tell_new_findings(
    home: store.Home, version: store.Version, lock: Lock, context: Context
) -> None:
    """Warn of what was not known yet when the environment was built: its records do not say it."""
    try:
        stored = environment_lock.read_lock(home, version)
    except BuildError as error:
        context.reporter.warn(str(error))
        return
    before = {(each.id, each.status) for each in stored.plan.findings}
    new = [
        f"{each.id} ({each.status})"
        for each in lock.plan.findings
        if each.status in ("warning", "unknown") and (each.id, each.status) not in before
    ]
    if new:
        context.reporter.warn(
            f"known since {home.name}/{version.number} was built: {', '.join(new)}; "
            "envbuild plan shows them"
        )


def _check_tier(required: str | None, proved: Sequence[Evidence]) -> None:
    lowest = min((each.result.tier for each in proved), key=TIERS.index)
    if required is not None and TIERS.index(lowest) < TIERS.index(required):
        raise BuildError(
            f"what was proved is of tier {lowest}, and {required} is required",
            "nothing was published; a job over several nodes proves more",
        )


def _telling(proved: Sequence[Evidence]) -> Evidence:
    """Return the proof that says most: the recipe's own runtime, if it is not the bundled one."""
    return next((each for each in proved if each.result.api != "numpy"), proved[0])


def _smoke_error(home: store.Home, lock: Lock, evidence: Evidence) -> SmokeError:
    folder = home.evidence(lock.id())
    return SmokeError(
        "the ranks did not prove that they can talk:\n"
        + "\n".join(f"  {line}" for line in evidence.result.failure_lines()),
        "nothing was published; environments published before are as they were",
        f"log and records of every rank: {folder / evidence.log}",
        f"its environment: bash '{home.build(lock.id()) / 'shell.sh'}'",
    )
