"""Channels by name, URL or folder; a site's copies and its order; and no credentials anywhere."""

from __future__ import annotations

import functools
import io
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from channel_tools import LiveEngine, package, pip, python
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from test_contents import KNOWN, Answer, Quiet, channel, rows

from envbuilder.conda.contents import read_channels
from envbuilder.conda.engine import Engine
from envbuilder.documents.load import load_recipe, load_site
from envbuilder.errors import DocumentError, NoSolutionError
from envbuilder.knowledge.urls import ChannelUrl
from envbuilder.model.plan import Plan
from envbuilder.reporter import Report
from envbuilder.target_tools.conda_engine import clean
from envbuilder.workflow import channels as channels_command
from envbuilder.workflow.context import Context
from envbuilder.workflow.entries import entries
from envbuilder.workflow.load import load, plan_recipe
from envbuilder.workflow.plan_options import PlanOptions
from tests.conda_channel import write_channel
from tests.serving import serving_by
from tests.shipped import read_shipped

PY = "python >=3.11,<3.12.0a0"
BASE = (
    python("3.11.7"),
    package("mpi4py", "4.0.1", PY, "mpich"),
    package("mpich", "4.2.3"),
    pip(),
)
STACK = {"python": "*", "numpy": "*", "mpi4py": "*", "mpich": "*"}
LICENCE = {"variable": "ACCEPT_IT", "value": "yes", "summary": "its licence"}


