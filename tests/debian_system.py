"""A folder that has the records of a Debian, and no program of one."""

from __future__ import annotations

from pathlib import Path

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
PACKAGES = {
    "dpkg": "1.21.22",
    "libc6": "2.36-9+deb12u13",
    "python3": "3.11.2-1+b1",
    "python3.11-venv": "3.11.2-6+deb12u6",
    "g++": "4:12.2.0-3",
    "openmpi-bin": "4.1.4-3+b1",
    "python3-numpy": "1:1.24.2-1+deb12u1",
    "python3-setuptools": "66.1.1-1+deb12u2",
}


def system(
    folder: Path,
    packages: dict[str, str] | None = None,
    arch: str = "amd64",
    release: str = DEBIAN,
    more: str = "",
) -> Path:
    """Make a folder that has the records of a system, and return it."""
    records = (
        f"Package: {name}\nStatus: install ok installed\nArchitecture: {arch}\nVersion: {version}\n"
        f"Description: a package\n Status: deinstall\n"
        for name, version in (PACKAGES if packages is None else packages).items()
    )
    status = folder / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("\n".join([*records, more]))
    (folder / "etc").mkdir()
    (folder / "etc/os-release").write_text(release)
    return folder
