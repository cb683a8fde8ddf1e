"""What every verb gets from outside: the environment, the clock, the documents, a reporter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..documents.library import feed_folder, feed_version, search_path
from ..knowledge.entries import check_choice
from ..runtimes import RUNTIMES
from ..target_tools.trust import distrust

if TYPE_CHECKING:
    from ..conda.engine import Engine
    from ..documents.knowledge_cache import LoadedKnowledge
    from ..knowledge.rows import Knowledge
    from ..model.plan import Step
    from ..model.progress import Listener


class Reporter(Protocol):
    """Who is told what happens while it happens."""

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def working(self, title: str) -> AbstractContextManager[None]: ...

    def steps(self, steps: tuple[Step, ...]) -> AbstractContextManager[Listener]: ...


@dataclass(frozen=True)
class Context:
    """The world outside, passed in so that a test can pass another.

    ``recipe_folders`` are searched first and ``last_folders`` last. ``engines``: what reads conda
    channels, once it was asked, by the folder of its cache.
    """

    environ: Mapping[str, str]
    cwd: Path
    clock: Callable[[], datetime]
    reporter: Reporter
    recipe_folders: tuple[Path, ...] = ()
    engines: dict[Path, Engine] = field(default_factory=dict)
    last_folders: tuple[Path, ...] = ()

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The folders of documents, in the order of the search."""
        *own, shipped = search_path(self.environ, self.recipe_folders)
        feed = (self.feed[1],) if self.feed else ()
        return (*own, *feed, shipped, *self.last_folders)

    @cached_property
    def feed(self) -> tuple[str, Path] | None:
        """The version and folder of the installed feed of knowledge; None: there is none.

        A feed that others may have written is named and not used.
        """
        folder = feed_folder(self.environ)
        version = feed_version(folder) if folder else None
        if folder is None or version is None:
            return None
        faults = (distrust(path) for path in sorted((folder / "knowledge").iterdir()))
        reason = next(filter(None, faults), None)
        if reason:
            self.reporter.warn(f"the feed of knowledge is not used: {reason}")
            return None
        return version, folder

    @cached_property
    def loaded_knowledge(self) -> LoadedKnowledge:
        """What is known there, and its hash. Raises DocumentError or UsageError."""
        # lazy import: 40 ms, and most verbs over a root know what they show
        from ..documents.knowledge import load_knowledge
        from ..documents.knowledge_cache import knowledge_folder

        cache = knowledge_folder(self.environ, self.cwd)
        verified = self.feed[1] if self.feed else None
        read = load_knowledge(self.folders, cache, verified)
        for name, each in read.value.components.items():
            package = each.collectives.package if each.collectives else None
            check_choice(f"runtime for the collectives of {name}", package, RUNTIMES)
        return read

    @property
    def knowledge(self) -> Knowledge:
        return self.loaded_knowledge.value

    def path(self, text: str | Path) -> Path:
        """Return an absolute path, relative ones from the working directory; no links resolved."""
        return self.cwd / text
