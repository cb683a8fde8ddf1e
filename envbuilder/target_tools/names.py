"""Names and releases of distributions, as the index and the files of packages write them."""

import re


def normalize(name: str) -> str:
    """Return a distribution's name as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version):
    """Return the numbers that a version begins with, to compare releases: (0, 28, 1)."""
    return tuple(int(part) for part in re.match(r"[\d.]*\d", version).group().split("."))
