"""Read, solve and link conda packages with py-rattler, in a process of its own.

    python -I target_tools conda-engine answer
    python -I target_tools conda-engine link [--as PATH] PREFIX CACHE LIST FOLDER
    python -I target_tools conda-engine here

answer: each line of standard input is a request and gets a line of standard output, both a JSON
object. Until the input ends, what was read of a channel is kept, and not read again. A request says
what to ``do``, *channels*, the first one first (to solve: URLs; to read: of each the URLs of its
copies, the first one first), *platforms* (subdirs), *names* of packages, *virtual*, [name, version,
build] of each virtual package of the target, and *cache*, a folder.
  read: which packages of these names are there? Of each also *pythons*: the series of Python there
      that it admits; without that key it asks for none. *unmet*: its needs that the target's
      virtual packages do not meet; without that key there are none. *number*: of its channel.
      The answer also has *served*, for each channel the number of the copy that was read, and
      *failed*, the copies before them that could not be: *channel*, a number, and *text*.
  solve: which packages fit together? *constraints* (MatchSpecs) hold for the names and for what
      they need.
  check: do the *records* go together, as a read answers them? The answer has *unmet*, of each need
      that none of them nor of the virtual packages meets: *name*, *spec*, and *found*, what is
      there in its place or None.
An answer holds ``records``, or ``error``: its ``kind``, ``text`` and, where it is known, the number
of its ``channel``.

link: make PREFIX of the packages of LIST (conda.json), which lie in FOLDER; its files name PATH as
their prefix, where that is given. No package runs anything. here: exit code 0 if py-rattler and
conda-package-streaming can be imported.

rattler's interpreter may crash while it ends, so the process ends without Python's clean-up; and
nothing else imports rattler, whose interface changes with every release.
"""

import argparse
import json
import os
import queue
import sys
import threading
from datetime import timedelta
from pathlib import Path

from .errors import whole
from .names import without_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, NoReturn, Sequence, Tuple

    import rattler

    Request = Dict[str, Any]
    # By folder of the cache, and whether channels are read in shards.
    Gateways = Dict[Tuple[str, bool], rattler.Gateway]
    # Name, version and build of each virtual package of the target.
    Virtual = List[Tuple[str, str, str]]

# Of a record, what is asked of it.
KEYS: "tuple[str, ...]" = ("name", "version", "build", "build_number", "subdir", "md5", "sha256")
KEYS += ("size", "depends", "constrains")
# What a solve may take: minutes are normal for channels of 500,000 records.
SOLVE_MINUTES = 20


def clean(text: str) -> str:
    """Return a text without the credentials of the URLs in it."""
    return " ".join(without_credentials(word) for word in text.split(" "))


class RequestError(Exception):
    """A request that cannot be answered; the *kind* classifies it for the caller."""

    def __init__(self, kind: str, text: str, channel: "int | None" = None) -> None:
        """Store them without credentials of URLs. *channel*: the number of the channel."""
        super().__init__(clean(text))
        self.kind = kind
        self.channel = channel


def described(record: "rattler.RepoDataRecord") -> "dict[str, Any]":
    """Return a record as JSON."""
    said = json.loads(record.to_json())
    kept = {key: said[key] for key in KEYS if said.get(key) is not None}
    url = without_credentials(record.url)
    # Its channel is the folder of the subdir that its file lies in.
    return {**kept, "url": url, "channel": url.rsplit("/", 2)[0]}


def one_line(error: BaseException) -> str:
    """Return the text of an error and its causes on one line."""
    return ": ".join(each.strip() for each in whole(error).splitlines() if each.strip())


def gateway(request: "Request", gateways: "Gateways") -> "rattler.Gateway":
    """Return the gateway that reads and caches channels; an existing one if possible.

    By default it has no credentials: the client adds those of ~/.netrc (or NETRC) and of rattler.
    """
    from rattler import Gateway, SourceConfig
    from rattler.networking import Client
    from rattler.networking.middleware import AuthenticationMiddleware

    cache = request["cache"]
    if cache not in gateways:
        client = Client([AuthenticationMiddleware()])
        config = SourceConfig(sharded_enabled=True)
        gateways[cache] = Gateway(cache_dir=cache, client=client, default_config=config)
    return gateways[cache]


# ---------------------------------------------------------------- reading


async def read(request: "Request", gateways: "Gateways") -> "dict[str, Any]":
    """Return the records of some names, which copy of each channel has them, and which failed."""
    found: "list[tuple[int, rattler.RepoDataRecord]]" = []
    failed: "list[dict[str, Any]]" = []
    served = []
    for number, urls in enumerate(request["channels"]):
        records, copy = await first_copy(number, urls, request, gateways, failed)
        found.extend((number, record) for record in records)
        served.append(copy)
    answer = told(found, request["virtual"])
    return {"records": answer, "served": served, "failed": failed}


