"""A prefix that py-rattler links, as another tool than ours: what there is to be cloned."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conda_channel import Package, write_channel

# The interpreter may crash at its end: see conda_engine.
_LINK = """
import asyncio, os, sys
import rattler
async def main(channel, prefix, cache, names):
    records = await rattler.solve(
        sources=[rattler.Channel(channel)], specs=names, virtual_packages=[],
        platforms=["linux-64", "noarch"],
    )
    await rattler.install(records, target_prefix=prefix, cache_dir=cache, show_progress=False)
asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
os._exit(0)
"""


def link_prefix(folder: Path, packages: Sequence[Package]) -> Path:
    """Return a prefix of all these packages, and make their channel beside it."""
    channel = write_channel(folder / "channel", packages)
    prefix = folder / "env"
    words = [
        channel.as_uri(),
        str(prefix),
        str(folder / "cache"),
        *(each.name for each in packages),
    ]
    subprocess.run([sys.executable, "-c", _LINK, *words], check=True)
    return prefix
