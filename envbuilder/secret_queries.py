"""Queries of URLs that hold a secret: no file that others may read keeps one.

A name such as ``X-Amz-Signature`` or ``token`` says so (``target_tools.names``), or a value that
has the format of a known kind of token, by the rules of detect-secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from .target_tools.names import has_secret_name, parameters, without_queries, without_query

# No format of a token is as short, and most queries are: then the formats are not even loaded.
_SHORTEST = 10
# Detectors of detect-secrets that look for no token: an address, and what stands before an @.
_NO_TOKENS = ("Basic Auth Credentials", "Public IP (ipv4)")


def is_secret_query(query: str) -> bool:
    """Return whether any parameter of a URL's query holds a secret, by its name or its value."""
    if has_secret_name(query):
        return True
    texts = (text for pair in parameters(query) for text in pair if len(text) >= _SHORTEST)
    return any(_has_format(text) for text in texts)


def without_secret_query(url: str) -> str:
    """Return a URL without its query, if that holds a secret."""
    return without_query(url, is_secret_query)


def without_secret_queries(text: str) -> str:
    """Return a text in which no URL has a query with a secret."""
    return without_queries(text, is_secret_query)


def _has_format(text: str) -> bool:
    return any(found for search in _searches() for found in search(text))


@cache
def _searches() -> Sequence[Callable[[str], Iterable[str]]]:
    """Return what finds each format of tokens in a text."""
    # lazy import: 0.3 s
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector

    kinds: Iterable[Any] = get_mapping_from_secret_type_to_class().values()
    return [
        kind().analyze_string
        for kind in kinds
        if issubclass(kind, RegexBasedDetector) and kind.secret_type not in _NO_TOKENS
    ]
