"""Fetch files and check them by sha256, without pip.

    pip config list | python fetch.py LIST FOLDER

pip runs the setup.py of sources to fetch them, and an old pip refuses wheels that are newer than
itself. LIST holds lines "URL --hash=sha256:HEX"; a file that is in FOLDER and whole stays. What
pip's configuration says of proxy, certificates, trusted hosts, timeout and credentials counts
here too, and ~/.netrc. Exit code 1: a file could not be had. Runs on Python 3.6.
"""

import ast
import hashlib
import netrc
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from pathlib import Path

SECTIONS = ("global", "download", ":env:")
CHUNK = 1024 * 1024
# Seconds before trying again what failed for a reason that may pass.
PAUSES = (1, 3, 9)
# A server that is busy or broken; what else it answers, it will answer again.
PASSING = (408, 429, 500, 502, 503, 504)


def read_settings(lines):
    """Return pip's settings from what ``pip config list`` prints; later sections win."""
    found = {section: {} for section in SECTIONS}
    for line in lines:
        match = re.match(r"(global|download|:env:)\.([a-z-]+)=(.*)$", line.strip())
        if match:
            section, name, value = match.groups()
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def read_list(path):
    """Return (URL, sha256) of every line."""
    pattern = re.compile(r"(\S+) --hash=sha256:([0-9a-f]{64})")
    return [pattern.match(line).groups() for line in path.read_text(encoding="utf-8").splitlines()]


def sha256(path):
    """Return the sha256 of a file."""
    whole = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            whole.update(chunk)
    return whole.hexdigest()


class Signed(urllib.request.BaseHandler):
    """Gives every request, also one that a server sent elsewhere, its own host's credentials."""

    def __init__(self, settings):
        """Take those of the configured indexes; ~/.netrc is looked into when one is wanted."""
        places = " ".join(
            settings.get(each, "") for each in ("index-url", "extra-index-url", "find-links")
        )
        parts = [urllib.parse.urlsplit(each) for each in places.split()]
        self._pairs = {
            each.netloc.rpartition("@")[2]: (
                urllib.parse.unquote(each.username),
                urllib.parse.unquote(each.password or ""),
            )
            for each in parts
            if each.username
        }

    def http_request(self, request):
        """Add the header; it does not go along when a server sends the request elsewhere."""
        pair = self._pairs.get(request.host) or from_netrc(request.host.partition(":")[0])
        if pair:
            word = b64encode(":".join(pair).encode("utf-8")).decode("ascii")
            request.add_unredirected_header("Authorization", "Basic " + word)
        return request

    https_request = http_request


def from_netrc(host):
    """Return user and password that ~/.netrc or the file in NETRC has for a host, or None."""
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")  # noqa: PTH111 - may be absent
    try:
        entry = netrc.netrc(path).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return (entry[0], entry[2] or "") if entry else None


class Https(urllib.request.HTTPSHandler):
    """HTTPS with pip's certificates; with any certificate for its trusted hosts."""

    def __init__(self, settings):
        """Read the certificates."""
        super().__init__()
        self._hosts = settings.get("trusted-host", "").split()
        self._safe = context(settings)
        self._any = context(settings)
        self._any.check_hostname = False
        self._any.verify_mode = ssl.CERT_NONE

    def https_open(self, request):
        """Open with the context that fits the host."""
        trusted = {request.host, request.host.partition(":")[0]} & set(self._hosts)
        self._context = self._any if trusted else self._safe
        return super().https_open(request)


def context(settings):
    """Return how certificates are checked: by those that pip is told of, else the system's."""
    cert = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE")
    place = {} if not cert else {"capath" if os.path.isdir(cert) else "cafile": cert}  # noqa: PTH112
    made = ssl.create_default_context(**place)
    if settings.get("client-cert"):
        made.load_cert_chain(settings["client-cert"])
    return made


def make_opener(settings):
    """Return what opens URLs as pip would."""
    proxy = settings.get("proxy")
    # Without one, those of the environment count.
    proxies = {"http": proxy, "https": proxy} if proxy else None
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), Https(settings), Signed(settings)
    )


def fetch(opener, url, wanted, target, timeout):
    """Fetch one file; it appears under its name only when it is whole. Returns what is wrong."""
    partial = target.with_name("." + target.name + ".part")
    try:
        with opener.open(url, timeout=timeout) as answer, partial.open("wb") as stream:
            for chunk in iter(lambda: answer.read(CHUNK), b""):
                stream.write(chunk)
        found = sha256(partial)
        if found != wanted:
            return "its sha256 is {}, the lock says {}".format(found, wanted)  # noqa: UP032
        partial.replace(target)
    finally:
        if partial.exists():
            partial.unlink()
    return None


def insist(opener, url, wanted, target, timeout):
    """Fetch one file, again where that may help. Returns what is wrong, or None."""
    for pause in (*PAUSES, None):
        try:
            return fetch(opener, url, wanted, target, timeout)
        except urllib.error.HTTPError as error:
            problem = "the server says {} {}".format(error.code, error.reason)  # noqa: UP032
            passing = error.code in PASSING
        except OSError as error:
            problem = str(getattr(error, "reason", error))
            passing = not url.startswith("file:") and not isinstance(
                getattr(error, "reason", error), ssl.SSLError
            )
        if pause is None or not passing:
            return problem
        time.sleep(pause)
    return None


def main(arguments):
    """Fetch all files; return the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(__doc__)
        return 2
    settings = read_settings(sys.stdin)
    timeout = float(settings.get("timeout") or settings.get("default-timeout") or 15)
    opener = make_opener(settings)
    folder = Path(arguments[1])
    for url, wanted in read_list(Path(arguments[0])):
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        target = folder / name
        if target.is_file() and sha256(target) == wanted:
            continue
        sys.stdout.write("fetch {}\n".format(url))  # noqa: UP032
        sys.stdout.flush()
        problem = insist(opener, url, wanted, target, timeout)
        if problem:
            sys.stderr.write(
                "error: {} cannot be fetched: {}\n"  # noqa: UP032
                "hint: put the file into {} by hand, or copy the whole folder from where it "
                "can be\n".format(url, problem, folder.resolve())
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