async def first_copy(
    number: int,
    urls: "list[str]",
    request: "Request",
    gateways: "Gateways",
    failed: "list[dict[str, Any]]",
) -> "tuple[list[rattler.RepoDataRecord], int]":
    """Return the records of the first copy of a channel that can be read, and its number."""
    from rattler import Channel

    why = []
    for copy, url in enumerate(urls):
        try:
            answer = await gateway(request, gateways).query(
                [Channel(url)], request["platforms"], request["names"], recursive=False
            )
        except Exception as error:  # whatever it is, it is rattler's, or the server's
            why.append(clean(one_line(error)))
            continue
        failed.extend({"channel": number, "text": each} for each in why)
        return [record for records in answer for record in records], copy
    raise RequestError("channel", "; ".join(why), number)


def told(
    found: "Iterable[tuple[int, rattler.RepoDataRecord]]", virtual: "Virtual"
) -> "list[dict[str, Any]]":
    """Return the answer for (channel number, record) pairs."""
    pythons = [each for _, each in found if each.name.normalized == "python"]
    admitted: "dict[str, set[str]]" = {}
    met: "dict[str, bool]" = {}
    answer = []
    for number, each in found:
        answer.append({**with_pythons(each, pythons, admitted), "number": number})
    for said in answer:
        needs = [each for each in said.get("depends", ()) if each.startswith("__")]
        unmet = [each for each in needs if not is_met(each, virtual, met)]
        if unmet:
            said["unmet"] = unmet
    return answer


def is_met(spec: str, virtual: "Virtual", met: "dict[str, bool]") -> bool:
    """Return whether a MatchSpec of a virtual package is met. *met*: by MatchSpec."""
    if spec not in met:
        matched = match_spec(spec)
        records = [as_record(*each) for each in virtual]
        met[spec] = matched is not None and any(map(matched.matches, records))
    return met[spec]


def match_spec(text: str) -> "rattler.MatchSpec | None":
    """Return a MatchSpec, or None for an invalid text, which no package matches."""
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(text)
    except InvalidMatchSpecError:
        return None


def as_record(
    name: str, version: str, build: str, build_number: int = 0
) -> "rattler.PackageRecord":
    """Return a virtual or other package as a channel would have it."""
    from rattler import PackageRecord
    from rattler.package import BuildString

    return PackageRecord(
        name=name,
        version=version,
        build=BuildString(build),
        build_number=build_number,
        subdir="noarch",
    )


def with_pythons(
    record: "rattler.RepoDataRecord",
    pythons: "Sequence[rattler.RepoDataRecord]",
    admitted: "dict[str, set[str]]",
) -> "dict[str, Any]":
    """Return a record and the series of the Pythons that it admits. *admitted*: by MatchSpec."""
    said = described(record)
    wanted = [each for each in said.get("depends", ()) if each.split(" ")[0] == "python"]
    if wanted and record.name.normalized != "python":
        fitting = [admitted_by(each, pythons, admitted) for each in wanted]
        said["pythons"] = sorted(set.intersection(*fitting))
    return said


def admitted_by(
    spec: str, pythons: "Sequence[rattler.RepoDataRecord]", admitted: "dict[str, set[str]]"
) -> "set[str]":
    """Return the series of the Pythons that a MatchSpec admits."""
    if spec not in admitted:
        wanted = match_spec(spec)
        matched = [each for each in pythons if wanted is not None and wanted.matches(each)]
        admitted[spec] = {".".join(str(each.version).split(".")[:2]) for each in matched}
    return admitted[spec]


# ---------------------------------------------------------------- solving


async def solve(request: "Request", gateways: "Gateways") -> "dict[str, Any]":
    """Return the records that fit together."""
    import rattler
    from rattler.exceptions import SolverError
    from rattler.package import BuildString

    virtual = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), BuildString(build)
        )
        for name, version, build in request["virtual"]
    ]
    try:
        records = await rattler.solve(
            sources=[rattler.Channel(url) for url in request["channels"]],
            # Bare: with a version here a package of a lower channel passes the strict priority.
            specs=request["names"],
            # As text they are parsed strictly: without the dots in py3.10_cuda11.3_cudnn8.3.2_0.
            constraints=[rattler.MatchSpec(each) for each in request["constraints"]],
            gateway=gateway(request, gateways),
            platforms=request["platforms"],
            # Without these it takes none, and never those of this machine.
            virtual_packages=virtual,
            channel_priority=rattler.ChannelPriority.Strict,
            timeout=timedelta(minutes=SOLVE_MINUTES),
        )
    except SolverError as error:
        raise RequestError("unsolvable", str(error)) from error
    except Exception as error:
        raise RequestError("channel", one_line(error)) from error
    return {"records": [described(each) for each in records]}


