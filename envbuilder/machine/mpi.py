"""Which MPI a program belongs to, by what it prints, and what Open MPI says of itself."""

from __future__ import annotations

import re

# What the commands say they are -> what people call it, and the component's canonical name.
_MPIS = {
    "openmpi": ("Open MPI", "openmpi"),
    "spectrum-mpi": ("IBM Spectrum MPI", "spectrum-mpi"),
    "mpich": ("MPICH", "mpich"),
    "mvapich": ("MVAPICH", "mvapich2"),
    "intel-mpi": ("Intel MPI", "impi"),
}
COMPONENTS = {name: component for name, (_, component) in _MPIS.items()}

# What only these starters can be: they belong to a scheduler or a product, whatever MPI is there.
_BY_COMMAND = {"srun": "slurm", "jsrun": "jsm", "ddlrun": "ddl"}

TITLES = {
    **{name: title for name, (title, _) in _MPIS.items()},
    "slurm": "Slurm",
    "jsm": "IBM Job Step Manager",
    "ddl": "IBM DDL",
}

# The first that matches counts: Spectrum MPI and MVAPICH say also what they are made from.
# Debian's Open MPI 4 calls itself OpenRTE, after its run-time part.
_PATTERNS = tuple(
    (implementation, re.compile(pattern))
    for implementation, pattern in (
        ("spectrum-mpi", r"Spectrum MPI\)?:?\s*v?(\d[\w.]*)"),
        ("spectrum-mpi", r"(?m)^spectrum_mpi:version:full:(\d[\w.+-]*)"),
        (
            "intel-mpi",
            r"Intel\(R\) MPI Library.*?(?:Version )?(20\d\d(?:\.\d+)*(?: Update \d+)?)",
        ),
        ("mvapich", r"(?i)mvapich\d?(?: version |[- :]+v?)(\d[\w.]*)"),
        ("openmpi", r"\((?:Open MPI|OpenRTE)\)\s+v?(\d[\w.]*)"),
        ("openmpi", r": Open MPI v?(\d[\w.]*)"),
        ("openmpi", r"(?m)^ompi:version:full:(\d[\w.+-]*)"),
        ("mpich", r"HYDRA build details:\s+Version:\s+(\d[\w.]*)"),
        ("mpich", r"for MPICH version (\d[\w.]*)"),
        ("mpich", r"MPICH Version:\s*(\d[\w.+-]*)"),
        ("slurm", r"(?m)^slurm\S* (\d[\w.]*)"),
    )
)
_ANY_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+\w*)")


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


def identify(command: str, text: str) -> tuple[str | None, str | None]:
    """Return implementation and version from what *command* printed; None for what it hides."""
    for implementation, pattern in _PATTERNS:
        match = pattern.search(text)
        if match:
            return implementation, match.group(1).replace(" Update ", ".").rstrip(".")
    if command in _BY_COMMAND:
        match = _ANY_VERSION.search(text)
        return _BY_COMMAND[command], match.group(1) if match else None
    return None, None
