"""What rows say of versions that are there together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuilder.knowledge.components import Component
from envbuilder.knowledge.conditions import Value
from envbuilder.knowledge.matching import subjects
from envbuilder.knowledge.rows import Advisory, Coupling, FlagRule, Knowledge, Row
from envbuilder.resolve.facts import Facts
from envbuilder.resolve.verdicts import Match, StackFacts, match


def row(kind: type[Row], **fields: Any) -> Any:
    about = {"id": "T-001", "severity": "error", "summary": "It breaks", "evidence": "run"}
    return kind.model_validate({**about, "sources": ["https://example.org"], **fields})


def knowledge(*rows: Row) -> Knowledge:
    names = {"alpha": (), "beta": (), "one-mpi": ("mpi",), "other-mpi": ("mpi",)}
    return Knowledge(
        components={
            name: Component(summary=name, fulfils=virtuals) for name, virtuals in names.items()
        },
        releases={},
        advisories=tuple(each for each in rows if isinstance(each, Advisory)),
        couplings=tuple(each for each in rows if isinstance(each, Coupling)),
        flag_rules=tuple(each for each in rows if isinstance(each, FlagRule)),
    )


def ask(
    one: Row, *, complete: bool = False, facts: dict[str, Value] | None = None, **versions: str
) -> Match | None:
    names = {name.replace("_", "-"): text for name, text in versions.items()}
    stack = StackFacts(names, Facts(facts or {}), complete=complete)
    # Without the laws, such as that an environment has one MPI.
    found = [each for each in match(knowledge(one), stack) if each.row.id == one.id]
    assert len(found) <= 1
    return found[0] if found else None


def verdict(found: Match | None) -> str | None:
    return found.verdict if found else None


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"alpha": "1.1"}, "holds"),
        ({"alpha": "1.9"}, "holds"),
        ({"alpha": "1.0"}, None),
        ({"alpha": "2.0"}, None),
        ({"alpha": "3.5"}, "holds"),
        ({"beta": "1.1"}, None),
    ],
)
def test_an_advisory_holds_inside_its_ranges_only(
    versions: dict[str, str], said: str | None
) -> None:
    advisory = row(Advisory, component="alpha", affected=[">1.0,<2", "==3.5"])
    assert verdict(ask(advisory, **versions)) == said


def test_what_stands_beside_must_be_there_in_its_range() -> None:
    advisory = row(Advisory, component="alpha", affected="*", beside={"beta": ">=2"})
    assert verdict(ask(advisory, alpha="1", beta="2.1")) == "holds"
    assert ask(advisory, alpha="1", beta="1.9") is None
    open_ = ask(advisory, alpha="1")
    assert open_ is not None
    assert (open_.verdict, open_.open, open_.bad) == ("beside", ("beta >=2",), False)
    assert ask(advisory, alpha="1", complete=True) is None
    assert ask(advisory, beta="2.1") is None


def test_a_virtual_is_whatever_fulfils_it() -> None:
    advisory = row(Advisory, component="alpha", affected="*", beside={"mpi": "<2"})
    assert verdict(ask(advisory, alpha="1", one_mpi="1.0")) == "holds"
    assert ask(advisory, alpha="1", one_mpi="2.0") is None
    both = ask(advisory, alpha="1", one_mpi="2.0", other_mpi="1.0")
    assert both is not None
    assert "other-mpi@1.0" in both.about


@pytest.mark.parametrize(
    ("facts", "said", "severity", "open_"),
    [
        ({"arch": "ppc64le", "network": frozenset({"infiniband"})}, "holds", "error", ()),
        ({"arch": "x86_64"}, None, None, None),
        ({"network": frozenset()}, None, None, None),
        ({"arch": "ppc64le"}, "unknown", "warning", ("network",)),
        ({}, "unknown", "warning", ("arch", "network")),
    ],
)
def test_a_condition_has_three_values(
    facts: dict[str, Value], said: str | None, severity: str | None, open_: tuple[str, ...] | None
) -> None:
    when = "arch == 'ppc64le' and 'infiniband' in network"
    found = ask(row(Advisory, component="alpha", affected="*", when=when), facts=facts, alpha="1")
    assert verdict(found) == said
    if found is not None:
        assert (found.severity, found.open, found.bad) == (severity, open_, said == "holds")


def test_unknown_weighs_as_much_as_the_row_says() -> None:
    fields = {"component": "alpha", "affected": "*", "when": "os == 'x'"}
    for severity, unknown, weight in (
        ("error", "error", "error"),
        ("error", "warning", "warning"),
        ("warning", "warning", "warning"),
        ("info", "warning", "info"),
    ):
        found = ask(row(Advisory, severity=severity, unknown=unknown, **fields), alpha="1")
        assert found is not None
        assert (found.verdict, found.severity) == ("unknown", weight)
        assert found.bad == (weight == "error")


def test_a_coupling_is_broken_by_what_is_there_in_another_release() -> None:
    coupling = row(Coupling, given={"alpha": ">=2"}, needs={"beta": ">=3.1"})
    assert verdict(ask(coupling, alpha="2", beta="3.0")) == "holds"
    assert ask(coupling, alpha="2", beta="3.1") is None
    assert ask(coupling, alpha="1", beta="3.0") is None
    needs = ask(coupling, alpha="2")
    assert needs is not None
    assert (needs.verdict, needs.open) == ("beside", ("beta outside >=3.1",))
    assert ask(coupling, alpha="2", complete=True) is None


def test_a_coupling_whose_need_must_be_there() -> None:
    coupling = row(Coupling, given={"alpha": "*"}, needs={"mpi": "*"}, absent="wrong")
    assert verdict(ask(coupling, alpha="2", complete=True)) == "holds"
    assert ask(coupling, alpha="2", one_mpi="1", complete=True) is None
    assert verdict(ask(coupling, alpha="2")) == "beside"


def test_of_several_needs_one_that_is_wrong_is_enough() -> None:
    coupling = row(Coupling, given={"alpha": "*"}, needs={"beta": "<2", "one-mpi": "<2"})
    assert verdict(ask(coupling, alpha="1", beta="2", complete=True)) == "holds"
    assert verdict(ask(coupling, alpha="1", beta="1", one_mpi="2")) == "holds"
    assert ask(coupling, alpha="1", beta="1", one_mpi="1") is None


def test_an_origin_that_is_not_known_is_named() -> None:
    beside = {"beta": {"range": "<2", "origin": ["pip"]}}
    one = row(Advisory, component="alpha", affected="*", beside=beside)
    found = ask(one, alpha="1", beta="1")
    assert found is not None
    assert (found.verdict, found.open) == ("unknown", ("beta.origin",))
    for origin, said in (("pip", "holds"), ("module", None)):
        known = StackFacts({"alpha": "1", "beta": "1"}, Facts({}), {"beta": origin})  # type: ignore[arg-type]
        assert verdict(next(iter(match(knowledge(one), known)), None)) == said
    assert ask(one, alpha="1", beta="2") is None


def test_a_rule_of_flags_hangs_on_flags() -> None:
    rule = row(FlagRule, runtime="alpha", range="<2", when="flags.X == '1'")
    found = ask(rule, alpha="1")
    assert found is not None
    assert (found.verdict, found.open) == ("unknown", ("flags.X",))
    assert verdict(ask(rule, facts={"flags.X": "1"}, alpha="1")) == "holds"
    assert ask(rule, facts={"flags.X": "0"}, alpha="1") is None
    assert ask(rule, alpha="2") is None


def test_what_holds_comes_first_and_the_weighty_before_the_light() -> None:
    rows = [
        row(Advisory, id="T-004", component="alpha", affected="*", severity="info"),
        row(Advisory, id="T-003", component="alpha", affected="*", when="os == 'x'"),
        row(Advisory, id="T-002", component="alpha", affected="*"),
        row(Advisory, id="T-001", component="alpha", affected="*", beside={"beta": "*"}),
    ]
    found = match(knowledge(*rows), StackFacts({"alpha": "1"}, Facts({})))
    assert [each.row.id for each in found] == ["T-002", "T-004", "T-003", "T-001"]


@given(st.sets(st.sampled_from(["alpha", "beta", "one-mpi"])), st.booleans())
def test_more_that_is_known_never_turns_a_verdict_round(names: set[str], complete: bool) -> None:
    """What holds with some facts holds with more of them, and what does not never will."""
    when = "arch == 'x' or os == 'y'"
    one = row(Advisory, component="alpha", affected="<2", beside={"mpi": "*"}, when=when)
    versions = dict.fromkeys(names, "1")

    def of(facts: dict[str, Value]) -> str | None:
        found = match(knowledge(one), StackFacts(versions, Facts(facts), complete=complete))
        return verdict(next(iter(found), None))

    for partial in ({}, {"arch": "x"}, {"arch": "z"}, {"os": "y"}):
        full: dict[str, Value] = {"arch": "z", "os": "z", **partial}
        if of(partial) in ("holds", None):
            assert of(full) == of(partial)


def test_subjects_are_all_that_a_row_speaks_of() -> None:
    assert subjects(
        row(Advisory, component="alpha", affected=["<1", ">2"], beside={"mpi": "*"})
    ) == {
        "alpha": "<1 or >2",
        "mpi": "*",
    }
    selector = {"range": "<2", "origin": ["pip", "build"]}
    assert subjects(row(Coupling, given={"alpha": selector}, needs={"beta": "*"})) == {
        "alpha": "<2 from pip or build",
        "beta": "*",
    }
    assert subjects(row(FlagRule, runtime="alpha")) == {"alpha": "*"}
