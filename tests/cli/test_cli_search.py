"""``search``: words in recipes, sites, components and advisories."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from envbuilder.cli import app


def search(*words: str) -> set[tuple[str, str]]:
    done = CliRunner().invoke(app, ["search", *words, "--json"])
    assert done.exit_code == 0, done.output
    return {(match["kind"], match["name"]) for match in json.loads(done.stdout)["matches"]}


def test_each_kind_is_found() -> None:
    kinds = {
        "horovod-pytorch": ("recipe", "horovod-pytorch"),
        "taurus": ("site", "taurus-ml"),
        "nvidia-nccl-cu12": ("component", "nccl"),
        "hvd-039": ("advisory", "HVD-039"),
    }
    assert {word for word, match in kinds.items() if match in search(word)} == set(kinds)


def test_every_word_is_required_and_an_alias_is_its_component() -> None:
    assert search("torch") >= search("torch", "horovod") >= search("HOROVOD", "pytorch") != set()
    assert search("torch", "nothing-has-this") == set()


def test_a_broken_recipe_is_found_by_its_text(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("schema: 1\nunheard: of-it\n")
    assert search("of-it", "--recipes", str(tmp_path)) == {("recipe", "mine")}
