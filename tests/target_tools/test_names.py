"""Names and URLs of packages."""

from __future__ import annotations

import pytest

from envbuilder.target_tools.names import release, without_credentials


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://me:pa@ss@site.example/own", "https://site.example/own"),
        ("https://site.example/t/to_k-en1/own", "https://site.example/own"),
        ("https://me@site.example:8443/t/x/a/t/y/b", "https://site.example:8443/a/t/y/b"),
        ("file:///t/own", "file:///t/own"),
        ("file:///srv/t/own/channel", "file:///srv/t/own/channel"),
        ("conda-forge", "conda-forge"),
        ("word", "word"),
    ],
)
def test_a_channels_url_is_told_without_what_is_secret(url: str, clean: str) -> None:
    assert without_credentials(url) == clean


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.28.1", (0, 28, 1)), ("2.7.8+cuda11", (2, 7, 8)), ("1.", (1,)), ("main", ()), ("", ())],
)
def test_the_release_numbers_of_a_version(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers
