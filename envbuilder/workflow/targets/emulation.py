"""In another architecture's system on this machine, its programs run by qemu-user.

A bundle is made and its installer run there, without network: what is built, proved and published
is what would be on such a machine, but for its speed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...errors import BuildError
from ...model.evidence import Tier
from ...model.outcome import CreateResult
from ...model.plan import Lock
from ...target_tools.root import publish
from ..emulate import emulated_system, install_emulated
from . import bundle
from .protocol import CreateRequest
from .root import begin, hold, home_of, make_default, proved_result, published_number, root_lock

HIGHEST_TIER: Tier = "several ranks"
OWN_ARCH = False
OTHER_ARCH = True


def make(request: CreateRequest) -> CreateResult:
    """Build, prove and publish in a root of this machine; what is published is only made default.

    Raises MissingToolError where nothing can be emulated, before anything is written.
    """
    shared = request.options.shared is not None
    system = emulated_system(request.plan_inputs, home_of(request), shared, request.context)
    with hold(request, here=False) as held:
        lock = root_lock(held)
        number = published_number(held, lock)
        if number is not None:
            published = proved_result(held, lock, number)
            make_default(held, number)
            return published
        begin(held, lock)
    # Its installer holds the environment's folder itself.
    with tempfile.TemporaryDirectory(prefix="envbuild-bundle-") as scratch:
        folder = Path(scratch) / "bundle"
        bundle.write(lock, folder, request)
        number = _install(request, lock, folder, system)
    return proved_result(request, lock, number)


def _install(request: CreateRequest, lock: Lock, folder: Path, system: Path) -> int:
    """Run a bundle's installer in a system; return the number that it published.

    Raises BuildError or SmokeError.
    """
    home = home_of(request)
    log = install_emulated(lock, folder, home, system, request.context)
    version = publish.find_reserved(home, lock.id())
    if version is None or not publish.is_published(home, version):
        raise BuildError(
            "bundle.nothing-published",
            "the installer succeeded, but published nothing",
            f"its log: {log}",
        )
    return version.number
