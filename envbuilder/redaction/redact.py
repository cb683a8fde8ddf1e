"""Take secrets, and who somebody is, out of a text.

All ways to find them look at the text as it is; what they find is put together and taken out once.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ..data import REDACTION, table
from ..target_tools.names import TOKEN, USER
from ..target_tools.smoke.rank_env import SECRET
from .assigned import assigned
from .formats import tokens
from .names import Strength, one_of, strength

_QUOTED = r"\"(?:[^\"\\\n]|\\.){1,1024}\"|'[^'\n]{1,1024}'"
# Words and quoted parts that stand together, as a shell joins them.
_VALUE = rf"(?P<secret>(?:{_QUOTED}|[^\s\"']{{1,1024}}){{1,4}})"

# The names of programs, and what stands before a password that is given to one of them.
_OPTIONS = tuple(
    (programs.split(), pattern) for programs, pattern in table(REDACTION / "options.tsv")
)
_NAMES = sorted({name for programs, _ in _OPTIONS for name in programs})
_PROGRAM = re.compile(rf"(?:{one_of(_NAMES)})(?=[ \t])")
_BY_PROGRAM = {
    name: tuple(
        re.compile(rf"(?<=\s){pattern}{_VALUE}")
        for programs, pattern in _OPTIONS
        if name in programs
    )
    for name in _NAMES
}
# A variable of the shell, another option, what stands for a value in a manual.
_NO_VALUE = re.compile(r"[\"']?(?:\$\{?\w+\}?:?)*[\"']?|[\"']?:[\"']?|-.*|<.*")
_COOKIE = re.compile(r"MIT-MAGIC-COOKIE-1[ \t]{1,20}(?P<secret>[0-9a-fA-F]{16,})")


def of_programs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where passwords lie that a program is started with."""
    for cookie in _COOKIE.finditer(text):
        yield cookie.span("secret")
    begin = end = -1
    programs: set[str] = set()
    for found in _PROGRAM.finditer(text):
        before = text[found.start() - 1 : found.start()]
        if before.isalnum() or before in ("_", ".", "-"):
            continue
        if found.start() >= end:
            yield from _in_line(text, begin, end, programs)
            begin, end, programs = found.end(), _line_end(text, found.start()), set()
        programs.add(found.group())
    yield from _in_line(text, begin, end, programs)


def _line_end(text: str, at: int) -> int:
    """Return where a command ends that may go on behind a backslash at a line's end."""
    end = at
    while (end := text.find("\n", end)) > 0 and text[end - 1] == "\\":
        end += 1
    return end if end >= 0 else len(text)


def _in_line(text: str, begin: int, end: int, programs: set[str]) -> Iterator[tuple[int, int]]:
    for program in sorted(programs):
        for pattern in _BY_PROGRAM[program]:
            for found in pattern.finditer(text, begin, end):
                if not _NO_VALUE.fullmatch(found["secret"]):
                    yield found.span("secret")


__all__ = ["Redacted", "redact"]

# Shorter ones are words of their own: a password such as "mpi" would take half of a log away.
_SHORTEST = 6
_SHORTEST_USER = 3

