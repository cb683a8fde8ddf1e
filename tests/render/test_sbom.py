"""The bill of materials and the provenance of locks: exactly what the lock names, valid, stable."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

from envbuilder.knowledge.artifacts import CondaArchive, GitTree, Patch, Sdist, Submodule, Wheel
from envbuilder.model.plan import Lock, Pin
from envbuilder.render.provenance import render_predicate
from envbuilder.render.sbom import render_sbom
from envbuilder.target_tools.root.attestations import statement

STORED = sorted((Path(__file__).parent.parent / "model" / "stored_locks").glob("*/*.json"))


def stored(path: Path) -> Lock:
    return Lock.model_validate_json(path.read_text(encoding="utf-8"))


@cache
def _validator() -> JsonStrictValidator:
    return JsonStrictValidator(SchemaVersion.V1_7)


def valid(text: str) -> dict[str, Any]:
    """Return a CycloneDX document that its schema, as the library ships it, allows."""
    assert _validator().validate_str(text) is None
    bill: dict[str, Any] = json.loads(text)
    every = {bill["metadata"]["component"]["bom-ref"], *(c["bom-ref"] for c in bill["components"])}
    assert len(every) == len(bill["components"]) + 1
    assert {each["ref"] for each in bill["dependencies"]} == every
    assert {ref for each in bill["dependencies"] for ref in each.get("dependsOn", ())} <= every
    return bill


def hashed(bill: dict[str, Any]) -> Counter[tuple[str, str | None, str]]:
    """Return name, version and sha256 of every component that has a hash."""
    return Counter(
        (each["name"], each.get("version"), digest["content"])
        for each in bill["components"]
        for digest in each.get("hashes", ())
        if digest["alg"] == "SHA-256"
    )


def named(lock: Lock) -> Counter[tuple[str, str | None, str]]:
    files = ((each.name, each.version, each.sha256) for each in lock.artifacts)
    patches = ((each.name, None, each.sha256) for each in lock.plan.patches)
    return Counter([*files, *patches])


def external(bill: dict[str, Any]) -> set[tuple[str, str]]:
    return {(c["name"], c["version"]) for c in bill["components"] if c["isExternal"]}


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_bill_names_exactly_what_the_lock_has(path: Path) -> None:
    lock = stored(path)
    plan, text = lock.plan, render_sbom(lock)
    bill = json.loads(text)
    assert hashed(bill) == named(lock)
    pins = (*plan.pins, *plan.build_pins, *plan.brought)
    around = {(pin.component, pin.version) for pin in pins if pin.origin in ("module", "system")}
    assert external(bill) == around
    assert len(bill["components"]) - sum(hashed(bill).values()) - len(around) == 1
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"]) == (plan.recipe, lock.id())
    assert "timestamp" not in bill["metadata"]
    assert render_sbom(Lock.model_validate_json(lock.text())) == text


def test_the_schema_of_cyclonedx_allows_it() -> None:
    """Whose validator takes 0.8 s for twenty files: its grammar of IRIs is slow."""
    valid(render_sbom(stored(STORED[0].with_name("horovod-torch-cpu-kinds.json"))))


def in_toto(text: str) -> dict[str, Any]:
    """Return a statement that the definitions of in-toto and of SLSA allow: no field is unknown."""
    value: dict[str, Any] = json.loads(text)
    message = json_format.Parse(text, StatementMessage())
    Statement.copy_from_pb(message).validate()
    assert value["predicateType"] == "https://slsa.dev/provenance/v1"
    json_format.ParseDict(value["predicate"], Provenance())
    return value


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_provenance_names_exactly_what_the_lock_has(path: Path) -> None:
    lock = stored(path)
    value = in_toto(statement(render_predicate(lock), {"one": "0" * 64, "another": "1" * 64}))
    assert [each["name"] for each in value["subject"]] == ["another", "one"]
    definition = value["predicate"]["buildDefinition"]
    *files, runtime = definition["resolvedDependencies"]
    assert Counter((each["name"], each["digest"]["sha256"]) for each in files) == Counter(
        (each.name, each.sha256) for each in (*lock.artifacts, *lock.plan.patches)
    )
    assert runtime["annotations"]["sources-sha256"] == lock.plan.runtime.source_sha256
    assert definition["internalParameters"]["lock"] == {"sha256": lock.sha256()}
    assert definition["externalParameters"]["recipe"] == lock.plan.recipe


LINES = st.text("aé '\"%$\\&<>{}[]@#?=/", min_size=1, max_size=20)
NAMES = st.from_regex(r"[a-z0-9]+(?:[._+-][a-z0-9]+){0,3}", fullmatch=True).map(lambda t: t[:60])
NAMES = NAMES.map(lambda text: text.strip("._+-"))
VERSIONS = st.from_regex(r"[0-9]{1,4}(\.[0-9a-z]{1,5}){0,3}(\+[a-z0-9]{1,5})?", fullmatch=True)
SHAS = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
COMMITS = st.from_regex(r"[0-9a-f]{40}", fullmatch=True)
URLS = st.sampled_from(
    [
        "https://index.example/a%20b",
        "file:///srv/pack%C3%A4ges",
        "https://a.example/100%/[x] y/ä'()*,;={}|^`.whl",
    ]
)
GIT_URLS = st.sampled_from(["https://git.example/a/b", "file:///srv/tree%20s"])
FILES = {"name": NAMES, "version": VERSIONS, "filename": LINES, "url": URLS, "sha256": SHAS}
ARTIFACTS = st.one_of(
    st.builds(Wheel, **FILES, needs=st.none() | st.lists(NAMES, max_size=3).map(tuple)),
    st.builds(Sdist, **FILES, build_only=st.booleans()),
    st.builds(
        GitTree,
        **{**FILES, "url": GIT_URLS, "tag": LINES, "commit": COMMITS, "tree": COMMITS},
        size=st.just(1),
        submodules=st.just((Submodule(path="a", url="git@host:a/b", commit="0" * 40),)),
    ),
    st.builds(
        CondaArchive,
        name=NAMES,
        version=VERSIONS,
        build=st.from_regex(r"[A-Za-z0-9._+]{1,9}", fullmatch=True),
        url=GIT_URLS,
        sha256=SHAS,
        md5=st.none() | st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
        channel=st.none() | GIT_URLS,
        depends=st.lists(NAMES.map(lambda name: f"{name} >=1,<2"), max_size=3).map(tuple),
    ),
)
PINS = st.builds(
    Pin,
    component=NAMES,
    version=VERSIONS,
    origin=st.sampled_from(["module", "system"]),
    locator=LINES,
    why=st.just("it is there"),
)


@given(
    artifacts=st.lists(ARTIFACTS, max_size=4, unique_by=lambda each: each.sha256),
    pins=st.lists(PINS, max_size=3),
    patches=st.lists(st.builds(Patch, name=NAMES, sha256=SHAS), max_size=2, unique_by=lambda p: p),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_lock_says_is_said_and_valid(
    artifacts: list[Any], pins: list[Pin], patches: list[Patch]
) -> None:
    whole = stored(STORED[0])
    plan = whole.plan.model_copy(update={"patches": tuple(patches), "brought": tuple(pins)})
    lock = Lock(plan=plan, artifacts=tuple(artifacts))
    bill = valid(render_sbom(lock))
    assert hashed(bill) == named(lock)
    assert {(pin.component, pin.version) for pin in pins} <= external(bill)
    in_toto(statement(render_predicate(lock), {"it": "0" * 64}))
