"""Where an image and its records are put, and what of a killed run is replaced there."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from envbuilder.errors import UsageError
from envbuilder.model.plan import Plan
from envbuilder.workflow.image import ImageRequest, check_places
from envbuilder.workflow.load import PlanInputs
from tests.cli.published import planned
from tests.made_up_files import locked


@pytest.fixture
def request_to(tmp_path: Path) -> ImageRequest:
    lock = locked(Plan.model_validate(planned("allreduce")))
    # The places follow from the lock alone.
    return ImageRequest(lock, None, cast("PlanInputs", None), "sif", tmp_path)


def test_records_that_a_killed_run_left_without_an_image_are_no_hindrance(
    request_to: ImageRequest,
) -> None:
    check_places(request_to)
    request_to.beside.mkdir()
    (request_to.beside / "lock.json").write_text(request_to.lock.text())
    check_places(request_to)


@pytest.mark.parametrize("lock", ["{}", None])
def test_records_of_something_else_are_kept(request_to: ImageRequest, lock: str | None) -> None:
    request_to.beside.mkdir()
    if lock is not None:
        (request_to.beside / "lock.json").write_text(lock)
    with pytest.raises(UsageError) as refused:
        check_places(request_to)
    assert refused.value.id == "output.exists"


def test_records_behind_a_link_are_kept(request_to: ImageRequest, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lock.json").write_text(request_to.lock.text())
    request_to.beside.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        check_places(request_to)


def test_an_image_is_never_replaced(request_to: ImageRequest) -> None:
    request_to.beside.mkdir()
    (request_to.beside / "lock.json").write_text(request_to.lock.text())
    request_to.image.write_bytes(b"an image")
    with pytest.raises(UsageError) as refused:
        check_places(request_to)
    assert refused.value.id == "output.exists"
