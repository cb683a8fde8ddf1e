"""In another architecture's system on this machine, its programs run by qemu-user.

A bundle is made and its installer run there, without network: what is built, proved and published
is what would be on such a machine, but for its speed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...model.evidence import Tier
from ...model.outcome import CreateResult
from . import bundle
from .protocol import Stages

HIGHEST_TIER: Tier = "several ranks"
OWN_ARCH = False
OTHER_ARCH = True


def make(stages: Stages) -> CreateResult:
    """Build, prove and publish in a root of this machine; what is published is only made default.

    Raises MissingToolError where nothing can be emulated, before anything is written.
    """
    system = stages.emulated_system()
    with stages.hold(here=False) as held:
        lock = held.root_lock()
        number = held.published_number(lock)
        if number is not None:
            held.make_default(number)
            return held.result(lock, number)
        held.begin(lock)
    # Its installer holds the environment's folder itself.
    with tempfile.TemporaryDirectory(prefix="envbuild-bundle-") as scratch:
        folder = Path(scratch) / "bundle"
        bundle.write(lock, folder, stages)
        number = stages.install_emulated(lock, folder, system)
    return stages.result(lock, number)
