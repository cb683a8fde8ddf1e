"""What a lock says of the signatures of its conda packages, once for each channel."""

from __future__ import annotations

from collections.abc import Iterator

from .artifact import CondaArchive
from .plan import Lock


def signature_lines(lock: Lock) -> tuple[str, ...]:
    """Return a line for each channel that packages come from."""
    return tuple(_lines(lock))


def _lines(lock: Lock) -> Iterator[str]:
    for channel in lock.plan.channels:
        own = [each for each in lock.conda_packages if each.channel == channel.url]
        if own:
            yield f"{channel.name}: {_said(own)}"


def _said(packages: list[CondaArchive]) -> str:
    if any(each.signed_by is None for each in packages):
        return "was locked before signatures were asked for"
    keys = sorted({each.verified_by for each in packages if each.verified_by})
    if keys:
        return f"signatures verified with {' and '.join(keys)}"
    there = sum(bool(each.signed_by) for each in packages)
    if not there:
        return "publishes no signatures; its packages are those of their sha256 alone"
    return (
        f"publishes signatures ({there} of {len(packages)} packages), and neither site nor recipe "
        "states a key (channel-keys): none was verified"
    )


def unverified(lock: Lock) -> Iterator[str]:
    """Yield packages that are not verified with a key that the plan states for their channel."""
    keys = {each.url: each.keys for each in lock.plan.channels}
    for each in lock.conda_packages:
        if any(keys.values()) and each.channel not in keys:
            yield f"{each.filename} is of no channel of the plan, which states keys"
        stated = keys.get(each.channel or "", ())
        if each.verified_by and each.verified_by not in (each.signed_by or ()):
            yield f"{each.filename} is verified with a key that it is not signed with"
        if stated and each.verified_by not in stated:
            yield f"{each.filename} is not verified with a key that is stated for its channel"
