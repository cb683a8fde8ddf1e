"""``validate --fix``: what it puts back is byte for byte what was there; the rest is left."""

from __future__ import annotations

import base64
import copy
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
import zoo
from ways import BROKEN, Way, published
from zoo import Made

from envbuilder.commands import mending, secret_links
from envbuilder.commands.context import Context
from envbuilder.commands.validate import list_checks
from envbuilder.commands.validate_options import ComparisonOptions, MendOptions, ValidateOptions
from envbuilder.errors import UsageError
from envbuilder.inspect.mending import reason
from envbuilder.mending.written import BODIES
from envbuilder.model.validation import Validation
from envbuilder.target_tools.files import make_read_only, remove_tree, sha256_of
from envbuilder.target_tools.manifest import look, record

pytestmark = pytest.mark.thorough

Fix = Callable[..., Validation]

# What --fix mends whole. All others of the zoo it leaves as they are.
MENDED = (
    "empty METADATA",
    "METADATA without a version",
    "METADATA removed",
    "file removed",
    "package's folder removed",
    "file edited",
    "file emptied",
    "file edited, as long as before",
    "lines of Windows",
    "published, then edited",
    "conda: file edited",
    "conda: file removed",
    "extension truncated",
    "extension empty",
    "extension that is a page of HTML",
    "extension of ppc64le",
    "extension of s390x",
    "extension for a newer glibc",
)


