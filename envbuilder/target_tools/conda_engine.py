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

# Of a record, what is asked of it.
KEYS = ("name", "version", "build", "build_number", "subdir", "md5", "sha256", "size", "depends")
KEYS += ("constrains",)
# What a solve may take: minutes are normal for channels of 500,000 records.
SOLVE_MINUTES = 20


def clean(text):
    """Return a text without the credentials of the URLs in it."""
    return " ".join(without_credentials(word) for word in text.split(" "))


class RequestError(Exception):
    """What cannot be answered; its *kind* tells the one who asked what it means."""

    def __init__(self, kind, text, channel=None):
        """Keep them; no credentials of URLs. *channel*: the number of the one it is about."""
        super().__init__(clean(text))
        self.kind = kind
        self.channel = channel


def described(record):
    """Return what a record says, as JSON has it."""
    said = json.loads(record.to_json())
    kept = {key: said[key] for key in KEYS if said.get(key) is not None}
    url = without_credentials(record.url)
    # Its channel is the folder of the subdir that its file lies in.
    return {**kept, "url": url, "channel": url.rsplit("/", 2)[0]}


def one_line(error):
    """Return the same in one line."""
    return ": ".join(each.strip() for each in whole(error).splitlines() if each.strip())


def gateway(request, gateways):
    """Return what reads channels and caches what they say; one of *gateways*, if it is there.

    Of its own it knows no credentials: these are those of ~/.netrc (or NETRC) and of rattler.
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


async def read(request, gateways):
    """Return the records of some names, which copy of each channel has them, and which failed."""
    found, served, failed = [], [], []
    for number, urls in enumerate(request["channels"]):
        records, copy = await first_copy(number, urls, request, gateways, failed)
        found.extend((number, record) for record in records)
        served.append(copy)
    records = told(found, request["virtual"])
    return {"records": records, "served": served, "failed": failed}


async def first_copy(number, urls, request, gateways, failed):
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


def told(found, virtual):
    """Return what is told of records: pairs of the number of their channel and each."""
    pythons = [each for _, each in found if each.name.normalized == "python"]
    admitted, met = {}, {}
    answer = []
    for number, each in found:
        answer.append({**with_pythons(each, pythons, admitted), "number": number})
    for said in answer:
        needs = [each for each in said.get("depends", ()) if each.startswith("__")]
        unmet = [each for each in needs if not is_met(each, virtual, met)]
        if unmet:
            said["unmet"] = unmet
    return answer


def is_met(spec, virtual, met):
    """Return whether a MatchSpec of a virtual package is met. *met*: by MatchSpec."""
    if spec not in met:
        matched = match_spec(spec)
        records = [as_record(*each) for each in virtual]
        met[spec] = matched is not None and any(map(matched.matches, records))
    return met[spec]


def match_spec(text):
    """Return a MatchSpec, or None of a text that is none: nothing meets it."""
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(text)
    except InvalidMatchSpecError:
        return None


def as_record(name, version, build, build_number=0):
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


def with_pythons(record, pythons, admitted):
    """Return a record and the series of the Pythons that it admits. *admitted*: by MatchSpec."""
    said = described(record)
    wanted = [each for each in said.get("depends", ()) if each.split(" ")[0] == "python"]
    if wanted and record.name.normalized != "python":
        fitting = [admitted_by(each, pythons, admitted) for each in wanted]
        said["pythons"] = sorted(set.intersection(*fitting))
    return said


def admitted_by(spec, pythons, admitted):
    """Return the series of the Pythons that a MatchSpec admits."""
    if spec not in admitted:
        wanted = match_spec(spec)
        matched = [each for each in pythons if wanted is not None and wanted.matches(each)]
        admitted[spec] = {".".join(str(each.version).split(".")[:2]) for each in matched}
    return admitted[spec]


# ---------------------------------------------------------------- solving


async def solve(request, gateways):
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
            constraints=request["constraints"],
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


async def check(request, _gateways):
    """Return what packages that are given need and do not have."""
    those = {each["name"]: each for each in request["records"]}
    virtual, met, unmet = request["virtual"], {}, []
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


def answer_to(request, gateways=None):
    """Return the answer to a request, as JSON. *gateways*: what earlier ones were answered with."""
    import asyncio

    try:
        return asyncio.run(ACTIONS[request["do"]](request, {} if gateways is None else gateways))
    except RequestError as error:
        return {"error": {"kind": error.kind, "text": str(error), "channel": error.channel}}
    except ImportError as error:
        return {"error": {"kind": "missing", "text": str(error)}}
    except Exception as error:  # whatever it is, it is rattler's: the process must go on to say so
        return {"error": {"kind": "engine", "text": clean(one_line(error))}}


def requests():
    """Yield requests as they come, and end the process as soon as there can be no more.

    Also in the middle of an answer: who would have got it has gone.
    """
    lines = queue.Queue()

    def receive():
        for line in sys.stdin.buffer:
            lines.put(line)
        end(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        yield json.loads(lines.get().decode("utf-8"))


def answer(_options):
    """Answer requests until there are no more."""
    # What is kept counts only where nobody else may write it; a stricter umask stays.
    os.umask(os.umask(0) | 0o022)
    # Whatever else is printed is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    gateways = {}
    for request in requests():
        answers.write(json.dumps(answer_to(request, gateways)) + "\n")
        answers.flush()


def link_list(options):
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
        sys.stderr.write("error: the packages cannot be linked: {}\n".format(whole(error)))
        return 1
    return 0


def here(_options):
    """Return 0 if what links packages is here."""
    try:
        import conda_package_streaming  # noqa: F401
        import rattler  # noqa: F401
    except ImportError:
        return 1
    return 0


def end(code):
    """End without the clean-up in which rattler's interpreter may crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(arguments):
    """Do one of three things, and end."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    # required= is of 3.7.
    what = parser.add_subparsers(dest="what")
    what.add_parser("answer").set_defaults(act=answer)
    one = what.add_parser("link")
    one.set_defaults(act=link_list)
    one.add_argument("--as", dest="named", help="the prefix that its files name")
    for name in ("prefix", "cache", "list", "folder"):
        one.add_argument(name, type=Path)
    what.add_parser("here").set_defaults(act=here)
    options = parser.parse_args(arguments)
    if options.what is None:
        parser.error("say what to do")
    end(options.act(options))
