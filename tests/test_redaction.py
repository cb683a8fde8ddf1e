"""What a report must not hold, wherever it stands."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuilder.redaction import redact

ENVIRON = {"HOME": "/home/alice", "USER": "alice", "REGISTRY_TOKEN": "s3cr3t-value"}
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nAAAA\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sent s3cr3t-value to it", "sent (left out) to it"),
        ("https://bob:pa@ss@host.org/x", "https://(left out)@host.org/x"),
        ("https://conda.org/t/tk-1/main/x.conda", "https://conda.org/t/(left out)/main/x.conda"),
        ("Authorization: Bearer abcdefgh123", "Authorization: (left out) (left out)"),
        ("curl -H 'bearer abcdefgh123'", "curl -H 'bearer (left out)'"),
        ("export DB_PASSWORD='two words' x", "export DB_PASSWORD=(left out) x"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": (left out), "n": 1}'),
        ("ghp_0123456789abcdefABCD", "(token left out)"),
        ("key AKIAABCDEFGHIJKLMNOP.", "key (token left out)."),
        (f"before\n{KEY}\nafter", "before\n(private key left out)\nafter"),
        (KEY[:50], "(private key left out)"),
        ("mail alice.b@site.example.org now", "mail (e-mail) now"),
        ("/home/alice/venv/bin", "~/venv/bin"),
        ("/home/alice2/venv of alice, alicesprings", "/home/alice2/venv of (user), alicesprings"),
    ],
)
def test_what_is_taken_out(text: str, left: str) -> None:
    assert redact(text, ENVIRON).text == left


@pytest.mark.parametrize(
    "text",
    [
        "undefined symbol: ompi_mpi_comm_world",
        "37 checks passed, key: value, author: somebody",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "/sw/installed/OpenMPI/4.0.5-GCC-10.2.0/lib/libmpi.so.40",
        "rank 3 (node17:4711): NCCL WARN Connect to 10.0.0.3<43210> failed",
        "package numpy==1.19.5 requires python>=3.6",
    ],
)
def test_what_a_support_desk_needs_stays(text: str) -> None:
    assert redact(text, ENVIRON) == (text, {})


def test_a_path_to_a_secret_is_none() -> None:
    environ = {"SSH_AUTH_SOCK": "/tmp/ssh-x/agent", "KEY_FILE": "/etc/key/file"}
    text = "SSH_AUTH_SOCK is /tmp/ssh-x/agent"
    assert redact(text, environ).text == text


def test_short_values_take_no_words_away() -> None:
    assert redact("mpi, root and al", {"MY_PASS": "mpi", "USER": "root"}).counts == {}


SECRETS = st.text(string.ascii_letters + string.digits + "+=_.*[\\", min_size=6, max_size=40)
AROUND = st.text(string.printable, max_size=60)


@given(secret=SECRETS, before=AROUND, after=AROUND)
def test_no_value_of_a_secret_variable_is_left(secret: str, before: str, after: str) -> None:
    found = redact(f"{before}{secret}{after}\nTOKEN={secret}\n{secret}", {"A_TOKEN": secret})
    assert secret not in found.text
    assert sum(found.counts.values()) >= 1
