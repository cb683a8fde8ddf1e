"""Why a component is what it is, why another version is not there; and how that is shown."""

from __future__ import annotations

import pytest
from resolve_fixture import asked, plain

from envbuilder.errors import NoSolutionError, UsageError
from envbuilder.resolve.why import why, why_not
from envbuilder.text import WIDTH
from envbuilder.views import plan as views


def test_what_nobody_asked_for_comes_with_a_module() -> None:
    found = why(asked(plain()), "cuda")
    assert (found.version, found.provider) == ("9.2.88", "module:CUDA/9.2.88-GCC-7.3.0")
    assert found.asked == ("comes with module CUDA/9.2.88-GCC-7.3.0",)


def test_who_asks_with_the_place_and_what_ranks_better_with_what_stands_against_it() -> None:
    found = why(asked(plain()), "nccl")
    assert found.asked == ("recipe demo asks for nccl >=2.3.7 (demo.yaml:10:3)",)
    (newer,) = found.instead_of
    assert newer.what == "nccl@2.4.2 <- module:NCCL/2.4.2-gcccuda-2019a"
    assert not newer.possible
    text = " ".join(newer.because)
    # With it goes the other generation, whose only Open MPI is known to be bad.
    assert "openmpi" in text or "BAD-1" in text


def test_a_version_that_is_only_worse_says_at_which_level() -> None:
    found = why_not(asked(plain()), "openmpi", "3.1.1")
    assert found.possible
    assert found.because == (
        "not the newest that fits, here or of what the recipe names before it",
        "BAD-2: what BAD-2 says",
    )


def test_a_version_that_cannot_be_says_what_stands_against_it() -> None:
    found = why_not(asked(plain()), "openmpi", "3.1.3")
    assert not found.possible
    assert "BAD-1 (openmpi ==3.1.3): what BAD-1 says" in found.because
    assert "source of BAD-1" in found.links


def test_the_version_that_is_there_says_so() -> None:
    found = why_not(asked(plain()), "openmpi", "3.1.4")
    assert found.possible
    assert views.why_not(found).endswith("is what the plan has")


def test_a_version_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"no openmpi 9\.9 at site here") as caught:
        why_not(asked(plain()), "openmpi", "9.9")
    assert caught.value.problems[0].hints == ("of openmpi there is: 3.1.4, 3.1.3, 3.1.1",)


def test_a_component_that_is_not_asked_for_is_told_from_one_that_is_not_there() -> None:
    documents = plain()
    del documents["recipe"]["stack"]["cmake"]
    found = why_not(asked(documents), "cmake", "3.12.1")
    assert found.possible
    assert found.because[0] == "recipe demo does not ask for cmake"
    with pytest.raises(UsageError, match=r"no cmake 9\.9 at site here"):
        why_not(asked(documents), "cmake", "9.9")


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
    with pytest.raises(UsageError, match="did you mean 'openmpi'"):
        why(asked(plain()), "openmpy")


def test_no_stack_is_said_as_by_plan() -> None:
    documents = plain()
    documents["recipe"]["stack"]["openmpi"] = "==3.1.3"
    with pytest.raises(NoSolutionError, match="BAD-1"):
        why(asked(documents), "openmpi")


@pytest.mark.parametrize("component", ["python", "nccl", "openmpi", "cuda", "horovod"])
def test_the_text_fits_a_terminal(component: str) -> None:
    text = views.why(why(asked(plain()), component))
    assert all(len(line) <= WIDTH for line in text.splitlines()), text
    assert text.startswith(component)
