"""An image: an environment in a system of its own, in one file.

A bundle is made and its installer run in the image's base: what is built, proved and published
there is what would be on a machine that has this system.
"""

from __future__ import annotations

from ...model.base_image import BUNDLE_FOLDER
from ...model.evidence import Tier
from ...model.outcome import ImageResult
from ...model.plan import Lock
from ..image import ImageRequest, build_image, check_places
from ..image_binds import check_binds
from ..options import ImageOptions
from ..output import unfinished_in
from . import bundle
from .protocol import CreateRequest

HIGHEST_TIER: Tier = "several ranks"
OWN_ARCH = True
OTHER_ARCH = True


def make(request: CreateRequest) -> ImageResult:
    """Write ``NAME-ID-ARCH.sif``, its lock, manifest and records beside it; may use the network.

    What fails leaves no image.
    """
    check_modules(request)
    request.output.mkdir(parents=True, exist_ok=True)
    say = request.context.reporter.say
    with unfinished_in(request.output, request.source.plan, say) as scratch:
        downloads, folder = scratch / "downloads", scratch / "image" / BUNDLE_FOLDER
        downloads.mkdir()
        lock = bundle.lock_of(request, downloads)
        asked = _image(request, lock)
        check_places(asked)
        bundle.write(lock, folder, request, downloads)
        return build_image(asked, folder, request.context)


def check_modules(request: CreateRequest) -> None:
    """Raise UsageError if the modules of the plan are not in the folders that are bound."""
    if request.binds:
        base = request.base.folder if request.base else None
        check_binds(request.source.plan.modules, request.binds, base)


def _image(request: CreateRequest, lock: Lock) -> ImageRequest:
    asked = request.options.image or ImageOptions()
    return ImageRequest(
        lock,
        request.base,
        request.plan_inputs,
        asked.format,
        request.output,
        request.binds,
        asked.candidate,
    )
