"""Whether packages are signed, as conda's content trust has it, and with a key that is known.

A channel's ``repodata.json`` then has ``signatures``: of each file, by the public key, an ed25519
signature of its record, which names the file's sha256. What is signed is the record as JSON with
sorted keys and an indentation of two (conda-content-trust, ``canonserialize``). The name of the
file is not signed, so that the record has to be that of the file. Keys come from site and recipe
alone; those that a channel names are told, and never believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BuildError, MissingToolError
from ..model.base import PublicKey, fits
from ..model.plan import PlanChannel
from ..target_tools.content_trust import holds

_SAME = ("name", "version", "build", "sha256", "depends")
"""What decides which file is installed, and with what."""


@dataclass(frozen=True)
class Signed:
    """The keys that a package is said to be signed with, and the stated one that it is."""

    by: tuple[str, ...]
    verified_by: str | None = None


def asking_signatures(keyed: bool) -> dict[str, bool]:
    """Return what asks the engine for signatures. *keyed*: some channel must have them.

    Then none is read in shards, which have no signatures.
    """
    return {"signatures": True, "whole": keyed}


def signed(record: Mapping[str, Any], channels: Sequence[PlanChannel]) -> Signed:
    """Return how a package of one of the channels is signed.

    Raises BuildError where its channel has stated keys and the package is signed with none of them,
    or a signature of one of them is wrong; MissingToolError without what verifies.
    """
    channel = next((each for each in channels if each.url == record["channel"]), None)
    keyed = [each.name for each in channels if each.keys]
    if channel is None and keyed:
        # Else a URL that the engine spells otherwise would pass by the keys.
        raise BuildError(
            f"{record['url']} is of {record['channel']}, and no channel of the plan is spelt so",
            f"keys are stated for {', '.join(keyed)}: write the channel's URL in just that way",
        )
    found: Mapping[str, Any] = record.get("signatures", {})
    said = Signed(tuple(sorted(key for key in found if fits(PublicKey, key))))
    if channel is None or not channel.keys:
        return said
    known = [key for key in channel.keys if key in said.by]
    if not known:
        raise _refused(record, channel, _not_by_a_stated_key(said))
    original: Mapping[str, Any] = record.get("signed", {})
    other = [key for key in _SAME if (original.get(key) or None) != (record.get(key) or None)]
    if other:
        raise _refused(record, channel, f"its signed record has another {', '.join(other)}")
    for key in known:
        if not _holds(key, found[key], original):
            raise _refused(record, channel, f"its signature with key {key} is wrong")
    return Signed(said.by, known[0])


def _not_by_a_stated_key(said: Signed) -> str:
    if not said.by:
        return "the channel has no signature of it"
    return f"it is signed with {' and '.join(said.by)}, which nobody states"


def _refused(record: Mapping[str, Any], channel: PlanChannel, why: str) -> BuildError:
    return BuildError(
        f"{record['url']} is refused: {why}",
        f"for the conda channel {channel.name} site or recipe states the keys "
        f"{', '.join(channel.keys)} (channel-keys)",
        "a copy that lags or was changed? nothing is installed from it; ask who keeps the channel",
    )


def _holds(key: str, said: object, original: Mapping[str, Any]) -> bool:
    """Whether a signature is that of a record. OpenPGP's, as of root.json, is none of these."""
    text = said.get("signature") if isinstance(said, Mapping) and len(said) == 1 else None
    if not isinstance(text, str):
        return False
    try:
        return bool(holds(key, text, canonical(original)))
    except ImportError as error:
        raise MissingToolError(
            f"signatures are verified by cryptography, which is not here: {error}",
            "pip install 'envbuild[conda]' into envbuild's own Python brings it",
        ) from error


def canonical(record: Mapping[str, Any]) -> bytes:
    """Return a record as it is signed."""
    return json.dumps(record, indent=2, sort_keys=True).encode("utf-8")
