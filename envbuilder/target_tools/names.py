"""Names and releases of packages, as indexes, channels and the files of packages write them.

And what of a URL is a secret, as far as its form alone says that.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

# Of a URL, wherever it stands in a text: a password may hold an @ itself.
USER = re.compile(r"(?<=://)[^/\s]*@")
TOKEN = re.compile(r"(?<=[^:/]/)t/[A-Za-z0-9_-]+/")
# Up to the next "://" at most: a text may hold many, and no "?".
WITH_QUERY = re.compile(r"://(?:[^\s?#'\"<>:]|:(?!//))*\?[^\s'\"<>]*")

# The names of parameters that are, or go with, a secret. Presigned URLs: AWS (X-Amz-Signature),
# Google Cloud, Alibaba OSS; se and sig of Azure's SAS tokens; Signature of CloudFront.
SIGNING = ("x-amz-", "x-goog-", "x-oss-")
SECRET_NAMES = ("se", "hdnts", "hdnea")
SECRET_WORDS = re.compile(
    "auth|authorization|bearer|cookie|credentials?|hmac|jwt|key|pass(phrase|word|wd)|pwd|secret"
    "|sig|signature|token"
)
# As they are written without a mark between two words.
SECRET_ENDINGS = ("token", "secret", "signature", "password", "apikey", "accesskey", "secretkey")
WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def normalize(name: str) -> str:
    """Return a distribution's name as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version: str) -> "tuple[int, ...]":
    """Return the leading numbers of a version, to compare releases: (0, 28, 1); () for none."""
    return tuple(int(part) for part in re.split(r"[^\d.]", version)[0].split(".") if part)


def parameters(query: str) -> "list[tuple[str, str]]":
    """Return names and values of a query's parameters, decoded."""
    pairs = (each.partition("=") for each in re.split("[&;?]", query))
    return [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]


def has_secret_name(query: str) -> bool:
    """Return whether the name of a query parameter marks it as a secret."""
    return any(is_secret_name(name) for name, _ in parameters(query))


def is_secret_name(name: str) -> bool:
    """Return whether a parameter of this name holds a secret, or signs the URL."""
    lower = name.lower()
    return (
        lower in SECRET_NAMES
        or lower.startswith(SIGNING)
        or lower.endswith(SECRET_ENDINGS)
        or any(SECRET_WORDS.fullmatch(word.lower()) for word in WORD.findall(name))
    )


def without_query(url: str, is_secret: "Callable[[str], bool]" = has_secret_name) -> str:
    """Return a URL without its query if that *is_secret*."""
    head, _, tail = url.partition("?")
    query, mark, fragment = tail.partition("#")
    return head + mark + fragment if "#" not in head and is_secret(query) else url


def without_queries(text: str, is_secret: "Callable[[str], bool]" = has_secret_name) -> str:
    """Return a text in which no URL has a query that *is_secret*."""
    return WITH_QUERY.sub(lambda found: without_query(found.group(), is_secret), text)


def without_credentials(url: str) -> str:
    """Return a URL without user, password, secret query and anaconda.org's token; a name as it is.

    A folder of a file: URL may be named t; the next part of its path is not a token.
    """
    if "://" not in url:
        return url
    anonymous = without_query(USER.sub("", url))
    return anonymous if url.startswith("file:") else TOKEN.sub("", anonymous, count=1)
