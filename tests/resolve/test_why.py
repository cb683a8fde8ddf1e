"""Why a component is what it is, why another version is not there; and how that is shown."""

from __future__ import annotations

import pytest
from resolve_fixture import asked, plain

from envbuilder.errors import NoSolutionError, UsageError
from envbuilder.resolve.why import _LEVEL_WORDS as LEVEL_WORDS
from envbuilder.resolve.why import why, why_not
from envbuilder.text import WIDTH
from envbuilder.views import plan as views


def test_what_nobody_asked_for_comes_with_a_module() -> None:
    found = why(asked(plain()), "cuda")
    assert (found.version, found.provider) == ("9.2.88", "module:CUDA/9.2.88-GCC-7.3.0")
    assert [each.split()[-1] for each in found.asked] == ["CUDA/9.2.88-GCC-7.3.0"]


def test_who_asks_with_the_place_and_what_ranks_better_with_what_stands_against_it() -> None:
    found = why(asked(plain()), "nccl")
    (line,) = found.asked
    assert line.startswith("recipe demo ")
    assert line.endswith("nccl >=2.3.7 (demo.yaml:10:3)")
    (newer,) = found.instead_of
    assert newer.what == "nccl@2.4.2 <- module:NCCL/2.4.2-gcccuda-2019a"
    assert not newer.possible
    text = " ".join(newer.because)
    # With it goes the other generation, whose only Open MPI is known to be bad.
    assert "openmpi" in text or "BAD-1" in text


def test_a_version_that_is_only_worse_says_at_which_level() -> None:
    found = why_not(asked(plain()), "openmpi", "3.1.1")
    assert found.possible
    level, row = found.because
    assert level == LEVEL_WORDS["newest"]
    assert row.startswith("BAD-2: ")


def test_a_version_that_cannot_be_says_what_stands_against_it() -> None:
    found = why_not(asked(plain()), "openmpi", "3.1.3")
    assert not found.possible
    assert any(each.startswith("BAD-1 (openmpi ==3.1.3): ") for each in found.because)
    assert "source of BAD-1" in found.links


def test_the_version_that_is_there_says_so() -> None:
    found = why_not(asked(plain()), "openmpi", "3.1.4")
    assert found.possible
    assert "openmpi@3.1.4" in views.why_not(found)


def test_a_version_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(UsageError) as caught:
        why_not(asked(plain()), "openmpi", "9.9")
    assert caught.value.id == "component.unavailable-version"
    (hint,) = caught.value.problems[0].hints
    assert hint.endswith(": 3.1.4, 3.1.3, 3.1.1")


def test_a_component_that_is_not_asked_for_is_told_from_one_that_is_not_there() -> None:
    documents = plain()
    del documents["recipe"]["stack"]["cmake"]
    found = why_not(asked(documents), "cmake", "3.12.1")
    assert found.possible
    assert all(each in found.because[0] for each in ("recipe demo", "cmake"))
    with pytest.raises(UsageError, match=r"cmake 9\.9") as caught:
        why_not(asked(documents), "cmake", "9.9")
    assert caught.value.id == "component.unavailable-version"


def test_the_best_of_every_other_origin_is_told_with_why_it_lost() -> None:
    documents = plain()
    documents["knowledge"]["components"]["cmake"]["pip"] = "cmake"
    documents["knowledge"]["releases"]["cmake"] = [{"version": "3.12.0"}]
    found = why(asked(documents), "cmake")
    assert found.provider.startswith("module:")
    (wheel,) = [each for each in found.instead_of if "pip:cmake" in each.what]
    assert wheel.what == "cmake@3.12.0 <- pip:cmake"
    assert wheel.because


def test_a_component_that_is_not_in_the_stack_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="'openmpi'") as caught:
        why(asked(plain()), "openmpy")
    assert caught.value.id == "component.unknown"


def test_no_stack_is_said_as_by_plan() -> None:
    documents = plain()
    documents["recipe"]["stack"]["openmpi"] = "==3.1.3"
    with pytest.raises(NoSolutionError, match="BAD-1") as caught:
        why(asked(documents), "openmpi")
    assert caught.value.id == "plan.known-bad"


@pytest.mark.parametrize("component", ["python", "nccl", "openmpi", "cuda", "horovod"])
def test_the_text_fits_a_terminal(component: str) -> None:
    text = views.why(why(asked(plain()), component))
    assert all(len(line) <= WIDTH for line in text.splitlines()), text
    assert text.startswith(component)
