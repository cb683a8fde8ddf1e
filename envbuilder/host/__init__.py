"""The machine that envbuild runs on: its search path, its files, and its programs' answers.

Nothing is written, and no answer is waited for without end.
"""

from .folders import cache_folder, temp_folder
from .host import (
    Host,
    arch_name,
    glibc_version,
    is_file,
    is_folder,
    is_there,
    machine_arch,
    runs,
    search_path,
)
from .ompi_info import open_mpi_facts
from .probe import (
    ENDING,
    LINE_LENGTH,
    PATIENCE,
    WORKERS,
    ProgramOutput,
    clean,
    first_line,
    quiet_environment,
    together,
)

__all__ = [
    "ENDING",
    "LINE_LENGTH",
    "PATIENCE",
    "WORKERS",
    "Host",
    "ProgramOutput",
    "arch_name",
    "cache_folder",
    "clean",
    "first_line",
    "glibc_version",
    "is_file",
    "is_folder",
    "is_there",
    "machine_arch",
    "open_mpi_facts",
    "quiet_environment",
    "runs",
    "search_path",
    "temp_folder",
    "together",
]
