"""Options of programs that take a password under a name that does not say so: ``curl -u``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .names import one_of

_QUOTED = r"\"(?:[^\"\\\n]|\\.){1,1024}\"|'[^'\n]{1,1024}'"
# Words and quoted parts that stand together, as a shell joins them.
_VALUE = rf"(?P<secret>(?:{_QUOTED}|[^\s\"']{{1,1024}}){{1,4}})"


class _Option(NamedTuple):
    """What stands before a password that is given to a program. *programs*: their names."""

    programs: str
    pattern: str


_ECHO = r"(?:(?<=echo )|(?<=printf ))(?:-[neE]+[ \t]+)?"
# Programs that read a password where a person would type it.
_ASKS = (
    r"(?:sudo[ \t]+(?:-S|\w*passwd)|\w*passwd|kinit|iinit|klog|cryptsetup|myproxy-logon"
    r"|\w{1,16}-proxy-init)\b"
)
# As the manual page of each program has it.
_OPTIONS = (
    _Option("curl", r"-[a-zA-Z]*[uUb][ \t]*"),
    _Option("curl", r"--(?:(?:proxy-|tls)?user|cookie|oauth2-bearer|(?:proxy-)?pass)(?:[ \t]+|=)"),
    _Option("curl", r"(?:-E|--(?:proxy-)?cert)[ \t]+(?=\S+:)"),
    _Option("wget", r"--(?:http-|ftp-|proxy-)?(?:password|user)(?:=|[ \t]+)"),
    _Option("http https httpie xh", r"(?:-a|--auth)(?:[ \t]+|=)"),
    _Option("mysql mysqldump mysqladmin mysqlimport mariadb mariadb-dump", r"-p(?=\S)"),
    _Option("mongo mongosh mongodump mongorestore sshpass", r"-p[ \t]*"),
    _Option("ldapsearch ldapadd ldapmodify ldapwhoami ldapdelete ldappasswd", r"-[ws][ \t]*"),
    _Option("redis-cli", r"-a[ \t]*"),
    _Option("sqlcmd bcp isql ipmitool unzip zip", r"-P[ \t]*"),
    # A port is none: -p 8080:80.
    _Option(
        "docker podman buildah skopeo helm apptainer singularity", r"-p[ \t]+(?![\d.:]+(?:\s|$))"
    ),
    _Option("docker podman buildah skopeo", r"--(?:src-|dest-)?creds(?:[ \t]+|=)"),
    _Option("twine az oc vault", r"-p[ \t]+"),
    _Option("wandb", r"login[ \t]+(?:--relogin[ \t]+)?"),
    _Option("smbclient rpcclient net", r"(?:-U[ \t]*|--user(?:[ \t]+|=))(?=\S*%)"),
    _Option("htpasswd", r"-[a-zA-Z]*b[a-zA-Z]*[ \t]+\S+[ \t]+\S+[ \t]+"),
    _Option("openssl", r"-(?:pass|passin|passout)[ \t]+(?!file:|env:|fd:|stdin)"),
    _Option("openssl", r"-[kK][ \t]+"),
    _Option("7z 7za unrar rar", r"-p(?=\S)"),
    _Option("lftp ncftp", r"-u[ \t]*"),
    _Option("snmpget snmpwalk snmpset", r"-[cAX][ \t]*"),
    _Option("xfreerdp rdesktop", r"(?:/p:|-p[ \t]+)"),
    _Option("sqlplus expdp impdp", r"(?=[\w$#]+/\S+@)"),
    _Option("anaconda binstar", r"(?:-t|--token)(?:[ \t]*|=)"),
    _Option("poetry", r"(?:http-basic\.\S+[ \t]+\S+|pypi-token\.\S+)[ \t]+"),
    _Option("rabbitmqctl", r"(?:add_user|change_password|authenticate_user)[ \t]+\S+[ \t]+"),
    _Option("echo printf", rf"{_ECHO}(?=[^|\n]{{1,512}}\|[ \t]*{_ASKS})"),
    _Option("echo printf", rf"{_ECHO}(?=[^|\n]{{1,512}}\|[^|\n]{{1,512}}--(?:password-)?stdin)"),
)
_NAMES = sorted({name for each in _OPTIONS for name in each.programs.split()})
_PROGRAM = re.compile(rf"(?:{one_of(_NAMES)})(?=[ \t])")
_BY_PROGRAM = {
    name: tuple(
        re.compile(rf"(?<=\s){each.pattern}{_VALUE}")
        for each in _OPTIONS
        if name in each.programs.split()
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
