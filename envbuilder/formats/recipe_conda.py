"""Channels and packages of conda as lines of a recipe."""

from __future__ import annotations

import re
from dataclasses import replace

from ..base import fits
from ..errors import Place
from ..knowledge.urls import ChannelName
from ..target_tools.names import normalize
from ..text import shown
from .environment_yml import EnvironmentFile
from .match_spec import MatchSpec, parse
from .packages import DEFAULTS, OWN_CHANNELS, CondaEntry, url_fault
from .recipe_draft import ImportDraft, KnownNames, add_runtime

# Where conda looks a channel's name up: https://docs.conda.io/projects/conda, "channel_alias".
_ALIAS = "https://conda.anaconda.org"
# The folder of conda's own channels: pkgs/main, pkgs/r. And what it calls what it built itself.
_OWN_FOLDER, _LOCAL = "pkgs/", "local"
_NO_DEFAULTS = "nodefaults"


def channels_of(asked: EnvironmentFile, known: KnownNames, draft: ImportDraft) -> list[str]:
    """Return the channels of a recipe; note those that it cannot use."""
    found = []
    for each in _bound_channels(asked).channels:
        url = each.rstrip("/")
        if url == _NO_DEFAULTS:
            continue
        if url == _LOCAL:
            draft.lost.append((None, "the channel local is the folder that conda builds into"))
            continue
        if "://" not in url and not url.startswith("/") and url not in known.named_channels:
            # conda's own way with a name that it does not know.
            url = f"{OWN_CHANNELS if url.startswith(_OWN_FOLDER) else _ALIAS}/{url}"
        name = known.channels.get(url, url)
        if fits(ChannelName, name):
            found.append(name)
        else:
            draft.lost.append((None, f"a recipe cannot use the channel {shown(each)}"))
    if not found:
        draft.lost.append((None, f"no channel is stated; using conda's default, {DEFAULTS}"))
        found.append(DEFAULTS)
    return list(dict.fromkeys(found))


def _bound_channels(asked: EnvironmentFile) -> EnvironmentFile:
    """Return what a file asks for, its channels before those of CHANNEL::NAME.

    conda takes such a package from its channel also where the list lacks it.
    """
    bound = (spec.rpartition("::")[0] for spec in asked.specs if re.match(r"[^\s\[]+::", spec))
    names = [re.sub(r"/(noarch|linux-\w+)$", "", each) for each in bound]
    channels = dict.fromkeys((*(asked.channels or (DEFAULTS,)), *names))
    return replace(asked, channels=tuple(channels)) if names else asked


def add_conda(draft: ImportDraft, text: str, place: Place | None, known: KnownNames) -> None:
    spec = _spec_of_url(text) if "://" in text and "::" not in text else parse(text)
    if spec is None or not spec.sayable:
        draft.lost.append((place, f"{shown(text)} is left out: a recipe cannot express it"))
        return
    for each in spec.unsaid:
        is_channel = each.startswith("channel ")
        words = f"that only {text} is from {each}" if is_channel else f"{each} of {text}"
        draft.lost.append((place, f"{shown(words, 240)} is left out"))
    component, bounds = known.conda.get(spec.name), spec.range
    draft.specs.setdefault(component or normalize(spec.name), spec.text)
    variant = known.pip_variants.get(spec.name)
    if component in known.built and bounds:
        add_runtime(draft, str(component), bounds, place)
    elif variant and bounds:
        # It requires the component itself, of this release.
        draft.stack.setdefault(variant, bounds)
        draft.conda.append(spec.text)
    elif component in draft.stack:
        draft.conda.append(spec.text)
    elif component and component not in known.tools and bounds:
        draft.stack[component] = bounds
        if spec.build:
            draft.conda.append(spec.text)
    elif component not in known.tools or spec.text != spec.name:
        draft.conda.append(spec.text)


def _spec_of_url(url: str) -> MatchSpec | None:
    if url_fault(url.partition("#")[0]):
        return None
    entry = CondaEntry(url.partition("#")[0])
    return MatchSpec(entry.name, f"=={entry.version}", entry.build, (f"address {entry.channel}",))
