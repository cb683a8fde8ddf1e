"""What a report must not hold, wherever it stands."""

from __future__ import annotations

import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from envbuilder.redaction.redact import redact
from tests.redaction_forms import ALONE, HARMLESS, HEX, PASSWORD, PASSWORDS, TOKEN, TOKENS

ENVIRON = {"HOME": "/home/alice", "USER": "alice", "REGISTRY_TOKEN": "s3cr3t-value"}
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nAAAA\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sent s3cr3t-value to it", "sent (left out) to it"),
        ("https://bob:pa@ss@host.org/x", "https://(left out)@host.org/x"),
        ("https://conda.org/t/tk-1/main/x.conda", "https://conda.org/t/(left out)/main/x.conda"),
        ("Authorization: Bearer abcdefgh123", "Authorization: (left out)"),
        ("curl -H 'bearer abcdefgh123'", "curl -H 'bearer (left out)'"),
        ("export DB_PASSWORD='two words' x", "export DB_PASSWORD='(left out)' x"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": "(left out)", "n": 1}'),
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


def secrets() -> Iterator[tuple[str, str]]:
    """Yield a text and the secret in it."""
    yield from ((form.format(PASSWORD), PASSWORD) for form in PASSWORDS)
    yield from ((form.format(secret), secret) for form in TOKENS for secret in (TOKEN, HEX))
    for secret in ALONE:
        # How it begins may stay, as the address of a hook does.
        for form in ("{}", "got {}, stop", "x='{}'"):
            yield form.format(secret), secret[-16:]


@pytest.mark.parametrize(("text", "secret"), list(secrets()))
def test_no_part_of_a_secret_is_left(text: str, secret: str) -> None:
    left = redact(text, {}).text
    assert secret[:6] not in left
    assert secret[-6:] not in left
    assert redact(left, {}).text == left


@pytest.mark.parametrize("text", HARMLESS)
def test_what_a_support_desk_needs_stays(text: str) -> None:
    assert redact(text, {}) == (text, {})


def listed(name: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = yaml.load(
        text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    assert entries
    return entries


def test_forms_of_public_rules_leave_no_secret() -> None:
    left = {
        form["id"]
        for form in listed("secret_forms.yaml")
        if any(secret in redact(form["text"], {}).text for secret in form["secrets"])
    }
    known = {form["id"] for form in listed("secret_forms.yaml") if form.get("known-miss")}
    assert left == known


def test_harmless_texts_stay() -> None:
    texts = listed("harmless_texts.yaml")
    changed = {each["id"] for each in texts if redact(each["text"], {}).text != each["text"]}
    assert changed == {each["id"] for each in texts if each.get("known-change")}


# What the lists do not hold, of the same families.
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("the password is Kr4nich#7.", "the password is (left out)."),
        ("Password for 'https://me@host.example': Kr4nich7\n", None),
        ('{"user": "x", "key": "0123456789abcdef0123456789abcdef"}', None),
        ("api_secret = '''Kr4nich7'''", None),
        ('smtp.login(user="me", password="Kr4nich7")', None),
        ("poetry config pypi-token.lab Kr4nich7", "poetry config pypi-token.lab (left out)"),
        ("PASSWORD=Kr4nich#7\nsh: Kr4nich#7: not found", None),
    ],
)
def test_what_is_taken_out_of_forms_like_them(text: str, left: str | None) -> None:
    found = redact(text, {}).text
    assert found == left or left is None
    assert not any(secret in found for secret in ("Kr4nich", "0123456789abcdef"))


@pytest.mark.parametrize(
    "text",
    [
        "password is required",
        "the password was changed for u1032",
        "password is 8 characters or more",
        "password is case-sensitive",
        "Host key fingerprint is SHA256:abcdefgh",
        'input("Password: ", stream)',
        '{"sha": 1, "key": "0123456789abcdef0123456789abcdef"}',
        "passwd: all authentication tokens updated successfully.",
        "first_pass = fuse_convolutions",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7vbqajDhA9Zx8qWmR1tYp5Lk2",
    ],
)
def test_what_resembles_them_stays(text: str) -> None:
    assert redact(text, {}) == (text, {})


def test_logs_of_others_stay_as_they_are() -> None:
    logs = sorted((Path(__file__).parent / "diagnosis" / "logs").glob("*.log"))
    assert len(logs) > 50
    for log in logs:
        text = log.read_text(encoding="utf-8")
        assert set(redact(text, {}).counts) <= {"e-mail addresses"}, log.name


def cpu_seconds(text: str) -> float:
    """Return what it takes to redact a text, in seconds of CPU."""
    begin = time.process_time()
    redact(text, ENVIRON)
    return time.process_time() - begin


# Of letters; of what patterns begin with, over and over.
LINES = (
    "a",
    "aB3",
    "token",
    "password=",
    'password="',
    "a@",
    "://",
    "curl -u ",
    "bearer ",
    "=",
    "a.",
    "ssh-rsa AAAA ",
    'x.login("',
    'password="\\"',
    '"key":"',
    "password for ",
    "api key=",
    "PASSWORD=aB3#aB3#",
)


@pytest.mark.parametrize("part", LINES)
def test_a_long_line_takes_no_longer_than_short_ones(part: str) -> None:
    line = part * (100_000 // len(part)) + "\n"
    assert cpu_seconds(line) < 2


@pytest.mark.long
def test_ten_megabytes_of_long_lines_take_less_than_five_seconds() -> None:
    letters = (string.ascii_letters * 2000)[:100_000]
    assert cpu_seconds(f"{letters}\n{'x' * 100_000}\n" * 50) < 5


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
