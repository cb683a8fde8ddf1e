"""The stages of ``create``, as its target puts them in order."""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import files, process
from ..build.backends import entering
from ..build.scripts import build, hand_over, prepare
from ..build.targets.protocol import JobFile
from ..conda.pack import pack_prefix
from ..errors import BuildError, SmokeError, UsageError
from ..knowledge.rows import Knowledge
from ..launching.schedulers import SCHEDULERS
from ..model.backend import Script
from ..model.base_image import BaseImage, Bind
from ..model.evidence import TIERS, Evidence, newest_passed, telling
from ..model.launch import StartCommand
from ..model.outcome import CreateResult, ImageResult
from ..model.places import BuildFolders, Dialect
from ..model.plan import Lock, Plan
from ..model.proofs import proofs_of
from ..record import read_all
from ..render.build import render_smoke, render_text
from ..render.modulefile import render_modulefile, unfilled
from ..root import environment_lock
from ..root.environments import places_of
from ..target_tools import sharing
from ..target_tools.root import layout, locks, manifests, publish, registry, store
from ..text import last_lines
from .channels import close_engine
from .context import Context
from .emulate import can_emulate, emulated_system, install_emulated
from .image import ImageRequest, build_image, check_places
from .image_base import check_image
from .image_binds import check_binds
from .launch_requests import LaunchFacts, example, facts_of, script_start
from .load import PlanInputs
from .lock import obtain_lock
from .options import CreateOptions, ImageOptions
from .places import root_path
from .prove import prove, script_proofs, smoke_starts
from .root_lock import downloads_of, explain_rebuild, heal_lock, lock_of_root, tell_new_findings
from .secret_links import obtain_secret_links
from .texts import attestations, build_texts, dialect_of, forms, subject_of

_FETCH_SECONDS = 3600.0


def _check_machine(options: CreateOptions, plan_inputs: PlanInputs) -> None:
    """Raise UsageError if the chosen site has module trees and none of them is on this machine.

    A site without module trees states nothing that a machine could be recognised by.
    """
    site, choice = plan_inputs.site, options.choice
    trees = site.module_trees
    if not trees or any(Path(tree).is_dir() for tree in trees):
        return
    more = f" (nor are {len(trees) - 1} more)" if len(trees) > 1 else ""
    words = f"{choice.recipe} --site {choice.site or site.name}"
    raise UsageError(
        "site.not-this-machine",
        f"this machine is not site {site.name}: the module tree {trees[0]} is missing{more}",
        f"make a bundle to build there offline: envbuild create {words} --bundle",
        "or build for this machine: --site local",
    )


BuildHints = Callable[[Path, Knowledge], tuple[str, ...]]
"""Returns advice on a build step that failed, read from its log."""


def no_hints(_log: Path, _knowledge: Knowledge) -> tuple[str, ...]:
    """Return no advice."""
    return ()


