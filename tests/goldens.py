"""Files that a test compares with what the code makes, or rewrites."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

UPDATE = os.environ.get("ENVBUILD_UPDATE_GOLDENS") == "1"


def compare(path: Path, text: str) -> None:
    """Assert that *path* holds *text*. With ENVBUILD_UPDATE_GOLDENS=1, write it instead."""
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == golden, f"{path.name} differs; {hint()}"


def compare_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Assert that *folder* contains exactly the files *texts*, by their relative names."""
    existing = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    if UPDATE:
        for name in existing - texts.keys():
            (folder / name).unlink()
        existing = set(texts)
    assert existing == set(texts), hint()
    for name, text in texts.items():
        compare(folder / name, text)


def hint() -> str:
    """Return the command that rewrites the golden files of the test that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("[")[0]
    return f"to rewrite it: ENVBUILD_UPDATE_GOLDENS=1 pytest '{test}'; then read the difference"
