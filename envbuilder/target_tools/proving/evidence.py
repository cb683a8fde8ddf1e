"""Proving an environment: its smoke tests, each with a record in a folder of its own.

Records are appended beside the prefix and never changed.
"""

import contextlib
import time
from pathlib import Path

from .. import sharing
from ..errors import BuildError
from ..files import LARGE_BYTES, canonical_json, copy_texts, read_json, write_atomically
from ..messages import one_line
from ..processes import start
from .binding import SCHEMA, EarlierEvidence
from .recheck import judge_again
from .runner import LOG, SmokeRequest, run_smoke

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Mapping, Protocol

    from .runner import Start

    class EvidenceFolders(Protocol):
        """Where an environment keeps what is proved of it: ``Home`` has these places."""

        @property
        def group(self) -> "int | None": ...
        def prefix(self, __identity: str) -> Path: ...
        def build(self, __identity: str) -> Path: ...
        def evidence(self, __identity: str) -> Path: ...


RECORD = "evidence.json"
# What the step verify writes into the build folder.
FACTS = "verified.json"
TOPICS = (None, "installation", "flags", "linkage", "mpi", "nccl")
TOOLS = Path(__file__).resolve().parent.parent
# Of each GPU, as the drivers of NVIDIA and AMD make them.
GPU_DEVICES = ("nvidia[0-9]*", "kfd")


def next_run(folder: Path, group: "int | None" = None) -> Path:
    """Make and return the folder for the next run: ``<folder>/0001`` and so on.

    *group*: the one that shares the root.
    """
    sharing.make_folder(folder, group)
    number = max([int(each.name) for each in folder.iterdir() if each.name.isdigit()], default=0)
    while True:
        number += 1
        run = folder / f"{number:04}"
        try:
            run.mkdir()
        except FileExistsError:
            continue  # another test of the same environment began at the same moment
        return run


def write_run(run: Path, files: "Mapping[str, str]") -> None:
    """Write the scripts of a smoke test, by name, and these tools into its folder."""
    for name, text in files.items():
        (run / name).write_text(text, encoding="utf-8")
    copy_texts(TOOLS, run / TOOLS.name)


def build_facts(build: Path, components: "Collection[str]") -> "list[dict[str, Any]]":
    """Return the facts of the step verify about the libraries of *components*, as JSON.

    A component that the record does not mention has one fact, which is not judged: builds of
    earlier releases have no record. Raises BuildError if the record is damaged, about other
    components, or of a build that differs from its plan.
    """
    path = build / FACTS
    problem = None
    try:
        report = read_json(path)
        problem = report_problem(report, components)
    except FileNotFoundError:
        report = {"facts": []}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise refusal(path, error) from error
    if problem:
        raise refusal(path, problem)
    facts: "list[dict[str, Any]]" = report["facts"]
    unmentioned = set(components) - {fact["component"] for fact in facts}
    text = "the step verify recorded no fact about its libraries"
    lacking = [{"component": c, "passed": None, "text": text} for c in sorted(unmentioned)]
    return [*facts, *lacking]


def report_problem(report: "dict[str, Any]", components: "Collection[str]") -> "str | None":
    """Return the problem of a record of the step verify, or None."""
    if set(report) != {"schema", "passed", "facts"} or report["schema"] != 1:
        return "it must have schema 1, passed and facts"
    if report["passed"] is not True:
        return "the build does not match the plan"
    strange = [fact for fact in report["facts"] if not is_fact(fact)]
    if strange:
        return f"not a fact: {strange[0]}"
    strangers = sorted({fact["component"] for fact in report["facts"]} - set(components))
    return f"the plan has no build of {strangers[0]}" if strangers else None


def is_fact(fact: "dict[str, Any]") -> bool:
    """Return whether a value is a fact of the step verify."""
    names = {"component", "passed", "text"}
    right = set(fact) - {"topic"} == names and fact.get("topic") in TOPICS
    right = right and (fact["passed"] is None or isinstance(fact["passed"], bool))
    return right and all(isinstance(fact[name], str) for name in ("component", "text"))


