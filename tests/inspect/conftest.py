"""A made environment, and validating one without ever changing it."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest
import zoo
from zoo import Validate

from envbuilder.model.validation import Validation
from envbuilder.reporter import Report
from envbuilder.target_tools.manifest import look
from envbuilder.validate.command import validate
from envbuilder.validate.options import ProvingOptions, ValidateOptions
from envbuilder.workflow.context import Context


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> zoo.Made:
    return zoo.make(tmp_path_factory.mktemp("zoo") / "first")


@pytest.fixture
def made(first: zoo.Made, tmp_path: Path) -> zoo.Made:
    return zoo.copy(first, tmp_path / "env")


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """Return a world outside with an empty home and no MPI on PATH."""
    folder = tmp_path_factory.mktemp("home")
    environ = {"HOME": str(folder), "PATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    made = Context(
        environ=environ,
        cwd=folder,
        clock=lambda: datetime.now(timezone.utc),
        reporter=Report(io.StringIO(), io.StringIO()),
    )
    # Copies of it have what was loaded: 40 ms for each test.
    assert made.knowledge
    return made


@pytest.fixture
def check(context: Context) -> Validate:
    """Return what validates an environment, and sees that nothing of it has changed."""

    def checked(
        made: zoo.Made,
        environ: Mapping[str, str] | None = None,
        *,
        hashes: bool = False,
        used_by_others: bool = False,
        loaded: bool = False,
        run: bool = False,
    ) -> Validation:
        outside = copy.copy(context)
        object.__setattr__(outside, "environ", {**context.environ, **(environ or {})})
        before = {} if used_by_others else look(made.prefix)
        value = validate(
            None if loaded else str(made.prefix),
            None,
            outside,
            ValidateOptions(loaded=loaded, verify=hashes, proving=ProvingOptions(run=run)),
        )
        assert used_by_others or look(made.prefix) == before
        return value

    return checked