@dataclass(frozen=True)
class CreateStages:
    """See ``targets.Stages``. ``given``: the lock of ``--locked``. ``base`` and ``binds``:
    of an image. ``build_hints``: explains a build step that failed.

    One class with many methods: each hands one recipe, site and root to a stage, and a target calls
    those that it needs.
    """

    options: CreateOptions
    plan_inputs: PlanInputs
    context: Context
    given: Lock | None
    base: BaseImage | None = None
    binds: tuple[Bind, ...] = ()
    build_hints: BuildHints = no_hints

    @property
    def planned(self) -> Plan:
        return self.given.plan if self.given else self.plan_inputs.planned

    @property
    def output(self) -> Path:
        return self.context.path(self.options.output or Path())

    @property
    def home(self) -> layout.Home:
        """The places of the environment in its root. Raises UsageError where none is known."""
        inputs = self.plan_inputs
        path = root_path(self.options.root, inputs.site, inputs.arch, self.context)
        return layout.Home(path, inputs.recipe.value.name)

    def _facts(self, lock: Lock) -> LaunchFacts:
        return facts_of(lock.plan, self.plan_inputs)

    def _build_texts(
        self, lock: Lock, places: BuildFolders, start: StartCommand | None = None
    ) -> dict[str, str]:
        inputs = self.plan_inputs
        return build_texts(lock, places, inputs.prefix_of(lock.plan), inputs.folders, start)

    @contextlib.contextmanager
    def hold(self, *, here: bool = True) -> Iterator[CreateStages]:
        plan_inputs, home = self.plan_inputs, self.home
        if self.given:
            self._build_texts(self.given, places_of(home, self.given.id()))
        if here:
            _check_machine(self.options, plan_inputs)
        shared = self.options.shared
        root = store.open_root(home.root, plan_inputs.site.name, plan_inputs.arch, shared)
        store.open_home(root, home.name)
        say = self.context.reporter.say
        with contextlib.ExitStack() as stack:
            stack.enter_context(sharing.readable(home.group))
            held = stack.enter_context(locks.hold(home.lock_file, say=say, group=home.group))
            registry.heal_registry(home, say)
            publish.clear(home, home.scratch, say)
            stack.enter_context(files.scratch(home.scratch))
            environ = held.environ(self.context.environ)
            yield replace(self, context=replace(self.context, environ=environ))

    def lock(self, downloads: Path) -> Lock:
        scratch = self.output / f".{self.plan_inputs.recipe.value.name}.locking"
        return self.given or obtain_lock(
            self.plan_inputs, self.planned, self.context, scratch, downloads
        )

    def root_lock(self) -> Lock:
        relock = self.options.relock
        lock = self.given or lock_of_root(
            self.plan_inputs, self.planned, self.home, self.context, relock=relock
        )
        # No decision: the lock of another partition may be reused, and is proved in this one.
        plan = lock.plan.model_copy(update={"partition": self.plan_inputs.chosen.partition_name})
        lock = lock.model_copy(update={"plan": plan})
        files.write_atomically(self.home.last_lock, lock.text())
        # Read to plan, and of no use where the lock is one that was there.
        close_engine(self.context)
        return lock

    def published_number(self, lock: Lock) -> int | None:
        home = self.home
        version = environment_lock.find_published(home, lock)
        if version is None:
            return None
        self.context.reporter.say(f"{home.name}/{version.number} already has exactly this lock")
        here = lock.plan.arch == platform.machine()
        manifests.check_unchanged(home, version, runs_here=here)
        heal_lock(home, version, lock, self.context)
        tell_new_findings(home, version, lock, self.context)
        return version.number

    def begin(self, lock: Lock) -> None:
        places = places_of(self.home, lock.id())
        version = publish.find_reserved(self.home, lock.id())
        if version and publish.is_published(self.home, version):
            # Jobs may run in it: a published prefix is never removed to be built anew.
            raise BuildError(
                "environment.exists",
                f"{self.home.name}/{version.number} is already published in {places.prefix}",
                f"remove it first: envbuild remove {self.home.name}/{version.number}",
            )
        others, say = publish.is_of_another(self.home, lock.id()), self.context.reporter.say
        if self.options.resume and others:
            say("not continuing the build of another user: building again")
        if not self.options.resume or others:
            publish.clear(self.home, places.prefix, say)
            publish.clear(self.home, places.build, say)
        publish.mark(self.home, lock.id())

    def can_emulate(self) -> bool:
        return can_emulate(self.plan_inputs, self.context)

    def emulated_system(self) -> Path:
        shared = self.options.shared is not None
        return emulated_system(self.plan_inputs, self.home, shared, self.context)

    def install_emulated(self, lock: Lock, bundle: Path, system: Path) -> int:
        home = self.home
        log = install_emulated(lock, bundle, home, system, self.context)
        version = publish.find_reserved(home, lock.id())
        if version is None or not publish.is_published(home, version):
            raise BuildError(
                "bundle.nothing-published",
                "the installer succeeded, but published nothing",
                f"its log: {log}",
            )
        return version.number

    def check_binds(self) -> None:
        if self.binds:
            base = self.base.folder if self.base else None
            check_binds(self.planned.modules, self.binds, base)

    def check_image(self, lock: Lock | None = None) -> None:
        self.check_binds()
        check_image(self.base, self.plan_inputs, self.context)
        if lock:
            check_places(self._image(lock))

    def _image(self, lock: Lock) -> ImageRequest:
        asked = self.options.image or ImageOptions()
        return ImageRequest(
            lock,
            self.base,
            self.plan_inputs,
            asked.format,
            self.output,
            self.binds,
            asked.candidate,
        )

    def build_image(self, lock: Lock, bundle: Path) -> ImageResult:
        return build_image(self._image(lock), bundle, self.context)

    def build(self, lock: Lock) -> None:
        explain_rebuild(self.home, lock, self.context)
        # What cannot be started is told before it is built.
        facts = self._facts(lock)
        smoke_starts(facts, self.context)
        places = places_of(self.home, lock.id())
        downloads = downloads_of(self.home)
        kept = places.build / "wheelhouse" if self.options.resume else None
        obtain_secret_links(lock, downloads, self.context, kept)
        self.begin(lock)
        texts = self._build_texts(lock, places, script_start(facts))
        texts |= attestations(lock)
        prepare(places.build, texts, self.plan_inputs.runtime_source)
        hand_over(lock, downloads, places.build)
        try:
            with self.context.reporter.steps(lock.plan.steps) as listener:
                # Of the steps before there is a Python in the prefix.
                environ = {"ENVBUILD_PYTHON": sys.executable, **self.context.environ}
                build(lock, places.build, environ, listener, self._explain)
        finally:
            sharing.share_trees(self.home.group, places.build, places.prefix)

    def _explain(self, log: Path) -> tuple[str, ...]:
        return self.build_hints(log, self.plan_inputs.knowledge.value)

    def prove(self, lock: Lock) -> tuple[Evidence, ...]:
        facts = self._facts(lock)
        proofs = prove(lock, self.home, lock.id(), facts, self.context)
        if proofs[-1].result.verdict != "passed":
            raise _smoke_error(self.home, lock, proofs[-1])
        _check_tier(self.options.require_tier, proofs)
        return proofs

    def publish(self, lock: Lock, proofs: tuple[Evidence, ...]) -> int:
        dialect, places = dialect_of(self.plan_inputs), places_of(self.home, lock.id())
        publish.tidy(places.build)
        version = publish.reserve(self.home, lock.id(), dialect)
        shown = example(self._facts(lock))
        text = render_modulefile(lock, places, version.number, telling(proofs), dialect, shown)
        publish.publish(self.home, version, text)
        return version.number

    def make_default(self, number: int) -> None:
        home, say = self.home, self.context.reporter.say
        version = publish.find_version(home, number)
        with locks.hold(home.default_lock, say=say, group=home.group):
            publish.set_default(home, version)

    def result(self, lock: Lock, number: int) -> CreateResult:
        home, version = self.home, publish.find_version(self.home, number)
        records = read_all(home, version, environment_lock.read_lock(home, version))
        proofs = newest_passed(records.evidence)
        if not proofs:
            raise BuildError(
                "environment.evidence-missing",
                f"{home.name}/{number} is published, but its evidence is missing",
                *records.claimed,
                f"run the smoke test again: envbuild smoke {home.name}/{number} --root "
                f"'{home.root}'",
            )
        return CreateResult(
            environment=home.name,
            number=number,
            id=version.id,
            lock_sha256=lock.sha256(),
            root=str(home.root),
            prefix=str(home.prefix(version.id)),
            enter=entering(lock.plan.backend, home.prefix(version.id)),
            modulefiles=str(home.root / "modulefiles"),
            loads=lock.plan.modules.loads,
            launch=example(self._facts(lock), "my_program.py").words,
            evidence=telling(proofs),
            proofs=proofs,
        )

    def scripts(self, lock: Lock, places: BuildFolders) -> dict[str, str]:
        texts = {**self._build_texts(lock, places), **attestations(lock)}
        prefix, facts = self.plan_inputs.prefix_of(lock.plan), self._facts(lock)
        for number, proof in enumerate(proofs_of(lock.plan), start=1):
            smoke = render_smoke(lock, places, prefix, script_start(facts, proof), proof)
            texts[f"smoke-{number}.sh"] = smoke["smoke.sh"]
        return texts

    def job(self, lock: Lock, places: BuildFolders, tree: Path) -> JobFile | None:
        scheduler = self.plan_inputs.site.scheduler
        if scheduler not in SCHEDULERS:
            return None
        form = forms()[scheduler]
        inputs, facts = self.plan_inputs, self._facts(lock)
        subject = subject_of(lock, places, tree, facts, inputs.chosen, inputs.knowledge.value)
        try:
            text = form.render(subject)
        except UsageError as error:
            self.context.reporter.warn(f"cannot write a job script: {error}")
            return None
        return JobFile(form.file_of(lock.plan), text, SCHEDULERS[scheduler].SUBMIT_LINE)

    def modulefile(self, lock: Lock, places: BuildFolders) -> tuple[Dialect, str]:
        dialect = dialect_of(self.plan_inputs)
        shown = example(self._facts(lock))
        return dialect, unfilled(lock, places, dialect, shown)

    def proving(self, lock: Lock) -> dict[str, Any]:
        return script_proofs(lock, self._facts(lock))

    def text(self, script: Script) -> str:
        return render_text(script)

    def write(self, folder: Path, texts: Mapping[str, str]) -> None:
        prepare(folder, texts, self.plan_inputs.runtime_source)

    def fetch(self, folder: Path, lock: Lock, downloads: Path | None) -> None:
        if downloads is not None:
            hand_over(lock, downloads, folder)
        (folder / "wheelhouse").mkdir(exist_ok=True)
        obtain_secret_links(lock, folder / "wheelhouse", self.context)
        title = f"fetch {len(lock.artifacts)} files for {lock.plan.arch}"
        with self.context.reporter.working(title):
            _fetch(folder, self.context)
        if lock.conda_packages:
            with self.context.reporter.working("link the conda packages for any prefix"):
                pack_prefix(folder, self.context.environ, self.context.reporter.say)


