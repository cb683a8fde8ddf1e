"""Markers of requirements on Linux: https://packaging.python.org, "Dependency specifiers"."""

from __future__ import annotations

import re

from ..knowledge.channels import SUBDIRS

# The variables of markers that every cluster has in common.
_LINUX = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"}
# Selectors of conda-build that are not architectures, as variables of markers.
_SYSTEMS = {"unix": ("os_name", "posix"), "win": ("os_name", "nt")}
_SYSTEMS |= {"linux": ("sys_platform", "linux"), "osx": ("sys_platform", "darwin")}
_SELECTOR = re.compile(r"\b(not\s+)?(unix|win|linux|osx|x86_64|aarch64|ppc64le|s390x|arm64)\b")
_PYTHONS = tuple(f"3.{minor}" for minor in range(6, 20))


def applies(text: str, subdir: str | None = None) -> bool | None:
    """Return whether a marker is true on Linux; None: that depends on the Python, or on more.

    *subdir*: the architecture as conda names it; None: any.
    """
    # lazy import: 36 ms
    from packaging.markers import InvalidMarker, Marker

    if not text.strip():
        return True
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
    variables = set(re.findall(r"[a-z_]+", unquoted)) - {"and", "or", "in", "not"}
    try:
        values = {
            Marker(text).evaluate(
                {**_LINUX, "platform_machine": arch, "python_version": python}
                | {"python_full_version": f"{python}.0"}
            )
            for arch, own in SUBDIRS.items()
            for python in _PYTHONS
            if subdir in (None, own)
        }
    except (InvalidMarker, ValueError):  # such as sys_platform ~= 'linux'
        return None
    is_known = variables <= {*_LINUX, "platform_machine"}
    return values.pop() if len(values) == 1 and (is_known or values == {False}) else None


def selected(selector: str, subdir: str) -> bool | None:
    """Return whether a selector of conda-build is true; None: that depends on more."""

    def marker(found: re.Match[str]) -> str:
        variable, value = _SYSTEMS.get(found[2], ("platform_machine", found[2]))
        return f"{variable} {'!=' if found[1] else '=='} '{value}'"

    return applies(_SELECTOR.sub(marker, selector), subdir)
