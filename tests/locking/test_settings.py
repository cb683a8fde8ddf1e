"""pip's configuration, from what ``pip config list`` prints."""

from __future__ import annotations

from locking_tools import plan
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from envbuilder.locking.settings import PipSettings, read_settings


def test_nothing_configured_is_pips_default() -> None:
    assert read_settings("", plan()) == PipSettings(indexes=(PYPI_SIMPLE_ENDPOINT,))


LISTING = r"""
:env:.default-timeout='180'
:env:.find-links='/srv/wheels'
download.cert='/only/for/download.pem'
global.cert='/etc/ca.pem'
global.extra-index-url='\nhttps://second.example/simple\nfile:///srv/index/simple'
global.find-links='/not/taken'
global.index-url='https://user:word@first.example/simple'
global.trusted-host='first.example second.example:8443'
install.retries='2'
install.timeout='7'
warning: this is no setting
"""


def test_sections_lists_and_what_wins() -> None:
    assert read_settings(LISTING, plan()) == PipSettings(
        indexes=(
            "https://user:word@first.example/simple",
            "https://second.example/simple",
            "file:///srv/index/simple",
        ),
        find_links=("/srv/wheels",),
        cert="/etc/ca.pem",
        trusted_hosts=("first.example", "second.example:8443"),
        timeout=7.0,
        retries=2,
    )


def test_the_plans_indexes_replace_the_configured_ones_and_its_folders_join() -> None:
    own = plan(
        pip_indexes=("https://mirror.example/simple", "https://more.example/simple"),
        find_links=("file:///apps/wheels",),
    )
    settings = read_settings(LISTING, own)
    assert settings.indexes == (
        "https://mirror.example/simple",
        "https://more.example/simple",
    )
    assert settings.ordered
    assert settings.find_links == ("/srv/wheels", "file:///apps/wheels")


def test_without_an_index_there_is_none() -> None:
    settings = read_settings("global.no-index='true'\nglobal.find-links='/w'\n", plan())
    assert (settings.indexes, settings.find_links) == ((), ("/w",))
