"""Queries of URLs that hold a secret: no file that others may read keeps one.

A name such as ``X-Amz-Signature`` or ``token`` says so (``target_tools.names``), or a value that
has the format of a known kind of token (``redaction.formats``).
"""

from __future__ import annotations

from ..target_tools.names import has_secret_name, parameters, without_queries, without_query


def is_secret_query(query: str) -> bool:
    """Return whether any parameter of a URL's query holds a secret, by its name or its value."""
    if has_secret_name(query):
        return True
    from .formats import tokens  # lazy import: a plan reads no URL with a query

    return any(True for pair in parameters(query) for value in pair for _ in tokens(value))


def without_secret_query(url: str) -> str:
    """Return a URL without its query, if that holds a secret."""
    return without_query(url, is_secret_query)


def without_secret_queries(text: str) -> str:
    """Return a text in which no URL has a query with a secret."""
    return without_queries(text, is_secret_query)
