"""The files of a published prefix: recorded when it is published, compared ever after.

    python -I target_tools manifest record PREFIX MANIFEST
    python -I target_tools manifest compare PREFIX MANIFEST [--hashes]
    python -I -S target_tools manifest bytecode LIST

``compare`` prints every file that is another one, that is gone, or that was not there, and exits
with 1 for any. A file whose mode, size and times are those of then is taken for the same; else it
is hashed, as all are with ``--hashes``.

Bytecode that Python writes when a program runs (as root, whom a read-only folder does not stop) is
no change, and is not believed either: a file of ``__pycache__`` that is new or another one counts
as unchanged if it holds just what its source compiles to, and its source is unchanged. The
environment's own Python compiles it, isolated and without site, once everything else was found
unchanged.
"""

import argparse
import concurrent.futures
import json
import marshal
import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, NoReturn

from .files import LARGE_BYTES, read_json, read_regular, sha256_of, write_atomically
from .processes import output_of, processors

SCHEMA = 1
# What Python calls the bytecode of NAME.py: NAME.cpython-311.pyc, NAME.cpython-311.opt-1.pyc.
BYTECODE = re.compile(r"(?:(.*)/)?__pycache__/([^/]+?)\.[a-z]+-[0-9]+(?:\.opt-([12]))?\.pyc")
# What comes before the code itself: flags are there since Python 3.7.
HEADER = 16 if sys.version_info >= (3, 7) else 12


def record(prefix: "str | Path", when: str) -> "dict[str, Any]":
    """Return the manifest of a folder: of every file its mode, size, times and sha256.

    *when*: ``published``, or ``later`` for a prefix that was there before.
    """
    files = look(prefix)
    regular = [name for name, each in files.items() if "size" in each]
    for name, sha256 in hashes(prefix, regular):
        files[name]["sha256"] = sha256
    return {"schema": SCHEMA, "recorded": when, "files": files}


def write(path: "str | Path", manifest: "dict[str, Any]") -> None:
    """Write a manifest so that it is never there in part."""
    write_atomically(Path(path), json.dumps(manifest, sort_keys=True) + "\n")


def read(path: "str | Path") -> "dict[str, Any] | None":
    """Read a manifest; return None if it does not exist. Raises ValueError if it is damaged."""
    try:
        manifest: "dict[str, Any]" = read_json(path, LARGE_BYTES)
    except FileNotFoundError:
        return None
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or manifest.get("schema") != SCHEMA:
        raise ValueError("not a manifest of this schema")
    if manifest.get("recorded") not in ("published", "later"):
        raise ValueError("the time of the record is missing")
    for name, each in files.items():
        if not is_whole(each):
            raise ValueError("the entry of {!r} is wrong".format(name))
    return manifest


def is_whole(entry: object) -> bool:
    """Return whether an entry describes a file completely."""
    if not isinstance(entry, dict):
        return False
    if "size" not in entry:
        return isinstance(entry.get("link"), str) or entry == {"kind": "other"}
    numbers = isinstance(entry["size"], int) and isinstance(entry.get("mode"), int)
    return numbers and isinstance(entry.get("sha256"), str)


def look(prefix: "str | Path") -> "dict[str, dict[str, Any]]":
    """Return the files below a folder by their relative path; links are not followed."""
    prefix = str(prefix)
    found = {}
    for folder, _, names in _walk(prefix):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - thousands of them
            found[os.path.relpath(path, prefix)] = _state(path)
    return found


def _walk(prefix: str) -> "Iterator[tuple[str, list[str], list[str]]]":
    """Yield the folders below a prefix with their files; a link to a folder counts as a file."""
    for folder, folders, names in os.walk(prefix, onerror=_raise):
        links = [each for each in folders if os.path.islink(os.path.join(folder, each))]  # noqa: PTH114, PTH118
        yield folder, folders, [*names, *links]


def _raise(error: OSError) -> "NoReturn":
    raise error


def _state(path: str) -> "dict[str, Any]":
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return {"link": os.readlink(path)}  # noqa: PTH115
    if not stat.S_ISREG(status.st_mode):
        return {"kind": "other"}
    return {
        "mode": stat.S_IMODE(status.st_mode),
        "size": status.st_size,
        # The second one cannot be set back by those who change a file.
        "times": [status.st_mtime_ns, status.st_ctime_ns],
    }


def hashes(prefix: "str | Path", names: "list[str]") -> "Iterator[tuple[str, str]]":
    """Yield every name with the sha256 of that file."""
    with concurrent.futures.ThreadPoolExecutor(processors()) as workers:
        yield from zip(names, workers.map(lambda name: sha256_of(Path(prefix, name)), names))


