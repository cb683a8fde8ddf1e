"""A conda environment for ppc64le: solved and linked here, installed and proved under qemu.

Its channel has the Python, NumPy and mpi4py of a Debian for ppc64el, packed as conda has them; the
MPI is the Debian's. It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from emulated_tools import Emulated
from integration_tools import Envbuild, run

from tests.conda_channel import PLACEHOLDER, File, Package, from_wheel, write_channel

pytest.importorskip("rattler")
pytestmark = [pytest.mark.long]

SERIES, SUBDIR = "3.11", "linux-ppc64le"
BUILT_FOR = "python >=3.11,<3.12.0a0"
RECIPE = {
    "schema": 1,
    "name": "conda-power",
    "summary": "Collective runtime on numpy and mpi4py of a conda channel",
    "arch": ["ppc64le"],
    "backend": "conda",
    "channels": ["tests"],
    "stack": {"python": "*", "numpy": "*", "mpi4py": "*", "openmpi": "*"},
    "smoke": {"ranks": 2, "max-bytes": 65536},
}


def files_below(folder: Path, target: str) -> Iterator[tuple[str, File]]:
    """Yield the files of a folder of the Debian, without bytecode, for a folder of a prefix."""
    for path in sorted(folder.rglob("*")):
        name = f"{target}/{path.relative_to(folder)}"
        if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts:
            continue
        yield name, File(path.read_bytes())


def python_of(debian: Path) -> Package:
    """Return the Debian's Python as one that may lie in any prefix.

    Debian installs below dist-packages of the machine's own folders: its sysconfig is replaced by
    that of the tests' Python, which is built from Python's own sources. Its site is frozen in the
    program, and told where packages lie.
    """
    library, own = debian / "usr/lib" / f"python{SERIES}", Path(sys.base_prefix)
    files = dict(files_below(library, f"lib/python{SERIES}"))
    source = own / "lib" / f"python{SERIES}" / "sysconfig.py"
    files[f"lib/python{SERIES}/{source.name}"] = File(source.read_bytes())
    files[f"lib/python{SERIES}/dist-packages/conda.pth"] = File(b"../site-packages\n")
    (data,) = library.glob("_sysconfigdata__powerpc64le*.py")
    text = data.read_text(encoding="utf-8").replace("'/usr", f"'{PLACEHOLDER}")
    for name in (data.name, "_sysconfigdata__linux_powerpc64le-linux-gnu.py"):
        files[f"lib/python{SERIES}/{name}"] = File(text.encode(), mode="text")
    del files[f"lib/python{SERIES}/EXTERNALLY-MANAGED"]
    program = debian / "usr/bin" / f"python{SERIES}"
    files[f"bin/python{SERIES}"] = File(program.read_bytes(), executable=True)
    files |= {f"bin/{each}": File(b"", link=f"python{SERIES}") for each in ("python", "python3")}
    return Package("python", "3.11.2", files, build="h0_0_cpython", subdir=SUBDIR)


def module_of(debian: Path, name: str, version: str, *depends: str) -> Package:
    """Return a Python package of the Debian."""
    site, there = f"lib/python{SERIES}/site-packages", debian / "usr/lib/python3/dist-packages"
    (metadata,) = there.glob(f"{name}-*.egg-info")
    files = dict(files_below(there / name, f"{site}/{name}"))
    if metadata.is_dir():
        files |= dict(files_below(metadata, f"{site}/{metadata.name}"))
    else:
        files[f"{site}/{metadata.name}"] = File(metadata.read_bytes())
    return Package(name, version, files, (BUILT_FOR, *depends), build="py311_0", subdir=SUBDIR)


@pytest.fixture(scope="module")
def channel(ppc64el: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != SERIES:
        pytest.skip(f"a module of the Debian's Python is that of a Python {SERIES}")
    wheels = tmp_path_factory.mktemp("wheels")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
    done = run([*words, "pip"])
    assert done.code == 0, done.text
    pip = from_wheel(next(wheels.glob("pip-*")), name="pip", depends=["python >=3.9"], noarch=True)
    packages = [
        python_of(ppc64el),
        module_of(ppc64el, "numpy", "1.24.2"),
        module_of(ppc64el, "mpi4py", "3.1.4"),
        pip,
    ]
    return write_channel(tmp_path_factory.mktemp("channel"), packages)


def test_a_bundle_of_a_conda_environment_is_made_there_and_its_ranks_talk(
    envbuild: Envbuild, ppc64el: Path, channel: Path, tmp_path: Path
) -> None:
    emulated = Emulated.below(ppc64el, tmp_path)
    folder = tmp_path / "recipes"
    (folder / "knowledge").mkdir(parents=True)
    (folder / "conda-power.yaml").write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    known = {"url": channel.as_uri(), "recorded": "2026-11-01", "sources": ["a test"]}
    said = {"schema": 1, "recorded": "2026-11-01", "source": "a test"}
    versions = {**said, "channels": {"tests": {**known, "packages": {}}}}
    (folder / "knowledge" / "versions.yaml").write_text(yaml.safe_dump(versions), encoding="utf-8")

    words = ("create", "conda-power", "--recipes", folder, "--site", "debian-ppc64le")
    done = envbuild(*words, "--arch", "ppc64le", "--output", emulated.shared)
    assert done.code == 0, done.text
    (archive,) = emulated.shared.glob("*.tar.gz")
    shutil.unpack_archive(archive, emulated.shared / "there", filter="data")
    (bundle,) = (emulated.shared / "there").iterdir()
    assert envbuild("bundle", "verify", bundle).code == 0
    assert {"conda-prefix.tar.gz", "conda-prefix.json"} <= {
        each.name for each in (bundle / "build").iterdir()
    }

    root = emulated.shared / "root"
    installed = emulated(f"bash '{bundle}/install.sh' '{root}'")
    assert installed.code == 0, installed.text
    assert "linked by" not in installed.text
    (entry,) = json.loads(envbuild("list", "--root", root, "--json").out)["environments"]
    assert (entry["tier"], entry["execution"]) == ("several ranks", "emulated")
    (proof,) = json.loads(envbuild("info", "conda-power", "--root", root, "--json").out)["evidence"]
    result = proof["result"]
    assert (result["ranks"], result["python"], result["mpi"]) == (2, "3.11.2", "Open MPI 4.1.4")
    # Of the environment, not of the Debian, which has them all as well.
    prefix = root / "conda-power" / entry["id"]
    asks = "import json, sys, numpy, mpi4py.MPI, sysconfig as s; print(json.dumps([sys.prefix, "
    asks += "numpy.__file__, mpi4py.__file__, s.get_config_var('prefix')]))"
    there = emulated(f"'{prefix}/bin/python' -I -c \"{asks}\"")
    assert there.code == 0, there.text
    site = f"{prefix}/lib/python{SERIES}/site-packages"
    assert json.loads(there.out) == [
        str(prefix),
        f"{site}/numpy/__init__.py",
        f"{site}/mpi4py/__init__.py",
        str(prefix),
    ]
