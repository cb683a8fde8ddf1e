"""Sentences that tests hold as a whole: in one YAML file for each test file, not in asserts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

from . import goldens

Golden = Callable[..., None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """Return a function that compares texts with the golden ones of the test, in their order.

    ``goldens/TEST_FILE.yaml`` holds them by the id of the test. ENVBUILD_UPDATE_GOLDENS=1 rewrites
    those of the tests that run; read the difference before you commit it.
    """
    file = request.path.with_name("goldens") / f"{request.path.stem}.yaml"
    golden = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    texts: list[str] = []

    def compare(*lines: str, **variable: object) -> None:
        for line in lines:
            # Sorted by length: one path may begin with another.
            for name in sorted(variable, key=lambda each: -len(str(variable[each]))):
                line = line.replace(str(variable[name]), f"<{name}>")
            texts.append(line)
            if not goldens.UPDATE:
                assert texts == golden[request.node.name][: len(texts)], goldens.hint()

    yield compare
    if goldens.UPDATE and texts:
        file.parent.mkdir(exist_ok=True)
        golden = dict(sorted({**golden, request.node.name: texts}.items()))
        written = yaml.safe_dump(golden, sort_keys=False, width=96, allow_unicode=True)
        file.write_text(written, encoding="utf-8")
