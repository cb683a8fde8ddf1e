"""What the native libraries of an installed runtime show of its build. Nothing is loaded."""

from __future__ import annotations

from ..model.runtime import BuildTraces, CollectiveRuntime
from .facts import Environment, PackageFolder
from .mpi import holds


def build_traces(
    runtime: CollectiveRuntime, environment: Environment, folder: PackageFolder
) -> BuildTraces | None:
    """Return how the runtime in a folder of packages was built; None: no library shows it."""
    libraries = [each.path for each in (*environment.libraries, *environment.outer)]
    return runtime.traces(str(folder.path), libraries, holds)