def _check_tier(required: str | None, proved: Sequence[Evidence]) -> None:
    stand_ins = proved[-1].stand_ins
    if required is not None and stand_ins:
        raise BuildError(
            "tier.stand-ins",
            f"tier {required} is required, but the smoke test used stand-ins instead of the real "
            f"packages: {', '.join(stand_ins)}",
            "nothing was published; without --require-tier it is published, and marked as such",
        )
    lowest = min((each.result.tier for each in proved), key=TIERS.index)
    if required is not None and TIERS.index(lowest) < TIERS.index(required):
        raise BuildError(
            "tier.too-low",
            f"tier {required} is required, but the smoke test reached only tier {lowest}",
            "nothing was published; a job on several nodes reaches a higher tier",
        )


def _smoke_error(home: layout.Home, lock: Lock, evidence: Evidence) -> SmokeError:
    folder = home.evidence(lock.id())
    return SmokeError(
        "smoke.failed",
        "the smoke test failed:\n"
        + "\n".join(f"  {line}" for line in evidence.result.failure_lines()),
        "nothing was published; published environments are unchanged",
        f"log and records of every rank: {folder / evidence.log}",
        f"to examine the environment: bash '{home.build(lock.id()) / 'shell.sh'}'",
    )


def _fetch(build: Path, context: Context) -> None:
    # Wheels of another machine are no wheels to pip here: the program that fetches sources does it.
    # It reads on standard input what pip is configured with.
    command = """
      set -euo pipefail
      settings=$("$1" -m pip config list)
      for list in sources.txt fetch.txt; do
        "$1" -B target_tools fetch "$list" wheelhouse <<<"$settings"
      done
      if [[ -e trees.json ]]; then
        "$1" -B target_tools fetch-trees trees.json wheelhouse
      fi
      if [[ -e conda.txt ]]; then
        mkdir -p conda-packages
        "$1" -B target_tools fetch --mirrors conda.json conda.txt conda-packages </dev/null
      fi
    """
    done = process.run(
        ["bash", "-c", command, "fetch", sys.executable],
        env=context.environ,
        cwd=build,
        timeout=_FETCH_SECONDS,
    )
    if not done.ok:
        said = last_lines(done.stderr, 8)
        raise BuildError(
            "bundle.fetch-failed",
            "\n".join(["cannot fetch the files of the bundle", *said]),
            "pip's configuration states where they come from: python -m pip config list",
        )
