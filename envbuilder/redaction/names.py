"""Which names of variables, options, headers, keys and columns say that their value is a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

from ..data import REDACTION, table


class Strength(IntEnum):
    """How sure a name is, and so which values of it are taken for secrets.

    NONE: no value. WEAK: what looks drawn at random. TOKEN: all but words, numbers and paths.
    PASSWORD: all that is no placeholder.
    """

    NONE = 0
    WEAK = 1
    TOKEN = 2
    PASSWORD = 3


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_PASSWORDS = ("password", "passwd", "passwort", "passphrase", "passcode", "kennwort", "contrase")
_TOKENS = ("token", "secret", "apikey", "accesskey", "secretkey", "privatekey", "authkey")
WORD_LISTS = {name: frozenset(words.split()) for name, words in table(REDACTION / "words.tsv")}
# Two words, or one of them with another word for the same service.
_SERVICE_PAIRS = frozenset(
    {"new relic", "linked in", "message bird", "private ai", "new york", "hugging face"}
    | {"micro soft", "git hub", "git lab", "fly io", "frame io", "launch darkly", "send grid"}
)

# What any secret name holds, in small letters: where to look for names in a text.
KEYWORDS = (
    *("pass", "kennwort", "contrase", "pwd", "pw", "psw", "token", "secret", "key", "cred", "auth"),
    *("cookie", "sig", "session", "sessid", "bearer", "jwt", "psk", "sas", "dsn", "webhook"),
    *("csrf", "xsrf", "otp", "mnemonic", "hmac"),
)


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """Return how surely a value of this name is a secret."""
    words = [each.lower() for each in _WORDS.findall(name)]
    letters = [each for each in words if not each.isdigit()]
    if letters[-2:] in (["secret", "id"], ["role", "id"]):
        return Strength.TOKEN
    if not letters or letters[-1] in WORD_LISTS["about"]:
        return _of_service(letters)
    if name in ("PWD", "OLDPWD"):
        return Strength.NONE
    if any(_is_password(each) for each in letters) or _is_pass(letters, name):
        return Strength.PASSWORD
    if _is_token(letters) or _is_key(letters):
        return Strength.TOKEN
    if letters[-1] in ("key", "keys") or WORD_LISTS["weak-words"] & set(letters):
        return Strength.NONE if WORD_LISTS["no-keys"] & set(letters) else Strength.WEAK
    return _of_service(letters)


def _of_service(words: list[str]) -> Strength:
    pairs = map(" ".join, pairwise(words))
    named = bool(WORD_LISTS["services"] & set(words)) or any(
        each in _SERVICE_PAIRS for each in pairs
    )
    return Strength.WEAK if named else Strength.NONE


def _is_password(word: str) -> bool:
    owner = word.removesuffix("pw")
    short = word in ("pwd", "pw", "psw", "mdp", "passe", "authtok") or (
        owner != word and owner in WORD_LISTS["owners"]
    )
    return short or any(each in word for each in _PASSWORDS)


def _is_secret_word(word: str) -> bool:
    """Whether a word is one for a token: apitoken, secrete; a tokenizer and a secretary are not."""
    plain = not word.startswith(("tokeni", "secretar"))
    return plain and any(each in word for each in _TOKENS) and not word.endswith("s")


def _is_pass(words: list[str], name: str) -> bool:
    """Whether a pass is one for somebody: a compiler has passes as well."""
    if "pass" in words[1:]:
        return words[words.index("pass", 1) - 1] in WORD_LISTS["owners"] or name.isupper()
    owner = words[-1].removesuffix("pass").removesuffix("pwd")
    return owner != words[-1] and (owner in WORD_LISTS["owners"] or owner == "key")


def _is_token(words: list[str]) -> bool:
    if WORD_LISTS["no-tokens"] & set(words):
        return False
    last = words[-1]
    return any(map(_is_secret_word, words)) or last in WORD_LISTS["token-words"]


def _is_key(words: list[str]) -> bool:
    if WORD_LISTS["no-keys"] & set(words):
        return False
    pairs = pairwise(words)
    if any(second in ("key", "keys") and first in WORD_LISTS["owners"] for first, second in pairs):
        return True
    last = words[-1]
    return (
        last != "key" and last.endswith("key") and last.removesuffix("key") in WORD_LISTS["owners"]
    )


def one_of(words: Iterable[str]) -> str:
    """Return a pattern of some words that is quick where most letters begin none of them."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        by_letter.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(
        f"{re.escape(letter)}(?:{'|'.join(ends)})" for letter, ends in by_letter.items()
    )
