"""Who waits for whom: the stacks of ranks compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .values import HangRank, StackFrame, Verdict

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


class BlockedCall(NamedTuple):
    """The collective that a rank is in, if any; and the line of the program."""

    call: str | None
    at: StackFrame | None


def place_of(frames: Sequence[StackFrame]) -> BlockedCall:
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
            return BlockedCall(call, frame)
    written = (each for each in frames if each.line)
    return BlockedCall(call, next(written, None))


class Conclusion(NamedTuple):
    """Who is waited for. ``hint``: what to do."""

    verdict: Verdict
    culprits: tuple[int, ...]
    says: str
    hint: str


def conclude(ranks: Sequence[HangRank], size: int | None) -> Conclusion:
    """Return who is waited for. *ranks*: those of this machine. *size*: of the whole job."""
    stopped = [each for each in ranks if each.state == "stopped"]
    moving = [each for each in ranks if each.moved]
    seen = [each for each in ranks if each.frames]
    waiting = [each for each in seen if each.call]
    elsewhere = [each for each in seen if not each.call]
    groups = Counter((each.call, each.at) for each in waiting)
    away = sorted({*range(size or 0)} - {each.rank for each in ranks})
    if stopped:
        return _stopped(stopped)
    if moving:
        return _moving(moving)
    if not seen:
        return _UNSEEN
    if waiting and elsewhere:
        return _elsewhere(elsewhere, waiting)
    if len(groups) > 1:
        return _apart(waiting, groups)
    if away:
        return _missing(away, size, seen)
    return _together(waiting) if waiting else _at_work(elsewhere)


_UNSEEN = Conclusion(
    "unseen",
    (),
    "the stack of no rank is available",
    "install py-spy, and allow it to read the processes",
)


def _stopped(those: Sequence[HangRank]) -> Conclusion:
    goes = "it continues" if len(those) == 1 else "they continue"
    return Conclusion(
        "stopped",
        _numbers(those),
        f"{_named(those)} stopped by a signal: {goes} with SIGCONT",
        f"kill -CONT {' '.join(str(each.pid) for each in those)}; Ctrl-Z in a shell, a debugger "
        "or a suspended job stops processes",
    )


def _moving(those: Sequence[HangRank]) -> Conclusion:
    return Conclusion(
        "moving",
        (),
        f"{_named(those)} moved since the first sample: the job may be slow, not hanging",
        "sample again over a longer time: --seconds 30",
    )


def _elsewhere(those: Sequence[HangRank], waiting: Sequence[HangRank]) -> Conclusion:
    one = those[0]
    where = f" in {one.at.text()}" if one.at else ""
    them = "it" if len(those) == 1 else "them"
    return Conclusion(
        "elsewhere",
        _numbers(those),
        f"{_named(those)} not in a collective, but{where}, {_how(one)}; "
        f"{_named(waiting)} waiting for {them} in {_places(waiting)}",
        "look for a branch, a loop of another length, or file reads that only some ranks do",
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
        "all ranks must call the same collectives in the same order: look for a branch that only "
        "some of them take",
    )


def _missing(away: Sequence[int], size: int | None, seen: Sequence[HangRank]) -> Conclusion:
    is_, has = ("is", "has") if len(away) == 1 else ("are", "have")
    return Conclusion(
        "missing",
        tuple(away),
        f"{_folded(away)} of {size} {is_} not on this machine, or {has} ended; "
        f"{_named(seen)} in {_places(seen)}",
        "run envbuild hang on the other nodes of the job too; the job's log shows why ranks ended",
    )


def _together(waiting: Sequence[HangRank]) -> Conclusion:
    return Conclusion(
        "together",
        (),
        f"all {len(waiting)} ranks are in {_places(waiting)}: no single rank blocks them",
        "check the network or the device: the job's log, and envbuild doctor",
    )


def _at_work(those: Sequence[HangRank]) -> Conclusion:
    return Conclusion(
        "together",
        (),
        f"no rank is in a collective: {_named(those)} in {_places(those)}",
        "they do not wait for another rank: look for slow files, a lock, or long computation",
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
    """Return ``rank 3 is`` or ``ranks 0-2,5 are``."""
    numbers = _numbers(ranks)
    return f"{_folded(numbers)} {'is' if len(set(numbers)) == 1 else 'are'}"


def _folded(numbers: Sequence[int]) -> str:
    """Return ``rank 3`` or ``ranks 0-2,5``, as launchers and ClusterShell fold numbers."""
    # lazy import: no other verb folds ranks
    from ClusterShell.RangeSet import RangeSet  # type: ignore[import-untyped]

    text = str(RangeSet(",".join(map(str, numbers))))
    return f"rank {text}" if len(set(numbers)) == 1 else f"ranks {text}"
