"""Packages of channels that are signed: verified with the keys that site and recipe state alone."""

from __future__ import annotations

import functools
import json
import mmap
import shutil
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from channel_tools import GLIBC, engine, package, pip, plan, python

from envbuilder.channels.listed import Listed, Target, look_up
from envbuilder.channels.signatures import canonical
from envbuilder.channels.solve import archives, solve
from envbuilder.errors import BuildError, Place
from envbuilder.model.channels import Channel
from envbuilder.model.conda_lock_check import CONDA_CHECKS
from envbuilder.model.plan import Lock, Plan
from envbuilder.model.signatures import signature_lines, unverified
from envbuilder.target_tools import content_trust
from tests.conda_channel import public_key, sign_channel, write_channel
from tests.serving import serving_by

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PACKAGES = [python("3.11.7"), package("numpy", "1.26.4", "python >=3.11"), pip()]
NUMPY = "numpy-1.26.4-0.conda"
OURS, THEIRS = (Ed25519PrivateKey.from_private_bytes(bytes([each]) * 32) for each in (1, 2))


OUR_KEY, THEIR_KEY = (public_key(each) for each in (OURS, THEIRS))


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_channel(tmp_path_factory.mktemp("channels") / "channel", PACKAGES)


@pytest.fixture
def channel(unsigned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unsigned, tmp_path / "channel"))


class Heard(SimpleHTTPRequestHandler):
    asked: list[str]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()


@pytest.fixture(params=["folder", "server"])
def where(channel: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, list[str]]]:
    """Return the URL of the channel, and what its server is asked."""
    if request.param == "folder":
        yield channel.as_uri(), []
        return
    handler = type("Handler", (Heard,), {"asked": []})
    with serving_by(functools.partial(handler, directory=str(channel))) as url:  # type: ignore[arg-type]
        yield url, handler.asked


def planned(url: str, *keys: str) -> Plan:
    asked = plan([url], python="3.11.7", numpy="1.26.4")
    (one,) = asked.channels
    return asked.model_copy(update={"channels": (one.model_copy(update={"keys": keys}),)})


def locked(asked: Plan, folder: Path) -> Lock:
    return Lock(plan=asked, artifacts=solve(asked, GLIBC, {}, engine(folder)))


def test_what_is_signed_with_a_stated_key_is_verified_and_the_lock_says_so(
    channel: Path, where: tuple[str, list[str]], tmp_path: Path
) -> None:
    sign_channel(channel, OURS, THEIRS)
    url, heard = where
    lock = locked(planned(url, OUR_KEY), tmp_path)
    assert {(each.signed_by, each.verified_by) for each in lock.conda_packages} == {
        (tuple(sorted([OUR_KEY, THEIR_KEY])), OUR_KEY)
    }
    assert signature_lines(lock) == (f"c0: signatures verified with {OUR_KEY}",)
    assert [*unverified(lock)] == []
    # Shards have no signatures.
    assert not [each for each in heard if "shards" in each]


def test_what_a_list_names_is_read_with_its_signatures(channel: Path, tmp_path: Path) -> None:
    sign_channel(channel, OURS)
    url = channel.as_uri()
    held = Channel(url=url, recorded="2026-11-01", sources=("a test",), packages={})
    target = Target("x86_64", keyed=True)
    files = {
        "pip": "noarch/pip-24.0-pyh0.conda",
        "python": "linux-64/python-3.11.7-0_cpython.conda",
    }
    listed = [
        Listed(name, file.partition("/")[0], f"{url}/{file}", None, None, Place("a list"))
        for name, file in files.items()
    ]
    found = look_up(listed, {"c0": held}, target, {}, engine(tmp_path), print)
    locked = archives(planned(url, OUR_KEY), found.records, {})
    assert [(each.name, each.verified_by) for each in locked] == [(n, OUR_KEY) for n in files]


