"""What secrets look like by themselves: the beginnings and shapes that their issuers give them.

Each row of formats.tsv says which rule of a public collection describes it; the patterns are our
own, and wider than theirs, because a token that was cut off is a secret too. Rules of gitleaks:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml, of detect-secrets:
https://github.com/Yelp/detect-secrets/tree/master/detect_secrets/plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..data import REDACTION, table

# The rest of a URL is the secret there: what the place begins with, and its pattern.
_HOOKS = {
    "hooks.slack.com/": r"(?:services|workflows|triggers)/",
    "discord.com/api/": r"(?:v[0-9]+/)?webhooks/",
    "discordapp.com/api/": r"(?:v[0-9]+/)?webhooks/",
    ".webhook.office.com/": r"webhookb2/",
    "outlook.office.com/": r"webhook/",
    "outlook.office365.com/": r"webhook/",
    "hooks.zapier.com/": r"hooks/",
    "api.telegram.org/": r"(?:file/)?bot",
    "maker.ifttt.com/": r"trigger/",
    ".logic.azure.com": r"(?::[0-9]+)?/workflows/",
    "chat.googleapis.com/": r"v1/spaces/",
    "api.softlayer.com/": r"(?:soap|xmlrpc|rest)/v[0-9.]+/(?=[a-z0-9]{64})",
    # Of Mattermost, wherever it runs.
    "/hooks/": r"(?=[a-z0-9]{26})",
}
_HOOK_ENDS = {
    place: re.compile(rf"{re.escape(place)}{end}(?P<secret>[^\s\"'<>]+)")
    for place, end in _HOOKS.items()
}

# A run of characters that can hold a token, between spaces, quotes and the parts of a path.
_RUN = re.compile(r"[\w+.~%|$@=:-]{12,}", re.ASCII)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9$])(?:"
    + "|".join(
        f"(?:{start})(?:{characters}){{{minimum},}}"
        for start, minimum, characters, _ in table(REDACTION / "formats.tsv")
    )
    + ")",
    re.ASCII,
)
# What is left of a token of base64 behind a slash.
_MORE = re.compile(r"(?:/[\w+=/-]*)?", re.ASCII)
# As AWS makes its secret keys: 40 characters of base64, which a slash may divide into short parts.
_AWS_SECRET = re.compile(r"(?<![\w+/.-])[A-Za-z0-9+][A-Za-z0-9+/]{39}(?![\w+/.=-])", re.ASCII)
# A part of a run, between what parts words of names, addresses and queries.
_PART = re.compile(r"[A-Za-z0-9+]{20,}={0,2}", re.ASCII)
_PLAIN_WORDS = re.compile(r"[A-Za-z][a-z]{3,}|[A-Z]{5,}")
_DIGEST = re.compile(r"[0-9a-f]+")
# A digest, a name that a compiler made, a hexadecimal number.
_NO_SECRET = re.compile(r"(?i:sha|md)[0-9]{1,3}[:=_-]|_Z|_R[A-Z]|0x|\?\?")


def tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield where secrets lie in a text that can be told by what they look like."""
    yield from _hooks(text)
    yield from (key.span() for key in _AWS_SECRET.finditer(text) if is_random(key.group()))
    for run in _RUN.finditer(text):
        begin, end = run.span()
        for found in _TOKEN.finditer(text, begin, end):
            if not _DIGEST.fullmatch(found.group()):
                more = _MORE.match(text, end) if found.end() == end else None
                yield found.start(), more.end() if more else found.end()
        if not _NO_SECRET.search(text, max(0, begin - 8), begin + 8):
            parts = _PART.finditer(text, begin, end)
            yield from (part.span() for part in parts if is_random(part.group()))


def _hooks(text: str) -> Iterator[tuple[int, int]]:
    for place, pattern in _HOOK_ENDS.items():
        at = text.find(place)
        while at >= 0:
            found = pattern.match(text, at)
            if found:
                yield found.span("secret")
            at = text.find(place, found.end() if found else at + 1)


def is_random(text: str) -> bool:
    """Whether a word of 20 characters or more is drawn at random from large and small letters.

    Hexadecimal digits count for nothing: digests of files and of commits are no secrets.
    """
    if text in (text.lower(), text.upper()):
        return False
    # A name may have a number.
    digits = sum(map(text.count, "0123456789"))
    return digits > 1 and sum(map(len, _PLAIN_WORDS.findall(text))) * 2 < len(text)
