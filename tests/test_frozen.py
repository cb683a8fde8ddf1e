"""What is handed from stage to stage does not change: dataclasses are frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .layers import sources

pytestmark = pytest.mark.thorough

# What gathers something while it is put together, and leaves its function as a value.
GATHERERS = {
    "envbuilder/commands/source_contents.py: SourceContents",
    "envbuilder/diagnosis/places.py: SymptomPlaces",
    "envbuilder/diagnosis/search.py: Findings",
    "envbuilder/formats/reading.py: Reading",
    "envbuilder/formats/recipe_draft.py: ImportDraft",
    "envbuilder/machine/modules/site_modules.py: _SiteModules",
    "envbuilder/render/image.py: _ImageSources",
    "envbuilder/reporter.py: Report",
    "envbuilder/resolve/loading.py: LoadedModules",
    "envbuilder/resolve/loading.py: _Search",
}


def not_frozen(text: str) -> Iterator[str]:
    """Yield the names of the dataclasses in *text* that can be changed."""
    for node in ast.walk(ast.parse(text)):
        for each in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            words = ast.unparse(each)
            if words.split("(")[0].endswith("dataclass") and "frozen=True" not in words:
                yield node.name  # type: ignore[attr-defined]


def test_dataclasses_are_frozen_but_for_those_that_gather() -> None:
    found = {
        f"{path}: {name}"
        for path, text in sources("envbuilder").items()
        for name in not_frozen(text)
    }
    assert found == GATHERERS


@pytest.mark.parametrize("words", ["", "()", "(slots=True)", "(frozen=False)"])
def test_one_that_can_be_changed_is_seen(words: str) -> None:
    assert list(not_frozen(f"@dataclass{words}\nclass A: pass")) == ["A"]
