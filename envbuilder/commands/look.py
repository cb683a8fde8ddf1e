"""``envbuild doctor``: what this machine has; looks only."""

from __future__ import annotations

import platform

from ..detect import local_site
from ..detect.doctor import doctor as examine
from ..errors import UsageError
from ..model.doctor import DoctorReport
from .context import Context
from .places import root_path


def doctor(context: Context) -> DoctorReport:
    """Examine the machine and the places that a ``create`` without ``--root`` would use."""
    site = local_site(context.environ)
    try:
        root = root_path(None, site, platform.machine(), context)
    except UsageError:
        root = None  # no HOME: doctor itself says so
    return examine(context.environ, site=site, cwd=context.cwd, root=root)
