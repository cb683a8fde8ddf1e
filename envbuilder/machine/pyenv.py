"""pyenv's shims, looked through: which program each stands for, without starting it.

A shim is a script that asks pyenv for the chosen versions and starts the program of the first one
that has it. Source: ``pyenv-rehash`` (the script), ``pyenv-version-name``, ``pyenv-version-file``,
``pyenv-version-file-read``, ``pyenv-prefix`` and ``pyenv-which`` of pyenv 2.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .host import LocalMachine, is_folder, names_in, runs, text_of

# What pyenv-rehash writes into each shim.
_ROOT = re.compile(r'^export PYENV_ROOT="([^"$`\\]+)"$', re.MULTILINE)
_EXEC = re.compile(r'^exec "[^"]*pyenv" exec "\$program" "\$@"$', re.MULTILINE)


class NotActiveError(Exception):
    """The shim's program is in no chosen version; the text says which versions have it."""


def root_of_shim(path: str) -> Path | None:
    """Return the pyenv that a shim belongs to, None where *path* is no shim of pyenv."""
    if Path(path).parent.name != "shims":
        return None
    text = text_of(Path(path)) or ""
    root = _ROOT.search(text)
    return Path(root[1]) if root is not None and _EXEC.search(text) else None


def behind_shim(path: str, host: LocalMachine) -> str | None:
    """Return the program that a shim starts; *path* itself where it is no shim of pyenv.

    None where the program is the system's: it is on PATH behind the shims. Raises NotActiveError
    where no chosen version has it, nor the system.
    """
    root = root_of_shim(path)
    if root is None:
        return path
    name = Path(path).name
    for version in _chosen(root, host):
        if version == "system":
            break
        folder = _prefix(root / "versions", version)
        program = f"{folder}/bin/{name}"
        if folder and runs(program):
            return program
    if any(root_of_shim(each) is None for each in host.every(name)):
        return None
    kept = sorted(names_in(root / "versions"), key=_order)
    raise NotActiveError(
        " ".join(each for each in kept if runs(f"{root}/versions/{each}/bin/{name}"))
    )


def _chosen(root: Path, host: LocalMachine) -> Iterator[str]:
    """Yield the chosen versions: PYENV_VERSION, else the nearest file's, else the user's."""
    stated = host.environ.get("PYENV_VERSION")
    if stated:
        yield from stated.split(":")
        return
    here = host.cwd or Path.cwd()
    begins = dict.fromkeys((Path(host.environ.get("PYENV_DIR") or here), here))
    files = (folder / ".python-version" for each in begins for folder in (each, *each.parents))
    text = next((found for file in files if (found := text_of(file)) is not None), None)
    for line in (text if text is not None else text_of(root / "version") or "").splitlines():
        word = next(iter(line.split()), "")
        if word and not word.startswith("#"):
            yield word


def _prefix(versions: Path, version: str) -> str | None:
    """Return the folder of a version, or of the newest one that begins with it (pyenv-latest)."""
    for each in dict.fromkeys((version, version.removeprefix("python-"))):
        if "/" in each or each == "..":
            continue
        if is_folder(versions / each):
            return str(versions / each)
        newest = [
            name for name in names_in(versions) if re.match(rf"{re.escape(each)}(\.\d+)*$", name)
        ]
        if newest and is_folder(folder := versions / max(newest, key=_order)):
            return str(folder)
    return None


def _order(version: str) -> list[int]:
    """Return what sorts 3.10.1 behind 3.9.18."""
    return [int(digits) for digits in re.findall(r"\d+", version)]
