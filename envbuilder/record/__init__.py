"""The evidence of an environment, read back; ``target_tools`` keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ..model.evidence import Evidence, SmokeResult
from ..target_tools.files import LARGE_BYTES, read_regular
from ..target_tools.proving.evidence import RECORD
from ..target_tools.proving.recheck import refuted


class EnvironmentRecords(NamedTuple):
    """What was recorded of an environment, oldest first.

    ``damaged``: records that count for nothing, a line each.
    """

    evidence: tuple[Evidence, ...]
    damaged: tuple[str, ...]


def read_all(folder: Path) -> EnvironmentRecords:
    """Return every record of an environment. A damaged one is told and takes no other along.

    Where the ranks' own records are kept, the judge looks at them once more, which takes some
    milliseconds: what it says of them counts.
    """
    evidence, damaged = [], []
    runs = [name for name in _names(folder) if name.isascii() and name.isdecimal()]
    # By number: as text 10000 comes before 9999.
    for name in sorted(runs, key=int):
        path = folder / name / RECORD
        try:
            one = Evidence.model_validate_json(read_regular(path, LARGE_BYTES))
        except FileNotFoundError:
            continue  # it runs, or was ended before it came to a result
        except ValidationError as error:
            damaged.append(f"{path} is damaged: {error.errors()[0]['msg']}")
            continue
        except (OSError, ValueError) as error:
            damaged.append(f"{path} is damaged: {error}")
            continue
        if fault := _fault(one.result):
            damaged.append(f"{path} contradicts itself: {fault}")
        elif fault := _ranks_fault(path.parent, one):
            damaged.append(f"{path} does not match the records of its ranks: {fault}")
        else:
            evidence.append(one)
    return EnvironmentRecords(tuple(evidence), tuple(damaged))


def _names(folder: Path) -> list[str]:
    """Return the names in a folder; none if it is not there."""
    return [each.name for each in folder.iterdir()] if folder.is_dir() else []


def _ranks_fault(run: Path, evidence: Evidence) -> str | None:
    """Return why evidence cannot be of the records that its ranks left beside it."""
    fault: str | None = refuted(run, evidence.execution, evidence.result.plain())
    return fault


def _fault(result: SmokeResult) -> str | None:
    """Return why a result cannot be of the tier that it says: see ``proving.judge.tier``."""
    if result.tier == "several nodes" and len(set(result.nodes)) < 2:
        return f"several nodes, but it lists {len(set(result.nodes))}"
    if result.tier in ("several ranks", "several nodes") and result.ranks < 2:
        return f"{result.tier}, on {result.ranks} rank"
    if result.tier == "several nodes" and len(set(result.nodes)) > result.ranks:
        return f"{len(set(result.nodes))} nodes, on {result.ranks} ranks"
    return None