# PEM, OpenPGP, SSH2 and PuTTY, as they are or in a text of JSON.
_KEY_BLOCK = re.compile(
    r"-{4,5} ?BEGIN[A-Z0-9 _-]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}.*?"
    r"(?:-{4,5} ?END[A-Z0-9 _-]{0,40}KEY(?: BLOCK)? ?-{4,5}|\Z)"
    r"|PuTTY-User-Key-File-.*?(?:\nPrivate-(?:MAC|Hash):[^\n]*|\Z)",
    re.DOTALL,
)
_KEY_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_LINE = re.compile(r"[ \t]*[A-Za-z0-9+/=]{0,80}\r?|[ \t]*[\w-]{1,20}: .{0,80}")
# What is public in such a block looks as its secret does.
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?:CERTIFICATE|[A-Z ]{0,20}PUBLIC KEY|PGP (?:SIGNATURE|MESSAGE|PUBLIC KEY BLOCK))"
    r"-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)"
    r"|(?:ssh-(?:rsa|dss|ed25519)|(?:sk-)?(?:ssh|ecdsa)-[\w-]{1,24}(?:@openssh\.com)?)"
    r"[ \t]{1,8}AAAA[\w+/=]{1,8192}",
    re.DOTALL,
)
# Characters around the kind of a document of Kubernetes that are looked at.
_DOCUMENT = 8192
_SECRET_KIND = re.compile(r"kind[\"']?:[ \t]{0,8}[\"']?secret\b")
_SECRET_DATA = re.compile(
    r"(?:string)?[dD]ata[\"']?:[ \t]{0,8}(?P<rows>(?:\n[ \t]+[^\n]{0,4096})+|\{[^}]{0,8192})"
)
_SECRET_ROW = re.compile(r"[\w.-]{1,128}[\"']?:[ \t]{0,8}[\"']?(?P<secret>[\w+/=.-]{4,4096})")
# A password that holds a slash; a port and a path are none.
_USER_WITH_SLASH = re.compile(
    r"(?<=://)[^\s/@:\"'<>]{0,256}:(?!\d{1,5}(?:[/?#\s]|\Z))[^\s\"'<>@]{1,256}(?=@)"
)
_ORACLE = re.compile(r"(?<=:thin:)[^\s/@]{1,128}/[^\s@]{1,128}(?=@)")
_DSN = re.compile(r"[\w.-]{1,64}:[^\s:@/]{1,128}(?=@(?:tcp|unix|udp)\()")
# .pgpass: host:port:database:user:password.
_PGPASS = re.compile(
    r"^[\w.*-]{1,128}:(?:\d{2,5}|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:(?P<secret>\S{3,256})$",
    re.MULTILINE,
)
# Of SQL; of a shell, for sudo -S; of PowerShell; of expect.
_IDENTIFIED = re.compile(
    r"(?:identified by\s{1,8}(?=[\"'])|sudo -s <<<\s{0,8}"
    r"|convertto-securestring\s{1,8}(?:-string\s{1,8})?(?=[\"'])"
    r"|ass(?:word|phrase)[:*?)\]\"'{};\s]{1,24}send\s{1,8}(?:--\s{1,8})?(?=[\"']))"
    r"(?P<secret>\"[^\"\n]{1,256}|'[^'\n]{1,256}|[^\s;]{1,256})"
)
# Calls that take a user and a password: HTTPBasicAuth("u", "x"), smtp.login("u", "x"); what a
# client takes is a secret if it is of hexadecimal digits.
_STRING = r"(?:\"(?:[^\"\\\n]|\\.){0,256}\"|'(?:[^'\\\n]|\\.){0,256}')"
_LOGIN_CALL = re.compile(
    rf"(?:auth|\.login|client(?=\({_STRING},\s{{0,8}}[\"'][0-9a-f]{{32,128}}[\"']\))"
    rf"|\bdatabase\({_STRING},(?=\s{{0,8}}{_STRING},\s{{0,8}}{_STRING}))"
    rf"\(?\s{{0,40}}{_STRING},\s{{0,40}}(?P<secret>{_STRING})"
)
_SCHEMES = re.compile(r"bearer\s|basic\s|negotiate\s|api-?key\s|token\s")
_SCHEME = re.compile(
    r"(?i)(?:(?:basic|negotiate|api-?key|token)\s{1,4}"
    r"(?P<secret>(?=[a-z.~+/_=-]{0,64}[0-9A-Z=])[\w.~+/=:-]{16,})"
    r"|bearer\s{1,4}(?P<bearer>[\w.~+/=:-]{8,}))"
)
_IS_THE_PASSWORD = re.compile(
    r" is (?:the|my|our|a|your) (?:\w{1,20} )?(?:password|passphrase|token|secret)\b"
)
_MAIL_HOST = re.compile(r"(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_MAIL_USER = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-"
# Characters on either side of the @ in an address.
_LONGEST_ADDRESS = 256
# A password that can stand for nothing else, wherever it stands; so many of them are looked for.
_TYPED = re.compile(r"(?=\S*[A-Za-z])(?=\S*[0-9])(?=\S*[#!$%&*+?^~])\S{8,64}")
_MOST_TYPED = 32
# What was taken out before.
_MARK = re.compile(r"\((?:(?:token |private key )?left out|e-mail|user)\)")
# The kinds of findings that may stay in part, beside a secret.
_ADDRESSES, _HOME, _USER = _OF_A_PERSON = ("e-mail addresses", "the home", "the user's name")


class Redacted(NamedTuple):
    """A text without secrets. ``counts``: what was taken out, and how often."""

    text: str
    counts: Mapping[str, int]


class _Finding(NamedTuple):
    """A part of a text that is taken out. *what*: for people; *put*: in its place."""

    start: int
    end: int
    what: str
    put: str = "(left out)"


def redact(text: str, environ: Mapping[str, str]) -> Redacted:
    """Take out secrets, e-mail addresses, the user's name and home.

    Secrets: values of variables of *environ* whose names say so, credentials of URLs, what looks
    like a token or key, what is given to a name such as ``password``, options of programs. More
    than has to be is taken rather than less. The time grows with the length of the text alone.
    """
    counts: Counter[str] = Counter()
    parts, at = [], 0
    findings = [*_findings(text, environ)]
    for each in _apart(text, [*findings, *_again(text, findings)]):
        parts += [text[at : each.start], each.put]
        counts[each.what] += 1
        at = each.end
    return Redacted("".join([*parts, text[at:]]), dict(counts))


def _apart(text: str, findings: Iterable[_Finding]) -> Iterator[_Finding]:
    """Yield findings one behind the other: those that overlap as one."""
    last: _Finding | None = None
    for each in sorted(findings, key=lambda each: (each.start, -each.end)):
        if each.end <= each.start or _MARK.match(text, each.start):
            continue
        if last and each.start < last.end:
            if each.what not in _OF_A_PERSON:
                last = last._replace(end=max(last.end, each.end))
            continue
        if last:
            yield last
        last = each
    if last:
        yield last


def _findings(text: str, environ: Mapping[str, str]) -> Iterator[_Finding]:
    # As many characters as before: other letters than those of ASCII may have longer small forms.
    small = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    secrets = (
        ("values of secret variables", _values(text, environ)),
        ("credentials in URLs", _credentials(text)),
        ("tokens", _called_secret(text, small)),
        ("values of secret names", assigned(text, small)),
        ("values of secret names", _kubernetes(text, small)),
        ("passwords in commands", of_programs(text)),
    )
    for start, end in _private_keys(text):
        yield _Finding(start, end, "private keys", "(private key left out)")
    public = _public_blocks(text)
    begins = [begin for begin, _ in public]
    for start, end in tokens(text):
        before = bisect_right(begins, start) - 1
        if before < 0 or start >= public[before][1]:
            yield _Finding(start, end, "tokens", "(token left out)")
    for what, spans in secrets:
        yield from (_Finding(start, end, what) for start, end in spans)
    yield from _person(text, environ)


def _again(text: str, findings: Iterable[_Finding]) -> Iterator[_Finding]:
    """Yield the other places of passwords that were found by what stands before them."""
    named = (each for each in findings if each.what == "values of secret names")
    short = (text[each.start : each.end] for each in named if each.end - each.start <= 64)
    typed = dict.fromkeys(value for value in short if _TYPED.fullmatch(value))
    for value in [*typed][:_MOST_TYPED]:
        for start in _places(text, value):
            yield _Finding(start, start + len(value), "values of secret names")


def _values(text: str, environ: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    for value in _secret_values(environ):
        yield from ((start, start + len(value)) for start in _places(text, value))


def _public_blocks(text: str) -> list[tuple[int, int]]:
    some = "-----BEGIN " in text or "AAAA" in text
    found = _PUBLIC_BLOCK.finditer(text) if some else ()
    return [each.span() for each in found]


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return
    whole = [each.span() for each in _KEY_BLOCK.finditer(text)]
    yield from whole
    for found in _KEY_END.finditer(text):
        if any(start <= found.start() < end for start, end in whole):
            continue
        # The text begins in the middle of a key.
        start = found.start()
        while start > 0:
            line = text.rfind("\n", 0, start - 1) + 1
            if not _KEY_LINE.fullmatch(text, line, start - 1):
                break
            start = line
        yield start, found.end()


def _kubernetes(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield the values below ``data`` in a Secret of Kubernetes, whatever their names are."""
    seen = 0
    for kind in _SECRET_KIND.finditer(small):
        if kind.start() < seen:
            continue
        begin = max(text.rfind("\n---", seen, kind.start()), kind.start() - _DOCUMENT, seen)
        after = text.find("\n---", kind.end(), kind.end() + _DOCUMENT)
        seen = after if after >= 0 else min(len(text), kind.end() + _DOCUMENT)
        for data in _SECRET_DATA.finditer(text, begin, seen):
            for row in _SECRET_ROW.finditer(text, *data.span("rows")):
                yield row.span("secret")


def _secret_values(environ: Mapping[str, str]) -> set[str]:
    """Return the values of secret variables, as they are and as other texts may spell them."""
    values = {
        value
        for name, value in environ.items()
        if (SECRET.search(name) or strength(name) >= Strength.TOKEN)
        and len(value) >= _SHORTEST
        and not _is_place(value)
    }
    spelt = (
        {value, quote(value, safe=""), html.escape(value), json.dumps(value)[1:-1]}
        for value in values
    )
    return set().union(*spelt)


def _places(text: str, value: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)


def _credentials(text: str) -> Iterator[tuple[int, int]]:
    """Yield users and passwords of URLs and of other addresses, without the @ behind them."""
    for at in _places(text, "://"):
        found = USER.match(text, at + 3)
        # docker://NAME@sha256:DIGEST names no user; git@ is everybody's.
        if found and (found.group() == "git@" or text.startswith("sha256:", found.end())):
            continue
        if found:
            yield found.start(), found.end() - 1
        elif not found and text.find("@", at, at + 2 * _LONGEST_ADDRESS) >= 0:
            yield from _spans(_USER_WITH_SLASH.match(text, at + 3))
    for at in _places(text, "/t/"):
        found = TOKEN.match(text, at + 1)
        if found and any(map(str.isdigit, found.group())):
            yield found.start() + 2, found.end() - 1
    for at in _places(text, ":thin:"):
        yield from _spans(_ORACLE.match(text, at + 6))
    for network in ("@tcp(", "@unix(", "@udp("):
        for at in _places(text, network):
            yield from _spans(*_DSN.finditer(text, max(0, at - 192), at + 5))
    yield from (found.span("secret") for found in _PGPASS.finditer(text))


def _spans(*found: re.Match[str] | None) -> Iterator[tuple[int, int]]:
    yield from (each.span() for each in found if each)


def _called_secret(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield secrets that words around them name: ``bearer X``, ``X is the password``."""
    for word in _SCHEMES.finditer(small):
        if found := _SCHEME.match(text, word.start()):
            yield found.span(found.lastgroup or 0)
    for pattern in (_IDENTIFIED, _LOGIN_CALL):
        yield from (found.span("secret") for found in pattern.finditer(small))
    for at in _places(text, " is "):
        if _IS_THE_PASSWORD.match(text, at):
            word_start = max(map(text.rfind, " \t\n", [max(0, at - 128)] * 3, [at] * 3)) + 1
            secret = text[word_start:at].strip("#;/*\"'")
            if len(secret) >= _SHORTEST:
                yield word_start, at


def _person(text: str, environ: Mapping[str, str]) -> Iterator[_Finding]:
    """Yield what says who the user is."""
    for at in _places(text, "@"):
        before = text[max(0, at - _LONGEST_ADDRESS) : at]
        length = len(before) - len(before.rstrip(_MAIL_USER))
        # git@github.com is everybody's.
        personal = length and before[-length:] != "git"
        host = _MAIL_HOST.match(text, at + 1) if personal else None
        if host:
            yield _Finding(at - length, host.end(), _ADDRESSES, "(e-mail)")
    home = environ.get("HOME", "").rstrip("/")
    if len(home) > 1:
        for found in re.finditer(re.escape(home) + r"(?![\w.-])", text):
            yield _Finding(*found.span(), _HOME, "~")
    user = environ.get("USER") or environ.get("LOGNAME") or ""
    if len(user) >= _SHORTEST_USER and user != "root":
        name = re.escape(user)
        for found in re.finditer(rf"{name}(?<!\w{name})(?!\w)", text):
            yield _Finding(*found.span(), _USER, "(user)")


def _is_place(value: str) -> bool:
    """Whether a variable names where a secret is, as SSH_AUTH_SOCK does, and holds none."""
    return value.startswith("/") and (Path(value).exists() or value.count("/") > 1)
