"""What Open MPI says of itself through ``ompi_info``."""

from __future__ import annotations

import re

# Lines of ompi_info --parsable. What its parts stand on shows in their names: pmix3x and hwloc201
# came with Open MPI, ext3x and external are of another package (3.x and 4.x; 5 has no such parts).
_CUDA = re.compile(r"built_with_cuda_support:value:(true|false)")
_HWLOC = re.compile(r"^mca:hwloc:(?:(external)|hwloc\d+):", re.MULTILINE)
_PMIX = re.compile(r"^mca:pmix:(?:(ext\w+)|pmix\w+):", re.MULTILINE)


def open_mpi_facts(text: str) -> dict[str, bool]:
    """Return what ``ompi_info --parsable --all`` says that conditions ask: cuda_aware, ucx, ...

    What it does not say is left out.
    """
    facts: dict[str, bool] = {}
    if cuda := _CUDA.search(text):
        facts["cuda_aware"] = cuda[1] == "true"
    if "\nmca:pml:" in text:
        facts["ucx"] = "\nmca:pml:ucx:" in text
    for name, pattern in (("external_hwloc", _HWLOC), ("external_pmix", _PMIX)):
        if match := pattern.search(text):
            facts[name] = match[1] is not None
    return facts
