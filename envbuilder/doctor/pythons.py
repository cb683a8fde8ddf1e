"""The Pythons in doctor's report, and the settings and folders that could poison environments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ..host import Host
from ..model.doctor import Item, Section, Status
from ..model.site import Interpreter
from .detection import DetectionResult
from .items import make

# The oldest Python that the bundled runtime runs on.
OLDEST = Version("3.6")


def pythons_section(detected: DetectionResult) -> Section:
    """Return each interpreter of the snapshot, and those that were skipped with the reason."""
    interpreters = detected.snapshot.interpreters
    usable = any(python.can_make_venv and not too_old(python) for python in interpreters)
    items = [
        _item(number, python, others=usable) for number, python in enumerate(interpreters, start=1)
    ]
    if not interpreters:
        items = [make("pythons", "Python", "missing", "no Python 3 that answers")]
    if detected.notes:
        items.append(
            make(
                "pythons.notes",
                "Skipped and odd",
                "note",
                f"{len(detected.notes)} notes",
                details=detected.notes,
            )
        )
    return Section(id="pythons", title="Pythons", items=tuple(items))


def too_old(python: Interpreter) -> bool:
    """Return whether the runtime cannot run on *python*."""
    try:
        return Version(python.version) < OLDEST
    except InvalidVersion:
        return True


def _item(number: int, python: Interpreter, *, others: bool) -> Item:
    details = [python.path]
    status: Status = "ok"
    if too_old(python):
        status = "note"
        details.append(f"too old: the runtime needs Python {OLDEST} or later")
    elif not python.can_make_venv:
        # A machine with another interpreter that can is not in trouble.
        status = "note" if others else "problem"
        details.append("cannot make a virtualenv: it lacks venv, ensurepip or zlib")
    return make(
        f"pythons.{number}",
        "Python",
        status,
        f"{python.version} ({python.arch})",
        details=details,
        facts={
            "path": python.path,
            "version": python.version,
            "arch": python.arch,
            "can-make-venv": python.can_make_venv,
            "too-old": too_old(python),
        },
        advice="pythons.venv",
    )


def settings_section(host: Host, interpreters: Sequence[Interpreter]) -> Section:
    """Return what in environment and home changes what every Python imports."""
    items = [
        _variable(host, "PYTHONPATH"),
        _variable(host, "PYTHONHOME"),
        _user_packages(host, interpreters),
        *_active(host),
    ]
    return Section(id="python-settings", title="Python settings", items=tuple(items))


def _variable(host: Host, name: str) -> Item:
    item_id = f"python-settings.{name.lower()}"
    value = host.environ.get(name, "")
    if not value:
        return make(item_id, name, "ok", "not set")
    entries = [entry or "(the current folder)" for entry in value.split(":")]
    found = f"set, {len(entries)} folders" if len(entries) > 1 else f"set to {value}"
    return make(item_id, name, "problem", found, details=entries, facts={"value": value})


def _user_packages(host: Host, interpreters: Sequence[Interpreter]) -> Item:
    title = "Packages in the user's folder"
    stated = host.environ.get("PYTHONUSERBASE", "")
    home = host.home()
    base = Path(stated) if stated.startswith("/") else home / ".local" if home else None
    if base is None:
        return make("python-settings.user-packages", title, "ok", "none: HOME is not set")
    series = sorted(
        {m.group(0) for p in interpreters if (m := re.match(r"\d+\.\d+", p.version))},
        key=Version,
        reverse=True,
    )
    counts = {
        name: _distributions(base / "lib" / f"python{name}" / "site-packages") for name in series
    }
    poisoned = {name: count for name, count in counts.items() if count}
    details = [
        f"{count} for Python {name} in {base}/lib/python{name}/site-packages"
        for name, count in poisoned.items()
    ]
    if poisoned:
        details.append("builds and built environments do not see them (PYTHONNOUSERSITE=1)")
    total = sum(poisoned.values())
    return make(
        "python-settings.user-packages",
        title,
        "note" if total else "ok",
        f"{total} in {base}" if total else f"none in {base}",
        details=details,
        facts={"count": total, "base": str(base)},
    )


def _distributions(folder: Path) -> int:
    try:
        return sum(path.name.endswith((".dist-info", ".egg-info")) for path in folder.iterdir())
    except OSError:
        return 0


def _active(host: Host) -> list[Item]:
    items = []
    for name, kind in (("VIRTUAL_ENV", "virtualenv"), ("CONDA_PREFIX", "conda environment")):
        value = host.environ.get(name, "")
        if value:
            item_id = f"python-settings.{name.lower().replace('_', '-')}"
            items.append(make(item_id, f"Active {kind}", "note", value, facts={"path": value}))
    return items
