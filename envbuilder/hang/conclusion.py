"""Who waits for whom: the stacks of ranks compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..model.hang import HangRank, StackFrame, Verdict

# Calls of MPI and NCCL that return when other ranks have come: all collectives, and waiting.
_NATIVE = re.compile(
    r"P?(MPI_I?(?:N(?:eighbor_)?)?(?:All(?:gather|reduce|toall)\w*|Barrier|Bcast|Exscan|Gatherv?"
    r"|Reduce(?:_scatter\w*)?|Scan|Scatterv?|Neighbor_\w+|Wait\w*|Recv|M?[Pp]robe|Ssend|Sendrecv"
    r"|Comm_(?:dup|split|create|spawn|accept|connect)\w*|Init\w*|Finalize|Win_fence)(?:_c)?)"
)
# Packages whose functions wait for other ranks, by a part of the path of their files.
_PACKAGES = {
    "/distributed_dl_training/": "distributed_dl_training",
    "/horovod/": "horovod",
    "/torch/distributed/": "torch.distributed",
    "/tensorflow/python/distribute/": "tensorflow.distribute",
}
# A decorator's function tells nobody what was called.
_WRAPPER = re.compile(r"<locals>|^wrapper$")
# What is no part of somebody's program.
_INSTALLED = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python[0-9.]+/|/lib/pypy[0-9.]+/|^<frozen|^<string>"
)


class Place(NamedTuple):
    """The collective that a rank is in, if any; and the line of the program."""

    call: str | None
    at: StackFrame | None


def place_of(frames: Sequence[StackFrame]) -> Place:
    """Return where a stack is, its innermost frame first.

    The collective is what the program calls: of a package's function and the MPI below it, the
    package's. Else what is innermost.
    """
    call: str | None = None
    for frame in frames:
        if not frame.line:
            native = _NATIVE.fullmatch(frame.function)
            if native:
                call = call or native[1].removesuffix("_c")
            continue
        package = next((name for part, name in _PACKAGES.items() if part in frame.file), None)
        if package and not _WRAPPER.search(frame.function):
            call = f"{package}'s {frame.function}"
        elif package:
            continue
        elif not _INSTALLED.search(frame.file):
            return Place(call, frame)
    written = (each for each in frames if each.line)
    return Place(call, next(written, None))


class Conclusion(NamedTuple):
    """Who is waited for. ``hint``: what to do."""

    verdict: Verdict
    culprits: tuple[int, ...]
    says: str
    hint: str


def conclude(ranks: Sequence[HangRank], size: int | None) -> Conclusion:
    """Return who is waited for. *ranks*: those of this machine. *size*: of the whole job."""
    numbers = tuple(each.rank for each in ranks)
    stopped = [each for each in ranks if each.state == "stopped"]
    seen = [each for each in ranks if each.frames and each.state != "stopped"]
    waiting = [each for each in seen if each.call and not each.moved]
    elsewhere = [each for each in seen if not each.call and not each.moved]
    if stopped:
        return Conclusion(
            "stopped",
            _numbers(stopped),
            f"{_named(stopped)} stopped by a signal: it goes on with SIGCONT",
            f"kill -CONT {' '.join(str(each.pid) for each in stopped)}; a shell's Ctrl-Z, a "
            "debugger or a suspended job stops processes",
        )
    if any(each.moved for each in ranks):
        moving = [each for each in ranks if each.moved]
        return Conclusion(
            "moving",
            (),
            f"{_named(moving)} elsewhere than at the first look: the job may be slow, not hanging",
            "look again, further apart: --seconds 30",
        )
    if not seen:
        return Conclusion(
            "unseen",
            (),
            "no rank shows its stack",
            "py-spy has to be installed, and to be allowed to read the processes",
        )
    if waiting and elsewhere:
        one = elsewhere[0]
        where = f" in {one.at.text()}" if one.at else ""
        return Conclusion(
            "elsewhere",
            _numbers(elsewhere),
            f"{_named(elsewhere)} in no collective but{where}, {_how(one)}; "
            f"{_named(waiting)} waiting for it in {_places(waiting)}",
            "a branch, a loop of another length, or reading of files that only some ranks do",
        )
    groups = Counter((each.call, each.at) for each in waiting)
    if len(groups) > 1:
        return _apart(waiting, groups)
    if size is not None and len(set(numbers)) < size:
        away = sorted({*range(size)} - {*numbers})
        return Conclusion(
            "missing",
            tuple(away),
            f"{_folded(away)} of {size} {_is(away)} not on this machine, or {_has(away)} ended; "
            f"{_named(seen)} in {_places(seen)}",
            "look on the job's other nodes too; of ranks that ended the job's log tells why",
        )
    if waiting:
        return Conclusion(
            "together",
            (),
            f"all {len(waiting)} ranks are in {_places(waiting)}: no rank is the one that is "
            "waited for",
            "the network or device below is: the job's log, and envbuild doctor",
        )
    return Conclusion(
        "together",
        (),
        f"no rank is in a collective: {_named(elsewhere)} in {_places(elsewhere)}",
        "they wait for no other rank: files, a lock, or work that takes this long",
    )


def _apart(
    waiting: Sequence[HangRank], groups: Counter[tuple[str | None, StackFrame | None]]
) -> Conclusion:
    """Name those that are in another collective than most, or of two equal parts the later."""
    (most, _), *_ = groups.most_common()
    with_most = [each for each in waiting if (each.call, each.at) == most]
    others = [each for each in waiting if (each.call, each.at) != most]
    return Conclusion(
        "apart",
        _numbers(others),
        f"{_named(others)} in {_places(others)}, while {_named(with_most)} in {_places(with_most)}",
        "all ranks have to call the same collectives in the same order: look for a branch that "
        "only some of them take",
    )


def _places(ranks: Sequence[HangRank]) -> str:
    found = dict.fromkeys((each.call or "", each.at.text() if each.at else "") for each in ranks)
    texts = [" at ".join(filter(None, each)) for each in found]
    more = f" and {len(texts) - 2} other places" if len(texts) > 2 else ""
    return ", ".join(texts[:2]) + more


def _how(rank: HangRank) -> str:
    return f"which uses {rank.cpu:.1f} cores" if rank.state == "busy" else rank.state


def _numbers(ranks: Sequence[HangRank]) -> tuple[int, ...]:
    return tuple(each.rank for each in ranks)


def _named(ranks: Sequence[HangRank]) -> str:
    """Return ``rank 3 is`` or ``ranks 0-2, 5 are``."""
    numbers = _numbers(ranks)
    return f"{_folded(numbers)} {_is(numbers)}"


def _is(numbers: Sequence[int]) -> str:
    return "is" if len(set(numbers)) == 1 else "are"


def _has(numbers: Sequence[int]) -> str:
    return "has" if len(set(numbers)) == 1 else "have"


def _folded(numbers: Sequence[int]) -> str:
    """Return ``rank 3`` or ``ranks 0-2, 5``."""
    runs: list[list[int]] = []
    for each in sorted(set(numbers)):
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"rank {text}" if len(set(numbers)) == 1 else f"ranks {text}"
