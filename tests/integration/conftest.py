"""The installed command on real input: what all tests of this folder share.

They need the package index that pip is configured with; where it cannot be reached they are
skipped with that reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tools import LOCK_CACHE, Envbuild, clean_environ, run

from tests.once import made_once

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.network)


@pytest.fixture(scope="session", autouse=True)
def locks_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the locks of what is made for all tests out of the home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCK_CACHE, str(tmp_path_factory.mktemp("locks")))
        yield


@pytest.fixture(autouse=True)
def locks_of_this_test(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let every test ask the index, whatever those before it have asked."""
    monkeypatch.setenv(LOCK_CACHE, str(tmp_path_factory.mktemp("locks")))


@pytest.fixture(scope="session")
def index() -> None:
    """Skip where pip cannot fetch: the check is made once."""
    words = "install --dry-run --quiet --ignore-installed --no-deps --only-binary :all: --retries 1"
    asked = run(
        [sys.executable, "-m", "pip", *words.split(), "flit-core>=3.8"],
        env={"PYTHONNOUSERSITE": "1"},
    )
    if asked.code != 0:
        lines = asked.err.strip().splitlines() or ["pip said nothing"]
        pytest.skip(f"the package index cannot be reached: {lines[-1]}")


@pytest.fixture(scope="session")
def envbuild(index: None, tmp_path_factory: pytest.TempPathFactory) -> Envbuild:
    """Return what runs the installed command."""
    return Envbuild(tmp_path_factory.mktemp("cwd"))


@pytest.fixture(scope="session")
def ppc64el(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Debian for ppc64el as site debian-ppc64le describes it; not to be changed.

    ENVBUILD_PPC64EL_ROOT names one that is there: making it takes minutes.
    """
    from envbuilder import data
    from envbuilder.build.emulation import NAMED, SystemRequest, find_system
    from envbuilder.documents.knowledge import load_knowledge
    from envbuilder.documents.load import load_site
    from envbuilder.errors import BuildError, MissingToolError
    from envbuilder.machine.host import LocalMachine
    from envbuilder.workflow.entries import entries

    file = data.RECIPES / "sites" / "debian-ppc64le.yaml"
    site = load_site(file, load_knowledge([data.RECIPES]).value, entries()).value
    there = os.environ.get("ENVBUILD_PPC64EL_ROOT")
    named = {NAMED: there} if there else {}
    environ = clean_environ({"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("systems")), **named})
    if os.geteuid() != 0:
        pytest.skip("the emulated system is entered as root")
    request = SystemRequest("ppc64le", site, LocalMachine(environ), Path.cwd())
    try:
        return find_system(request, lambda _: None)
    except (MissingToolError, BuildError) as error:
        pytest.skip(f"no system for ppc64le: {error}")


@pytest.fixture(scope="session")
def ppc64el_devel() -> Path:
    """Return a Debian for ppc64le that has PyTorch and compiles; not to be changed.

    ``bash ci/power-system.sh DIR`` makes it in a quarter of an hour.
    """
    named = os.environ.get("ENVBUILD_PPC64EL_DEVEL_ROOT")
    if not named:
        pytest.skip("ENVBUILD_PPC64EL_DEVEL_ROOT names no Debian for ppc64le that compiles")
    return Path(named)


@pytest.fixture(scope="session")
def built_root(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root that holds allreduce/1. For reading only: all tests share it."""

    def make(folder: Path) -> None:
        done = envbuild("create", "allreduce", "--root", folder / "root")
        assert done.code == 0, done.text

    return made_once(tmp_path_factory, "built", make) / "root"
