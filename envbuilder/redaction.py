"""What must not leave the machine: secrets, and who somebody is, taken out of a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .target_tools.names import TOKEN, USER
from .target_tools.smoke.rank_env import SECRET

# Shorter ones are words of their own: a password such as "mpi" would take half of a log away.
_SHORTEST = 6
_SHORTEST_USER = 3

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# As GitHub, GitLab, AWS, PyPI, Slack, Hugging Face and anaconda.org begin theirs; JSON web tokens.
_TOKENS = re.compile(
    r"\b(?:gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}|pypi-[\w-]{32,}"
    r"|xox[abprs]-[\w-]{10,}|hf_\w{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_BEARER = re.compile(r"(?i)\b(?P<kept>(?:bearer|basic)\s+)[\w.~+/=-]{8,}")
_ASSIGNED = re.compile(
    r"(?i)(?P<kept>[\w-]*(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|credential|cookie|authorization|signature)[\w-]*[\"']?\s*[=:]\s*)"
    r"(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s,;)}\]]+)"
)
_MAIL = re.compile(r"\b[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}\b")


class Redacted(NamedTuple):
    """A text without secrets. ``counts``: what was taken out, and how often."""

    text: str
    counts: Mapping[str, int]


def redact(text: str, environ: Mapping[str, str]) -> Redacted:
    """Take out secrets, e-mail addresses, the user's name and home.

    Secrets: values of variables of *environ* whose names say so, credentials of URLs, what looks
    like a token or key, what is assigned to a name such as ``password``. More than has to be is
    taken rather than less.
    """
    counts: Counter[str] = Counter()
    for what, pattern, put in _rules(environ):
        text, number = pattern.subn(put, text)
        counts[what] += number
    return Redacted(text, {what: number for what, number in counts.items() if number})


def _rules(environ: Mapping[str, str]) -> Iterator[tuple[str, re.Pattern[str], str]]:
    yield "private keys", _KEY_BLOCK, "(private key left out)"
    # The longest first: one may begin with another.
    values = sorted(
        {
            value
            for name, value in environ.items()
            if SECRET.search(name) and len(value) >= _SHORTEST and not _is_place(value)
        },
        key=lambda value: (-len(value), value),
    )
    if values:
        either = "|".join(map(re.escape, values))
        yield "values of secret variables", re.compile(either), "(left out)"
    yield "credentials in URLs", USER, "(left out)@"
    yield "credentials in URLs", TOKEN, "t/(left out)/"
    yield "tokens", _TOKENS, "(token left out)"
    yield "tokens", _BEARER, r"\g<kept>(left out)"
    yield "values of secret names", _ASSIGNED, r"\g<kept>(left out)"
    yield "e-mail addresses", _MAIL, "(e-mail)"
    home = environ.get("HOME", "").rstrip("/")
    if len(home) > 1:
        yield "the home", re.compile(re.escape(home) + r"(?![\w.-])"), "~"
    user = environ.get("USER") or environ.get("LOGNAME") or ""
    if len(user) >= _SHORTEST_USER and user != "root":
        yield "the user's name", re.compile(rf"(?<!\w){re.escape(user)}(?!\w)"), "(user)"


def _is_place(value: str) -> bool:
    """Whether a variable names where a secret is, as SSH_AUTH_SOCK does, and holds none."""
    return value.startswith("/") and (Path(value).exists() or value.count("/") > 1)
