"""The Pythons in doctor's report, and the settings and folders that could poison environments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from ..machine.detection import DetectionResult
from ..machine.host import LocalMachine, names_in
from ..machine.interpreters import version_of
from ..machine.item_values import Item, Section
from ..machine.items import make, section
from ..model.site import Interpreter

# The oldest Python that the bundled runtime runs on.
OLDEST = Version("3.6")


def pythons_section(detected: DetectionResult) -> Section:
    """Return each interpreter of the snapshot, and those that were skipped with the reason."""
    pythons, notes = detected.snapshot.interpreters, detected.notes
    usable = any(python.can_make_venv and version_of(python) >= OLDEST for python in pythons)
    items = [_item(number, python, others=usable) for number, python in enumerate(pythons, start=1)]
    if not pythons:
        items = [make("pythons", "missing", "no working Python 3")]
    if notes:
        items.append(make("pythons.notes", "note", f"{len(notes)} notes", details=notes))
    return section("pythons", items)


def _item(number: int, python: Interpreter, *, others: bool) -> Item:
    too_old = version_of(python) < OLDEST
    trouble = None
    if too_old:
        trouble = f"too old: the runtime needs Python {OLDEST} or later"
    elif not python.can_make_venv:
        trouble = "cannot make a virtualenv: it lacks venv, ensurepip or zlib"
    return make(
        f"pythons.{number}",
        # A machine with another interpreter that can is not in trouble.
        "ok" if trouble is None else "note" if too_old or others else "problem",
        f"{python.version} ({python.arch})",
        details=[python.path, trouble],
        facts={
            "path": python.path,
            "version": python.version,
            "arch": python.arch,
            "can-make-venv": python.can_make_venv,
            "too-old": too_old,
        },
        advice="pythons.venv",
    )


def settings_section(host: LocalMachine, interpreters: Sequence[Interpreter]) -> Section:
    """Return what in environment and home changes what every Python imports."""
    variables = (_variable(host, name) for name in ("PYTHONPATH", "PYTHONHOME"))
    packages = _user_packages(host, interpreters)
    return section("python-settings", (*variables, packages, *_active(host)))


def _variable(host: LocalMachine, name: str) -> Item:
    item_id = f"python-settings.{name.lower()}"
    value = host.environ.get(name, "")
    if not value:
        return make(item_id, "ok", "not set")
    entries = [entry or "(the current folder)" for entry in value.split(":")]
    found = f"set, {len(entries)} folders" if len(entries) > 1 else f"set to {value}"
    return make(item_id, "problem", found, details=entries, facts={"value": value})


def _user_packages(host: LocalMachine, interpreters: Sequence[Interpreter]) -> Item:
    item_id = "python-settings.user-packages"
    stated = host.environ.get("PYTHONUSERBASE", "")
    home = host.home()
    base = Path(stated) if stated.startswith("/") else home / ".local" if home else None
    if base is None:
        return make(item_id, "ok", "none: HOME is not set")
    matches = (re.match(r"\d+\.\d+", python.version) for python in interpreters)
    series = sorted({match[0] for match in matches if match}, key=Version, reverse=True)
    folders = {name: base / "lib" / f"python{name}" / "site-packages" for name in series}
    counts = {
        name: sum(each.endswith((".dist-info", ".egg-info")) for each in names_in(folder))
        for name, folder in folders.items()
    }
    total = sum(counts.values())
    details = [
        f"{count} for Python {name} in {folders[name]}" for name, count in counts.items() if count
    ]
    unseen = "builds and built environments do not see them (PYTHONNOUSERSITE=1)"
    return make(
        item_id,
        "note" if total else "ok",
        f"{total or 'none'} in {base}",
        details=[*details, unseen if total else None],
        facts={"count": total, "base": str(base)},
    )


def _active(host: LocalMachine) -> Iterator[Item]:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = host.environ.get(name, "")
        if value:
            item_id = f"python-settings.{name.lower().replace('_', '-')}"
            yield make(item_id, "note", value, facts={"path": value})
