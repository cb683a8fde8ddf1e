"""Two local simple indexes, asked by the real pip: an internal and a public one."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from locking_tools import plan

from envbuilder import process
from envbuilder.errors import BuildError
from envbuilder.knowledge.artifacts import CondaArchive
from envbuilder.locking.failures import Refusal
from envbuilder.locking.index import Index
from envbuilder.locking.index_order import check_indexes
from envbuilder.locking.locker import LockEnvironment, make_lock
from envbuilder.locking.settings import PipSettings
from envbuilder.model.plan import Lock, Pin

pytestmark = pytest.mark.thorough


def put(
    index: Path,
    name: str,
    version: str,
    *needs: str,
    text: str = "",
    hashed: bool = True,
) -> None:
    """Put a wheel into an index, and write the page of its project anew."""
    folder = index / "simple" / name
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {each}\n" for each in needs)
        wheel.writestr(f"{info}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", tags)
        wheel.writestr(f"{info}/RECORD", "")
        wheel.writestr(f"{name}.py", text)
    lines = []
    for file in sorted(folder.glob("*.whl")):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f'<a href="{file.name}{f"#sha256={digest}" if hashed else ""}">x</a>\n')
    (folder / "index.html").write_text("".join(lines))


class Place:
    """A folder with indexes, where a lock is made by the pip of this Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.internal, self.public = folder / "internal", folder / "public"
        self.said: list[str] = []
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}

    def url(self, index: Path) -> str:
        return f"{index.as_uri()}/simple"

    def _run(self, command: Sequence[str]) -> process.Finished:
        """Start what asks pip; nothing is made for it."""
        if "venv" in command or "install-pip" in command:
            return process.Finished(tuple(command), 0, "", "")
        venv = str(self.folder / "scratch" / "venv" / "bin" / "python")
        words = [sys.executable if word == venv else word for word in command]
        return process.run(words, env=self.environ, timeout=60)

    def lock(self, *wanted: str, conda: tuple[CondaArchive, ...] = (), **changes: object) -> Lock:
        """Return the lock of what is wanted. *conda*: packages of channels that are there then."""
        python = Pin(component="python", version="3", origin="system", locator="p", why="w")
        (self.folder / "scratch").mkdir(exist_ok=True)
        ours = plan(
            pins=(python,),
            build_pins=(),
            packages=wanted,
            **{"pip_indexes": (self.url(self.internal), self.url(self.public)), **changes},
        )
        environment = LockEnvironment(
            inside=self._run,
            outside=self._run,
            scratch=self.folder / "scratch",
            here=not conda,
            say=self.said.append,
            downloads=self.folder / "downloads",
        )
        return make_lock(ours, environment, conda=conda)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    put(place.internal, "secret", "1.0")
    put(place.public, "open", "2.0")
    return place


def test_a_newer_release_on_a_later_index_is_refused_and_both_are_named(place: Place) -> None:
    put(place.public, "secret", "99.0")
    with pytest.raises(BuildError) as refused:
        place.lock("secret")
    said = str(refused.value)
    assert f"secret 99.0 from {place.url(place.public)}, but " in said
    assert place.url(place.internal) in said


def test_a_pin_of_a_later_index_is_refused_so_that_another_release_is_tried(place: Place) -> None:
    put(place.public, "numpy", "2.4.6")
    put(place.internal, "numpy", "2.3.4")
    urls = (place.url(place.internal), place.url(place.public))
    chosen = f"{urls[1]}/numpy/numpy-2.4.6-py3-none-any.whl"
    entry = {"metadata": {"name": "numpy", "version": "2.4.6"}, "download_info": {"url": chosen}}
    index = Index(PipSettings(indexes=urls, ordered=True), {})
    with pytest.raises(Refusal, match=r"numpy 2\.4\.6 from .*public.*internal"):
        check_indexes(plan(pip_indexes=urls), [entry], index, None, place.said.append)


def test_the_first_index_is_the_one_for_its_names_and_others_fill_in(place: Place) -> None:
    put(place.public, "secret", "1.0", text="# another")
    lock = place.lock("secret", "open")
    assert [each.url.split("/simple")[0] for each in lock.index_files] == [
        place.public.as_uri(),
        place.internal.as_uri(),
    ]
    assert place.said == []


def test_configured_indexes_are_not_added(place: Place) -> None:
    evil = place.folder / "evil"
    put(evil, "secret", "99.0")
    (place.folder / "pip.conf").write_text(f"[global]\nextra-index-url = {place.url(evil)}\n")
    place.environ["PIP_CONFIG_FILE"] = str(place.folder / "pip.conf")
    place.environ["PIP_EXTRA_INDEX_URL"] = place.environ["PIP_INDEX_URL"] = place.url(evil)
    lock = place.lock("secret", pip_indexes=(place.url(place.internal),))
    assert [each.version for each in lock.index_files] == ["1.0"]


def test_an_index_without_hashes_is_said(place: Place) -> None:
    put(place.internal, "secret", "1.0", hashed=False)
    assert place.lock("secret").index_files[0].sha256
    (line,) = place.said
    assert line.startswith(f"{place.url(place.internal)} ")
    assert "sha256 of secret" in line


def test_sources_are_of_the_first_index_that_has_the_name(place: Place) -> None:
    for index, version in ((place.internal, "1.0"), (place.public, "1.0"), (place.public, "99.0")):
        folder = index / "simple" / "built"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "index.html").open("a") as page:
            page.write(f'<a href="built-{version}.tar.gz#sha256={"a" * 64}">x</a>\n')
        (folder / f"built-{version}.tar.gz").write_bytes(b"x")
    urls = (place.url(place.internal), place.url(place.public))
    index = Index(PipSettings(indexes=urls, ordered=True), {})
    found = index.sdist("built", "built", "1.0", exact=True)
    assert found.url.startswith(place.internal.as_uri())
    with pytest.raises(Refusal):
        index.sdist("built", "built", "99.0", exact=True)


def of_conda(name: str, version: str, distribution: str | None = None) -> CondaArchive:
    file = f"https://conda.example/noarch/{name}-{version}-0.conda"
    values = {"name": name, "version": version, "build": "0", "url": file, "sha256": "1" * 64}
    return CondaArchive(**values, distribution=distribution)  # type: ignore[arg-type]


def test_a_torch_of_conda_satisfies_what_a_wheel_requires(place: Place) -> None:
    put(place.public, "torch", "9.9")
    put(place.public, "tool", "1.0", "torch>=2.1,<3", "open")
    channels = (of_conda("python", "3.11.7"), of_conda("pip", "24.0", "pip"))
    there = (*channels, of_conda("pytorch", "2.4.0", "torch"))
    lock = place.lock("tool", conda=there)
    assert [each.filename for each in lock.index_files] == [
        "open-2.0-py3-none-any.whl",
        "tool-1.0-py3-none-any.whl",
    ]
    # Conda's is not replaced by one that would do.
    with pytest.raises(BuildError) as caught:
        place.lock("tool", conda=(*channels, of_conda("pytorch", "1.13.1", "torch")))
    (problem,) = caught.value.problems
    assert "tool 1.0 depends on torch<3 and >=2.1" in problem.hints


def test_folders_and_pages_of_links_come_before_all_indexes(place: Place) -> None:
    """Through a link, of which pip resolves the folder; and on a page that lies there."""
    put(place.public, "secret", "99.0")
    wheels, page = place.folder / "wheels", place.folder / "page"
    put(wheels, "secret", "2.0")
    put(page, "paged", "1.0")
    put(place.public, "paged", "0.1")
    (place.folder / "linked").symlink_to(wheels / "simple" / "secret")
    index = page / "simple" / "paged" / "index.html"
    for each in (place.public, place.internal):
        put(each, "paged", "0.1")
    folders = ((place.folder / "linked").as_uri(), index.as_uri())
    lock = place.lock("secret==2.0", "paged", find_links=folders)
    assert [(each.name, each.version) for each in lock.index_files] == [
        ("paged", "1.0"),
        ("secret", "2.0"),
    ]


def test_what_a_users_constraint_names_by_its_url_is_taken(place: Place) -> None:
    put(place.folder / "own", "secret", "3.0")
    (file,) = (place.folder / "own").rglob("*.whl")
    (place.folder / "constraints.txt").write_text(f"secret @ {file.as_uri()}\n")
    place.environ["PIP_CONSTRAINT"] = str(place.folder / "constraints.txt")
    assert [each.version for each in place.lock("secret").index_files] == ["3.0"]


@pytest.mark.parametrize("indexes", [1, 2])
def test_what_a_file_requires_by_its_url_is_of_no_index(place: Place, indexes: int) -> None:
    put(place.folder / "own", "secret", "3.0")
    (file,) = (place.folder / "own").rglob("*.whl")
    put(place.internal, "helper", "1.0", f"secret @ {file.as_uri()}")
    urls = (place.url(place.internal), place.url(place.public))[:indexes]
    with pytest.raises(BuildError) as refused:
        place.lock("helper", pip_indexes=urls)
    assert refused.value.id == "index.file-not-offered"
    assert file.name in str(refused.value)
    assert all(url in str(refused.value) for url in urls)


def test_another_file_of_the_same_name_is_refused(place: Place) -> None:
    """An index that pip is shown otherwise: the page that envbuild reads has another hash."""
    chosen = f"{place.url(place.internal)}/secret/secret-1.0-py3-none-any.whl"
    entry = {
        "metadata": {"name": "secret", "version": "1.0"},
        "download_info": {"url": chosen, "archive_info": {"hashes": {"sha256": "0" * 64}}},
    }
    urls = (place.url(place.internal), place.url(place.public))
    index = Index(PipSettings(indexes=urls, ordered=True), {})
    with pytest.raises(BuildError) as raised:
        check_indexes(plan(pip_indexes=urls), [entry], index, None, place.said.append)
    assert raised.value.id == "index.file-not-offered"
