"""Names and releases of packages, as indexes, channels and the files of packages write them."""

import re

# Of a URL, wherever it stands in a text: a password may hold an @ itself.
USER = re.compile(r"(?<=://)[^/\s]*@")
TOKEN = re.compile(r"(?<=[^:/]/)t/[A-Za-z0-9_-]+/")


def normalize(name: str) -> str:
    """Return a distribution's name as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version):
    """Return the numbers that a version begins with, to compare releases: (0, 28, 1)."""
    return tuple(int(part) for part in re.match(r"[\d.]*\d", version).group().split("."))


def without_credentials(url: str) -> str:
    """Return a channel's URL without user, password and anaconda.org's token; a name as it is.

    A folder may be named t, and what lies in it is no token.
    """
    if "://" not in url:
        return url
    anonymous = USER.sub("", url)
    return anonymous if url.startswith("file:") else TOKEN.sub("", anonymous, count=1)
