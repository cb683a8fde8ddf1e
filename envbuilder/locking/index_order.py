"""Of several indexes of a plan, the first that has a distribution is the one for it.

pip takes the newest file that any of its indexes has: whoever puts a newer release of an internal
name on a public index would be installed (dependency confusion). So what pip chose is held against
the pages of the indexes, as envbuild itself reads them. A server may answer pip otherwise than
envbuild: a file that is on none of the pages is of unknown origin, and refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from ..errors import BuildError
from ..model.plan import Plan
from ..target_tools.files import file_name
from ..target_tools.names import normalize
from .failures import Refusal
from .index import IndexFiles, Link, is_secret_link, without_credentials
from .pip_report import pip_pins


class Pages(Protocol):
    """Where the pages of indexes are read; ``Index`` is what asks them."""

    @property
    def places(self) -> Sequence[str]: ...

    def files_of(self, names: Sequence[str]) -> Mapping[str, tuple[IndexFiles, ...]]: ...

    def find_links_of(self, name: str) -> Iterator[IndexFiles]: ...


@dataclass(frozen=True)
class Origin:
    """The index, or folder or page of find-links, that has a file, and its link there."""

    place: str
    link: Link


def check_indexes(
    plan: Plan,
    installs: Sequence[Mapping[str, Any]],
    pages: Pages,
    downloads: Path | None,
    say: Callable[[str], None],
) -> dict[str, Origin]:
    """Check the entries of pip's report against the pages of the indexes; return their origins.

    Raises Refusal for a pin and BuildError for another distribution that is not of the first index
    of the plan that has its name; both indexes are named. Raises BuildError for one that no place
    has for envbuild. *say* is told of indexes that give no sha256.

    Where the plan does not name several indexes, nothing stands before something else; then the
    origin is looked up only for files whose links hold a secret, or that pip had to download for
    its answer (they are in *downloads*), as most indexes give metadata with a hash.
    """
    chosen = {normalize(each["metadata"]["name"]): each for each in installs}
    required = frozenset(_required_urls(installs))
    chosen = {name: each for name, each in chosen.items() if not _is_users(each, required)}
    if len(plan.pip_indexes) < 2:
        chosen = {
            name: each
            for name, each in chosen.items()
            if _downloaded(each, downloads)
            or _is_secret(each)
            or (plan.pip_indexes and each.get("is_direct"))
        }
    if not chosen:
        return {}
    found = pages.files_of(list(chosen))
    origins = {name: _origin(plan, name, each, found[name], pages) for name, each in chosen.items()}
    unhashed: dict[str, list[str]] = {}
    for name, origin in origins.items():
        if origin.link.sha256 is None and origin.place in {each.place for each in found[name]}:
            unhashed.setdefault(origin.place, []).append(name)
    for place, names in unhashed.items():
        say(unhashed_note(place, names))
    return origins


def _origin(
    plan: Plan,
    name: str,
    entry: Mapping[str, Any],
    indexes: Sequence[IndexFiles],
    pages: Pages,
) -> Origin:
    """Return where a file is from. Raises what ``check_indexes`` does."""
    offered = _offered(entry, indexes)
    if offered and not (plan.pip_indexes and offered.place != indexes[0].place):
        return offered
    # Folders and pages of links come before all indexes.
    linked = _offered(entry, pages.find_links_of(name))
    if linked:
        return linked
    version = entry["metadata"]["version"]
    if offered:
        raise _refusal(plan, name, version, indexes[0].place, offered.place)
    url = without_credentials(entry["download_info"]["url"])
    raise BuildError(
        "index.file-not-offered",
        f"pip takes {name} {version} from {url}, but envbuild cannot find this file in the "
        f"configured places: {', '.join(pages.places) or 'none'}",
        "if the index answers only pip, remove it from pip-indexes in the recipe or site file, "
        "or from the configuration of pip",
        *_places_of(name, indexes),
    )


def _places_of(name: str, indexes: Iterable[IndexFiles]) -> Iterator[str]:
    there = [each.place for each in indexes]
    if there:
        yield f"other files of {name} are on {', '.join(there)}"


def _offered(entry: Mapping[str, Any], places: Iterable[IndexFiles]) -> Origin | None:
    """Return the first place that has a file: by its URL, else by its name and sha256."""
    url = entry["download_info"]["url"]
    sha256 = entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    address, name = _address(url), file_name(url)
    for place in places:
        for link in place.links:
            hashed = sha256 is not None and link.sha256 == sha256
            unhashed = sha256 is None or link.sha256 is None
            if (hashed and file_name(link.url) == name) or (
                (hashed or unhashed) and _address(link.url) == address
            ):
                return Origin(place.place, link)
    return None


def _address(url: str) -> str:
    """Return what is compared of a URL: it is quoted in more than one way, and a query may change.

    Whatever the query is, the same server sends what lies there.
    """
    parts = urlsplit(without_credentials(url))
    if "\\" in parts.netloc:
        return url  # parsers do not agree which host that is
    if parts.scheme == "file":
        path = Path(url2pathname(parts.path))
        return str(Path(os.path.realpath(path.parent), path.name))
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def _required_urls(installs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the URLs by which files that pip takes require others (PEP 508)."""
    for each in installs:
        for line in each["metadata"].get("requires_dist") or ():
            _, mark, url = line.partition("@")
            if mark:
                yield url.partition(" ; ")[0].strip()


def _is_users(entry: Mapping[str, Any], required: frozenset[str]) -> bool:
    """Whether a file is one that the user's own constraints name by its URL: no file requires it.

    A link that holds a secret is looked up all the same.
    """
    url = entry["download_info"]["url"]
    return bool(entry.get("is_direct")) and not _is_secret(entry) and not _among(url, required)


def _among(url: str, urls: Iterable[str]) -> bool:
    return _address(url) in {_address(each) for each in urls}


def _is_secret(entry: Mapping[str, Any]) -> bool:
    return is_secret_link(entry["download_info"]["url"])


def unhashed_note(place: str, names: Sequence[str]) -> str:
    """Return what to say of an index that gives no sha256 of some distributions."""
    listing = ", ".join(sorted(names))
    sent = "the lock contains the sha256 of the file that it sends now"
    return f"{place} has no sha256 of {listing}: {sent}"


def _downloaded(entry: Mapping[str, Any], downloads: Path | None) -> bool:
    name = file_name(entry["download_info"]["url"])
    return downloads is not None and (downloads / name).is_file()


def _refusal(plan: Plan, name: str, version: str, first: str, later: str) -> Exception:
    reason = (
        f"pip takes {name} {version} from {later}, but the earlier index {first} has {name} too"
    )
    pin = next((pin for pin in pip_pins(plan) if normalize(pin.locator) == name), None)
    if pin is not None:
        return Refusal(pin.component, pin.version, reason)
    return BuildError(
        "index.not-first",
        f"{reason}: envbuild uses the first index that has a package",
        f"state a release of {name} that the first index has: 'packages:' in the recipe",
        "or change the order of pip-indexes in the recipe or site file, or remove one",
    )