# ---------------------------------------------------------------- checking


async def check(request: "Request", _gateways: "Gateways") -> "dict[str, Any]":
    """Return the unmet requirements of the given packages."""
    those = {each["name"]: each for each in request["records"]}
    virtual, unmet = request["virtual"], []
    met: "dict[str, bool]" = {}
    for each in those.values():
        for spec in [*each.get("depends", ()), *each.get("constrains", ())]:
            wanted = match_spec(spec)
            name = spec if wanted is None else wanted.name.normalized
            there = those.get(name)
            if wanted is None:
                fits = False
            elif name.startswith("__"):
                only_bound = spec in each.get("constrains", ())
                fits = is_met(spec, virtual, met) or (
                    only_bound and all(name != own for own, _, _ in virtual)
                )
            elif there is None:
                fits = spec not in each.get("depends", ())
            else:
                key = there["name"], there["version"], there["build"]
                fits = wanted.matches(as_record(*key, there.get("build_number", 0)))
            if not fits:
                found = there and "{} {}".format(there["version"], there["build"])
                unmet.append({"name": each["name"], "spec": spec, "found": found})
    return {"unmet": unmet}


# ---------------------------------------------------------------- the program

ACTIONS = {"read": read, "solve": solve, "check": check}


def answer_to(request: "Request", gateways: "Gateways | None" = None) -> "dict[str, Any]":
    """Return the answer to a request, as JSON. *gateways*: those of earlier requests."""
    import asyncio

    try:
        return asyncio.run(ACTIONS[request["do"]](request, {} if gateways is None else gateways))
    except RequestError as error:
        return {"error": {"kind": error.kind, "text": str(error), "channel": error.channel}}
    except ImportError as error:
        return {"error": {"kind": "missing", "text": str(error)}}
    except Exception as error:  # whatever it is, it is rattler's: the process must go on to say so
        return {"error": {"kind": "engine", "text": clean(one_line(error))}}


def requests() -> "Iterator[Request]":
    """Yield requests as they arrive, and end the process when standard input is closed.

    This may interrupt an answer, because its reader is gone.
    """
    lines: "queue.Queue[bytes]" = queue.Queue()

    def receive() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        end(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        yield json.loads(lines.get().decode("utf-8"))


def answer(_options: argparse.Namespace) -> None:
    """Answer requests until there are no more."""
    # What is kept counts only where nobody else may write it; a stricter umask stays.
    os.umask(os.umask(0) | 0o022)
    # Whatever else is printed is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    gateways: "Gateways" = {}
    for request in requests():
        answers.write(json.dumps(answer_to(request, gateways)) + "\n")
        answers.flush()


def link_list(options: argparse.Namespace) -> int:
    """Link the packages of a list; return the exit code."""
    import asyncio

    from . import conda_link  # it starts threads, which no answer needs

    # Nobody else may write what was checked.
    os.umask(os.umask(0) | 0o022)
    packages = json.loads(options.list.read_text(encoding="utf-8"))
    where = options.prefix, options.cache.resolve()
    try:
        asyncio.run(conda_link.link(*where, packages, options.folder, options.named))
    except conda_link.PackageError as error:
        sys.stderr.writelines("error: {}\n".format(line) for line in str(error).split("\n"))
        return 1
    except Exception as error:  # whatever it is, it is rattler's
        sys.stderr.write("error: cannot link the packages: {}\n".format(whole(error)))
        return 1
    return 0


def here(_options: argparse.Namespace) -> int:
    """Return 0 if py-rattler and conda-package-streaming can be imported."""
    try:
        import conda_package_streaming  # noqa: F401
        import rattler  # noqa: F401
    except ImportError:
        return 1
    return 0


def end(code: int) -> "NoReturn":
    """End without the clean-up in which rattler's interpreter may crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: "list[str]") -> "NoReturn":
    """Do one of three things, and end."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    # required= is of 3.7.
    what = parser.add_subparsers(dest="what")
    what.add_parser("answer").set_defaults(act=answer)
    one = what.add_parser("link")
    one.set_defaults(act=link_list)
    one.add_argument("--as", dest="named", help="the prefix that the files contain")
    for name in ("prefix", "cache", "list", "folder"):
        one.add_argument(name, type=Path)
    what.add_parser("here").set_defaults(act=here)
    options = parser.parse_args(arguments)
    if options.what is None:
        parser.error("name an action")
    end(options.act(options))
