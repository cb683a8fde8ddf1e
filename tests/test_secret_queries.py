"""Which queries of URLs hold secrets."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from envbuilder.redaction.secret_queries import (
    is_secret_query,
    without_secret_queries,
    without_secret_query,
)

SECRETS = [
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20261126T000000Z&X-Amz-Signature=fe5f80",
    "x-amz-security-token=FwoGZXIvYXdzE",
    "X-Goog-Credential=x&X-Goog-Signature=1",
    "AWSAccessKeyId=AKIDEXAMPLE&Expires=1&Signature=vjbyPxybdZaNmGa",
    "GoogleAccessId=x&Expires=1&Signature=ab",
    "Expires=1&Policy=ey&Key-Pair-Id=K2",
    "sv=2022-11-02&sr=b&sig=abc%3D",
    "se=2026-11-26T00%3A00Z",
    "token=abc",
    "download=1&access_token=abc",
    "download=1;token=abc",
    "privateToken=abc",
    "private-token=abc",
    "key=abc",
    "apikey=abc",
    "auth=abc",
    "auth_token=abc",
    "password=abc",
    "t%6Fken=abc",
    "to?token=abc",
    f"id=ghp_{'a1' * 18}",
    f"id=glpat-{'a1' * 10}",
    "v=AKIAIOSFODNN7EXAMPLE",
    "v=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    f"npm=//registry/:_authToken=npm_{'a' * 36}",
    f"x=pypi-AgEIcHlwaS5vcmc{'a' * 70}",
]
HARMLESS = [
    "",
    "download=1",
    "version=2.4.6&python=cp311",
    "author=someone&keyword=mpi&monkey=1",
    "file=numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    f"sha256={'0a' * 32}",
    "md5=d41d8cd98f00b204e9800998ecf8427e",
    "date=2026-11-26T22:59:11Z",
    "id=6ba7b810-9dad-11d1-80b4-00c04fd430c8",
]


@pytest.mark.parametrize("query", SECRETS)
def test_a_secret_takes_its_whole_query_away(query: str) -> None:
    assert is_secret_query(query)
    url = "https://index.example/files/x-1.0.tar.gz"
    assert without_secret_query(f"{url}?{query}#sha256=00") == f"{url}#sha256=00"
    assert without_secret_queries(f"GET '{url}?{query}': 403 {url}?{query}") == (
        f"GET '{url}': 403 {url}"
    )


@pytest.mark.parametrize("query", HARMLESS)
def test_a_harmless_query_stays(query: str) -> None:
    url = f"https://index.example/files/x-1.0.tar.gz?{query}"
    assert without_secret_query(url) == url
    assert without_secret_queries(url) == url


def test_what_is_no_query_stays() -> None:
    for url in ("x", "https://h/x#a?token=1", "https://h/token=1/x", "file:///a?b", ""):
        assert without_secret_query(url) == url


@pytest.mark.parametrize("text", ["a" * 10**6, "://" * 10**5, "https://h/" + "a?" * 10**4])
def test_a_long_text_takes_no_long_time(text: str) -> None:
    start = time.process_time()
    without_secret_queries(text)
    assert time.process_time() - start < 2


def test_short_queries_load_no_detectors() -> None:
    program = (
        "import sys; from envbuilder.redaction.secret_queries import is_secret_query as q;"
        "assert q('token=1') and not q('download=1'); sys.exit('detect_secrets' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
