"""Evidence that is not of its environment, or of no run: every reader shows it as not counting."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.model.evidence import Evidence
from envbuilder.render.container import FOLDER
from envbuilder.target_tools.proving import recheck
from envbuilder.target_tools.proving.binding import EARLIER, new_nonce, read_earlier
from envbuilder.target_tools.root import store
from envbuilder.target_tools.root.layout import Home, Version
from envbuilder.target_tools.root.publish import published
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved, subject
from tests.smoke.smoke_ranks import LARGE, Rank

LATER = 4070908800.0  # in 2099


class Place(NamedTuple):
    """Where the forged evidence is put, and an environment that has evidence of its own."""

    home: Home
    version: Version
    other: Home
    other_version: Version

    @property
    def folder(self) -> Path:
        return self.home.evidence(self.version.id)

    @property
    def about(self) -> dict[str, Any]:
        return subject(self.home, self.version)

    @property
    def others(self) -> Path:
        return self.other.evidence(self.other_version.id)

    def bound(self, **changes: Any) -> Path:
        return proved(self.folder, self.about, **changes)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("forged") / "root"
    plan = {**planned("allreduce", "--site", "local"), "partition": "ml"}
    for name in ("allreduce", "other"):
        publish_plan(root, {**plan, "recipe": name})
    return root


@pytest.fixture
def place(original: Path, tmp_path: Path) -> Place:
    root = shutil.copytree(original, tmp_path / "root", symlinks=True)
    homes = [Home(root, name) for name in ("allreduce", "other")]
    versions = [published(home)[0] for home in homes]
    return Place(homes[0], versions[0], homes[1], versions[1])


def edit(run: Path, /, **changes: Any) -> None:
    """Change fields of an evidence record."""
    path = run / "evidence.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_result(run: Path, /, **changes: Any) -> None:
    edit(run, result={**json.loads((run / "evidence.json").read_text())["result"], **changes})


def edit_ranks(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change every line that the ranks recorded."""
    for path in run.glob("ranks/*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            change(line)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def copied(place: Place, schema: int = 2) -> Path:
    """Copy the evidence of the other environment."""
    run = proved(place.others, subject(place.other, place.other_version), schema=schema)
    return Path(shutil.copytree(run, place.folder / run.name))


def copied_and_edited(place: Place) -> None:
    edit(copied(place), **place.about)


def copied_with_new_nonce(place: Place) -> None:
    run = copied(place)
    edit(run, **place.about)
    nonce = new_nonce({**place.about})
    edit_ranks(run, lambda line: line.update(nonce=nonce))


def replayed(place: Place) -> None:
    """Take the records of an earlier run of the same environment."""
    run = place.bound()
    nonce = new_nonce(place.about)
    edit_ranks(run, lambda line: line.update(nonce=nonce))


def dated_everywhere(place: Place) -> None:
    place.bound(begin=LATER)


def without_ranks(place: Place) -> None:
    shutil.rmtree(place.bound() / "ranks")


def emptied(run: Path) -> None:
    for path in run.glob("ranks/*"):
        path.unlink()


def with_hosts(place: Place) -> None:
    edit_result(place.bound(), tier="several nodes", nodes=["node1", "node2"])


def unobserved(place: Place) -> None:
    """State the node and the PID namespace of the runner, which saw no such process."""
    run = place.bound()
    edit_ranks(
        run,
        lambda line: (
            line.update(clock="boot-login", pid_namespace="pid:[1]")
            if line["event"] == "start"
            else None
        ),
    )
    result = json.loads((run / "evidence.json").read_text())["result"]
    processes = [{**each, "boot-id": "boot-login"} for each in result["processes"]]
    edit_result(run, processes=processes)


def seen_after_all(place: Place) -> None:
    run = place.bound()
    result = json.loads((run / "evidence.json").read_text())["result"]
    edit_result(run, processes=[{**each, "observed": True} for each in result["processes"]])


def before_the_run(place: Place) -> None:
    def change(line: dict[str, Any]) -> None:
        line.update({name: line[name] - 1000 for name in ("unix",) if name in line})

    edit_ranks(place.bound(), change)


def turned(place: Place) -> None:
    run = place.bound()
    nonce = str(recheck.nonce_of(run / "ranks"))
    rank = Rank(1, problems={LARGE: "3 numbers differ"}, nonce=nonce, unix=1767225600.0)
    rank.write(run / "ranks")


def more_ranks(place: Place) -> None:
    edit_result(place.bound(), ranks=64)


def as_earlier(place: Place) -> None:
    """Call bound evidence of another environment one of the earlier schema."""
    edit(copied(place), **place.about, schema=1, run=None)


def unlisted(place: Place) -> None:
    place.bound(schema=1)


def listed(place: Place) -> Path:
    """Put evidence of the earlier schema there, as the last release left it."""
    run = place.bound(schema=1)
    (place.home.root / EARLIER).unlink()
    store.check_writable(store.read_root(place.home.root))
    return run


def provisional(place: Place, **changes: Any) -> Path:
    """Put evidence of the earlier schema into a root that this release has not written to."""
    (place.home.root / EARLIER).unlink()
    run = place.bound(schema=1)
    edit(run, **changes)
    return run


def copied_from_earlier(place: Place) -> None:
    (place.home.root / EARLIER).unlink()
    copied(place, schema=1)


def damaged_list(place: Place) -> None:
    listed(place)
    (place.home.root / EARLIER).write_text("{")


FORGERIES: dict[str, Callable[[Place], object]] = {
    "copied": copied,
    "copied and edited": copied_and_edited,
    "copied with a new nonce": copied_with_new_nonce,
    "replayed": replayed,
    "another environment": lambda place: edit(place.bound(), environment="other"),
    "another id": lambda place: edit(place.bound(), id="0" * 12),
    "another lock": lambda place: edit(place.bound(), **{"lock-sha256": "0" * 64}),
    "another site": lambda place: edit(place.bound(), site="elsewhere"),
    "another partition": lambda place: edit(place.bound(), partition="haswell"),
    "no partition": lambda place: edit(place.bound(), partition=None),
    "another architecture": lambda place: edit(place.bound(), arch="ppc64le"),
    "dated 2099": lambda place: edit(place.bound(), time="2099-01-01T00:00:00Z"),
    "dated 2025": lambda place: edit(place.bound(), time="2025-01-01T00:00:00Z"),
    "dated 2099 by its ranks": dated_everywhere,
    "without ranks": without_ranks,
    "emptied": lambda place: emptied(place.bound()),
    "several nodes": with_hosts,
    "a higher number of ranks": more_ranks,
    "a failure called passed": turned,
    "not observed": unobserved,
    "observed by its own word": seen_after_all,
    "before its run": before_the_run,
    "without its run": lambda place: edit(place.bound(), run=None),
    "old: not listed": unlisted,
    "old: copied and edited": as_earlier,
    "old: listed, then emptied": lambda place: emptied(listed(place)),
    "old: listed, then edited": lambda place: edit(listed(place), time="2026-02-01T00:00:00Z"),
    "old: the list is damaged": damaged_list,
    "old: copied": copied_from_earlier,
    "old: another id": lambda place: provisional(place, id="0" * 12),
    "old: another lock": lambda place: provisional(place, **{"lock-sha256": "0" * 64}),
    "old: another site": lambda place: provisional(place, site="elsewhere"),
    "old: another architecture": lambda place: provisional(place, arch="ppc64le"),
    "old: dated 2099": lambda place: provisional(place, time="2099-01-01T00:00:00Z"),
    "old: emptied": lambda place: emptied(provisional(place)),
}


def read(*words: Any) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def row(place: Place) -> dict[str, Any]:
    rows = read("list", "--root", place.home.root)["environments"]
    [own] = [each for each in rows if each["environment"] == "allreduce"]
    found: dict[str, Any] = own
    return found


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
@pytest.mark.sample(12)
def test_forged_evidence_is_claimed_and_does_not_count(
    place: Place, forge: Callable[[Place], object]
) -> None:
    forge(place)
    own, info = row(place), read("info", "allreduce", "--root", place.home.root)
    assert (own["tier"], own["proved"], info["evidence"]) == (None, None, [])
    assert (len(own["claimed"]), own["damaged"]) == (1, [])
    assert info["claimed"] == own["claimed"]
    assert "does not count: " in own["claimed"][0]
    text = CliRunner().invoke(app, ["list", "--root", str(place.home.root)]).stdout
    assert "claims" in text


def test_rollback_warns_of_a_number_whose_evidence_does_not_count(place: Place) -> None:
    words = ["rollback", "allreduce", "--to", "1", "--root", str(place.home.root)]
    unproved = CliRunner().invoke(app, words)
    assert unproved.exit_code == 0
    assert "has no smoke test that passed" in unproved.stderr
    copied(place)
    forged = CliRunner().invoke(app, words)
    assert forged.exit_code == 0
    assert "does not count: " in forged.stderr
    proved(place.folder, place.about, name="0002")
    proved_again = CliRunner().invoke(app, words)
    assert "has no smoke test that passed" not in proved_again.stderr


def test_bound_evidence_counts_with_the_time_at_which_its_ranks_ended(place: Place) -> None:
    edit(place.bound(), time="2026-01-01T00:02:00Z")
    own = row(place)
    assert (own["tier"], own["claimed"], own["unbound"]) == ("several ranks", [], False)
    assert own["proved"] == "2026-01-01T00:00:00Z"


def test_evidence_of_the_earlier_schema_keeps_its_tier(place: Place) -> None:
    """Before the first write of this release, and after it; what comes later does not count."""
    run = provisional(place)
    root = place.home.root
    before = row(place)
    assert (before["tier"], before["unbound"]) == ("several ranks", True)
    assert not (root / EARLIER).exists(), "list writes nothing"
    assert (
        CliRunner()
        .invoke(app, ["rollback", "allreduce", "--to", "1", "--root", str(root)])
        .exit_code
        == 0
    )
    assert set(read_earlier(root).hashes or {}) == {str(run.relative_to(root))}
    assert row(place) == before
    text = CliRunner().invoke(app, ["info", "allreduce", "--root", str(root)]).stdout
    assert "recorded before binding" in text
    shutil.copytree(run, run.with_name("0002"))
    assert (row(place)["tier"], len(row(place)["claimed"])) == ("several ranks", 1)


def test_a_login_node_counts_what_a_compute_node_proved(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.bound(hosts=("compute1", "compute2"))
    monkeypatch.setattr("envbuilder.target_tools.proc.boot_id", lambda: "another")
    monkeypatch.setattr("os.uname", lambda: pytest.fail("a reader compares no host"))
    assert row(place)["tier"] == "several nodes"


@pytest.mark.parametrize("schema", [None, 1, 2])
def test_an_image_counts_bound_evidence_only(
    place: Place, tmp_path: Path, schema: int | None
) -> None:
    """None: assembled without any run."""
    run = place.bound(schema=schema or 1)
    if schema is None:
        edit_result(run, tier="several nodes", nodes=["node1", "node2"])
        shutil.rmtree(run / "ranks")
    inside = tmp_path / "image" / FOLDER.relative_to("/")
    shutil.copytree(place.home.root, inside, symlinks=True)
    shutil.rmtree(inside / "other")
    told = read("info", tmp_path / "image")
    assert len(told["evidence"]) == (1 if schema == 2 else 0)
    assert len(told["claimed"]) == (0 if schema == 2 else 1)


@pytest.mark.parametrize("runtime", ["ddl", "tf-distribute", None])
def test_a_proof_by_another_api_is_no_proof_of_the_recipe(
    original: Path, tmp_path: Path, runtime: str | None
) -> None:
    plan = planned("allreduce", "--site", "local")
    plan["runtime"]["beside"] = runtime
    version = publish_plan(tmp_path / "root", plan)
    home = Home(tmp_path / "root", "allreduce")
    place = Place(home, version, home, version)
    place.bound()
    by = "numpy" if runtime else None
    assert (row(place)["tier"], row(place)["by"]) == ("several ranks", by)
    [one] = read("info", "allreduce", "--root", home.root)["evidence"]
    assert Evidence.model_validate(one).by == by
    text = CliRunner().invoke(app, ["list", "--root", str(home.root)]).stdout
    assert ("several ranks by numpy" in text) == (runtime is not None)
