"""The Python that wheels are chosen for, where it cannot be asked itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# The oldest glibc that platform tags speak of, and the old names of three: PEP 513, 571, 599, 600.
# Other architectures begin with manylinux2014.
_FLOOR_X86 = 5
_FLOOR = 17
_OLD_NAMES = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
_X86 = frozenset({"x86_64", "i686"})

# Every site's glibc is at least this: that of CentOS and RHEL 7, manylinux2014.
OLDEST_GLIBC = "2.17"


@dataclass(frozen=True)
class TargetPlatform:
    """A CPython on Linux: its version, the machine's architecture, its glibc."""

    python: str
    arch: str
    glibc: str = OLDEST_GLIBC

    @property
    def series(self) -> tuple[int, int]:
        major, minor = _release(self.python)[:2]
        return major, minor

    def markers(self) -> dict[str, str]:
        """Return the environment that requirements' markers are evaluated in (PEP 508).

        What nobody knows of a machine that is not here is empty, as PEP 508 wants it.
        """
        full = ".".join(str(number) for number in _release(self.python))
        return {
            "implementation_name": "cpython",
            "implementation_version": full,
            "os_name": "posix",
            "platform_machine": self.arch,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": full,
            "python_version": "{}.{}".format(*self.series),
            "sys_platform": "linux",
        }

    def pip_options(self) -> list[str]:
        """Return what makes pip choose wheels for this Python, best platform first."""
        digits = "{}{}".format(*self.series)
        # Until 3.8 the tag told the memory allocator: https://bugs.python.org/issue36707
        abi = f"cp{digits}m" if self.series < (3, 8) else f"cp{digits}"
        python = self.markers()["python_full_version"]
        words = ["--python-version", python, "--implementation", "cp", "--abi", abi]
        for platform in self._platforms():
            words += ["--platform", platform]
        return words

    def _platforms(self) -> Iterator[str]:
        # What a site built for itself is preferred, as packaging and pip do.
        yield f"linux_{self.arch}"
        newest = _release(self.glibc)[1]
        for minor in range(newest, (_FLOOR_X86 if self.arch in _X86 else _FLOOR) - 1, -1):
            yield f"manylinux_2_{minor}_{self.arch}"
            if minor in _OLD_NAMES:
                yield f"{_OLD_NAMES[minor]}_{self.arch}"


def _release(version: str) -> tuple[int, int, int]:
    # lazy import: 25 ms
    from packaging.version import Version

    release = Version(version)
    return release.major, release.minor, release.micro
