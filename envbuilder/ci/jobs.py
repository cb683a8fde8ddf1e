"""Which jobs a site's pipeline has.

What a row of the matrix makes is built and proved in a root of candidates first, and published in
the site's root only after that.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from ..model.places import REGISTRY
from ..model.site import Runner, Site
from ..workflow.matrix import Matrix, MatrixRow
from ..workflow.options import ImageOptions
from ..workflow.places import site_dialect
from .values import FOLDER, Command, Pipeline, PipelineJob, ReportKind, Stage, When

# Where a bundle is put, below the folder of its row.
_BUNDLE = "bundle"
# And an image, with its lock, manifest and records.
_IMAGE = "image"
_FINDINGS, _SBOM, _PROVENANCE = "findings.xml", "sbom.cdx.json", "provenance.json"
# Clones that the weekly job reads, and how the URL of a package index ends (PEP 503).
_SOURCES, _INDEX = "sources", "/simple"
# Of the candidates that were published since, one is kept for a week, to compare with.
_KEPT = ("--keep", "1", "--older-than", "7")


def pipeline(matrix: Matrix, folders: Sequence[Path], *, emulate: bool) -> Pipeline:
    """Return the jobs of every row, those of the night last.

    *folders*: of further recipes. *emulate*: another architecture is built and proved by qemu.
    """
    rows = [_Jobs(row, matrix, tuple(folders), emulate) for row in matrix.rows]
    return Pipeline(
        site=matrix.site.name,
        setup=_setup(matrix),
        jobs=(
            *(job for row in rows for job in row.day()),
            *(job for row in rows for job in row.night()),
            *_record(matrix.site),
        ),
        refused=tuple(_refused(matrix)),
    )


def _record(site: Site) -> Iterator[PipelineJob]:
    """Yield the weekly job that records what others state; a person accepts its drafts."""
    folder = f"{FOLDER}/{_SOURCES}"
    checkouts = {
        url: f"{folder}/{url.rstrip('/').rpartition('/')[2].removesuffix('.git')}"
        for url in site.ci.record
        if not url.rstrip("/").endswith(_INDEX)
    }
    words = [checkouts.get(url, url) for url in site.ci.record]
    clones = (["git", "clone", "--depth", "1", url, path] for url, path in checkouts.items())
    output = f"{FOLDER}/knowledge-{site.arch[0]}/knowledge"
    command = Command(("knowledge", "record", *words, "--output", output))
    job = PipelineJob("record", "knowledge", site.arch[0], (command,), site.ci.build, when="weekly")
    before = (f"rm -rf {folder}", *map(shlex.join, clones))
    yield from [replace(job, makes=(output,), before=before)] if words else []


def _refused(matrix: Matrix) -> Iterator[str]:
    """Yield a line for each channel that is gone, with its rows, and one for each other row."""
    rows = sorted(matrix.refused, key=lambda row: (row.channel is None, row.reason))
    for reason, group in groupby(rows, key=lambda row: row.reason):
        yield f"Not built: {', '.join(map(str, group))}: {reason}"


def _setup(matrix: Matrix) -> tuple[str, ...]:
    """Return what puts envbuild on the search path: the site's lines, else its own module.

    That is the module of ``envbuild module render``; a site without modules has it there.
    """
    site = matrix.site
    if site.ci.setup or site.module_system == "none":
        return site.ci.setup
    tree = matrix.base / site.name / "modulefiles" / site_dialect(site)
    start = [f"source {shlex.quote(site.module_init)}"] if site.module_init else []
    return (*start, shlex.join(["module", "use", str(tree)]), "module load envbuild")


@dataclass(frozen=True)
class _Jobs:
    """The jobs of one row.

    Where the builder has no GPUs and the proof needs some, a bundle is what is built: the prover
    installs it, compiles what is to be compiled, and proves it. A small method for each command
    line, so there are many: what all have in common is the row.
    """

    row: MatrixRow
    matrix: Matrix
    folders: tuple[Path, ...]
    emulate: bool

    @property
    def apart(self) -> bool:
        return self.row.gpus and not self.matrix.site.ci.build.gpus and not self.emulate

    @property
    def root(self) -> str:
        return str(self.matrix.root(self.row.arch))

    @property
    def candidates(self) -> str:
        return f"{self.root}-candidates"

    def day(self) -> Iterator[PipelineJob]:
        """Yield the jobs of every change, in order."""
        runners = self.matrix.site.ci
        plan = self._job("plan", [self._plan()], runners.build)
        lock = self._job("lock", [self._lock()], runners.build, [plan], makes=["lock.json"])
        made = [_BUNDLE] if self.apart else []
        build = self._job("build", [self._build()], runners.build, [lock], [lock], makes=made)
        proof = [self._prove(), self._evidence(self.candidates, "evidence.json")]
        prove = self._job("prove", proof, runners.prove, [build], [build], makes=["evidence.json"])
        scan = self._job(
            "scan",
            [self._findings(self.candidates), self._scan(self.candidates)],
            runners.build,
            [prove],
            makes=[_FINDINGS],
            reports=[("junit", _FINDINGS)],
        )
        source = build if self.apart else lock
        yield from (plan, lock, build, prove, scan)
        yield self._job(
            "publish",
            [
                self._publish(),
                self._evidence(self.root, "published.json"),
                self._attestation("cyclonedx", _SBOM),
                self._attestation("provenance", _PROVENANCE),
                Command(("remove", self.row.name, *_KEPT, "--root", self.candidates)),
            ],
            runners.prove,
            [source, scan],
            [source],
            makes=["published.json", _SBOM, _PROVENANCE],
            reports=[("cyclonedx", _SBOM)],
            when="default-branch",
        )
        if self.row.image:
            # Built where its ranks can communicate.
            to = self._image_place()
            root = None if to is None or to.startswith(REGISTRY) else to
            commands = [self._image(self.row.image)]
            commands += [self._evidence(root, "image.json")] if root else []
            yield self._job(
                "image",
                commands,
                runners.prove,
                [scan],
                makes=["image.json"] if root else [] if to else [_IMAGE],
                when="default-branch",
            )

    def night(self) -> Iterator[PipelineJob]:
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
        needs: Sequence[PipelineJob] = (),
        takes: Sequence[PipelineJob] = (),
        *,
        makes: Sequence[str] = (),
        reports: Sequence[tuple[ReportKind, str]] = (),
        when: When = "always",
    ) -> PipelineJob:
        return PipelineJob(
            stage=stage,
            recipe=self.row.name,
            arch=self.row.arch,
            commands=tuple(commands),
            runner=runner,
            needs=tuple(each.id for each in needs),
            takes=tuple(each.id for each in takes if each.makes),
            makes=tuple(self._file(each) for each in makes),
            reports=tuple((kind, self._file(each)) for kind, each in reports),
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
        return tuple(word for each in self.folders for word in ("--recipes", str(each)))

    def _choice(self) -> tuple[str, ...]:
        return (self.row.word, *self._place(), *self._folders())

    def _emulated(self) -> tuple[str, ...]:
        return ("--emulate",) if self.emulate else ()

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
        # The site as the user called it: its file need not lie where others are found.
        words = ("smoke", self.row.name, "--site", self._site_word(), "--root", root)
        return Command((*words, *self._emulated()), ranks=True)

    def _prove(self) -> Command:
        return self._install(self.candidates) if self.apart else self._smoke(self.candidates)

    def _evidence(self, root: str, file: str) -> Command:
        return Command(("info", self.row.name, "--root", root, "--json"), self._file(file))

    def _attestation(self, form: str, file: str) -> Command:
        words = ("info", self.row.name, "--root", self.root, "--as", form)
        return Command(words, self._file(file))

    def _findings(self, root: str) -> Command:
        words = (*self._scan(root).words, "--as", "junit")
        return Command(words, self._file(_FINDINGS), reports=True)

    def _scan(self, root: str) -> Command:
        return Command(("validate", self.row.name, "--root", root, *self._folders()))

    def _publish(self) -> Command:
        if self.apart:
            return self._install(self.root)
        tier = "ranks" if self.row.several else "rank"
        return self._create("--root", self.root, *self._emulated(), "--require-tier", tier)

    def _image(self, image: ImageOptions) -> Command:
        place, base = self._place(), image.base
        if base and not image.binds:
            # The base is planned for; a site may have mirrors of registries.
            site = ("--site", self._site_word()) if base.startswith(REGISTRY) else ()
            place = (*site, "--arch", self.row.arch)
        named = ("--base", base) if base else ()
        binds = (word for each in image.binds for word in ("--bind", each))
        words = ("image", self.row.word, *place, *named, *binds, *self._folders())
        target = self._image_place()
        to = ("--to", target) if target else ("--output", self._file(_IMAGE))
        return Command((*words, "--format", image.format, *to), ranks=True)

    def _image_place(self) -> str | None:
        """Return the folder or registry in which images are published, if the site names one."""
        images = self.matrix.site.ci.image
        if images is None or images.to is None:
            return None
        one = len(self.matrix.site.arch) == 1 or images.to.startswith(REGISTRY)
        return images.to if one else f"{images.to}/{self.row.arch}"