def test_a_channel_without_signatures_is_said_once(channel: Path, tmp_path: Path) -> None:
    lock = locked(planned(channel.as_uri()), tmp_path)
    assert {(each.signed_by, each.verified_by) for each in lock.conda_packages} == {((), None)}
    line = "c0: publishes no signatures; its packages are those of their sha256 alone"
    assert signature_lines(lock) == (line,)


def test_a_key_that_only_the_channel_names_verifies_nothing(
    channel: Path, where: tuple[str, list[str]], tmp_path: Path
) -> None:
    sign_channel(channel, OURS)
    lock = locked(planned(where[0]), tmp_path)
    assert {(each.signed_by, each.verified_by) for each in lock.conda_packages} == {
        ((OUR_KEY,), None)
    }
    (line,) = signature_lines(lock)
    assert line == (
        "c0: publishes signatures (3 of 3 packages), and neither site nor recipe states a key "
        "(channel-keys): none was verified"
    )


def numpys(then: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """Return what changes the one repodata with numpy."""
    return lambda said: then(said) if then and NUMPY in said["packages.conda"] else None


def other_content(said: Any) -> None:
    said["packages.conda"][NUMPY]["size"] += 1


def of_another_file(said: Any) -> None:
    """Pass off an older record, signed as well, as that of the file."""
    other = {**said["packages.conda"][NUMPY], "version": "1.0", "sha256": "5" * 64}
    signature = {"signature": OURS.sign(canonical(other)).hex()}
    said["packages.conda"][NUMPY] = {**other, "version": "1.26.4"}
    said["signatures"][NUMPY] = {OUR_KEY: signature}


def by_openpgp(said: Any) -> None:
    said["signatures"][NUMPY][OUR_KEY]["other_headers"] = "04001608001d"


def short(said: Any) -> None:
    said["signatures"][NUMPY][OUR_KEY]["signature"] = "ab"


def no_text(said: Any) -> None:
    said["signatures"][NUMPY][OUR_KEY] = 5


def none_of_one(said: Any) -> None:
    del said["signatures"][NUMPY]


def none_that_is_whole(said: Any) -> None:
    said["signatures"][NUMPY] = [OUR_KEY]


WRONG = f"its signature with key {OUR_KEY} is wrong"
NONE = "the channel has no signature of it"


@pytest.mark.parametrize(
    ("keys", "then", "why"),
    [
        ((OURS,), other_content, WRONG),
        ((OURS,), of_another_file, WRONG),
        ((OURS, THEIRS), other_content, WRONG),
        ((OURS,), by_openpgp, WRONG),
        ((OURS,), short, WRONG),
        ((OURS,), no_text, WRONG),
        ((OURS,), none_of_one, NONE),
        ((OURS,), none_that_is_whole, NONE),
        ((), None, NONE),
        ((THEIRS,), None, f"it is signed with {THEIR_KEY}, which nobody states"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_wrong_or_missing_signature_is_refused_with_file_and_key(
    channel: Path,
    tmp_path: Path,
    keys: tuple[Ed25519PrivateKey, ...],
    then: Callable[[Any], None] | None,
    why: str,
) -> None:
    sign_channel(channel, *keys, then=numpys(then))
    with pytest.raises(BuildError) as caught:
        solve(planned(channel.as_uri(), OUR_KEY), GLIBC, {}, engine(tmp_path))
    (problem,) = caught.value.problems
    assert problem.message.startswith(f"{channel.as_uri()}/")
    assert problem.message.endswith(f".conda is refused: {why}")
    # Of several any one is named.
    assert NUMPY in problem.message or then is None
    assert OUR_KEY in problem.hints[0]


def test_a_channel_that_is_spelt_otherwise_does_not_pass_by_its_keys(
    channel: Path, tmp_path: Path
) -> None:
    served = functools.partial(SimpleHTTPRequestHandler, directory=str(channel))
    with serving_by(served) as url:  # type: ignore[arg-type]
        spelt = url.replace("localhost", "LOCALHOST")
        with pytest.raises(BuildError) as caught:
            locked(planned(spelt, OUR_KEY), tmp_path)
        lock = locked(planned(spelt), tmp_path)
    (problem,) = caught.value.problems
    assert f"is of {url}, and no channel of the plan is spelt so" in problem.message
    keyed = Lock(plan=planned(spelt, OUR_KEY), artifacts=lock.artifacts)
    assert f"{NUMPY} is of no channel of the plan, which states keys" in [*unverified(keyed)]


def test_a_record_that_is_signed_and_not_that_of_the_file_is_refused(
    channel: Path, tmp_path: Path
) -> None:
    """The name of a file is not signed: a mirror could have an older one under it."""
    asked = planned(channel.as_uri(), OUR_KEY)
    sign_channel(channel, OURS)
    answering = engine(tmp_path)
    records = json.loads((channel / "linux-64" / "repodata.json").read_text())

    class Changing(type(answering)):  # type: ignore[misc]
        def _answer(self, request: Any) -> dict[str, Any]:
            answer: dict[str, Any] = super()._answer(request)
            for each in answer["records"]:
                if each["name"] == "numpy":
                    other = "python-3.11.7-0_cpython.conda"
                    each["signed"] = records["packages.conda"][other]
                    each["signatures"] = records["signatures"][other]
            return answer

    with pytest.raises(BuildError) as caught:
        solve(asked, GLIBC, {}, Changing(answering.environ, answering.cache))
    (problem,) = caught.value.problems
    assert "its signed record has another name, version, build, sha256, depends" in problem.message


def test_a_lock_whose_packages_were_not_verified_contradicts_the_keys_of_its_plan(
    channel: Path, tmp_path: Path
) -> None:
    sign_channel(channel, OURS)
    lock = locked(planned(channel.as_uri()), tmp_path)
    keyed = Lock(plan=planned(channel.as_uri(), OUR_KEY), artifacts=lock.artifacts)
    said = [text for check in CONDA_CHECKS for text in check(keyed)]
    assert f"{NUMPY} is not verified with a key that is stated for its channel" in said
    assert len(said) == 3
    made_up = tuple(
        each.model_copy(update={"verified_by": THEIR_KEY}) for each in lock.conda_packages
    )
    assert f"{NUMPY} is verified with a key that it is not signed with" in [
        *unverified(Lock(plan=lock.plan, artifacts=made_up))
    ]


@pytest.mark.parametrize("spaces", [None, 2])
def test_signatures_are_found_wherever_an_index_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spaces: int | None
) -> None:
    """In whichever part of it they begin or end, as if it had been parsed whole."""
    for name in ("PART", "LONGEST"):
        monkeypatch.setattr(content_trust, name, mmap.ALLOCATIONGRANULARITY)
    ends = [".conda", ".tar.bz2"]
    names = [
        f"p{number}-{'1.' * (number % 50)}0-h_{number}{ends[number % 2]}" for number in range(900)
    ]
    index = {
        "info": {
            "subdir": "linux-64",
            names[3]: "no object",
            "text": f'"{names[4]}": {{"a": {{}}}}',
        },
        "packages": {
            each: {"name": each, "depends": [names[0]] * (number % 7), "text": "\u00e9"}
            for number, each in enumerate(names)
        },
        "signatures": {each: {"a" * 64: {"signature": each}} for each in names[::3]},
    }
    text = json.dumps(index, ensure_ascii=False, indent=spaces)
    (tmp_path / "repodata.json").write_text(text, encoding="utf-8")
    wanted = [*names[::2], "other-1-0.conda"]
    found = content_trust.signatures_of(tmp_path.as_uri(), tmp_path, wanted)
    assert found == {
        each: (index["signatures"].get(each, {}), index["packages"].get(each, {}))
        for each in wanted
    }
