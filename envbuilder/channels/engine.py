"""Asking py-rattler, which reads channels and solves, in a process of its own.

conda itself is on no package index, so that it can be driven where it is, and cannot be required.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import data, process
from ..errors import BuildError, MissingToolError
from ..target_tools.trust import distrust

# The engine gives up a solve before (conda_engine.SOLVE_MINUTES); reading takes what networks take.
_SECONDS = 30 * 60.0
_LAST_LINES = 5


class EngineError(Exception):
    """What the engine could not do. ``kind``: ``channel``, ``unsolvable``; the text is its own.

    ``channel``: the number of the channel that could not be read, where that is known.
    """

    def __init__(self, kind: str, text: str, channel: int | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.channel = channel


@dataclass(frozen=True)
class Engine:
    """What answers requests: see ``target_tools/conda_engine.py``. ``cache``: its folder."""

    environ: Mapping[str, str]
    cache: Path

    def records(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the records that a request asks for. Raises as ``answer`` does."""
        return list(self.answer(request)["records"])

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises EngineError, MissingToolError without py-rattler, BuildError where it ends badly.
        """
        with contextlib.ExitStack() as held:
            cache = str(self.cache)
            if not _is_ours(self.cache):
                # What channels say chooses packages: it is read anew, and kept for this time alone.
                cache = held.enter_context(tempfile.TemporaryDirectory(prefix="envbuild-repodata-"))
            answer = self._answer({**request, "cache": cache})
        error = answer.get("error")
        if error is None:
            return answer
        if error["kind"] == "missing":
            raise missing(error["text"])
        raise EngineError(error["kind"], error["text"], error.get("channel"))

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="envbuild-conda-") as folder:
            asked, answered = Path(folder, "request.json"), Path(folder, "answer.json")
            asked.write_text(json.dumps(request), encoding="utf-8")
            words = [sys.executable, "-I", str(data.TARGET_TOOLS), "conda-engine", "answer"]
            done = process.run(
                [*words, str(asked), str(answered)], env=self.environ, timeout=_SECONDS
            )
            if not done.ok or not answered.is_file():
                lines = [each for each in done.stderr.splitlines() if each.strip()][-_LAST_LINES:]
                how = "in time" if done.code is None else f"well: exit code {done.code}"
                raise BuildError("\n  | ".join([f"py-rattler did not end {how}", *lines]))
            answer: dict[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
            return answer


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can have written what is kept in a folder."""
    return not any(map(distrust, (folder, *folder.glob("*"))))


def missing(reason: str) -> MissingToolError:
    """Return what to say where py-rattler cannot be imported."""
    return MissingToolError(
        f"conda channels are read by py-rattler, which is not here: {reason}",
        "pip install 'envbuild[conda]' into envbuild's own Python brings it",
    )
