"""What a module of this folder has, and what ``create`` hands to it.

A new target is a module with these names, and its line in TARGETS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...knowledge.rows import Knowledge
from ...model.base_image import BaseImage, Bind
from ...model.evidence import Tier
from ...model.launch import StartCommand
from ...model.outcome import BundleResult, CreateResult, ImageResult
from ...model.places import BuildFolders
from ...model.plan import Lock
from ..context import Context
from ..inputs import input_texts
from ..launch_requests import LaunchFacts, facts_of
from ..load import PlanInputs, Planned
from ..options import CreateOptions
from ..texts import build_texts

BuildHints = Callable[[Path, Knowledge], tuple[str, ...]]
"""Returns advice on a build step that failed, read from its log."""


def no_hints(_log: Path, _knowledge: Knowledge) -> tuple[str, ...]:
    """Return no advice."""
    return ()


@dataclass(frozen=True)
class CreateRequest:
    """What is created, and from what.

    ``source``: the lock of ``--locked``, or a plan to lock. ``base`` and ``binds``: of an image.
    ``build_hints``: explains a build step that failed.
    """

    options: CreateOptions
    plan_inputs: PlanInputs
    source: Lock | Planned
    context: Context
    base: BaseImage | None = None
    binds: tuple[Bind, ...] = ()
    build_hints: BuildHints = no_hints

    @property
    def output(self) -> Path:
        """The folder that the user named for files, or the working folder."""
        return self.context.path(self.options.output or Path())

    def facts(self, lock: Lock) -> LaunchFacts:
        """Return what is known about starting the ranks of a lock."""
        return facts_of(lock.plan, self.plan_inputs)

    def texts(
        self, lock: Lock, places: BuildFolders, start: StartCommand | None = None
    ) -> dict[str, str]:
        """Return the texts of a build folder, by file. *start*: starts the smoke test."""
        inputs = self.plan_inputs
        texts = build_texts(lock, places, inputs.prefix_of(lock.plan), inputs.folders, start)
        return {**texts, **input_texts(inputs, lock.plan)}


class Target(Protocol):
    """Where a prefix is made.

    ``HIGHEST_TIER``: what can be proved there at most. ``OWN_ARCH``, ``OTHER_ARCH``: whether it can
    be for this machine's architecture, and for another.
    """

    HIGHEST_TIER: Tier
    OWN_ARCH: bool
    OTHER_ARCH: bool

    def make(self, request: CreateRequest) -> CreateResult | BundleResult | ImageResult:
        """Make the environment. What fails leaves nothing that looks finished."""
