from __future__ import annotations

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.model.knowledge import Knowledge


@pytest.fixture(scope="session")
def known() -> Knowledge:
    return load_knowledge([data.RECIPES]).value
