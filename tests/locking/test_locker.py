"""What pip's answer means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from locking_tools import plan

from envbuilder.errors import BuildError, MissingToolError
from envbuilder.locking.failures import Refusal
from envbuilder.locking.index import IndexFiles, Link, SourceFile
from envbuilder.locking.lock_check import contradictions
from envbuilder.locking.locker import Distributions, LockEnvironment, make_lock
from envbuilder.locking.settings import PipSettings
from envbuilder.model.plan import Lock, Pin, Plan, SourceBuild
from envbuilder.process import Finished
from envbuilder.render.requirements import requirement_files


def entry(name: str, version: str, url: str, sha256: str | None = "a" * 64) -> dict[str, object]:
    info = {"hashes": {"sha256": sha256}} if sha256 else {}
    return {
        "metadata": {"name": name, "version": version},
        "download_info": {"url": url, "archive_info": info},
    }


class Pip:
    """Stands where the plan's environment is: records commands, writes a report, answers."""

    def __init__(
        self,
        scratch: Path,
        entries: list[dict[str, object]],
        stderr: str = "",
        version: str = "23.0.1",
        there: Mapping[str, str] | None = None,
    ) -> None:
        self.commands: list[list[str]] = []
        self._scratch = scratch
        self._entries = entries
        self._stderr = stderr
        self._version = version
        self._there = there or {}

    def __call__(self, command: Sequence[str]) -> Finished:
        self.commands.append(list(command))
        words = tuple(command)
        if "-c" in command:
            return Finished(words, 0, f"pip {self._version}\n", "")
        if "list" in command and "config" not in command:
            rows = [{"name": name, "version": found} for name, found in self._there.items()]
            return Finished(words, 0, json.dumps(rows), "")
        if "install" not in command:
            return Finished(words, 0, "", "")
        (self._scratch / "report.json").write_text(json.dumps({"install": self._entries}))
        return Finished(words, 1 if self._stderr else 0, "", self._stderr)

    @property
    def asked(self) -> list[list[str]]:
        """The commands in which pip was asked what it would install."""
        return [words for words in self.commands if "--dry-run" in words]


class Shelf:
    """Stands where the index is: has what it is given."""

    places = ("https://index.example",)

    def __init__(self, *files: SourceFile, links: Sequence[str] = ()) -> None:
        self._files = files
        self._links = tuple(Link(each, "a" * 64) for each in links)
        self.exact: dict[str, bool] = {}

    def sdist(self, component: str, name: str, version: str, *, exact: bool) -> SourceFile:
        self.exact[component] = exact
        return next(each for each in self._files if each.filename.startswith(f"{name}-{version}"))

    def files_of(self, names: Sequence[str]) -> Mapping[str, tuple[IndexFiles, ...]]:
        return dict.fromkeys(names, (IndexFiles(self.places[0], self._links),))

    def find_links_of(self, name: str) -> Iterator[IndexFiles]:
        return iter(())

    def sizes(self, urls: Sequence[str]) -> Mapping[str, int]:
        return {url: len(url) for url in urls if "unsized" not in url}


def lock_of(
    plan: Plan,
    inside: Pip,
    scratch: Path,
    known: Distributions | None = None,
    shelf: Shelf | None = None,
    **changes: object,
) -> Lock:
    """Make a lock with these in the place of pip and index."""

    def sources(settings: PipSettings, environ: Mapping[str, str]) -> Shelf:
        return shelf or Shelf()

    values: dict[str, object] = {"inside": inside, "outside": inside, "scratch": scratch}
    where = LockEnvironment(**{**values, "sources": sources, **changes})  # type: ignore[arg-type]
    return make_lock(plan, where, known)


WHEEL = "https://index.example/numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl"


def test_artifacts_are_sorted_and_build_tools_marked(tmp_path: Path) -> None:
    flit = "https://index.example/flit_core-4.2.0-py3-none-any.whl"
    pip = Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL), entry("flit_core", "4.2.0", flit)])
    known = Distributions(imports={"flit_core": "flit_core", "numpy": "numpy"})
    lock = lock_of(plan(), pip, tmp_path, known)
    assert [a.imports for a in lock.index_files] == ["flit_core", "numpy"]
    assert [(a.name, a.build_only) for a in lock.index_files] == [
        ("flit-core", True),
        ("numpy", False),
    ]
    assert lock.index_files[1].filename == "numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert pip.asked[0][-2:] == ["numpy==2.4.6", "flit-core==4.2.0"]


