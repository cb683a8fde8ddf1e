"""Asking py-rattler, which reads channels and solves, in a process of its own.

conda itself is on no package index, so that it can be driven where it is, and cannot be required.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import data, process
from ..errors import BuildError, MissingToolError
from ..target_tools.trust import distrust

# The engine gives up a solve before (conda_engine.SOLVE_MINUTES); reading takes what networks take.
_SECONDS = 30 * 60.0
_LAST_LINES = 5


class EngineError(Exception):
    """What the engine could not do; the text is its own.

    ``kind``: ``channel``, ``unsolvable``, or ``engine`` for what py-rattler should not have done.

    ``channel``: the number of the channel that could not be read, where that is known.
    """

    def __init__(self, kind: str, text: str, channel: int | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.channel = channel


class Engine:
    """What answers requests: see ``target_tools/conda_engine.py``. *cache*: its folder.

    Its process starts with the first one and is there until ``close``: what it read of channels is
    not read again to solve, which for large ones takes most of the time.
    """

    def __init__(self, environ: Mapping[str, str], cache: Path) -> None:
        """Keep them."""
        self.environ, self.cache = environ, cache
        self._process: process.Answering | None = None
        self._own: str | None = None

    def records(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the records that a request asks for. Raises as ``answer`` does."""
        return list(self.answer(request)["records"])

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises EngineError, MissingToolError without py-rattler, BuildError where it ends badly.
        """
        try:
            answer = self._answer({**request, "cache": self._folder()})
        except BaseException:
            self.close()
            raise
        error = answer.get("error")
        if error is None:
            return answer
        if error["kind"] == "missing":
            raise missing(error["text"])
        raise EngineError(error["kind"], error["text"], error.get("channel"))

    def close(self) -> None:
        """Let it forget what it read; the next request reads anew."""
        if self._process:
            self._process.end()
            self._process = None

    def _folder(self) -> str:
        if self._own is None and any(map(distrust, (self.cache, *self.cache.glob("*")))):
            # What channels say chooses packages: it is read anew, and kept for this time alone.
            self._own = tempfile.mkdtemp(prefix="envbuild-repodata-")
            weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        return self._own or str(self.cache)

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            words = [sys.executable, "-I", str(data.TARGET_TOOLS), "conda-engine", "answer"]
            self._process = process.Answering(words, self.environ)
        done = self._process.ask(json.dumps(request), _SECONDS)
        if not done.ok:
            lines = [each for each in done.stderr.splitlines() if each.strip()][-_LAST_LINES:]
            how = (
                "did not end in time" if done.code is None else f"failed with exit code {done.code}"
            )
            raise BuildError("conda.engine-crashed", "\n  | ".join([f"py-rattler {how}", *lines]))
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def missing(reason: str) -> MissingToolError:
    """Return what to say where py-rattler cannot be imported."""
    return MissingToolError(
        "conda.no-py-rattler",
        f"cannot read conda channels: py-rattler is missing: {reason}",
        "install it into envbuild's Python: pip install 'envbuild[conda]'",
    )
