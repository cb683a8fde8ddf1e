"""What a site states over what its snapshot holds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envbuilder.machine.modules.merge import merged
from envbuilder.model.site import Site, Snapshot, StatedModule


def site(*modules: StatedModule) -> Site:
    return Site(schema_=1, name="s", summary="x", arch=("x86_64",), modules=modules)


def snapshot(*modules: StatedModule, kind: Any = "live") -> Snapshot:
    return Snapshot(schema_=1, kind=kind, modules=modules)


def module(name: str = "A/1", **fields: Any) -> StatedModule:
    return StatedModule(name=name, **fields)


def test_stated_wins_field_by_field() -> None:
    there = module(loads=("B/1",), home="/there", conflicts=("A",))
    (found,), notes = merged(site(module(home="/stated")), snapshot(there))
    assert found == module(loads=("B/1",), home="/stated", conflicts=("A",))
    (note,) = notes
    assert all(each in note for each in ("A/1", "site s", "home /stated", "/there"))


def test_provides_and_facts_are_merged_by_their_entries() -> None:
    there = module(provides={"a": "1", "b": "2"}, facts={"x": True, "y": "old"})
    stated = module(provides={"b": "3", "c": "4"}, facts={"x": True, "z": False})
    (found,), notes = merged(site(stated), snapshot(there))
    assert found.provides == {"a": "1", "b": "3", "c": "4"}
    assert found.facts == {"x": True, "y": "old", "z": False}
    (note,) = notes
    assert all(each in note for each in ("A/1", "site s", "provides.b 3", "has 2"))


def test_a_field_that_only_one_fills_in_is_no_disagreement() -> None:
    (found,), notes = merged(site(module(families=("mpi",))), snapshot(module(home="/there")))
    assert found == module(families=("mpi",), home="/there")
    assert notes == ()


def test_a_fact_that_is_false_is_stated_too() -> None:
    (found,), notes = merged(
        site(module(facts={"cuda_aware": False})), snapshot(module(facts={"cuda_aware": True}))
    )
    assert found.facts == {"cuda_aware": False}
    (note,) = notes
    assert all(each in note for each in ("A/1", "facts.cuda_aware false", "has true"))


def test_a_module_that_looking_did_not_find() -> None:
    stated = module("B/1", loads=("A/1",))
    found, notes = merged(site(stated), snapshot(module()))
    assert found == (module(), stated)
    (note,) = notes
    assert all(each in note for each in ("site s", "B/1"))
    # Documentation does not claim to be complete.
    assert merged(site(stated), snapshot(module(), kind="documented"))[1] == ()


NAMES = st.sampled_from(["A/1", "A/2", "B/1"])
MODULES = st.lists(
    st.builds(
        StatedModule,
        name=NAMES,
        home=st.sampled_from([None, "/x", "/y"]),
        loads=st.lists(NAMES, max_size=2).map(tuple),
        provides=st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2),
        default=st.booleans(),
    ),
    max_size=3,
    unique_by=lambda each: each.name,
)


@given(MODULES, MODULES)
def test_merging_keeps_every_module_and_every_statement(
    stated: list[StatedModule], there: list[StatedModule]
) -> None:
    found, notes = merged(site(*stated), snapshot(*there))
    by_name = {each.name: each for each in found}
    assert list(by_name) == sorted({each.name for each in (*stated, *there)})
    for each in stated:
        result = by_name[each.name]
        assert result.home == (each.home or result.home)
        assert result.loads == (each.loads or result.loads)
        assert {**result.provides, **each.provides} == result.provides
    # Merging what came out with the same statements changes nothing and finds no disagreement
    # but over flags that were denied, which nothing can fill in.
    again, more = merged(site(*stated), snapshot(*found))
    assert again == found
    assert more == ()
    if [each for each in stated if each in there] == stated:
        assert notes == ()


def test_of_several_of_a_name_the_parents_say_which_is_meant() -> None:
    there = [module(parents=((each,),)) for each in ("GCC/12", "GCC/13")]
    (one, other), notes = merged(
        site(module(parents=(("GCC/12",),), home="/stated")), snapshot(*there)
    )
    assert {one.parents[0][0]: one.home, other.parents[0][0]: other.home} == {
        "GCC/12": "/stated",
        "GCC/13": None,
    }
    assert notes == ()
    # One that names none is about all of them; a site may list several itself.
    assert [each.home for each in merged(site(module(home="/x")), snapshot(*there))[0]] == [
        "/x"
    ] * 2
    assert merged(site(*there), snapshot(kind="documented"))[0] == tuple(there)
