"""MatchSpecs of conda as recipes write them: NAME, a version, a build.

https://docs.conda.io/projects/conda, "Package match specifications". py-rattler reads them too, but
is optional, and an import shall work without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import fits
from ..knowledge.ranges import check_range
from ..knowledge.terms import PlainVersion
from ..model.recipe import CondaSpec

_PARTS = re.compile(
    r"(?:(?P<channel>[^\s\[\]]+)::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9_.+-]*)"
    r"(?P<rest>[^\[\]]*)(?:\[(?P<keys>[^\[\]]*)\])?"
)
_EXACT = re.compile(r"={1,2}\s*(?P<version>[^\s=<>!~,|]+)\s*=\s*(?P<build>[^\s=]+)")
_KEY = re.compile(
    r"\s*(?P<name>\w+)\s*=\s*(?:'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"|(?P<bare>[^,]*))"
)
_OPERATOR = re.compile(r"(==|!=|<=|>=|~=|=|<|>)\s*")
ANY = "*"


@dataclass(frozen=True)
class MatchSpec:
    """A package that is asked for. ``version``: ``*`` or bounds, ``build``: None for any.

    ``unsaid``: what it says beside these, a text each.
    """

    name: str
    version: str = ANY
    build: str | None = None
    unsaid: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The spec as a recipe has it under ``conda-packages``."""
        if self.build:
            return f"{self.name} {self.version} {self.build}"
        return self.name if self.version == ANY else f"{self.name} {self.version}"

    @property
    def sayable(self) -> bool:
        """Whether a recipe can hold it."""
        return fits(CondaSpec, self.text)

    @property
    def range(self) -> str | None:
        """The version as a range of a stack; None where it is none, or of no plain versions."""
        if self.version == ANY:
            return ANY
        bounds = [_bound(each) for each in self.version.split(",")]
        text = ",".join(filter(None, bounds))
        try:
            return check_range(text) if all(bounds) and "|" not in self.version else None
        except ValueError:
            return None


def _bound(text: str) -> str | None:
    """Return one bound in PEP 440's words: ``=1.2`` is ``==1.2.*`` there."""
    match = _OPERATOR.match(text)
    version = text[match.end() :] if match else ""
    if match is None or not fits(PlainVersion, version.removesuffix(".*")):
        return None
    if match[1] == "=":
        return f"=={version.removesuffix('.*')}.*"
    return f"{match[1]}{version}"


def parse(text: str) -> MatchSpec | None:
    """Return what a MatchSpec says; None where it is none."""
    parts = _PARTS.fullmatch(text.strip())
    if parts is None:
        return None
    unsaid = [f"channel {parts['channel']}"] if parts["channel"] else []
    version, build, more = _version_and_build(parts["rest"].strip())
    unsaid += more
    for key, value in _keys(parts["keys"] or ""):
        if key == "version":
            version = _bounds(value)
        elif key == "build":
            build = value
        else:
            unsaid.append(f"{key}={value}")
    return MatchSpec(parts["name"].lower(), version, build, tuple(unsaid))


def _version_and_build(rest: str) -> tuple[str, str | None, list[str]]:
    exact = _EXACT.fullmatch(rest)
    if exact:
        # With a build the version is that very one, with one '=' too.
        return f"=={exact['version']}", exact["build"], []
    words = re.sub(r"\s*([,|])\s*", r"\1", _OPERATOR.sub(r"\1", rest)).split()
    version = _bounds(words[0]) if words else ANY
    return version, words[1] if len(words) > 1 else None, words[2:]


def _bounds(text: str) -> str:
    """Return bounds, each with its operator: 1.2 is ==1.2, and 1.2.* is =1.2."""
    return re.sub(r"[^,|]+", lambda match: _with_operator(match[0].strip()), text.strip())


def _with_operator(bound: str) -> str:
    if bound == ANY:
        return bound
    match = _OPERATOR.match(bound)
    operator, version = (match[1], bound[match.end() :]) if match else ("==", bound)
    if operator in ("=", "==") and version.endswith("*"):
        return f"={version.rstrip('*').rstrip('.')}"
    return f"{operator}{version}"


def _keys(text: str) -> list[tuple[str, str]]:
    return [
        (match["name"], match["one"] or match["two"] or (match["bare"] or "").strip())
        for match in _KEY.finditer(text)
    ]
