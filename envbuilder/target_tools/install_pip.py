"""Put pip into a new virtualenv: the one that its Python carries for this, as it lies there.

    python -I target_tools install-pip

Run by the virtualenv's own Python. ``venv`` does the same by ensurepip, which starts that pip out
of its archive, compiles all of it and takes four seconds. A wheel of pure Python needs no more than
to be unpacked, and bytecode, which may be in the cache. Python before 3.12 carries setuptools too,
and it comes along as it does there. Where the wheels lie otherwise than known, ensurepip is run.
"""

import os
import runpy
import sys
import sysconfig
import zipfile
from pathlib import Path

from . import bytecode
from .files import sha256_of

try:
    import ensurepip
except ImportError:  # Debian has it in a package of its own
    sys.exit(
        "error: {} has no ensurepip, which installs pip\n"
        "hint: install the system package python{}.{}-venv, or use another Python".format(
            sys.executable, *sys.version_info[:2]
        )
    )

# As pip writes it for a path that is too long for the first line of a script, or holds a space.
SCRIPT = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import runpy

runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
# What a shell would not leave as it is between double quotes.
SPECIAL = '"$`\\'


def wheels() -> "list[Path]":
    """Return the wheels that ensurepip would install; [] if they cannot be determined."""
    # Distributions may keep them in one folder for all: Debian, Fedora.
    shared = sysconfig.get_config_var("WHEEL_PKG_DIR")
    own = Path(ensurepip.__file__).with_name("_bundled")
    # Its public function says the version: there may be more than one.
    patterns = [f"pip-{ensurepip.version()}-*.whl"]
    patterns += [] if sys.version_info >= (3, 12) else ["setuptools-*.whl"]
    for folder in filter(None, (shared, own)):
        found = [sorted(Path(folder).glob(pattern)) for pattern in patterns]
        if all(len(each) == 1 for each in found):
            return [each for (each,) in found]
    return []


def is_plain(wheel: Path) -> bool:
    """Return whether unpacking a wheel is enough to install it."""
    with zipfile.ZipFile(str(wheel)) as archive:
        return not any(".data/" in name for name in archive.namelist())


def unpack(wheel: Path, target: str) -> bytecode.WheelSources:
    """Unpack a wheel; return its sources, which can be compiled."""
    with zipfile.ZipFile(str(wheel)) as archive:
        archive.extractall(str(target))
        sources = [name for name in archive.namelist() if name.endswith(".py")]
    return bytecode.WheelSources(sha256_of(wheel), target, sources)


def write_scripts(folder: str) -> None:
    """Write the commands pip, pip3 and pip3.11."""
    text = SCRIPT.format(python=sys.executable)
    for name in ("pip", f"pip{sys.version_info[0]}", "pip{}.{}".format(*sys.version_info)):
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def main(arguments: "list[str]") -> int:
    """Install pip; return the exit code."""
    if arguments:
        sys.stderr.write(__doc__)
        return 2
    found = wheels()
    target = sysconfig.get_path("purelib")
    known = bool(found) and not set(SPECIAL) & set(sys.executable)
    if known and all(map(is_plain, found)):
        bytecode.settle([unpack(wheel, target) for wheel in found], bytecode.cache_folder())
        write_scripts(sysconfig.get_path("scripts"))
        return 0
    sys.argv = ["ensurepip", "--upgrade", "--default-pip"]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    runpy.run_module("ensurepip", run_name="__main__", alter_sys=True)
    return 0
