from __future__ import annotations

import pytest

from envbuilder.knowledge.rows import Knowledge
from tests.golden_texts import golden  # noqa: F401 - a fixture
from tests.shipped import read_shipped


@pytest.fixture(scope="session")
def known() -> Knowledge:
    return read_shipped().value
