"""Of several indexes of a plan, the first that has a distribution is the one for it.

pip takes the newest file that any of its indexes has: whoever puts a newer release of an internal
name on a public index would be installed (dependency confusion). So what pip chose is held against
the pages of the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import BuildError
from ..model.plan import Plan
from ..target_tools.files import file_name
from ..target_tools.names import normalize
from .failures import Refusal
from .index import IndexFiles, without_credentials
from .pip_report import pip_pins


class Pages(Protocol):
    """Where the pages of indexes are read; ``Index`` is what asks them."""

    def files_of(self, names: Sequence[str]) -> Mapping[str, tuple[IndexFiles, ...]]: ...


def check_indexes(
    plan: Plan,
    installs: Sequence[Mapping[str, Any]],
    pages: Pages,
    downloads: Path | None,
    say: Callable[[str], None],
) -> None:
    """Check the entries of pip's report against the pages of the indexes.

    Raises Refusal for a pin and BuildError for another distribution that is not of the first index
    of the plan that has its name; both indexes are named. *say* is told of indexes that give no
    sha256; where the plan does not name several that is looked up only for files that pip had to
    download for its answer (they are in *downloads*), as most indexes give metadata with a hash.
    """
    chosen = {normalize(each["metadata"]["name"]): each for each in installs}
    if len(plan.pip_indexes) < 2:
        chosen = {name: each for name, each in chosen.items() if _downloaded(each, downloads)}
    if not chosen:
        return
    found = pages.files_of(list(chosen))
    unhashed: dict[str, list[str]] = {}
    for name, each in chosen.items():
        url = without_credentials(each["download_info"]["url"])
        offering = _offering(url, found[name])
        if offering is None:
            continue  # of a folder, which comes before all indexes
        if plan.pip_indexes and offering is not found[name][0]:
            raise _refusal(plan, name, each["metadata"]["version"], found[name][0], offering)
        if offering.files.get(url, "") is None:
            unhashed.setdefault(offering.place, []).append(name)
    for place, names in unhashed.items():
        say(unhashed_note(place, names))


def _offering(url: str, indexes: Sequence[IndexFiles]) -> IndexFiles | None:
    """Return the first index that has a file, by its URL, else (URLs are quoted in more than one
    way) by its name.
    """
    by_url = (index for index in indexes if url in index.files)
    names = ((index, {file_name(each) for each in index.files}) for index in indexes)
    by_name = (index for index, there in names if file_name(url) in there)
    return next(by_url, None) or next(by_name, None)


def unhashed_note(place: str, names: Sequence[str]) -> str:
    """Return what to say of an index that gives no sha256 of some distributions."""
    listing = ", ".join(sorted(names))
    return f"{place} gives no sha256 of {listing}: the lock holds that of the file it sent now"


def _downloaded(entry: Mapping[str, Any], downloads: Path | None) -> bool:
    name = file_name(entry["download_info"]["url"])
    return downloads is not None and (downloads / name).is_file()


def _refusal(
    plan: Plan, name: str, version: str, first: IndexFiles, later: IndexFiles
) -> Exception:
    reason = (
        f"pip takes {name} {version} from {later.place}, but {first.place}, which comes before it, "
        f"has {name} too"
    )
    pin = next((pin for pin in pip_pins(plan) if normalize(pin.locator) == name), None)
    if pin is not None:
        return Refusal(pin.component, pin.version, reason)
    return BuildError(
        f"{reason}: the first index that has a name is the one for it",
        f"'packages:' in the recipe can name a release of {name} that the first one has",
        "pip-indexes in the recipe or site file can name the indexes in another order, or one less",
    )