def test_what_an_installed_wheel_requires_is_installed_though_builds_use_it_too(
    tmp_path: Path,
) -> None:
    """PyTorch requires setuptools, and Horovod is built with it; the venv's own is too old."""

    def needing(name: str, *needs: str) -> dict[str, object]:
        file = f"https://index.example/{name}-9-py3-none-any.whl"
        metadata = {"name": name, "version": "9", "requires_dist": list(needs)}
        return {**entry(name, "9", file), "metadata": metadata}

    def pin(name: str) -> Pin:
        return Pin(component=name, version="9", origin="pip", locator=name, why="w")

    # setuptools requires one more here; cython requires one that nothing else does.
    entries = [needing("torch", "setuptools>=7"), needing("setuptools", "more"), needing("more")]
    entries += [needing("cython", "wheel"), needing("wheel")]
    tools = tuple(map(pin, ("cython", "more", "setuptools", "wheel")))
    target = plan(pins=(*plan().pins[:1], pin("torch")), build_pins=tools)
    lock = lock_of(target, Pip(tmp_path, entries), tmp_path)
    assert [a.name for a in lock.index_files if a.build_only] == ["cython", "wheel"]
    texts = requirement_files(lock)
    installed = [line.split("==")[0] for line in texts["requirements.txt"].splitlines()]
    assert installed == ["more", "setuptools", "torch"]
    assert "only to build with" not in "".join(contradictions(lock))


def test_indexes_of_site_or_recipe_are_given_to_pip(tmp_path: Path) -> None:
    pip = Pip(tmp_path, [])
    urls = ("https://mirror.example/simple", "https://second.example/simple")
    lock_of(plan(pip_indexes=urls, find_links=("file:///apps/wheels",)), pip, tmp_path)
    words = " ".join(pip.asked[0])
    # Of equal files pip takes the last one's. As variables they replace pip's configuration.
    assert words.startswith(f"env PIP_INDEX_URL={urls[1]} PIP_EXTRA_INDEX_URL={urls[0]} ")
    assert "--find-links file:///apps/wheels" in words


def test_credentials_never_reach_the_lock(tmp_path: Path) -> None:
    secret = WHEEL.replace("https://", "https://user:secret@")
    lock = lock_of(plan(), Pip(tmp_path, [entry("numpy", "2.4.6", secret)]), tmp_path)
    assert "secret" not in lock.text()
    assert lock.index_files[0].url == WHEEL


def test_a_local_file_without_a_hash_is_hashed_and_a_remote_one_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "numpy-2.4.6-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    local = Pip(tmp_path, [entry("numpy", "2.4.6", wheel.as_uri(), None)])
    lock = lock_of(plan(), local, tmp_path)
    assert lock.index_files[0].sha256 == hashlib.sha256(b"wheel").hexdigest()
    with pytest.raises(BuildError) as raised:
        lock_of(plan(), Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL, None)]), tmp_path)
    assert raised.value.id == "index.no-sha256"
    assert "sha256" in str(raised.value)


def test_a_pin_the_index_lacks_is_a_refusal(tmp_path: Path) -> None:
    said = (
        "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 "
        "(from versions: 1.0, 2.0)\nERROR: No matching distribution found for numpy==2.4.6\n"
    )
    with pytest.raises(Refusal) as caught:
        lock_of(plan(), Pip(tmp_path, [], said), tmp_path)
    assert (caught.value.component, caught.value.version) == ("numpy", "2.4.6")


NOTHING_OFFERED = (
    "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 "
    "(from versions: none)\nERROR: No matching distribution found for numpy==2.4.6\n"
)


def test_an_index_without_any_version_is_asked_at_length_why(tmp_path: Path) -> None:
    """Solving again would not help; and pip's short answer is the same where nothing answered."""
    lacking = Pip(tmp_path, [], NOTHING_OFFERED)
    with pytest.raises(BuildError) as raised:
        lock_of(plan(), lacking, tmp_path)
    assert raised.value.id == "index.no-file"
    assert ["-vv" in words for words in lacking.asked] == [False, True]
    dead = (
        "Could not fetch URL https://index.example/numpy/: connection error: Connection refused\n"
    )
    with pytest.raises(BuildError) as caught:
        lock_of(plan(), Pip(tmp_path, [], dead + NOTHING_OFFERED), tmp_path)
    assert caught.value.id == "index.unreachable"
    assert caught.value.problems[0].hints[-1] == f"pip said: {dead.strip()}"


def test_a_full_disk_is_told_as_that(tmp_path: Path) -> None:
    said = (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    )
    with pytest.raises(BuildError) as caught:
        lock_of(plan(), Pip(tmp_path, [], said), tmp_path)
    assert caught.value.id == "file.disk-full"
    assert "another --root" in caught.value.problems[0].hints[0]


def test_a_page_that_pip_cannot_read_is_told_as_that(tmp_path: Path) -> None:
    """As pip 26.3 writes it for an index whose JSON is none."""
    said = (
        "Looking in indexes: https://user:word@index.example/simple\n"
        "ERROR: Exception:\nTraceback (most recent call last):\n"
        '  File ".../json/decoder.py", line 355, in raw_decode\n'
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
    )
    with pytest.raises(BuildError) as caught:
        lock_of(plan(), Pip(tmp_path, [], stderr=said), tmp_path)
    assert caught.value.id == "index.unreadable-answer"
    assert caught.value.problems[0].hints[:2] == (
        "Looking in indexes: https://index.example/simple",
        "pip said: json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    )


def test_no_network_is_not_taken_for_a_refusal(tmp_path: Path) -> None:
    said = (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...): "
        "Failed to establish a new connection: [Errno 101] Network is unreachable'\n"
        "ERROR: No matching distribution found for numpy==2.4.6\n"
    )
    with pytest.raises(BuildError) as caught:
        lock_of(plan(), Pip(tmp_path, [], said), tmp_path)
    assert caught.value.id == "index.unreachable"
    assert "mirror" in caught.value.problems[0].hints[0]


def test_a_conflict_among_free_packages_is_told_in_pips_words(tmp_path: Path) -> None:
    said = "ERROR: Cannot install a and b because these have conflicting dependencies.\n"
    with pytest.raises(BuildError) as raised:
        lock_of(plan(packages=("a", "b")), Pip(tmp_path, [], said), tmp_path)
    assert raised.value.id == "pip.no-solution"


def test_a_package_of_sources_alone_is_told_how_it_could_be_had(tmp_path: Path) -> None:
    said = (
        "ERROR: Ignored the following versions that require a different python version: 2.0\n"
        "ERROR: Could not find a version that satisfies the requirement termcolor>=1.1.0 "
        "(from tensorflow) (from versions: none)\n"
        "ERROR: No matching distribution found for termcolor>=1.1.0\n"
    )
    with pytest.raises(BuildError) as caught:
        lock_of(plan(), Pip(tmp_path, [], said), tmp_path)
    assert caught.value.id == "pip.no-solution"
    hints = caught.value.problems[0].hints
    assert hints[-1].startswith("termcolor ")
    assert not any("Ignored" in hint for hint in hints)


def test_the_hash_names_what_is_decided_and_not_where_that_came_from(tmp_path: Path) -> None:
    def id_of(**changes: object) -> str:
        return lock_of(plan(**changes), Pip(tmp_path, []), tmp_path).id()

    digest = {"kind": "knowledge", "name": "knowledge", "sha256": "b" * 64}
    assert id_of() == id_of(inputs=(digest,))
    assert id_of() != id_of(python="/usr/bin/python3.12")
    assert len(id_of()) == 12


def test_sizes_are_told_where_the_server_says_them_and_decide_nothing(tmp_path: Path) -> None:
    sized = lock_of(plan(), Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL)]), tmp_path)
    assert sized.index_files[0].size == len(WHEEL)
    other = WHEEL.replace("index.example", "unsized.example")
    unsized = lock_of(plan(), Pip(tmp_path, [entry("numpy", "2.4.6", other)]), tmp_path)
    assert unsized.index_files[0].size is None
    without = sized.index_files[0].model_copy(update={"size": None})
    assert sized.id() == sized.model_copy(update={"artifacts": (without,)}).id()


