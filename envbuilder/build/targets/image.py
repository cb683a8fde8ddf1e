"""An image: an environment in a system of its own, in one file.

A bundle is made and its installer run in the image's base: what is built, proved and published
there is what would be on a machine that has this system.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...model.base_image import BUNDLE_FOLDER
from ...model.evidence import Tier
from ...model.outcome import ImageResult
from . import bundle
from .protocol import Stages

HIGHEST_TIER: Tier = "several ranks"
OWN_ARCH = True
OTHER_ARCH = True


def make(stages: Stages) -> ImageResult:
    """Write ``NAME-ID-ARCH.sif``, its lock, manifest and records beside it; may use the network.

    What fails leaves no image.
    """
    stages.check_image()
    stages.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".envbuild-", dir=stages.output) as scratch:
        downloads, folder = Path(scratch) / "downloads", Path(scratch) / "image" / BUNDLE_FOLDER
        downloads.mkdir()
        lock = stages.lock(downloads)
        stages.check_image(lock)
        bundle.write(lock, folder, stages, downloads)
        return stages.build_image(lock, folder)
