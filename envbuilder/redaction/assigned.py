"""Values that are given to a secret name: NAME=VALUE and the forms that it has elsewhere.

In shells, headers, queries, JSON, YAML, TOML, ini, XML, command lines and programs a name stands
before its value, with a sign between them. So a name is looked for first, by the few words that a
secret name holds; what follows it decides whether there is a value and where that ends. Every
pattern is tried at one place and takes a bounded number of characters, so the time that a text
takes grows with its length alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .formats import is_random
from .names import KEYWORDS, WORD_LISTS, Strength, one_of, strength

# Characters: of a name on either side of the word that it is found by, of a value.
_NAME, _VALUE = 80, 8192
# Of a value that nothing encloses, so many are looked at to tell what it is.
_SHORT_VALUE = 256
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

_FOUND_BY = re.compile(one_of([*KEYWORDS, *WORD_LISTS["services"]]))
_NAME_END = re.compile(rf"[\w.-]{{0,{_NAME}}}")
# Quotes as they are, in a text of JSON, in HTML, in a URL.
_QUOTE = r"\"{3}|'{3}|\\{0,3}[\"'`]|&quot;|&apos;|&#0?3[49];|%2[27]"
_SIGN = (
    # := ::= ?= ??= ||= += .= == => -> and the signs themselves, as a URL or JSON may spell them.
    r"(?:[:?|+.!-]{0,3}(?:=|%3[Dd]|&#61;|\\u003[dD])={0,2}>?|:{1,2}|%3[Aa]|->|\|{1,2})"
)
_TYPE = r"(?:\s{0,3}:?\s{0,3}(?:&?(?:'static\s)?str|[Ss]tring\??|char\s?\*|text|varchar)\b)?"
_SPACE = r"[ \t]{0,40}"
# "name": "DB_PASS", "value": "x"; <add key="Password" value="x"/>; name: DB_PASS, below it value: x
_VALUE_OF = rf"[,;]?\s{{0,40}}(?:-\s)?(?:{_QUOTE})?[Vv]alue(?:{_QUOTE})?\s{{0,8}}[=:]\s{{0,8}}"
_ASSIGNS = rf"{_SPACE}{_SIGN}{_SPACE}(?:[|>][+-]?[ \t]{{0,8}}\n[ \t]{{1,40}})?"
_OPERATOR = re.compile(
    rf"(?P<closed>(?:{_QUOTE}|[\])]|\[[0-9]{{0,6}}\]){{0,3}}){_TYPE}(?:"
    rf"(?P<sign>{_VALUE_OF}|{_ASSIGNS})"
    # setProperty("DB_PASS", "x"), .password("x")
    rf"|(?P<argument>\s{{0,8}}[,(]\s{{0,8}}(?=\\{{0,3}}[\"']))"
    # <password>x</password>
    r"|(?P<element>\s{0,8}>\s{0,40})"
    # --password x, setenv DB_PASS x, password is x
    r"|[ \t]{1,8}(?P<is>(?:is|was|ist|war|lautet|est)\b:?|for[ \t](?:(?:key|user)[ \t])?"
    r"(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|[^\s:'\"]{1,120})[ \t]?:)[ \t]{1,8}(?=\S)"
    r"|(?P<space>(?:[ \t]{1,40}of\b:?)?[ \t]{1,40}))"
)
# What makes bytes, or a secret, of a string.
_MADE_OF = r"[\w.]{0,40}(?:fromhex|unhexlify|decode|SecretStr|bytes|quote)\((?=[bru]?[\"'])"
_OPENED = re.compile(
    rf"(?:{_MADE_OF})?(?:[bru@$]{{1,2}}(?=[\"']))?(?P<quote>{_QUOTE})|(?P<list>\[|\((?=[\"']))"
)
_UNQUOTED = re.compile(rf"\S{{1,{_SHORT_VALUE}}}")
_REST = re.compile(rf"[\w+/=.~%-]{{0,{_VALUE}}}")
# Where a value ends before a space: another assignment or the end of a list follows.
_NEXT = re.compile(
    r"[&;,](?=\s{0,8}[A-Za-z_][\w.\[\]-]{0,40}\s{0,8}[=:]|amp;)|\\{1,2}[nrt\"']|&#|&lt;|&quot;|</"
    r"|[\"'`](?=[,;:)}\]>|]|\Z)|[)\]},;>]{1,8}\Z"
)
_COMPARES = re.compile(r"(?P<quote>[\"'`])\s{0,4}[=!]==?\s{0,4}\$?\Z")
_TO_LINE_END = re.compile(rf"[^\r\n]{{1,{_VALUE}}}")
_TO_TAG = re.compile(rf"[^<]{{1,{_VALUE}}}")
_TO_BRACKET = re.compile(rf"[^\])\r\n]{{1,{_VALUE}}}")
_COLON = re.compile(r"[ \t]{0,4}:[ \t]{0,4}")
# Headers whose value goes on to the end of the line.
_HEADERS = re.compile(
    r"(?i)(?:(?:x-)?(?:proxy-|amz-)?authorization|(?:set-)?cookie2?|www-authenticate"
    r"|x-[\w-]{0,40}(?:token|key|auth|secret|signature)[\w-]{0,20})"
)
# The word before a name whose value stands behind a space, and the one before a user's name.
_SETS = frozenset({"setenv", "env", "arg", "set", "--set", "-x", "setx", "puts"})
_LOGINS = frozenset({"login", "user", "username", "account"})

_PLACEHOLDER = re.compile(
    r"""(?ix) \(?(?:left\ out|\w+\ left\ out)\)? .* | \*{2,} | x{3,} | \.{3,} | -+ | _+
    | <[^>]*>? | \$\{?[\w.:-]*\}?(?:["'].*)? | \$\(.* | \$\{\{.* | \{\{.* | %\w+% | %[sdr] | \{\w*\}
    | (?:true|false|yes|no|on|off|none|null|nil|undefined|empty|required|optional|redacted
        |hidden|masked|missing|unset|default|prompt|ask|stdin|str|string|bytes|int|bool)"""
)
_NUMBER = re.compile(r"[+-]?(?:0x[0-9A-Fa-f]{1,16}|[0-9][0-9.,:%/]*)[A-Za-z%]{0,3}")
_PLACE = re.compile(r"(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*|[A-Za-z]:\\.*|(?:file|https?)://.*")
_CODE = re.compile(
    r"[A-Za-z_][\w.]*[(\[].*|(?:self|cls|args|kwargs|config|cfg|os|opts|options|settings|env"
    r"|process|request|this|parsed|ctx|context)\.[A-Za-z_.]+|lambda\b.*"
)
_PLAIN_WORD = re.compile(r"[A-Za-z]+[,.;:!?)]*")
# What is no word of prose.
_NOT_PROSE = re.compile(r"(?=\S*[A-Za-z])\S*(?:[0-9]|[#!$%&*+=?@^~]\w)\S*")
# In nsswitch.conf; what the program passwd says.
_OF_PASSWD = re.compile(
    r"(?:(?:files|ldap|sss|nis|nisplus|compat|systemd|db|winbind|\[[\w!=]+\])\s*)+"
    r"|(?i:(?:all )?authentication \w.*|password (?:updated|unchanged|expiry|changed|for)(?: .*)?"
    r"|permission denied\.?|(?:unknown user|you may|you must|only root|have exhausted) .*"
    r"|user '.*' does not exist)"
)
# Of a connection of ODBC, where PWD is no folder.
_CONNECTION = re.compile(r"\b(?:uid|user id|user|driver|server|dsn)=")
# Beside a key of an account, in the same object.
_ACCOUNT = re.compile(r"[\"'](?:user(?:_?name)?|e?mail|url)[\"']\s{0,8}:")
_NEAR = 256
# A word before "key" that says whose it is.
_KIND_OF_KEY = re.compile(r"(?:secret|private|api|access|licen[cs]e|recovery|encryption)[ \t]\Z")
_VERSION = re.compile(r"v?[0-9]+(?:[._-][0-9A-Za-z]+){1,5}")
_FILE = re.compile(
    r"[\w./+-]*\.(?:so|py|pub|pem|key|json|ya?ml|toml|conf|cfg|txt|log|c|h|lua)(?:\.\d+)*"
)
_TOKEN_CHARACTERS = re.compile(r"[\w+/=.~%:|-]{8,}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96,128})")
# Characters: a number of so many is no count, a word of fewer may be prose.
_LONG_NUMBER, _LONG_WORD = 14, 16


def assigned(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of secret names lie. *small*: the text in small letters of ASCII."""
    begin = 0
    while found := _FOUND_BY.search(small, begin):
        middle = found.start()
        left = text[max(0, middle - _NAME) : middle]
        start = middle - len(left) + len(left.rstrip(_NAME_CHARACTERS))
        end = _span(_NAME_END, text, found.end())[1]
        begin = max(end, found.end())
        name = text[start:end].rstrip(".-")
        sure = _strength(text, small, start, name)
        if sure is not Strength.NONE:
            value = _value(text, start, start + len(name), sure) or _compared(text, start, sure)
            if value:
                begin = max(begin, value[1])
                yield value


def _strength(text: str, small: str, start: int, name: str) -> Strength:
    """Return how sure a name at *start* is, by itself and by what stands around it."""
    sure = strength(name.lstrip(".-"))
    before = text[start - 1 : start]
    if sure is Strength.WEAK:
        if before in ("@", "/") and "." in name:
            # A host, behind which its port stands.
            return Strength.NONE
        if before in ("?", "&"):
            # In a query nobody passes a digest under such a name.
            return Strength.TOKEN
        if name.lower() == "key" and _is_of_account(small, start, start + len(name)):
            return Strength.TOKEN
    elif (
        name == "PWD" and before == ";" and _CONNECTION.search(small, max(0, start - _NEAR), start)
    ):
        return Strength.PASSWORD
    return sure


def _is_of_account(small: str, start: int, end: int) -> bool:
    """Whether a key is a secret one, or stands in an object that also names a user or a place."""
    if _KIND_OF_KEY.search(small, max(0, start - 16), start):
        return True
    if small[start - 1 : start] not in ('"', "'") or small[end : end + 1] != small[start - 1]:
        return False
    opening = max(small.rfind("{", 0, start), start - _NEAR, 0)
    closing = small.find("}", end, end + _NEAR)
    return bool(_ACCOUNT.search(small, opening, closing if closing >= 0 else end + _NEAR))


def _value(text: str, start: int, end: int, sure: Strength) -> tuple[int, int] | None:
    """Return where the value of a name lies that is itself at *start* and *end*."""
    name = text[start:end]
    if _HEADERS.fullmatch(name) and (header := _header(text, start, end)):
        return header
    operator = _OPERATOR.match(text, end)
    if operator is None or (operator["element"] and text[start - 1 : start] != "<"):
        return None
    at = operator.end()
    opened = _OPENED.match(text, at)
    quoted = bool(opened and opened["quote"])
    if operator["is"] and not quoted and sure is Strength.PASSWORD:
        return _told(text, at, operator["is"])
    spaced = operator["space"] is not None or (operator["is"] is not None and not quoted)
    if spaced and not (quoted and sure is Strength.PASSWORD):
        sure = _behind_space(text, start, name, sure)
    if sure is Strength.NONE or (opened and _closes(text, start, operator, opened)):
        return None
    if opened and not quoted and not spaced and (sure >= Strength.TOKEN or "auth" in name.lower()):
        # auth=("user", "password")
        sure = Strength.TOKEN
        span = _span(_TO_BRACKET, text, opened.end())
    else:
        span = _extent(text, start, operator, opened if quoted else None, sure)
    value = text[span[0] : span[1]].strip()
    if not value or (name.lower() == "passwd" and _OF_PASSWD.fullmatch(value)):
        return None
    plain = not quoted and operator["sign"] is not None and operator["sign"].strip() == ":"
    return span if _is_secret(value, name, sure, quoted=quoted, plain=plain) else None


def _extent(
    text: str, start: int, operator: re.Match[str], opened: re.Match[str] | None, sure: Strength
) -> tuple[int, int]:
    """Return how far a value goes: to its quotes, its tag, the end of its line or a space."""
    at = operator.end()
    if opened:
        return _quoted(text, opened)
    if operator["element"]:
        return _span(_TO_TAG, text, at)
    if not _is_whole_line(text, start, operator, sure):
        return _unquoted(text, at)
    begin, end = _span(_TO_LINE_END, text, at)
    hidden = _PLACEHOLDER.fullmatch(text[begin:end].partition(" ")[0])
    return (begin, begin) if hidden else (begin, end)


def _told(text: str, at: int, word: str) -> tuple[int, int] | None:
    """Return where a password lies that prose tells: ``the password is X``."""
    begin, end = _unquoted(text, at)
    value = text[begin:end].rstrip(".,;)")
    prompted = word.startswith("for") and text[end : end + 1] in ("", "\r", "\n")
    wanted = not _PLAIN_WORD.fullmatch(value) if prompted else _NOT_PROSE.fullmatch(value)
    secret = wanted and not (_PLACEHOLDER.fullmatch(value) or _PLACE.fullmatch(value))
    return (begin, begin + len(value)) if secret else None


def _closes(text: str, start: int, operator: re.Match[str], opened: re.Match[str]) -> bool:
    """Whether a quote behind a name ends a string that holds the name: ``f("Password: ")``."""
    quote = opened["quote"]
    if not quote or operator["closed"] or (operator["sign"] or "").strip() != ":":
        return False
    line = text[text.rfind("\n", max(0, start - _NEAR), start) + 1 : start]
    return line.count(quote) % 2 == 1 and text[opened.end() : opened.end() + 1] in ("", *"\n),;]}")


def _quoted(text: str, opened: re.Match[str]) -> tuple[int, int]:
    """Return where a value lies in quotes; without their end it goes to the end of its line."""
    at = opened.end()
    quote = opened["quote"]
    closing = text.find(quote, at, at + _VALUE)
    while len(quote) == 1 and closing >= 0 and _is_escaped(text, max(at, closing - 8), closing):
        closing = text.find(quote, closing + 1, at + _VALUE)
    if closing >= 0 and len(quote) == 3 and quote == quote[0] * 3:
        # It may go over several lines.
        return at, closing
    line = text.find("\n", at, at + _VALUE)
    if closing < 0 or (0 <= line < closing and text[line - 1] != "\\"):
        closing = line if line >= 0 else min(len(text), at + _VALUE)
    return at, closing


def _is_escaped(text: str, begin: int, at: int) -> bool:
    before = text[begin:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _compared(text: str, start: int, sure: Strength) -> tuple[int, int] | None:
    """Return where a value lies that stands before its name: ``"x" == password``."""
    sign = _COMPARES.search(text, max(0, start - 12), start)
    if sign is None or sure < Strength.TOKEN:
        return None
    end = sign.start()
    begin = text.rfind(sign["quote"], max(0, end - _VALUE, text.rfind("\n", 0, end)), end) + 1
    return (begin, end) if begin else None


def _header(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return where the value of a header lies: to the end of its quotes or its line."""
    colon = _COLON.match(text, end)
    if colon is None:
        return None
    at, quote = colon.end(), text[start - 1 : start]
    line = text.find("\n", at, at + _VALUE)
    stop = line if line >= 0 else min(len(text), at + _VALUE)
    if quote and quote in "\"'`":
        closing = text.find(quote, at, stop)
        if text[start - 2 : start - 1] == "\\" and closing > at:
            closing -= text[closing - 1] == "\\"
        stop = closing if closing >= 0 else stop
    value = text[at:stop].strip()
    return (at, stop) if value and not _PLACEHOLDER.fullmatch(value) else None


def _behind_space(text: str, start: int, name: str, sure: Strength) -> Strength:
    """Return how sure a name is of a value that a space alone divides from it."""
    if name.startswith(("-", "/")) and not name.startswith("---"):
        # An option: --key names a file.
        return Strength.NONE if name.lower().endswith("key") and sure is Strength.WEAK else sure
    words = text[max(0, start - 160) : start].lower().split()[-2:]
    login = sure is Strength.PASSWORD and words[:1] and words[0] in _LOGINS
    login = login and words[-1] not in ("and", "or")
    if sure >= Strength.TOKEN and (login or (words and words[-1].lstrip("(;&|") in _SETS)):
        return sure
    return Strength.WEAK if sure >= Strength.TOKEN else Strength.NONE


def _is_whole_line(text: str, start: int, operator: re.Match[str], sure: Strength) -> bool:
    """Whether a value is all that is left of its line, as in YAML and ini: ``password: a b``."""
    if sure is not Strength.PASSWORD or operator["closed"] or not operator["sign"]:
        return False
    line = text[text.rfind("\n", max(0, start - 40), start) + 1 : start]
    return not line.strip(" \t-#;") and operator["sign"][-1:] in " \t"


def _span(pattern: re.Pattern[str], text: str, at: int) -> tuple[int, int]:
    found = pattern.match(text, at)
    return found.span() if found else (at, at)


def _unquoted(text: str, at: int) -> tuple[int, int]:
    begin, end = _span(_UNQUOTED, text, at)
    following = _NEXT.search(text[begin:end])
    if following:
        return begin, begin + following.start()
    if end - begin == _SHORT_VALUE:
        end = _span(_REST, text, end)[1]
    return begin, end


def _is_secret(value: str, name: str, sure: Strength, *, quoted: bool, plain: bool) -> bool:
    """Whether a value is what its name says. *plain*: behind a colon, where prose may follow."""
    if _PLACEHOLDER.fullmatch(value) or value.lower() == name.lower().lstrip("-"):
        return False
    if not quoted and _CODE.fullmatch(value):
        return False
    if sure is Strength.PASSWORD:
        return not _PLACE.fullmatch(value) or value.count("/") == 1
    if _PLACE.fullmatch(value) or _FILE.fullmatch(value):
        return False
    if sure is Strength.TOKEN:
        number = _NUMBER.fullmatch(value) and len(value) < _LONG_NUMBER
        prose = plain and _PLAIN_WORD.fullmatch(value) and len(value) < _LONG_WORD
        return not (number or prose)
    return _looks_drawn(value, name)


def _looks_drawn(value: str, name: str) -> bool:
    """Whether a value has the mixture of characters that no word, number or release has."""
    if not _TOKEN_CHARACTERS.fullmatch(value) or _VERSION.fullmatch(value):
        return False
    if _NUMBER.fullmatch(value):
        return len(value) >= _LONG_NUMBER and value.isdigit()
    if name.lower() in ("key", "keys", "sig", "signature") and _HEX.fullmatch(value):
        # Of caches and of digests; what is secret has a name that says whose key it is.
        return False
    has_digits = any(map(str.isdigit, value))
    has_letters = any(map(str.isalpha, value))
    mixed = not value.islower() and not value.isupper() and not _PLAIN.fullmatch(value)
    return has_letters and (has_digits or mixed or value.endswith("=")) and not _is_name(value)


# A word, or several of them in camel case: a name in a program.
_PLAIN = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)*")
_NAME_PARTS = re.compile(r"[A-Za-z]{2,}[0-9]{0,4}(?:[_./:-][A-Za-z]*[0-9]{0,4})*")


def _is_name(value: str) -> bool:
    """Whether a value is words with a number behind each at most, as node17 or auth/munge are."""
    return bool(_NAME_PARTS.fullmatch(value)) and not is_random(value)
