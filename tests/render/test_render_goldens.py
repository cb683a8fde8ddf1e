"""Every rendered file, as a whole, for locks with and without modules and with hostile values.

ENVBUILD_UPDATE_GOLDENS=1 rewrites the goldens; read the difference before committing it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from render_cases import CASES, Case, smoke_files

from tests import goldens

GOLDENS = Path(__file__).parent / "goldens"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_are_as_recorded(case: Case) -> None:
    goldens.compare_folder(GOLDENS / case.name, case.files())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_smoke_files_are_those_of_the_build(case: Case) -> None:
    files = case.files()
    smoke = smoke_files(case.lock, case.places)
    assert sorted(smoke) == ["environment.sh", "smoke.sh"]
    assert smoke.items() <= files.items()


def test_rendering_twice_gives_the_same_bytes() -> None:
    assert CASES[1].files() == CASES[1].files()
