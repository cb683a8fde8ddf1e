"""What pip's answer means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.locking import Refusal, make_lock
from envbuilder.model.plan import Pin, Plan, RuntimePlan, Step
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import Launcher
from envbuilder.process import Finished


def plan(**changes: object) -> Plan:
    values: dict[str, object] = {
        "recipe": "demo",
        "summary": "A demo",
        "site": "here",
        "arch": "x86_64",
        "backend": "virtualenv",
        "system_site_packages": False,
        "python": "/usr/bin/python3",
        "pins": (
            Pin(
                component="python",
                version="3.11.7",
                origin="system",
                locator="/usr/bin/python3",
                why="w",
            ),
            Pin(component="numpy", version="2.4.6", origin="pip", locator="numpy", why="w"),
        ),
        "build_pins": (
            Pin(component="flit-core", version="4.2.0", origin="pip", locator="flit-core", why="w"),
        ),
        "runtime": RuntimePlan(package="runtime", version="0.1.0", source_sha256="0" * 64),
        "launcher": Launcher(kind="hydra", command=("mpiexec",)),
        "smoke": Smoke(),
        "steps": (Step(id="venv", title="make it"),),
    }
    return Plan(**{**values, **changes})  # type: ignore[arg-type]


def entry(name: str, version: str, url: str, sha256: str | None = "a" * 64) -> dict[str, object]:
    info = {"hashes": {"sha256": sha256}} if sha256 else {}
    return {
        "metadata": {"name": name, "version": version},
        "download_info": {"url": url, "archive_info": info},
    }


class Pip:
    """Stands where the plan's environment is: records commands, writes a report, answers."""

    def __init__(self, scratch: Path, entries: list[dict[str, object]], stderr: str = "") -> None:
        self.commands: list[list[str]] = []
        self._scratch = scratch
        self._entries = entries
        self._stderr = stderr

    def __call__(self, command: Sequence[str]) -> Finished:
        self.commands.append(list(command))
        if "pip" not in command:
            return Finished(tuple(command), 0, "", "")
        (self._scratch / "report.json").write_text(json.dumps({"install": self._entries}))
        return Finished(tuple(command), 1 if self._stderr else 0, "", self._stderr)


WHEEL = "https://index.example/numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl"


def test_artifacts_are_sorted_and_build_tools_marked(tmp_path: Path) -> None:
    flit = "https://index.example/flit_core-4.2.0-py3-none-any.whl"
    pip = Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL), entry("flit_core", "4.2.0", flit)])
    lock = make_lock(plan(), pip, tmp_path, {"flit_core": "flit_core", "numpy": "numpy"})
    assert [a.imports for a in lock.artifacts] == ["flit_core", "numpy"]
    assert [(a.name, a.build_only) for a in lock.artifacts] == [
        ("flit-core", True),
        ("numpy", False),
    ]
    assert lock.artifacts[1].filename == "numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert pip.commands[1][-2:] == ["numpy==2.4.6", "flit-core==4.2.0"]


def test_indexes_of_site_or_recipe_are_given_to_pip(tmp_path: Path) -> None:
    pip = Pip(tmp_path, [])
    urls = ("https://mirror.example/simple", "https://second.example/simple")
    make_lock(plan(pip_indexes=urls, find_links=("file:///apps/wheels",)), pip, tmp_path)
    words = " ".join(pip.commands[1])
    assert "--index-url https://mirror.example/simple --extra-index-url https://second" in words
    assert "--find-links file:///apps/wheels" in words


def test_credentials_never_reach_the_lock(tmp_path: Path) -> None:
    secret = WHEEL.replace("https://", "https://user:secret@")
    lock = make_lock(plan(), Pip(tmp_path, [entry("numpy", "2.4.6", secret)]), tmp_path)
    assert "secret" not in lock.text()
    assert lock.artifacts[0].url == WHEEL


def test_a_local_file_without_a_hash_is_hashed_and_a_remote_one_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "numpy-2.4.6-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    local = Pip(tmp_path, [entry("numpy", "2.4.6", wheel.as_uri(), None)])
    lock = make_lock(plan(), local, tmp_path)
    assert lock.artifacts[0].sha256 == hashlib.sha256(b"wheel").hexdigest()
    with pytest.raises(BuildError, match="gives no sha256"):
        make_lock(plan(), Pip(tmp_path, [entry("numpy", "2.4.6", WHEEL, None)]), tmp_path)


def test_a_pin_the_index_lacks_is_a_refusal(tmp_path: Path) -> None:
    said = (
        "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 "
        "(from versions: 1.0, 2.0)\nERROR: No matching distribution found for numpy==2.4.6\n"
    )
    with pytest.raises(Refusal) as caught:
        make_lock(plan(), Pip(tmp_path, [], said), tmp_path)
    assert (caught.value.component, caught.value.version) == ("numpy", "2.4.6")


NOTHING_OFFERED = (
    "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 "
    "(from versions: none)\nERROR: No matching distribution found for numpy==2.4.6\n"
)


def test_an_index_without_any_version_is_asked_at_length_why(tmp_path: Path) -> None:
    """Solving again would not help; and pip's short answer is the same where nothing answered."""
    lacking = Pip(tmp_path, [], NOTHING_OFFERED)
    with pytest.raises(BuildError, match="offers no file of numpy for this Python and platform"):
        make_lock(plan(), lacking, tmp_path)
    assert [
        next(w for w in words if w in {"--quiet", "-vv"}) for words in lacking.commands[1:]
    ] == [
        "--quiet",
        "-vv",
    ]
    dead = (
        "Could not fetch URL https://index.example/numpy/: connection error: Connection refused\n"
    )
    with pytest.raises(BuildError, match="index cannot be reached") as caught:
        make_lock(plan(), Pip(tmp_path, [], dead + NOTHING_OFFERED), tmp_path)
    assert caught.value.problems[0].hints[-1] == f"pip said: {dead.strip()}"


def test_a_full_disk_is_told_as_that(tmp_path: Path) -> None:
    said = (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    )
    with pytest.raises(BuildError, match="pip cannot work: ERROR: Could not install") as caught:
        make_lock(plan(), Pip(tmp_path, [], said), tmp_path)
    assert caught.value.problems[0].hints == (
        "the file system is full: free some space, or use another --root",
    )


def test_no_network_is_not_taken_for_a_refusal(tmp_path: Path) -> None:
    said = (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...): "
        "Failed to establish a new connection: [Errno 101] Network is unreachable'\n"
        "ERROR: No matching distribution found for numpy==2.4.6\n"
    )
    with pytest.raises(BuildError, match="index cannot be reached") as caught:
        make_lock(plan(), Pip(tmp_path, [], said), tmp_path)
    assert "mirror" in caught.value.problems[0].hints[0]


def test_a_conflict_among_free_packages_is_told_in_pips_words(tmp_path: Path) -> None:
    said = "ERROR: Cannot install a and b because these have conflicting dependencies.\n"
    with pytest.raises(BuildError, match="conflicting dependencies"):
        make_lock(plan(packages=("a", "b")), Pip(tmp_path, [], said), tmp_path)


def test_the_hash_names_what_is_decided_and_not_where_that_came_from(tmp_path: Path) -> None:
    def lock_of(**changes: object) -> str:
        return make_lock(plan(**changes), Pip(tmp_path, []), tmp_path).id()

    digest = {"kind": "knowledge", "name": "knowledge", "sha256": "b" * 64}
    assert lock_of() == lock_of(inputs=(digest,))
    assert lock_of() != lock_of(python="/usr/bin/python3.12")
    assert len(lock_of()) == 12
