"""``envbuild validate --watch-list``: what changed in many environments since last time."""

from __future__ import annotations

from pathlib import Path

from ..documents.load import read_document
from ..errors import EnvbuildError, UsageError
from ..files import write_atomically
from ..model.base import canonical_json
from ..model.validation import Finding
from ..model.watching import EnvironmentChange, LastResult, PastFinding, WatchReport, WatchState
from ..text import shown
from .context import Context
from .validate import validate
from .validate_options import ValidateOptions

_MOST = 10_000
_LAST = ".last"


def watch(file: Path, root: str | None, options: ValidateOptions, context: Context) -> WatchReport:
    """Look at every environment of a list, and return what is otherwise than last time.

    *file*: a line for each, as ``validate`` takes it; a path counts from the file's folder, # and
    empty lines for nothing. What is found is kept beside it, in FILE.last. Raises UsageError.
    """
    path = context.path(file)
    names = _names(path)
    state_file = path.with_name(path.name + _LAST)
    before = _state(state_file).environments
    now: dict[str, LastResult] = {}
    changed: list[EnvironmentChange] = []
    for name in names:
        last = before.get(name)
        one, now[name] = _change(name, last or LastResult(), path.parent, root, options, context)
        one = one.model_copy(update={"first": last is None})
        if one.new or one.gone or one.problem or one.readable or (last is None):
            changed.append(one)
    text = canonical_json(WatchState(environments=now).plain())
    if not state_file.is_file() or state_file.read_text("utf-8", "replace") != text:
        write_atomically(state_file, text)
    return WatchReport(environments=len(names), changed=tuple(changed))


def _names(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the list cannot be read: {path}: {error}") from error
    names = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if not names or len(names) > _MOST:
        raise UsageError(
            f"{path} names {len(names)} environments", "a line for each: PATH, IMAGE or NAME[/N]"
        )
    return list(dict.fromkeys(names))


def _state(file: Path) -> WatchState:
    return read_document(file, WatchState).value if file.exists() else WatchState()


def _change(
    name: str,
    last: LastResult,
    folder: Path,
    root: str | None,
    options: ValidateOptions,
    context: Context,
) -> tuple[EnvironmentChange, LastResult]:
    """Return what is otherwise in one environment, and what is to be remembered."""
    place = str(folder / name) if (folder / name).exists() or "/" in name[:2] else name
    about = shown(name, 400)
    try:
        value = validate(place, root, context, options)
    except (EnvbuildError, OSError) as error:
        problem = shown(str(error), 400)
        again = None if problem == last.problem else problem
        return EnvironmentChange(environment=about, first=False, problem=again), LastResult(
            findings=last.findings, problem=problem
        )
    seen = tuple(map(_seen, value.open))
    known = {(each.id, each.summary) for each in last.findings}
    there = {(each.id, each.summary) for each in seen}
    one = EnvironmentChange(
        environment=about,
        first=False,
        new=tuple(each for each in value.open if (each.id, each.summary) not in known),
        gone=tuple(each for each in last.findings if (each.id, each.summary) not in there),
        readable=last.problem is not None,
    )
    return one, LastResult(findings=seen)


def _seen(found: Finding) -> PastFinding:
    return PastFinding(id=found.id, severity=found.severity, summary=found.summary)
