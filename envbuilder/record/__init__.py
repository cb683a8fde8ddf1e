"""The evidence of an environment, read back; ``target_tools`` keeps it and decides what counts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ..model.evidence import Evidence
from ..model.plan import Lock, Plan
from ..runtimes import other_api
from ..target_tools.files import LARGE_BYTES, read_regular
from ..target_tools.proving.binding import EarlierEvidence, read_earlier
from ..target_tools.proving.evidence import RECORD
from ..target_tools.proving.recheck import judge_again
from ..target_tools.root.layout import Home, Version


class EnvironmentRecords(NamedTuple):
    """What was recorded of an environment, oldest first.

    ``damaged``: records that cannot be read, a line each. ``claimed``: evidence that does not
    count, a line each with the reason.
    """

    evidence: tuple[Evidence, ...]
    damaged: tuple[str, ...]
    claimed: tuple[str, ...]


def subject_of(lock: Lock, identity: str) -> dict[str, Any]:
    """Return what evidence of an environment has to name, as JSON: see ``binding.BOUND``.

    *identity*: what the folders of the environment are called by.
    """
    plan = lock.plan
    return {
        "environment": plan.recipe,
        "id": identity,
        "lock-sha256": lock.sha256(),
        "site": plan.site,
        "partition": plan.partition,
        "arch": plan.arch,
    }


def read_all(
    home: Home, version: Version, lock: Lock | None, *, in_image: bool = False
) -> EnvironmentRecords:
    """Return every record of a published environment.

    *lock*: None: it cannot be read, and no evidence counts. *in_image*: the root lies in an image,
    where nobody has recorded the evidence of earlier releases.
    """
    subject = subject_of(lock, version.id) if lock else None
    earlier = None if in_image else read_earlier(home.root)
    return _read(home.evidence(version.id), subject, lock.plan if lock else None, earlier)


def read_beside(folder: Path, lock: Lock, site: str) -> EnvironmentRecords:
    """Return every record that lies beside an image and was made at *site*."""
    subject = {**subject_of(lock, lock.id()), "site": site, "partition": None}
    return _read(folder, subject, lock.plan, read_earlier(folder))


def _read(
    folder: Path, subject: dict[str, Any] | None, plan: Plan | None, earlier: EarlierEvidence | None
) -> EnvironmentRecords:
    """Return every record in a folder. A damaged record is reported and affects no other.

    Each is judged again by the records of its ranks, which takes some milliseconds.
    """
    evidence: list[Evidence] = []
    damaged, claimed = [], []
    runs = [name for name in _names(folder) if name.isascii() and name.isdecimal()]
    # By number: as text 10000 comes before 9999.
    for name in sorted(runs, key=int):
        path = folder / name / RECORD
        try:
            one = Evidence.model_validate_json(read_regular(path, LARGE_BYTES))
            worth = judge_again(path.parent, one.plain(), subject, earlier, time.time())
        except FileNotFoundError:
            continue  # it runs, or was ended before it came to a result
        except ValidationError as error:
            damaged.append(f"{path} is damaged: {error.errors()[0]['msg']}")
            continue
        except (OSError, ValueError) as error:
            damaged.append(f"{path} is damaged: {error}")
            continue
        if worth.problem:
            tier = one.result.tier if one.result.verdict == "passed" else "a failure"
            claimed.append(f"{path} claims {tier} and does not count: {worth.problem}")
            continue
        by = other_api(plan, one.result.api) if plan else None
        evidence.append(one.model_copy(update={"time": worth.time, "by": by}))
    return EnvironmentRecords(tuple(evidence), tuple(damaged), tuple(claimed))


def _names(folder: Path) -> list[str]:
    """Return the names in a folder; none if it is not there."""
    return [each.name for each in folder.iterdir()] if folder.is_dir() else []
