"""The channel that real conda environments are made from here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from integration_tools import run

from tests.conda_channel import SERIES, from_wheel, movable_python, write_channel

BUILT_FOR = f"python >={SERIES},<{SERIES.split('.')[0]}.{int(SERIES.split('.')[1]) + 1}.0a0"


def make_channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a channel with Python, numpy, mpi4py and MPICH, which are real, and pip."""
    if not Path(sys.base_prefix, "lib", f"python{SERIES}", "site-packages").is_dir():
        pytest.skip("needs a Python with site-packages, as conda's has: Debian's has dist-packages")
    wheels = tmp_path_factory.mktemp("wheels")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
    done = run([*words, "--only-binary", ":all:", "numpy", "mpi4py", "mpich", "pip"])
    assert done.code == 0, done.text
    depends = {"numpy": [BUILT_FOR], "mpi4py": [BUILT_FOR, "mpich"], "mpich": []}
    packages = [
        from_wheel(next(wheels.glob(f"{name}-*")), name=name, depends=needs)
        for name, needs in depends.items()
    ]
    pip = from_wheel(next(wheels.glob("pip-*")), name="pip", depends=["python >=3.9"], noarch=True)
    return write_channel(tmp_path_factory.mktemp("channel"), [movable_python(), *packages, pip])


_LINK = """
import asyncio, os, sys, rattler
async def main(channel, prefix):
    virtual = rattler.VirtualPackage.detect()
    channels, names = [rattler.Channel(channel)], ['mpi4py', 'numpy', 'pip']
    records = await rattler.solve(channels, names, virtual_packages=virtual)
    await rattler.install(records, prefix, cache_dir=prefix + '-cache')
asyncio.run(main(*sys.argv[1:]))
os._exit(0)
"""


def link_prefix(channel: Path, prefix: Path) -> Path:
    """Return a prefix that py-rattler alone linked from such a channel."""
    done = run([sys.executable, "-c", _LINK, channel.as_uri(), str(prefix)])
    assert done.code == 0, done.text
    return prefix
