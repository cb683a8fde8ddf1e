"""Which conda channels a recipe means, and in which order a site asks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..knowledge.channels import unrecorded
from ..model.recipe import Recipe
from .knowledge_cache import LoadedKnowledge
from .load import LoadedDocument
from .site_choice import ChosenSite


def settle_channels(
    recipe: LoadedDocument[Recipe],
    chosen: ChosenSite,
    knowledge: LoadedKnowledge,
    say: Callable[[str], None],
) -> tuple[LoadedDocument[Recipe], ChosenSite, LoadedKnowledge]:
    """Return recipe and site with one name for each channel, and knowledge that has all of them.

    The URL of a recorded channel is that channel, with all that is known of it, so that writing it
    otherwise neither accepts a licence nor passes by the site's copies. The site's order holds.
    """
    recorded, site = knowledge.value.channels, chosen.site
    names = {each.url: name for name, each in recorded.items()}
    # It is the same one without encryption.
    names |= {url.replace("https:", "http:", 1): name for url, name in names.items()} | names
    asked = [names.get(each, each) for each in recipe.value.channels]
    order = [names.get(each, each) for each in site.channel_order]
    channels = tuple(dict.fromkeys(sorted(asked, key=lambda each: _place(each, order))))
    if channels != tuple(dict.fromkeys(asked)):
        say(f"site {site.name} asks the conda channels in this order: {', '.join(channels)}")
    copies = {names.get(name, name): urls for name, urls in site.channels.items()}
    known = {**recorded, **{each: unrecorded(each) for each in channels if each not in recorded}}
    return (
        replace(recipe, value=recipe.value.model_copy(update={"channels": channels})),
        chosen._replace(site=site.model_copy(update={"channels": copies})),
        knowledge._replace(value=knowledge.value.model_copy(update={"channels": known})),
    )


def _place(name: str, order: list[str]) -> int:
    return order.index(name) if name in order else len(order)
