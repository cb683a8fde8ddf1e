from __future__ import annotations

from tests.golden_texts import golden  # noqa: F401 - a fixture