@pytest.fixture(autouse=True)
def live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_command, "Engine", LiveEngine)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two whole channels, of which one has an older numpy."""
    top = tmp_path_factory.mktemp("channels")
    versions = {"new": "1.26.4", "old": "1.20.1"}
    return {
        name: write_channel(top / name, [*BASE, package("numpy", version, PY)])
        for name, version in versions.items()
    }


@pytest.fixture(scope="module")
def served(folders: dict[str, Path]) -> Iterator[str]:
    with serving_by(functools.partial(Quiet, directory=str(folders["new"]))) as url:  # type: ignore[arg-type]
        yield url


def planned(
    folder: Path,
    asked: list[str],
    *,
    recorded: Mapping[str, str] = {},
    stack: Mapping[str, str] = {},
    more: Mapping[str, object] = {},
    **site: object,
) -> tuple[Plan, str]:
    """Plan a recipe of these channels for a site; return the plan, and what was said.

    *more*: what else the recipe has.
    """
    (folder / "knowledge").mkdir(exist_ok=True, parents=True)
    (folder / "sites").mkdir(exist_ok=True)
    about = {"recorded": "2026-11-01", "sources": ["a test"], "packages": {}, "licence": LICENCE}
    known = {name: {**about, "url": url} for name, url in recorded.items()}
    said = {"schema": 1, "recorded": "2026-11-01", "source": "a test", "channels": known}
    (folder / "knowledge" / "versions.yaml").write_text(json.dumps(said), encoding="utf-8")
    recipe = {"schema": 1, "name": "small", "summary": "A test", "arch": ["x86_64"]}
    recipe |= {"backend": "conda", "channels": asked, "stack": {**STACK, **stack}, **more}
    (folder / "small.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    ours = {"schema": 1, "name": "ours", "summary": "A site", "arch": ["x86_64"], **site}
    (folder / "sites" / "ours.yaml").write_text(json.dumps(ours), encoding="utf-8")
    text = io.StringIO()
    report = Report(text, text, as_json=False)
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    context = Context(environ, folder, lambda: datetime.now(timezone.utc), report, (folder,))
    loaded = load(PlanOptions("small", site="ours"), context)
    return plan_recipe(loaded, context).plan, text.getvalue()


def numpy(plan: Plan) -> tuple[str, str]:
    pin = plan.pin("numpy")
    assert pin
    return pin.version, pin.locator


@pytest.mark.parametrize("how", ["URL", "URL with a slash", "folder"])
def test_a_recipe_names_a_channel_by_its_url_or_folder(
    folders: dict[str, Path], served: str, tmp_path: Path, how: str
) -> None:
    written, url = {
        "URL": (served, served),
        "URL with a slash": (f"{served}/", served),
        "folder": (str(folders["new"]), folders["new"].as_uri()),
    }[how]
    plan, _ = planned(tmp_path, [written])
    assert [(each.name, each.url, each.canonical) for each in plan.channels] == [(url, url, None)]
    assert numpy(plan) == ("1.26.4", f"{url}/numpy")


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "slash": lambda url: f"{url}/",
    "capitals": lambda url: url.replace("localhost", "LocalHost"),
    "dot": lambda url: url.replace("localhost", "localhost."),
    "folders": lambda url: f"{url}/./a/..//",
    "escaped": lambda url: f"{url}/%2e/%61/%2E.",
}


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.sample(2)
def test_the_url_of_a_recorded_channel_is_that_channel(
    folders: dict[str, Path], served: str, tmp_path: Path, how: str
) -> None:
    # Else its licence would be accepted by writing the channel another way.
    written = SPELLINGS[how](served)
    copies = {written: folders["old"].as_uri()}
    plan, _ = planned(tmp_path, [written], recorded={"known": served}, channels=copies)
    (one,) = plan.channels
    assert (one.name, one.url, one.canonical) == ("known", folders["old"].as_uri(), served)
    assert one.accept == {"ACCEPT_IT": "yes"}
    assert numpy(plan) == ("1.20.1", "known/numpy")


def test_a_recorded_channel_without_encryption_is_that_channel(
    folders: dict[str, Path], served: str, tmp_path: Path
) -> None:
    recorded = {"known": served.replace("http:", "https:")}
    copies = {served: folders["old"].as_uri()}
    plan, _ = planned(tmp_path, [served], recorded=recorded, channels=copies)
    assert [(each.name, each.accept) for each in plan.channels] == [("known", {"ACCEPT_IT": "yes"})]


PLAIN = {
    "https://Conda.Example:443/Chan/": "https://conda.example/Chan",
    "http://conda.example.:80": "http://conda.example",
    "http://conda.example:8080/a/../b//./c/": "http://conda.example:8080/b/c",
    "http://conda.example/../../a": "http://conda.example/a",
    "https://conda.example/%7euser/%2fx/%c3%a9%zz": "https://conda.example/~user/%2Fx/%C3%A9%zz",
    "https://conda.example/caf\u00e9": "https://conda.example/caf%C3%A9",
    "https://m\u00fcnchen.example/a": "https://xn--mnchen-3ya.example/a",
    "http://[::1]:8000/a": "http://[::1]:8000/a",
    "file://localhost/a//b/": "file:///a/b",
    "/a/./b/": "file:///a/b",
}


def test_a_channel_has_one_spelling_which_is_also_that_of_what_reads_it() -> None:
    """What the engine reads it names by its own spelling."""
    found = {written: TypeAdapter(ChannelUrl).validate_python(written) for written in PLAIN}
    assert found == PLAIN
    code = (
        "import json, os, sys; from rattler import Channel; "
        "print(json.dumps([Channel(each).base_url for each in json.loads(sys.argv[1])])); "
        "sys.stdout.flush(); os._exit(0)"
    )
    words = [sys.executable, "-c", code, json.dumps([*PLAIN.values()])]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert [each.rstrip("/") for each in json.loads(said)] == [*PLAIN.values()]


@pytest.mark.parametrize("url", ["https://c.example/a?b", "https://c.example/a#b", "http://c:x/a"])
def test_what_is_no_url_of_a_channel(url: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ChannelUrl).validate_python(url)


def test_a_sites_copies_are_read_in_their_order_and_the_plan_says_which_one_was(
    folders: dict[str, Path], served: str, tmp_path: Path
) -> None:
    gone, own = (tmp_path / "gone").as_uri(), "https://channel.invalid/own"
    copies = {"known": [gone, served, str(folders["old"])]}
    asked = {"recorded": {"known": own}, "channels": copies}
    plan, said = planned(tmp_path, ["known"], **asked)  # type: ignore[arg-type]
    (one,) = plan.channels
    assert (one.url, one.canonical) == (served, own)
    assert one.mirrors == (gone, folders["old"].as_uri())
    assert numpy(plan) == ("1.26.4", "known/numpy")
    (line,) = [each for each in said.splitlines() if "gone" in each]
    assert f"known from {served}: " in line
    # As it was read: the same copy, without reading.
    again, said = planned(tmp_path, ["known"], recorded={"known": own}, channels={"known": served})
    assert again.channels[0].url == served
    assert "gone" not in said


def test_a_sites_order_is_the_priority_and_what_it_hides_is_named(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    old, new = (folders[name].as_uri() for name in ("old", "new"))
    plan, said = planned(tmp_path / "a", [new, old])
    assert numpy(plan) == ("1.26.4", f"{new}/numpy")
    assert "in this order" not in said
    plan, said = planned(tmp_path / "b", [new, old], **{"channel-order": [str(folders["old"])]})
    assert [each.name for each in plan.channels] == [old, new]
    assert numpy(plan) == ("1.20.1", f"{old}/numpy")
    assert f"{old}, {new}" in said
    order = {"channel-order": [old], "origins": ["module"]}
    with pytest.raises(NoSolutionError) as caught:
        planned(tmp_path / "c", [new, old], stack={"numpy": ">=1.26"}, **order)
    hidden = f"channel {old} hides numpy 1.26.4 of channel {new}"
    assert hidden in str(caught.value.problems)


@pytest.mark.parametrize("document", ["recipe", "site"])
def test_keys_of_content_trust_are_refused_with_their_place(
    document: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    url = folders["new"].as_uri()
    keys: Mapping[str, object] = {"channel-keys": {url: ["a" * 64]}}
    more, site = (keys, {}) if document == "recipe" else ({}, keys)
    with pytest.raises(DocumentError) as caught:
        planned(tmp_path / "a", [url], more=more, **site)  # type: ignore[arg-type]
    (problem,) = caught.value.problems
    assert problem.message.startswith("channel-keys requires conda's content trust")
    assert problem.place
    assert (problem.place.column > 1, len(problem.hints)) == (True, 1)


@pytest.mark.parametrize("status", [200, 401, 404, 500])
def test_a_copy_whose_server_answers_otherwise_is_passed_by(
    served: str, tmp_path: Path, status: int
) -> None:
    handler = type("Handler", (Answer,), {"status": status})
    engine = LiveEngine(dict(os.environ), tmp_path / "cache")
    with serving_by(handler) as broken:
        asked = {"mine": channel("https://channel.invalid/own")}
        copies = {"mine": (broken, served)}
        read = read_channels(asked, "x86_64", KNOWN, engine, copies=copies)["mine"]
    assert read.url == served
    assert [each[0] for each in rows(read, "numpy")] == ["1.26.4"]


SECRETS = st.from_regex(r"[A-Za-z0-9]{6,12}@?[A-Za-z0-9]{2,6}", fullmatch=True)
HIDING = st.sampled_from(["https://{}@host/c", "http://me:{}@host:80/c", "https://host/t/{}/c"])


@given(secret=SECRETS, url=HIDING)
def test_credentials_are_refused_in_documents_without_being_repeated(
    tmp_path_factory: pytest.TempPathFactory, secret: str, url: str
) -> None:
    written = url.format(secret.replace("@", "-") if "/t/" in url else secret)
    folder = tmp_path_factory.getbasetemp()
    recipe = {"schema": 1, "name": "small", "summary": "A test", "arch": ["x86_64"]}
    recipe |= {"backend": "conda", "channels": [written], "stack": STACK}
    site = {"schema": 1, "name": "ours", "summary": "A site", "arch": ["x86_64"]}
    site |= {"channels": {"conda-forge": [written]}}
    (folder / "small.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    (folder / "ours.yaml").write_text(json.dumps(site), encoding="utf-8")
    for read, name in ((load_recipe, "small.yaml"), (load_site, "ours.yaml")):
        with pytest.raises(DocumentError) as caught:
            read(folder / name, read_shipped().value, entries())
        text = "\n".join(map(str, (*caught.value.problems, caught.value)))
        assert "credentials" in text
        assert secret not in text


@given(secret=SECRETS, url=HIDING, around=st.sampled_from(["{}", "for url ({}/x.json)", "a {}\nb"]))
def test_what_the_engine_says_is_without_credentials(secret: str, url: str, around: str) -> None:
    token = secret.replace("@", "-")
    said = clean(around.format(url.format(token if "/t/" in url else secret)))
    assert secret not in said
    assert token not in said
    assert "host" in said


class Locked(SimpleHTTPRequestHandler):
    """Serves a folder to who knows the password."""

    password = ""

    def do_GET(self) -> None:
        wanted = b64encode(f"me:{self.password}".encode()).decode()
        if self.headers.get("Authorization") == f"Basic {wanted}":
            super().do_GET()
        else:
            self.send_error(401)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_password_of_netrc_opens_a_channel_and_is_kept_nowhere(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels_command, "Engine", Engine)
    secret = "drawn-" + os.urandom(6).hex()
    home = tmp_path / "home"
    home.mkdir()
    handler = functools.partial(
        type("Handler", (Locked,), {"password": secret}), directory=str(folders["new"])
    )
    with serving_by(handler) as url:  # type: ignore[arg-type]
        (home / ".netrc").write_text(f"machine localhost login me password {secret}\n")
        (home / ".netrc").chmod(0o600)
        for name in ("NETRC", "RATTLER_AUTH_FILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        plan, said = planned(tmp_path / "plan", [url])
    assert numpy(plan)[0] == "1.26.4"
    assert secret not in plan.model_dump_json()
    assert secret not in said
    kept = [each for each in (tmp_path / "plan").rglob("*") if each.is_file()]
    assert any("repodata" in str(each) for each in kept)
    for each in kept:
        assert secret.encode() not in each.read_bytes(), each
        assert b64encode(f"me:{secret}".encode()) not in each.read_bytes(), each