def test_what_pip_had_to_download_is_not_asked_about(tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    (downloads / WHEEL.rpartition("/")[2]).write_bytes(bytes(77))
    pip = Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL)])
    lock = lock_of(plan(), pip, tmp_path, shelf=Shelf(links=[WHEEL]), downloads=downloads)
    assert lock.index_files[0].size == 77
    with pytest.raises(BuildError) as raised:
        lock_of(plan(), pip, tmp_path, shelf=Shelf(), downloads=downloads)
    assert raised.value.id == "index.file-not-offered"


HOROVOD = SourceFile(
    "horovod-0.28.1.tar.gz",
    "0.28.1",
    "https://index.example/horovod-0.28.1.tar.gz",
    "d" * 64,
    3_485_580,
)


def with_horovod(**changes: object) -> Plan:
    pin = Pin(component="horovod", version="0.28.1", origin="build", locator="horovod", why="w")
    build = SourceBuild(component="horovod", version="0.28.1")
    return plan(pins=(*plan().pins, pin), builds=(build,), **changes)


def test_what_is_built_from_source_is_locked_as_its_sdist(tmp_path: Path) -> None:
    pip = Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL)])
    known = Distributions(imports={"horovod": "horovod"}, exact=frozenset({"horovod"}))
    shelf = Shelf(HOROVOD)
    lock = lock_of(with_horovod(), pip, tmp_path, known, shelf)
    sdist = lock.index_files[0]
    assert (sdist.name, sdist.version, sdist.kind) == ("horovod", "0.28.1", "sdist")
    assert (sdist.sha256, sdist.size, sdist.imports) == ("d" * 64, 3_485_580, "horovod")
    assert not sdist.build_only
    assert [each.kind for each in lock.index_files[1:]] == ["wheel"]
    assert shelf.exact == {"horovod": True}
    # No package may bring another Horovod along: pip is told that this one is there.
    constraints = Path(pip.asked[0][pip.asked[0].index("--constraint") + 1])
    stub = tmp_path / "present" / "horovod-0.28.1-py3-none-any.whl"
    assert constraints.read_text() == f"horovod @ {stub.as_uri()}\n"
    assert not any(word.startswith("horovod") for word in pip.asked[0])


def test_what_pip_takes_as_there_is_not_fetched(tmp_path: Path) -> None:
    stub = (tmp_path / "present" / "horovod-0.28.1-py3-none-any.whl").as_uri()
    pip = Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL), entry("horovod", "0.28.1", stub)])
    lock = lock_of(with_horovod(), pip, tmp_path, shelf=Shelf(HOROVOD))
    assert [(each.name, each.kind) for each in lock.index_files] == [
        ("horovod", "sdist"),
        ("numpy", "wheel"),
    ]


def test_a_yanked_release_that_was_asked_for_is_taken_and_said(tmp_path: Path) -> None:
    yanked = SourceFile(**{**vars(HOROVOD), "yanked": "broken metadata"})
    said: list[str] = []
    lock_of(with_horovod(), Pip(tmp_path, []), tmp_path, shelf=Shelf(yanked), say=said.append)
    (line,) = said
    assert line.startswith("horovod 0.28.1 is yanked")
    assert "broken metadata" in line


PYTHON36 = Pin(component="python", version="3.6.15", origin="system", locator="/p", why="w")
NUMPY36 = Pin(component="numpy", version="1.19.5", origin="pip", locator="numpy", why="w")
CP36 = "https://index.example/numpy-1.19.5-cp36-cp36m-manylinux2010_x86_64.whl"
PIP21 = "https://index.example/pip-21.3.1-py3-none-any.whl"


class Places:
    """An environment with an old pip, and outside it one that can report."""

    def __init__(self, scratch: Path, entries: list[dict[str, object]], **inside: str) -> None:
        self.inside = Pip(scratch, [], **inside)  # type: ignore[arg-type]
        self.outside = Pip(scratch, entries)


def test_for_an_old_pip_the_tools_own_is_asked_and_a_newer_one_locked(tmp_path: Path) -> None:
    found = [entry("numpy", "1.19.5", CP36), entry("pip", "21.3.1", PIP21)]
    places = Places(tmp_path, found, version="18.1")
    target = plan(pins=(PYTHON36, NUMPY36), build_pins=())
    lock = lock_of(target, places.inside, tmp_path, outside=places.outside, glibc="2.28")
    assert not places.inside.asked
    words = " ".join(places.outside.asked[0])
    assert "--python-version 3.6.15 --implementation cp --abi cp36m" in words
    assert "--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64" in words
    assert "manylinux_2_29" not in words
    assert words.endswith("numpy==1.19.5 pip")
    assert [(each.name, each.build_only) for each in lock.index_files] == [
        ("numpy", False),
        ("pip", True),
    ]


