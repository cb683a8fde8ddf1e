"""EasyBuild's generations of toolchains, as they were released: what each holds."""

from __future__ import annotations

from collections.abc import Iterator

from .stacks import Part, Stack, modules

EASYCONFIGS = "https://github.com/easybuilders/easybuild-easyconfigs (release tags up to 5.3.1)"

# generation: gcc, Open MPI, CUDA (those published for it), CMake, Python, and what Open MPI
# stands on.
_GENERATIONS: dict[str, tuple[str, str, tuple[str, ...], str, str, dict[str, str]]] = {
    "2018a": ("6.4.0", "2.1.2", ("9.1.85",), "3.10.3", "3.6.4", {"hwloc": "1.11.8"}),
    "2018b": ("7.3.0", "3.1.1", ("9.2.88",), "3.12.1", "3.6.6", {"hwloc": "1.11.10"}),
    "2019a": ("8.2.0", "3.1.3", ("10.1.105",), "3.13.3", "3.7.2", {"hwloc": "1.11.11"}),
    "2019b": ("8.3.0", "3.1.4", ("10.1.243",), "3.15.3", "3.7.4", {"hwloc": "1.11.12"}),
    "2020a": (
        "9.3.0",
        "4.0.3",
        ("11.0.2",),
        "3.16.4",
        "3.8.2",
        {"hwloc": "2.2.0", "ucx": "1.8.0", "pmix": "3.1.5"},
    ),
    "2020b": (
        "10.2.0",
        "4.0.5",
        ("11.1.1",),
        "3.18.4",
        "3.8.6",
        {"hwloc": "2.2.0", "ucx": "1.9.0", "pmix": "3.1.5"},
    ),
    "2021a": (
        "10.3.0",
        "4.1.1",
        ("11.3.1",),
        "3.20.1",
        "3.9.5",
        {"hwloc": "2.4.1", "ucx": "1.10.0", "pmix": "3.2.3"},
    ),
    "2021b": (
        "11.2.0",
        "4.1.1",
        ("11.4.1", "11.5.2"),
        "3.22.1",
        "3.9.6",
        {"hwloc": "2.5.0", "ucx": "1.11.2", "pmix": "4.1.0"},
    ),
    "2022a": (
        "11.3.0",
        "4.1.4",
        ("11.7.0",),
        "3.23.1",
        "3.10.4",
        {"hwloc": "2.7.1", "ucx": "1.12.1", "pmix": "4.1.2"},
    ),
    "2022b": (
        "12.2.0",
        "4.1.4",
        ("11.7.0", "12.0.0"),
        "3.24.3",
        "3.10.8",
        {"hwloc": "2.8.0", "ucx": "1.13.1", "pmix": "4.2.2"},
    ),
    "2023a": (
        "12.3.0",
        "4.1.5",
        ("12.1.1",),
        "3.26.3",
        "3.11.3",
        {"hwloc": "2.9.1", "ucx": "1.14.1", "pmix": "4.2.4"},
    ),
    "2023b": (
        "13.2.0",
        "4.1.6",
        ("12.3.0", "12.4.0", "12.5.0"),
        "3.27.6",
        "3.11.5",
        {"hwloc": "2.9.2", "ucx": "1.15.0", "pmix": "4.2.6"},
    ),
    "2024a": (
        "13.3.0",
        "5.0.3",
        ("12.6.0",),
        "3.29.3",
        "3.12.3",
        {"hwloc": "2.10.0", "ucx": "1.16.0", "pmix": "5.0.2"},
    ),
    "2025a": (
        "14.2.0",
        "5.0.7",
        ("12.8.0",),
        "3.31.3",
        "3.13.1",
        {"hwloc": "2.11.2", "ucx": "1.18.0", "pmix": "5.0.6"},
    ),
    "2025b": (
        "14.3.0",
        "5.0.8",
        ("12.9.1",),
        "4.0.3",
        "3.13.5",
        {"hwloc": "2.12.1", "ucx": "1.19.0", "pmix": "5.0.8"},
    ),
}

# The last generation whose CUDA exists for ppc64le (12.4.1 is its last).
_POWER = ("2018b", "2019a", "2019b", "2020a", "2020b", "2021a", "2021b", "2022a", "2022b", "2023a")


def generations() -> Iterator[Stack]:
    for name, (gcc, openmpi, cudas, cmake, python, more) in _GENERATIONS.items():
        for cuda in cudas:
            for arch in ("x86_64", "ppc64le") if name in _POWER else ("x86_64",):
                parts = {
                    **modules(gcc=gcc, cuda=cuda, cmake=cmake, python=python, **more),
                    # EasyBuild builds Open MPI on its own hwloc and, from 2020a on, PMIx.
                    "openmpi": Part(
                        openmpi,
                        facts={"external_hwloc": True, "external_pmix": "pmix" in more},
                    ),
                }
                yield Stack(
                    f"{name} with CUDA {cuda} on {arch}", EASYCONFIGS, parts, {"arch": arch}
                )
