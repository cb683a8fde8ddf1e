"""Fetch files and check them by sha256, without pip.

    pip config list | python -I target_tools fetch LIST FOLDER
    python -I target_tools fetch --mirrors FILE LIST FOLDER
    python -I target_tools fetch --missing LIST FOLDER

pip runs the setup.py of sources to fetch them, and an old pip refuses wheels that are newer than
itself. LIST holds lines "URL --hash=sha256:HEX"; a file that is in FOLDER and whole stays. What
pip's configuration says of proxy, certificates, trusted hosts, timeout and credentials counts
here too, and ~/.netrc. Exit code 1: a file could not be had.

--mirrors: FILE is a JSON object whose ``mirrors`` are, by the URL of a folder, the other folders
where its files lie as well, in the order in which they are asked for what it does not give; bytes
that differ are refused. --missing fetches nothing: it prints the lines whose files are not in
FOLDER, or not whole.
"""

import argparse
import concurrent.futures
import functools
import sys
from pathlib import Path

from .files import CHUNK, file_name, read_json, read_list, sha256_of
from .pip_settings import read_settings
from .processes import processors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import urllib.request
    from typing import Any, Iterator, Mapping


def is_whole(path: Path, wanted: str) -> bool:
    """Return whether a file is there, with that sha256."""
    return path.is_file() and sha256_of(path) == wanted


def missing(files: "list[tuple[str, str]]", folder: Path) -> "list[bool]":
    """Return, for each (URL, sha256), whether its file is to be fetched; all processors hash."""
    with concurrent.futures.ThreadPoolExecutor(processors()) as pool:
        paths = [folder / file_name(url) for url, _ in files]
        return [not each for each in pool.map(is_whole, paths, [wanted for _, wanted in files])]


def fetch(
    opener: "urllib.request.OpenerDirector", url: str, wanted: str, target: Path, timeout: float
) -> "str | None":
    """Fetch one file, which gets its name once it is complete. Returns the problem, or None."""
    partial = target.with_name("." + target.name + ".part")
    try:
        with opener.open(url, timeout=timeout) as answer, partial.open("wb") as stream:
            for chunk in iter(lambda: answer.read(CHUNK), b""):
                stream.write(chunk)
            check_whole(answer, stream.tell())
        found = sha256_of(partial)
        if found != wanted:
            return f"its sha256 is {found}, the lock has {wanted}"
        partial.replace(target)
    finally:
        if partial.exists():
            partial.unlink()
    return None


def check_whole(answer: "Any", read: int) -> None:
    """Raise OSError for an answer that ended before its end, which http.client takes for whole."""
    said = answer.headers.get("Content-Length", "")
    if said.isdigit() and read < int(said):
        raise OSError("the response ended after {} of {} bytes".format(read, said))


def insist(
    opener: "urllib.request.OpenerDirector",
    url: str,
    wanted: str,
    target: Path,
    timeout: float,
    mirrors: "Mapping[str, list[str]]",
) -> "str | None":
    """Fetch one file with retries and from mirrors. Returns the problem, or None."""
    from .http_client import reason, with_retries

    todo = [url, *copies(url, mirrors)]
    for number, each in enumerate(todo, 1):
        try:
            # What is elsewhere as well is not waited for.
            retries = None if number == len(todo) else 0
            act = functools.partial(fetch, opener, each, wanted, target, timeout)
            problem = with_retries(act, each, retries)
            return problem if each == url or not problem else "{}: {}".format(each, problem)
        except OSError as error:
            problem = reason(error)
        if number < len(todo):
            sys.stdout.write(f"cannot fetch {each}: {problem}; trying {todo[number]}\n")
            sys.stdout.flush()
    return problem


def copies(url: str, mirrors: "Mapping[str, list[str]]") -> "Iterator[str]":
    """Yield the URLs of the other copies of a file."""
    for folder, others in mirrors.items():
        if url.startswith(folder + "/"):
            yield from (each + url[len(folder) :] for each in others)


def opener_of(settings: "Mapping[str, str]") -> "urllib.request.OpenerDirector":
    """Return an opener for URLs with pip's settings."""
    # lazy import: 40 ms, which a build with all of its files does not need
    from .http_client import make_opener

    names = ("index-url", "extra-index-url", "find-links")
    return make_opener(
        places=" ".join(settings.get(each, "") for each in names).split(),
        cert=settings.get("cert"),
        client_cert=settings.get("client-cert"),
        proxy=settings.get("proxy"),
        trusted_hosts=settings.get("trusted-host", "").split(),
    )


def fetch_all(
    files: "list[tuple[str, str]]", folder: Path, mirrors: "Mapping[str, list[str]]"
) -> int:
    """Fetch the missing files; return the exit code."""
    settings = read_settings(sys.stdin, "download")
    timeout = float(settings.get("timeout") or settings.get("default-timeout") or 15)
    opener = opener_of(settings)
    for url, wanted in files:
        sys.stdout.write(f"fetch {url}\n")
        sys.stdout.flush()
        problem = insist(opener, url, wanted, folder / file_name(url), timeout, mirrors)
        if problem:
            sys.stderr.write(
                f"error: cannot fetch {url}: {problem}\n"
                f"hint: put the file into {folder.resolve()} by hand, or copy the whole folder "
                "from where it can be\n"
            )
            return 1
    return 0


def main(arguments: "list[str]") -> int:
    """Fetch all files, or list the missing ones; return the exit code."""
    parser = argparse.ArgumentParser(description="Fetch files and check them by sha256.")
    parser.add_argument("--missing", action="store_true", help="print the lines of missing files")
    parser.add_argument("--mirrors", type=Path, metavar="FILE", help="JSON file with their URLs")
    parser.add_argument("list", type=Path, help='lines "URL --hash=sha256:HEX"')
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    lines = options.list.read_text(encoding="utf-8").splitlines(keepends=True)
    files = read_list(lines)
    lacking = missing(files, options.folder)
    if options.missing:
        sys.stdout.writelines(line for line, lacks in zip(lines, lacking) if lacks)
        return 0
    mirrors = read_json(options.mirrors).get("mirrors", {}) if options.mirrors else {}
    todo = [file for file, lacks in zip(files, lacking) if lacks]
    return fetch_all(todo, options.folder, mirrors)