def compare(
    prefix: "str | Path",
    manifest: "dict[str, Any]",
    with_hashes: bool = False,
    run_python: bool = True,
) -> "list[str]":
    """Return one line for each file that differs from the manifest, sorted by name.

    *run_python*: whether the prefix's own Python may compile sources to check their bytecode;
    otherwise bytecode of an unchanged source is ignored.
    """
    then, now = manifest["files"], look(prefix)
    said = {name: "missing" for name in then if name not in now}
    said.update({name: "added" for name in now if name not in then})
    todo = []
    for name in sorted(set(then) & set(now)):
        before, after = then[name], now[name]
        if "size" not in before or "size" not in after:
            if before != after:
                said[name] = "another link" if "link" in before else "another kind of file"
        elif before["mode"] != after["mode"]:
            said[name] = "mode {:o}, was {:o}".format(after["mode"], before["mode"])
        elif before["size"] != after["size"]:
            said[name] = "{} bytes, was {}".format(after["size"], before["size"])
        elif with_hashes or before.get("times") != after["times"]:
            todo.append(name)
    for name, sha256 in hashes(prefix, todo):
        if sha256 != then[name]["sha256"]:
            said[name] = "other content"
    regular = {name for name in said if "size" in now.get(name, ())}
    names = _believed(prefix, manifest, said, regular, run_python)
    return ["{}: {}".format(name, said[name]) for name in names]


def _believed(
    prefix: "str | Path",
    manifest: "dict[str, Any]",
    said: "dict[str, str]",
    regular: "set[str]",
    run_python: bool,
) -> "list[str]":
    """Return the names of changed files, without bytecode that fits its source.

    *regular*: the regular files among them; only these can be bytecode.
    """
    compiled = {}
    for name in regular:
        match = BYTECODE.fullmatch(name)
        source = os.path.join(match.group(1) or "", match.group(2) + ".py") if match else ""  # noqa: PTH118
        if match and source in manifest["files"] and source not in said:
            compiled[name] = [str(Path(prefix, source)), int(match.group(3) or 0)]
    if not run_python:
        return sorted(set(said) - set(compiled))
    # With anything else changed nothing in there is run, not even its Python.
    if not compiled or set(said) - set(compiled):
        return sorted(said)
    wanted = [[str(Path(prefix, name)), *compiled[name]] for name in sorted(compiled)]
    return [name for name, right in zip(sorted(said), _compared(prefix, wanted)) if not right]


def _compared(prefix: "str | Path", wanted: "list[list[Any]]") -> "list[bool]":
    """Return for each file of bytecode whether it fits its source, by the prefix's own Python."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(wanted, file)
        file.flush()
        tools = str(Path(__file__).resolve().parent)
        python = [str(Path(prefix, "bin", "python")), "-I", "-S", "-B"]
        answer = output_of([*python, tools, "manifest", "bytecode", file.name])
    try:
        right = json.loads(answer or "")
    except ValueError:
        right = []
    return list(right) if len(right) == len(wanted) else [False] * len(wanted)


def is_compiled(path: str, source: str, level: int) -> bool:
    """Return whether a file of bytecode holds the code that this Python compiles a source to."""
    try:
        code = marshal.loads(read_regular(path)[HEADER:])  # noqa: S302 - compared, never run
        text = read_regular(source)
        return bool(code == compile(text, source, "exec", dont_inherit=True, optimize=level))
    except (OSError, EOFError, ValueError, TypeError, SyntaxError):
        return False


def main(arguments: "list[str]") -> int:
    """Record, compare, or look at bytecode."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("record", "compare", "bytecode"))
    parser.add_argument("path")
    parser.add_argument("manifest", nargs="?")
    parser.add_argument("--hashes", action="store_true")
    options = parser.parse_args(arguments)
    if options.what == "bytecode":
        wanted = json.loads(Path(options.path).read_text(encoding="utf-8"))
        sys.stdout.write(json.dumps([is_compiled(*each) for each in wanted]) + "\n")
        return 0
    if options.manifest is None:
        parser.error("name the manifest")
    if options.what == "record":
        write(options.manifest, record(options.path, "published"))
        return 0
    manifest = read(options.manifest)
    if manifest is None:
        sys.stderr.write("there is no manifest: {}\n".format(options.manifest))
        return 2
    changed = compare(options.path, manifest, options.hashes)
    sys.stdout.write("".join("{}\n".format(line) for line in changed))
    return 1 if changed else 0
