"""``envbuild doctor``: what this machine has; looks only."""

from __future__ import annotations

import platform

from .. import data
from ..documents.knowledge import load_knowledge
from ..errors import EnvbuildError, MissingToolError, UsageError
from ..knowledge.rows import Advisory
from ..machine.item_values import DoctorReport
from ..machine.local_site import local_site
from ..workflow.context import Context
from ..workflow.places import root_path
from .examine import examine


def doctor(context: Context) -> DoctorReport:
    """Examine the machine and the places that a ``create`` without ``--root`` would use."""
    site = local_site(context.environ)
    try:
        root = root_path(None, site, platform.machine(), context)
    except UsageError:
        root = None  # no HOME: doctor itself says so
    except MissingToolError as error:
        context.reporter.warn(str(error))
        root = None
    return examine(
        context.environ, site=site, cwd=context.cwd, root=root, advisories=_advisories(context)
    )


def _advisories(context: Context) -> tuple[Advisory, ...]:
    """Return what is known to be bad; broken rows of one's own must not stop doctor."""
    try:
        return context.knowledge.advisories
    except EnvbuildError as error:
        context.reporter.warn(f"cannot read your knowledge files, using the shipped ones: {error}")
        return load_knowledge([data.RECIPES]).value.advisories
