"""Files: hashes of them, lists of locked ones, writing them whole."""

import hashlib
import json
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

CHUNK = 1024 * 1024
# A line of a list: the URL of a file, or NAME==VERSION, and its hash, as pip reads them too.
LINE = re.compile(r"(\S+) --hash=sha256:([0-9a-f]{64})")
ELF_MAGIC = b"\x7fELF"


def sha256_of(path: "str | Path") -> str:
    """Return the sha256 of a file as 64 hex digits."""
    whole = hashlib.sha256()
    with Path(path).open("rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            whole.update(chunk)
    return whole.hexdigest()


def read_list(lines):
    """Return (URL or requirement, sha256) of every line; raise ValueError for one that is none."""
    found = []
    for line in lines:
        match = LINE.match(line)
        if match is None:
            raise ValueError("not a line with a sha256: {!r}".format(line))
        found.append(match.groups())
    return found


def file_name(url: str) -> str:
    """Return the name that the file of a URL has in a folder."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def entries(folder):
    """Return what a folder holds, by name; nothing if it is absent."""
    folder = Path(folder)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def real(path):
    """Return a path with links resolved, as text."""
    return str(Path(path).resolve())


def is_below(path, folder):
    """Return whether a normal path is a folder or lies below it; links are not resolved."""
    path, folder = str(path), str(folder)
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_elf(path):
    """Return whether a file begins as ELF files do."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(4) == ELF_MAGIC
    except OSError:
        return False


def write_whole(path, text):
    """Write a file that is never there in part."""
    path = Path(path)
    # The process's number alone may be another node's too.
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read_json(path):
    """Return what a file of JSON holds. Raises OSError, ValueError."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_json(path, value):
    """Write a file of JSON that is never there in part."""
    write_whole(path, json.dumps(value, indent=1) + "\n")