def refusal(path: Path, reason: object) -> BuildError:
    """Return the error for a record of a build that counts for nothing."""
    return BuildError(
        "evidence.unreadable",
        f"cannot read the check of the built libraries: {path}: {one_line(str(reason))}",
        f"bash '{path.with_name('build.sh')}' verify checks them again",
    )


def prove(
    proving: "dict[str, Any]",
    home: "EvidenceFolders",
    identity: str,
    environ: "Mapping[str, str]",
    start: "Start" = start,
) -> "list[dict[str, Any]]":
    """Run every smoke test and keep its record: a list of Evidence as JSON, one at least.

    *proving*: the request, as JSON. ``about``: the common part of every record; ``components``:
    those that the step verify checked; ``timeout``, ``max-bytes``, ``mpi-from`` and, depending on
    it, ``mpi-files``: see SmokeRequest;
    ``proofs``: api, transport, launch, request (a LaunchRecord) and files of each. *files*: the
    scripts, by name; ``candidate``: see ``refuted``.

    The tests stop at the first that fails, because the environment is refused then.
    """
    try:
        return prove_each(proving, home, identity, environ, start)
    finally:
        sharing.share_trees(home.group, home.evidence(identity))


def prove_each(
    proving: "dict[str, Any]",
    home: "EvidenceFolders",
    identity: str,
    environ: "Mapping[str, str]",
    start: "Start",
) -> "list[dict[str, Any]]":
    """Run every smoke test and keep its record."""
    proved: "list[dict[str, Any]]" = []
    facts = build_facts(home.build(identity), proving["components"])
    for proof in proving["proofs"]:
        run = next_run(home.evidence(identity), home.group)
        write_run(run, proof["files"])
        told = run_smoke(
            SmokeRequest(
                command=("bash", "smoke.sh"),
                folder=run,
                ranks=proof["request"]["ranks"],
                timeout=proving["timeout"],
                max_bytes=proving["max-bytes"],
                prefix=home.prefix(identity),
                env=environ,
                launch=(*proof["launch"], "python", TOOLS.name, "smoke"),
                api=proof["api"],
                transport=proof["transport"],
                mpi_from=proving["mpi-from"],
                mpi_files=tuple(proving.get("mpi-files", ())),
                about=proving["about"],
            ),
            start,
        )
        about = {
            "schema": SCHEMA,
            "log": f"{run.name}/{LOG}",
            "build-facts": facts,
            "request": proof["request"],
        }
        proved.append(dict(proving["about"], **dict(about, **told)))
        # The folder of a run is its own: no other record can be there.
        write_atomically(run / RECORD, canonical_json(proved[-1]))
        if refuted(told["result"], proving.get("candidate", False)):
            break
    return proved


def refuted(result: "dict[str, Any]", candidate: bool, devices: Path = Path("/dev")) -> bool:
    """Return whether the result of a smoke test refuses its environment.

    A *candidate* will be proved elsewhere: it is accepted if its ranks imported everything, and
    then ended because NCCL needs GPUs and this machine has none.
    """
    if result["verdict"] == "passed":
        return False
    lacking = not any(each for name in GPU_DEVICES for each in devices.glob(name))
    # What ended at the init, where each rank takes its GPU, never came to talk.
    went = {each["name"] for each in result["checks"]} <= {"import", "init"}
    only_imported = went and result["tier"] == "imported" and result["transport"] == "nccl"
    return not (candidate and only_imported and lacking)


def passed_kinds(
    folder: Path, about: "Mapping[str, Any]", earlier: EarlierEvidence
) -> "dict[tuple[str, str], bool]":
    """Return each kind of proof (API, transport) of which there is evidence: whether it passed.

    A damaged record counts for nothing, as in ``list``, and neither does evidence of anything but
    what *about* names.
    """
    kinds: "dict[tuple[str, str], bool]" = {}
    for path in sorted(folder.glob(f"*/{RECORD}")):
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            evidence = read_json(path, LARGE_BYTES)
            result = evidence["result"]
            worth = judge_again(path.parent, evidence, about, earlier, time.time())
            kind = result["api"], result["transport"]
            counts = worth.problem is None
            kinds[kind] = kinds.get(kind, False) or (counts and result["verdict"] == "passed")
    return kinds
