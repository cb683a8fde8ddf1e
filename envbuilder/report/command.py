"""``envbuild report``: what a support desk asks for, gathered in one file. Only reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..diagnosis.command import PIPE, diagnose
from ..diagnosis.values import Diagnosis
from ..doctor.command import doctor
from ..errors import EnvbuildError, UsageError
from ..files import write_atomically
from ..machine.item_values import DoctorReport
from ..model.validation import Validation
from ..redaction.redact import redact
from ..target_tools.smoke.rank_env import shaping
from ..text import shown
from ..validate.command import validate
from ..workflow.context import Context
from ..workflow.output import output_path
from .values import LeftOut, SupportReport

# Of each log its end: what came before is said by what diagnose found in all of it.
MOST_LINES = 200
MOST_BYTES = 64 * 1024
# Variables that say what a shell would start, beside those that shape how ranks talk.
_SHOWN = (
    *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "MODULEPATH", "LOADEDMODULES", "CUDA_HOME"),
    *("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "SLURM_JOB_ID", "SLURM_JOB_PARTITION"),
    *("SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_MPI_TYPE", "LSB_JOBID", "LSB_QUEUE"),
)


class SupportFacts(NamedTuple):
    """What is reported, nothing of it redacted yet.

    ``head``: names and values above all. ``tails``: the ends of logs. ``missing``: what could not
    be had, and why.
    """

    head: Mapping[str, str]
    machine: DoctorReport
    validation: Validation | None
    diagnosis: Diagnosis | None
    variables: Mapping[str, str]
    tails: Mapping[str, str]
    missing: tuple[str, ...]


def gather(
    environment: str | None, root: str | None, logs: Sequence[str], context: Context
) -> SupportFacts:
    """Return what is to be reported. Raises UsageError for a log that cannot be read.

    What else fails is said in the report: an environment that is broken is why it is written.
    """
    missing: list[str] = []
    if PIPE in logs:
        raise UsageError(
            "report.log-is-pipe",
            "a report needs log files; it cannot read standard input",
            "use --log FILE",
        )
    validation = None
    try:
        validation = validate(environment, root, context)
    except EnvbuildError as error:
        if environment is not None:
            raise
        missing.append(f"no environment was examined: {error}")
    diagnosis = None
    if logs:
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no file of anybody
            diagnosis = diagnose(logs, nothing, validation, context)
    variables = {name: context.environ[name] for name in _SHOWN if name in context.environ}
    return SupportFacts(
        head={
            "envbuild": __version__,
            "time": context.clock().isoformat(timespec="seconds"),
            "machine": f"{os.uname().nodename}, {os.uname().machine}, Linux {os.uname().release}",
            **({"not there": "; ".join(missing)} if missing else {}),
        },
        machine=doctor(context),
        validation=validation,
        diagnosis=diagnosis,
        variables={**variables, **shaping(context.environ)},
        tails=dict(_tails(logs, context)),
        missing=tuple(missing),
    )


def place(output: Path | None, context: Context) -> Path:
    """Return where the report is to be written; UsageError where something is already."""
    name = f"envbuild-report-{context.clock():%Y%m%dT%H%M%S}.txt"
    path = context.path(output if output is not None else name)
    if path.exists():
        raise UsageError(
            "output.exists",
            f"{shown(str(path), 200)} already exists",
            "use another --output",
        )
    output_path(path, context)
    return path


def write(text: str, path: Path, facts: SupportFacts, context: Context) -> SupportReport:
    """Write the text without secrets to a new file, which its owner alone can read."""
    found = redact(text, context.environ)
    text = found.text.encode("utf-8", "backslashreplace").decode("utf-8")
    write_atomically(path, text, 0o600, is_new=True)
    return SupportReport(
        file=str(path),
        lines=found.text.count("\n"),
        left_out=tuple(LeftOut(what=what, count=number) for what, number in found.counts.items()),
        missing=facts.missing,
    )


def _tails(logs: Sequence[str], context: Context) -> Iterator[tuple[str, str]]:
    """Yield the end of each file; a folder's logs are told by what diagnose found in them."""
    for name in logs:
        path = context.path(name)
        if not path.is_file():
            continue
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            size = stream.tell()
            stream.seek(max(0, size - MOST_BYTES))
            text = stream.read().decode("utf-8", "replace")
        if size > MOST_BYTES:
            # The rest of a line may be that of a secret, which nothing tells any more.
            text = text.partition("\n" if "\n" in text else " ")[2]
        yield name, "\n".join(text.splitlines()[-MOST_LINES:])
