"""pip's own configuration, as it says it itself: where packages come from and how to get there."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.plan import Plan
from ..target_tools.pip_settings import read_settings as read_values

_TRUE = frozenset({"1", "true", "yes", "y", "on", "t"})
_TIMEOUT = 15.0
_RETRIES = 5


@dataclass(frozen=True)
class PipSettings:
    """Where packages come from, in order, and how these places are reached.

    ``ordered``: of several indexes the first that has a distribution is the one for it, as where
    the plan names them; else all of them offer what they have, as pip takes its configured ones.

    The addresses may hold a user and a password: they are for asking, never for a lock or a
    message. ``cert``: a file or folder of certificates, None: the usual ones. Seconds.
    """

    indexes: tuple[str, ...]
    ordered: bool = False
    find_links: tuple[str, ...] = ()
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    timeout: float = _TIMEOUT
    retries: int = _RETRIES


def read_settings(listing: str, plan: Plan) -> PipSettings:
    """Return pip's settings from what ``pip config list`` printed, with the plan's places.

    The plan's indexes take the place of all configured ones; its folders are added. An index that
    a user happens to have configured could else offer any name (dependency confusion).
    """
    return configured(listing, plan.pip_indexes, plan.find_links)


def configured(
    listing: str, own_indexes: tuple[str, ...] = (), folders: tuple[str, ...] = ()
) -> PipSettings:
    """Return pip's settings; *own_indexes* take the place of its own, *folders* are added."""
    values: dict[str, str] = read_values(listing.splitlines(), "install")
    indexes: tuple[str, ...] = ()
    if values.get("no-index", "").lower() not in _TRUE:
        usual = (
            values.get("index-url") or _usual_index(),
            *values.get("extra-index-url", "").split(),
        )
        indexes = own_indexes or usual
    timeout = values.get("timeout") or values.get("default-timeout")
    return PipSettings(
        indexes=tuple(dict.fromkeys(indexes)),
        ordered=bool(own_indexes),
        find_links=tuple(dict.fromkeys((*values.get("find-links", "").split(), *folders))),
        cert=values.get("cert"),
        client_cert=values.get("client-cert"),
        proxy=values.get("proxy"),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        timeout=float(timeout) if timeout else _TIMEOUT,
        retries=int(values.get("retries", _RETRIES)),
    )


def _usual_index() -> str:
    """Return the index that pip asks where nothing else is configured."""
    # lazy import: 0.1 s, and where an index is configured nobody needs it
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT
