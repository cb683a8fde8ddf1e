"""Sources in folders and indexes of files; the pages are as indexes write them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.locking.failures import Refusal
from envbuilder.locking.index import Index, SourceFile, local_path, without_credentials
from envbuilder.locking.settings import PipSettings


def index(*, indexes: tuple[str, ...] = (), find_links: tuple[str, ...] = ()) -> Index:
    return Index(PipSettings(indexes=indexes, find_links=find_links, retries=0), {})


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(name.encode())
    return folder


def sdist(asked: Index, version: str, *, exact: bool = False) -> SourceFile:
    return asked.sdist("pyyaml", "pyyaml", version, exact=exact)


@pytest.mark.parametrize("as_url", [False, True])
def test_a_folder_alone_is_enough(tmp_path: Path, as_url: bool) -> None:
    folder = put(tmp_path / "my wheels", "PyYAML-5.4.1.tar.gz", "PyYAML-5.3.tar.gz", "notes.txt")
    place = folder.as_uri() if as_url else str(folder)
    found = sdist(index(find_links=(place,)), "5.4.1")
    content = b"PyYAML-5.4.1.tar.gz"
    assert found == SourceFile(
        filename="PyYAML-5.4.1.tar.gz",
        version="5.4.1",
        url=(folder / "PyYAML-5.4.1.tar.gz").as_uri(),
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )


def test_versions_are_compared_not_spelt(tmp_path: Path) -> None:
    folder = put(tmp_path, "pyyaml-6.0.0.zip", "pyyaml-6.0.tar.gz", "pyyaml_more-6.0.tar.gz")
    assert sdist(index(find_links=(str(folder),)), "6.0.0").filename == "pyyaml-6.0.tar.gz"


def make_index(folder: Path, rows: str) -> str:
    put(folder / "files", "PyYAML-6.0.1.tar.gz", "PyYAML-5.3.tar.gz")
    project = folder / "simple" / "pyyaml"
    project.mkdir(parents=True)
    (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{rows}</body></html>")
    return (folder / "simple").as_uri()


LINK = '<a href="../../files/{0}#sha256={1}" {2}>{0}</a><br/>'


def test_an_index_of_files_is_read_with_its_hashes_and_what_is_yanked(tmp_path: Path) -> None:
    rows = LINK.format("PyYAML-6.0.1.tar.gz", "e" * 64, "") + LINK.format(
        "PyYAML-5.3.tar.gz", "f" * 64, 'data-yanked="broken: Cython 3"'
    )
    place = make_index(tmp_path, rows)
    found = sdist(index(indexes=(place,)), "6.0.1")
    assert (found.sha256, found.size, found.yanked) == ("e" * 64, 19, None)
    assert found.url == (tmp_path / "files" / "PyYAML-6.0.1.tar.gz").as_uri()
    with pytest.raises(Refusal, match="pyyaml 5.3 is yanked") as caught:
        sdist(index(indexes=(place,)), "5.3")
    assert (caught.value.component, caught.value.version) == ("pyyaml", "5.3")
    assert sdist(index(indexes=(place,)), "5.3", exact=True).yanked == "broken: Cython 3"


def test_folders_come_before_indexes(tmp_path: Path) -> None:
    place = make_index(tmp_path / "a", LINK.format("PyYAML-6.0.1.tar.gz", "e" * 64, ""))
    folder = put(tmp_path / "b", "pyyaml-6.0.1.tar.gz")
    found = sdist(index(indexes=(place,), find_links=(str(folder),)), "6.0.1")
    assert found.url.startswith(folder.as_uri())


def test_a_release_that_has_wheels_alone_is_refused_so_that_another_is_tried(
    tmp_path: Path,
) -> None:
    folder = put(tmp_path, "pyyaml-6.0.2-cp311-cp311-linux_x86_64.whl", "pyyaml-6.0.1.tar.gz")
    with pytest.raises(Refusal, match="pyyaml 6.0.2"):
        sdist(index(find_links=(str(folder),)), "6.0.2")


def test_no_sources_at_all_is_an_error_that_says_where_was_looked(tmp_path: Path) -> None:
    folder = put(tmp_path, "numpy-1.0.tar.gz")
    with pytest.raises(BuildError) as caught:
        sdist(index(find_links=(str(folder),)), "6.0")
    assert caught.value.id == "index.no-sources"
    assert str(folder) in str(caught.value)
    assert "pyyaml-6.0.tar.gz" in caught.value.problems[0].hints[0]
    with pytest.raises(BuildError) as raised:
        sdist(index(), "6.0")
    assert raised.value.id == "index.no-sources"


def test_sizes_of_files_are_those_on_disk(tmp_path: Path) -> None:
    path = put(tmp_path, "one.whl") / "one.whl"
    gone = (tmp_path / "gone.whl").as_uri()
    assert index().sizes([path.as_uri(), gone]) == {path.as_uri(): 7}


def test_credentials_are_taken_out_of_addresses() -> None:
    url = "https://user:pa%40ss@mirror.example:8443/x.tar.gz#sha256=00"
    assert without_credentials(url) == "https://mirror.example:8443/x.tar.gz"


def test_places_are_told_apart() -> None:
    assert local_path("https://index.example/simple") is None
    assert local_path("file:///apps/my%20wheels") == Path("/apps/my wheels")
    assert local_path("/apps/wheels") == Path("/apps/wheels")
