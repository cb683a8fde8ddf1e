"""Which jobs a site's pipeline has: the one place that ``ci render`` and ``ci run`` have them from.

A row of the matrix is a recipe on one architecture. What it makes is built and proved in a root of
candidates first, and published in the site's root only after that.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from ..documents.library import catalogue, find
from ..documents.load import load_recipe
from ..documents.site_choice import choose_site, with_partition
from ..errors import EnvbuildError, UsageError
from ..model.pipeline import FOLDER, Command, Job, Pipeline, Stage, When
from ..model.plan import Input, Plan, Step
from ..model.progress import Listener
from ..model.site import Runner, Site
from .context import Context, Reporter
from .entries import entries
from .launch_requests import facts_of
from .load import load
from .options import CiOptions, PlanOptions
from .places import module_tree
from .site_contents import site_search

# Where a bundle is put, below the folder of its row.
_BUNDLE = "bundle"
# Of the candidates that were published since, one is kept for a week, to compare with.
_KEPT = ("--keep", "1", "--older-than", "7")


@dataclass(frozen=True)
class Row:
    """One row of the matrix.

    ``word``: what the user calls the recipe. ``gpus``: whether it is proved on GPUs. ``several``:
    on more than one rank. ``inputs``: what its plan is made of; none where there is none.
    """

    word: str
    name: str
    arch: str
    gpus: bool = False
    several: bool = True
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class Matrix:
    """A site's rows. ``base``: the folder that its roots are below."""

    site: Site
    rows: tuple[Row, ...]
    base: Path
    options: CiOptions
    recipe_folders: tuple[Path, ...]


def matrix(options: CiOptions, context: Context) -> Matrix:
    """Plan every recipe for every architecture of the site.

    Without recipes it is those that are documented for the site. What cannot be planned is warned
    of: of the recipes that the user names it stays a row, whose first job says why.
    """
    chosen = with_partition(choose_site(options.site, site_search(context)), options.partition)
    context.reporter.say(chosen.describe())
    site, base = chosen.site, options.base or chosen.site.base
    if base is None:
        raise UsageError(f"site {site.name} does not say where roots lie", "say it with --base DIR")
    words = options.matrix or _documented(site, context)
    rows = [row for word in words for row in _rows(word, site, options, context)]
    if not rows:
        raise UsageError(
            f"there is nothing to build for {site.name}", "name recipes: envbuild ci ... RECIPE..."
        )
    if len({(row.name, row.arch) for row in rows}) != len(rows):
        raise UsageError("two of the recipes have the same name", "leave one of them out")
    return Matrix(site, tuple(rows), context.path(base), options, context.recipe_folders)


def _documented(site: Site, context: Context) -> tuple[str, ...]:
    """Return the recipes that are documented for a site."""
    found = []
    for name, path in catalogue("recipe", context.folders):
        try:
            recipe = load_recipe(path, context.knowledge, entries()).value
        except EnvbuildError as error:
            context.reporter.warn(f"{name} is left out: {error}")
            continue
        if site.name in recipe.documented_for.values():
            found.append(name)
    return tuple(found)


def _rows(word: str, site: Site, options: CiOptions, context: Context) -> Iterator[Row]:
    """Yield a recipe's rows: the architectures that it shares with the site."""
    try:
        recipe = load_recipe(
            find("recipe", word, context.folders), context.knowledge, entries()
        ).value
    except EnvbuildError as error:
        context.reporter.warn(f"{word} cannot be read: {error}")
        for arch in options.arch or site.arch:
            yield Row(word, Path(word).stem, arch)
        return
    wanted = options.arch or site.arch
    for arch in (each for each in recipe.arch if each in wanted):
        try:
            yield _planned(word, arch, options, context)
        except EnvbuildError as error:
            context.reporter.warn(f"{word} cannot be planned for {arch}: {error}")
            if options.matrix:
                yield Row(word, recipe.name, arch)


def _planned(word: str, arch: str, options: CiOptions, context: Context) -> Row:
    choice = PlanOptions(word, options.site, arch, options.partition)
    loaded = load(choice, replace(context, reporter=_Silent(context.reporter)))
    plan: Plan = loaded.planned
    gpus = facts_of(plan, loaded).gpus
    return Row(word, plan.recipe, arch, gpus, plan.smoke.ranks > 1, loaded.inputs())


@dataclass(frozen=True)
class _Silent:
    """Tells no more than warnings: of twenty recipes each would say the same of the site."""

    heard: Reporter

    def say(self, line: str) -> None:
        pass

    def warn(self, line: str) -> None:
        self.heard.warn(line)

    def working(self, title: str) -> AbstractContextManager[None]:
        return self.heard.working(title)

    def steps(self, steps: tuple[Step, ...]) -> AbstractContextManager[Listener]:
        return self.heard.steps(steps)


def pipeline(matrix: Matrix) -> Pipeline:
    """Return the jobs of every row, those of the night last."""
    rows = [_Jobs(row, matrix) for row in matrix.rows]
    return Pipeline(
        site=matrix.site.name,
        setup=_setup(matrix),
        jobs=(
            *(job for row in rows for job in row.day()),
            *(job for row in rows for job in row.night()),
        ),
    )


