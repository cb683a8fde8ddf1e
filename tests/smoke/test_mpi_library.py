"""Whose libmpi the plan means: what a compiler wrapper links, and what belongs to that."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.target_tools.proving.mpi_library import ANSWER, PlanMpi, of_prefix, of_wrapper


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return an MPI's folder; its libraries are links to versions, as everywhere."""
    for name in ("libmpi", "libmpi_cxx", "libopen-pal"):
        (tmp_path / "mpi" / "lib").mkdir(parents=True, exist_ok=True)
        (tmp_path / "mpi" / "lib" / f"{name}.so.40.30.4").touch()
        (tmp_path / "mpi" / "lib" / f"{name}.so").symlink_to(f"{name}.so.40.30.4")
    (tmp_path / "mpi" / "bin").mkdir()
    return tmp_path / "mpi"


def answered(run: Path, *lines: str) -> PlanMpi:
    (run / ANSWER).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return of_wrapper(run)


def test_what_a_wrapper_links_is_the_plans(tree: Path, tmp_path: Path) -> None:
    says = f"g++ -I{tree}/include -L{tree}/lib -Wl,-rpath -Wl,{tree}/lib -lmpi_cxx -lmpi"
    mpi = answered(tmp_path, f"{tree}/bin/mpicxx", says)
    assert mpi.files == (f"{tree}/lib/libmpi_cxx.so.40.30.4", f"{tree}/lib/libmpi.so.40.30.4")
    assert mpi.holds(f"{tree}/lib/libmpi.so.40.30.4")
    # Another language's part of the same MPI; and another MPI in the same folder.
    assert mpi.holds(f"{tree}/lib/libmpi_mpifh.so.40.30.0")
    assert not mpi.holds(f"{tree}/lib/libmpich.so.12.2.1")
    assert not mpi.holds(f"{tree}/lib/libmpi.so.12")
    assert not mpi.holds("/usr/lib/libmpi.so.40.30.4")
    assert mpi.source == f"{', '.join(mpi.files)} ({tree}/bin/mpicxx -show)"


def test_a_wheel_holds_copies_where_others_have_links(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("libmpi.so", "libmpi.so.12"):
        (tmp_path / "lib" / name).touch()
    mpi = answered(tmp_path, f"{tmp_path}/bin/mpicxx", f"c++ -L{tmp_path}/lib -lmpi")
    assert mpi.files == (f"{tmp_path}/lib/libmpi.so",)
    assert mpi.holds(f"{tmp_path}/lib/libmpi.so.12")


def test_a_wrapper_that_leaves_out_the_folder_of_its_libraries(tree: Path, tmp_path: Path) -> None:
    mpi = answered(tmp_path, f"{tree}/bin/mpicxx", "g++ -pthread -lmpi")
    assert mpi.files == (f"{tree}/lib/libmpi.so.40.30.4",)


def test_a_module_without_a_wrapper_means_the_libraries_beside_its_launcher(
    tree: Path, tmp_path: Path
) -> None:
    said = f"smoke.sh: line 18: {tree}/bin/mpicxx: No such file or directory"
    mpi = answered(tmp_path, f"{tree}/bin/mpicxx", said)
    assert set(mpi.files) == {
        f"{tree}/lib/libmpi.so.40.30.4",
        f"{tree}/lib/libmpi_cxx.so.40.30.4",
    }


@pytest.mark.parametrize("lines", [(), ("./mpicxx",), ("bash: no",)])
def test_nobody_answers(tmp_path: Path, lines: tuple[str, ...]) -> None:
    mpi = answered(tmp_path, *lines) if lines else of_wrapper(tmp_path)
    assert not mpi.known
    assert not mpi.holds("/usr/lib/libmpi.so.40")


def test_an_answer_that_names_nothing_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    mpi = answered(tmp_path, f"{tmp_path}/bin/mpicxx", "g++ -L/nowhere -lmpi 'unbalanced")
    assert not mpi.known
    assert mpi.source.endswith(f"libmpi ({tmp_path}/bin/mpicxx -show)")


def test_the_prefix_holds_all_below_it(tmp_path: Path) -> None:
    mpi = of_prefix(tmp_path)
    assert mpi.holds(f"{tmp_path}/lib/libmpi.so.12.5.2")
    assert not mpi.holds(f"{tmp_path}2/lib/libmpi.so.12.5.2")