def test_a_pip_that_takes_todays_wheels_is_left_alone(tmp_path: Path) -> None:
    places = Places(tmp_path, [entry("numpy", "1.19.5", CP36)], version="21.3.1")
    target = plan(pins=(PYTHON36, NUMPY36), build_pins=())
    lock = lock_of(target, places.inside, tmp_path, outside=places.outside)
    assert [each.name for each in lock.index_files] == ["numpy"]


def test_a_tool_without_a_pip_that_reports_says_so(tmp_path: Path) -> None:
    old = Pip(tmp_path, [], version="21.2.3")
    with pytest.raises(MissingToolError) as caught:
        lock_of(plan(pins=(PYTHON36, NUMPY36)), old, tmp_path, here=False)
    assert caught.value.id == "pip.too-old"
    assert "22.2" in str(caught.value)
    assert "21.2.3" in str(caught.value)
    assert "-m pip install 'pip>=22.2'" in caught.value.problems[0].hints[0]


def test_for_another_machine_nothing_of_the_plan_is_started(tmp_path: Path) -> None:
    """What the site's modules provide is taken as there, and nothing else is."""
    tensorflow = Pin(
        component="tensorflow", version="1.14.0", origin="module", locator="TensorFlow/1", why="w"
    )
    cmake = Pin(component="cmake", version="3.12.1", origin="module", locator="CMake/3", why="w")
    found = [entry("pip", "21.3.1", PIP21)]
    places = Places(tmp_path, found)
    target = plan(
        arch="ppc64le",
        system_site_packages=True,
        pins=(PYTHON36, tensorflow, cmake),
        build_pins=(),
    )
    known = Distributions(names={"tensorflow": "tensorflow", "numpy": "numpy"})
    lock_of(target, places.inside, tmp_path, known, outside=places.outside, here=False)
    assert places.inside.commands == []
    words = places.outside.asked[0]
    assert "manylinux2014_ppc64le" in words
    assert "manylinux2010_ppc64le" not in words
    constraints = Path(words[words.index("--constraint") + 1]).read_text()
    assert constraints.split(" @ ")[0] == "tensorflow"
    assert len(constraints.splitlines()) == 1
    markers = json.loads((tmp_path / "markers.json").read_text())
    assert (markers["platform_machine"], markers["python_version"]) == ("ppc64le", "3.6")


class Stubborn(Pip):
    """A pip that refuses as long as numpy is held to what lies around."""

    def __call__(self, command: Sequence[str]) -> Finished:
        answer = super().__call__(command)
        if "--dry-run" not in command:
            return answer
        held = Path(command[command.index("--constraint") + 1]).read_text()
        if "numpy" not in held:
            return answer
        said = (
            "ERROR: Cannot install x because these package versions have conflicting "
            "dependencies.\n\nThe conflict is caused by:\n    x 1.0 depends on numpy>=1.19\n"
            "    The user requested (constraint) numpy\n\nERROR: ResolutionImpossible: help\n"
        )
        return Finished(tuple(command), 1, "", said)


def test_what_lies_around_gives_way_where_something_needs_another_version(tmp_path: Path) -> None:
    there = {"numpy": "1.15.4", "six": "1.12.0", "odd": "not a version", "pip": "18.1"}
    inside = Pip(tmp_path, [], version="18.1", there=there)
    needs = {**entry("x", "1.0", "https://index.example/x-1.0-py3-none-any.whl")}
    needs["metadata"] = {"name": "x", "version": "1.0", "requires_dist": ["numpy>=1.19", "six"]}
    six = (tmp_path / "present" / "six-1.12.0-py3-none-any.whl").as_uri()
    found = [
        needs,
        entry("numpy", "1.19.5", CP36),
        entry("six", "1.12.0", six),
        entry("pip", "21.3.1", PIP21),
    ]
    outside = Stubborn(tmp_path, found)
    target = plan(pins=(PYTHON36,), build_pins=(), packages=("x",), system_site_packages=True)
    lock = lock_of(target, inside, tmp_path, outside=outside)
    assert len(outside.asked) == 2
    assert [each.name for each in lock.index_files] == ["numpy", "pip", "x"]