def _setup(matrix: Matrix) -> tuple[str, ...]:
    """Return what puts envbuild on the search path: the site's lines, else its own module.

    That is the module of ``envbuild module render``; a site without modules has it there.
    """
    site = matrix.site
    if site.ci.setup or site.module_system == "none":
        return site.ci.setup
    tree = module_tree(matrix.base, site)
    start = [f"source {shlex.quote(site.module_init)}"] if site.module_init else []
    return (*start, shlex.join(["module", "use", str(tree)]), "module load envbuild")


@dataclass(frozen=True)
class _Jobs:
    """The jobs of one row.

    Where the builder has no GPUs and the proof needs some, a bundle is what is built: the prover
    installs it, compiles what is to be compiled, and proves it.
    """

    row: Row
    matrix: Matrix

    @property
    def apart(self) -> bool:
        return self.row.gpus and not self.matrix.site.ci.build.gpus

    @property
    def root(self) -> str:
        return str(self.matrix.base / self.matrix.site.name / self.row.arch)

    @property
    def candidates(self) -> str:
        return f"{self.root}-candidates"

    def day(self) -> Iterator[Job]:
        """Yield the jobs of every change, in order."""
        runners = self.matrix.site.ci
        plan = self._job("plan", [self._plan()], runners.build)
        lock = self._job("lock", [self._lock()], runners.build, [plan], makes=["lock.json"])
        made = [_BUNDLE] if self.apart else []
        build = self._job("build", [self._build()], runners.build, [lock], [lock], makes=made)
        proof = [self._prove(), self._evidence(self.candidates, "evidence.json")]
        prove = self._job("prove", proof, runners.prove, [build], [build], makes=["evidence.json"])
        scan = self._job("scan", [self._scan(self.candidates)], runners.build, [prove])
        source = build if self.apart else lock
        yield from (plan, lock, build, prove, scan)
        yield self._job(
            "publish",
            [
                self._publish(),
                self._evidence(self.root, "published.json"),
                Command(("remove", self.row.name, *_KEPT, "--root", self.candidates)),
            ],
            runners.prove,
            [source, scan],
            [source],
            makes=["published.json"],
            when="default-branch",
        )

    def night(self) -> Iterator[Job]:
        """Yield the jobs of every night: what is published is proved again, drift is opened."""
        runners, name = self.matrix.site.ci, self.row.name
        proof = [self._smoke(self.root), self._evidence(self.root, "nightly.json")]
        yield self._job("prove-again", proof, runners.prove, makes=["nightly.json"], when="nightly")
        recipe = ("--recipe", self.row.word) if self.row.word != name else ()
        words = ("diff", name, "live", "--root", self.root, *recipe, *self._place())
        drift = [self._scan(self.root), Command((*words, *self._folders()))]
        yield self._job("drift", drift, runners.build, when="nightly")

    def _job(
        self,
        stage: Stage,
        commands: Sequence[Command],
        runner: Runner,
        needs: Sequence[Job] = (),
        takes: Sequence[Job] = (),
        *,
        makes: Sequence[str] = (),
        when: When = "always",
    ) -> Job:
        return Job(
            stage=stage,
            recipe=self.row.name,
            arch=self.row.arch,
            commands=tuple(commands),
            runner=runner,
            needs=tuple(each.id for each in needs),
            takes=tuple(each.id for each in takes if each.makes),
            makes=tuple(self._file(each) for each in makes),
            when=when,
        )

    def _file(self, name: str) -> str:
        return f"{FOLDER}/{self.row.name}-{self.row.arch}/{name}"

    def _place(self) -> tuple[str, ...]:
        part = self.matrix.options.partition
        words = ("--site", self._site_word(), "--arch", self.row.arch)
        return (*words, "--partition", part) if part else words

    def _site_word(self) -> str:
        """Return the site as the user called it, which may be a file."""
        return self.matrix.options.site or self.matrix.site.name

    def _folders(self) -> tuple[str, ...]:
        folders = self.matrix.recipe_folders
        return tuple(word for each in folders for word in ("--recipes", str(each)))

    def _choice(self) -> tuple[str, ...]:
        return (self.row.word, *self._place(), *self._folders())

    def _emulated(self) -> tuple[str, ...]:
        return ("--emulate",) if self.matrix.options.emulate else ()

    def _plan(self) -> Command:
        return Command(("plan", *self._choice(), "--verbose"))

    def _lock(self) -> Command:
        return Command(("lock", *self._choice(), "--output", self._file("lock.json")))

    def _create(self, *words: str) -> Command:
        lock = ("--locked", self._file("lock.json"))
        return Command(("create", *self._choice(), *lock, *words), ranks=True)

    def _build(self) -> Command:
        if self.apart:
            return self._create("--bundle", "--output", self._file(_BUNDLE))
        return self._create("--root", self.candidates, *self._emulated())

    def _install(self, root: str) -> Command:
        return Command(("bundle", "install", self._file(_BUNDLE), "--root", root), ranks=True)

    def _smoke(self, root: str) -> Command:
        return Command(("smoke", self.row.name, "--root", root, *self._emulated()), ranks=True)

    def _prove(self) -> Command:
        return self._install(self.candidates) if self.apart else self._smoke(self.candidates)

    def _evidence(self, root: str, file: str) -> Command:
        return Command(("info", self.row.name, "--root", root, "--json"), self._file(file))

    def _scan(self, root: str) -> Command:
        return Command(("validate", self.row.name, "--root", root, *self._folders()))

    def _publish(self) -> Command:
        if self.apart:
            return self._install(self.root)
        tier = "ranks" if self.row.several else "rank"
        return self._create("--root", self.root, *self._emulated(), "--require-tier", tier)
