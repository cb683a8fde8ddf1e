"""A bundle that is installed by the verb, as the jobs of a pipeline do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from integration_tools import Envbuild

pytestmark = [pytest.mark.integration, pytest.mark.network, pytest.mark.long]


def test_a_bundle_is_installed_by_the_verb(envbuild: Envbuild, tmp_path: Path) -> None:
    """As the jobs of a site do it whose builder has no GPUs."""
    site = ("--site", "local")
    lock = envbuild("lock", "allreduce", *site, "--output", tmp_path / "lock.json")
    assert lock.code == 0, lock.text
    words = ("--locked", tmp_path / "lock.json", "--bundle", "--output", tmp_path / "bundle")
    made = envbuild("create", "allreduce", *site, *words)
    assert made.code == 0, made.text
    root = tmp_path / "root"
    done = envbuild("bundle", "install", tmp_path / "bundle", "--root", root)
    assert done.code == 0, done.text
    assert "allreduce/1" in done.out
    info = json.loads(envbuild("info", "allreduce", "--root", root, "--json").out)
    assert info["evidence"][0]["result"]["tier"] == "several ranks"