@pytest.fixture(scope="session")
def wheels(first: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.as_wheels(first, tmp_path_factory.mktemp("wheels") / "house")


@pytest.fixture
def fix(context: Context, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Fix:
    """Return what mends an environment, from the wheels alone."""
    # As pip says it; that it is asked so is seen to by a test of its own.
    said = f":env:.find-links='{wheels}'\n:env:.no-index='1'\n"
    monkeypatch.setattr(secret_links, "_pip_configuration", lambda _: said)

    def mended(
        made: Made,
        environ: Mapping[str, str] | None = None,
        *,
        dry_run: bool = False,
        baseline: Path | None = None,
        compared: ComparisonOptions | None = None,
    ) -> Validation:
        outside = copy.copy(context)
        object.__setattr__(outside, "environ", {**context.environ, **(environ or {})})
        asked = ValidateOptions(compared=compared or ComparisonOptions(), baseline=baseline)
        options = MendOptions(fix=True, dry_run=dry_run)
        return mending.fix(str(made.prefix), None, asked, options, outside)

    return mended


def files(folder: Path) -> dict[str, Any]:
    """Return of every file its permissions with its hash, or where it leads."""
    found = record(folder, "later")["files"]
    return {n: (e.get("mode"), e.get("sha256"), e.get("link")) for n, e in found.items()}


def but_records(files: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out conda's records: they say where its cache lies, beside each environment."""
    return {name: each for name, each in files.items() if not name.startswith("conda-meta/")}


def unbroken(name: str, first: Made, folder: Path) -> dict[str, Any]:
    """Return the files of an environment that was not broken in a way."""
    made = zoo.copy(first, folder / "env")
    if name.startswith("conda"):
        zoo.as_conda(made)
    return but_records(files(made.prefix))


def fixed(name: str, way: Way, first: Made, folder: Path, fix: Fix) -> tuple[Validation, Any, Any]:
    """Break an environment in a way, and mend it; return its files before and after, too."""
    made = zoo.copy(first, folder / "env")
    shell = way.make(made)
    compared = ComparisonOptions(
        site=str(folder / "there.yaml") if way.site else None,
        recipe=str(folder / "asked.yaml") if way.recipe else None,
    )
    before = files(made.prefix)
    value = fix(made, shell if isinstance(shell, dict) else None, compared=compared)
    return value, before, files(made.prefix)


@pytest.mark.parametrize("name", ["file edited", "conda: file removed", "METADATA removed"])
def test_what_is_mended_is_as_before(name: str, first: Made, tmp_path: Path, fix: Fix) -> None:
    value, before, after = fixed(name, BROKEN[name], first, tmp_path / "broken", fix)
    assert value.findings == ()
    assert value.mending
    assert value.mending.put_back
    assert not value.mending.left
    assert before != after
    assert but_records(after) == unbroken(name, first, tmp_path / "whole")


def test_a_dry_run_writes_nothing_and_tells_the_same(first: Made, tmp_path: Path, fix: Fix) -> None:
    made = zoo.copy(first, tmp_path / "env")
    (made.packages / "yaml" / "loader.py").unlink()
    made.edit(made.packages / "idna" / "core.py", lambda data: data + b"#")
    made.install("PyYAML", "1")
    before = files(made.prefix)
    would = fix(made, dry_run=True)
    assert files(made.prefix) == before
    assert {each.id for each in would.findings} == {
        *("package.gone", "package.changed", "package.twice")
    }
    did = fix(made)
    assert would.mending
    assert did.mending
    assert would.mending.put_back == did.mending.put_back
    assert [each.id for each in would.mending.refused] == ["package.twice"]
    assert [each.id for each in did.findings] == ["package.twice"]
    assert did.mending.refused == would.mending.refused


def test_what_somebody_accepts_stays(first: Made, tmp_path: Path, fix: Fix) -> None:
    made = zoo.copy(first, tmp_path / "env")
    patched = made.packages / "yaml" / "loader.py"
    made.edit(patched, lambda data: data + b"# patched\n")
    (made.packages / "idna" / "core.py").unlink()
    baseline = tmp_path / "baseline.yaml"
    row = {"id": "package.changed", "summary": "PyYAML *", "reason": "ticket 1234"}
    baseline.write_text(yaml.safe_dump({"schema": 1, "accepted": [row]}))
    value = fix(made, baseline=baseline)
    assert value.mending
    assert [each.file for each in value.mending.put_back] == [
        str((made.packages / "idna" / "core.py").relative_to(made.prefix))
    ]
    assert value.open == ()
    assert patched.read_bytes().endswith(b"# patched\n")


def test_what_was_published_is_as_it_was_published(first: Made, tmp_path: Path, fix: Fix) -> None:
    """Content, permissions, times and links; a file that was not there stays."""
    made = zoo.copy(first, tmp_path / "env")
    for path in made.prefix.rglob("*"):
        if path.is_file() and not path.is_symlink():
            made.write(path, path.read_bytes())
    (made.packages / "yaml" / "loader.py").chmod(0o555)
    make_read_only(made.prefix)
    published(made)
    before = look(made.prefix)
    for folder in (made.packages / "yaml", made.prefix / "bin", made.packages / "idna"):
        folder.chmod(0o755)
    (made.packages / "yaml" / "loader.py").unlink()
    (made.packages / "yaml" / "nodes.py").chmod(0o644)
    (made.packages / "yaml" / "more.py").write_text("")
    (made.prefix / "bin" / "python").unlink()
    remove_tree(made.packages / "idna")
    for folder in (made.packages / "yaml", made.prefix / "bin"):
        folder.chmod(0o555)
    value = fix(made)
    assert value.mending
    assert [(each.file, each.reason) for each in value.mending.left] == [
        (f"{made.packages.relative_to(made.prefix)}/yaml/more.py", "nothing is removed")
    ]
    assert [each.id for each in value.findings] == ["published.changed"]
    (extra,) = look(made.prefix).keys() - before.keys()
    assert extra.endswith("more.py")
    for name, each in before.items():
        now = look(made.prefix)[name]
        times = [entry.pop("times", [0])[0] for entry in (each, now)]
        assert now == each, name
        assert times[0] == times[1], name
    for folder in (made.packages / "idna", made.packages / "yaml", made.prefix / "bin"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o555


def test_a_wheel_that_holds_something_else_mends_nothing(
    first: Made, tmp_path: Path, fix: Fix, wheels: Path
) -> None:
    (wheel,) = wheels.glob("idna-*.whl")
    kept = wheel.read_bytes()
    made = zoo.copy(first, tmp_path / "env")
    core = made.packages / "idna" / "core.py"
    core.unlink()
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    try:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, data in held.items():
                archive.writestr(name, b"print('other')" if name == "idna/core.py" else data)
        before = files(made.prefix)
        value = fix(made)
    finally:
        wheel.write_bytes(kept)
    assert value.mending
    (left,) = value.mending.left
    assert left.reason == "what its package holds has another hash than was recorded"
    assert files(made.prefix) == before


def test_nothing_outside_of_the_environment_is_written(
    first: Made, tmp_path: Path, fix: Fix
) -> None:
    made = zoo.copy(first, tmp_path / "env")
    record = made.metadata("idna") / "RECORD"
    row = next(row for row in record.read_text().splitlines() if row.startswith("idna/core.py,"))
    (tmp_path / "elsewhere").mkdir()
    (made.prefix / "out").symlink_to(tmp_path / "elsewhere")
    rows = [row.replace("idna/core.py", each) for each in ("../../../../x.py", "../../../out/x.py")]
    made.write(record, record.read_text() + "\n".join(rows) + "\n")
    value = fix(made)
    assert value.mending
    assert [each.reason for each in value.mending.left] == [
        "it does not lie in the environment"
    ] * 2
    assert not (tmp_path / "x.py").exists()
    assert not any((tmp_path / "elsewhere").iterdir())


def test_each_finding_is_mended_or_has_a_reason() -> None:
    for each in list_checks():
        assert each.mends or not reason(each.id).startswith("it is about the releases"), each.id


def test_what_fix_does_not_take(first: Made, context: Context) -> None:
    prefix = str(first.prefix)
    with pytest.raises(UsageError, match="--dry-run is of --fix"):
        mending.fix(prefix, None, ValidateOptions(), MendOptions(dry_run=True), context)
    loaded = ValidateOptions(loaded=True)
    with pytest.raises(UsageError, match="--loaded"):
        mending.fix(prefix, None, loaded, MendOptions(fix=True), context)


@pytest.mark.long
def test_the_zoo_is_mended_or_left(
    first: Made, tmp_path: Path, fix: Fix, need: Callable[[str], str]
) -> None:
    """Each is byte for byte as before it was broken, or is left as it is, and the reason said."""
    need("gcc")
    whole = {
        kind: unbroken(kind, first, tmp_path / f"whole-{kind}") for kind in ("conda", "virtualenv")
    }
    # Modules are of the shell: --fix takes one environment alone.
    ways = {name: way for name, way in BROKEN.items() if not way.loaded}
    mended = []
    for number, (name, way) in enumerate(ways.items()):
        value, before, after = fixed(name, way, first, tmp_path / str(number), fix)
        done = value.mending
        assert done is not None
        if done.put_back:
            mended.append(name)
            assert (
                but_records(after) == whole["conda" if name.startswith("conda") else "virtualenv"]
            ), name
            assert value.findings == (), name
        else:
            assert before == after, name
            assert {each.id for each in done.refused} == {each.id for each in value.findings}
            assert way.wanted in {each.id for each in done.refused}, name
            assert all(each.reason for each in done.refused), name
    assert sorted(mended) == sorted(MENDED)


@pytest.mark.parametrize(("body", "python"), [*enumerate(["bin/python", "bin/python3"] * 2)])
def test_scripts_of_installers(
    body: int, python: str, first: Made, tmp_path: Path, fix: Fix
) -> None:
    """Those that pip, distlib and uv write; any other text is not taken for one of theirs."""
    made = zoo.copy(first, tmp_path / "env")
    text = f"#!{made.prefix / python}\n" + BODIES[body].format(
        module="tool.cli", name="App", call="App.main"
    )
    rows = []
    for name, data in (("tool", text), ("other", text + "# patched\n")):
        script = made.write(made.prefix / "bin" / name, data)
        digest = base64.urlsafe_b64encode(bytes.fromhex(sha256_of(script))).decode().rstrip("=")
        rows.append(f"../../../bin/{name},sha256={digest},{len(data)}\n")
    info = made.install("tool", "1", record="".join(rows))
    points = "[console_scripts]\ntool = tool.cli:App.main\nother = tool.cli:App.main\n"
    made.write(info / "entry_points.txt", points)
    for name in ("tool", "other"):
        (made.prefix / "bin" / name).unlink()
    value = fix(made)
    assert value.mending
    assert [each.file for each in value.mending.put_back] == ["bin/tool"]
    assert [each.file for each in value.mending.left] == ["bin/other"]
    assert (made.prefix / "bin" / "tool").read_text() == text
    assert stat.S_IMODE((made.prefix / "bin" / "tool").stat().st_mode) == 0o755
