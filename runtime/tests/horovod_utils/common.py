"""What Horovod's own tests import from their ``common``, without the inside of Horovod."""

import contextlib
import os
import shutil
import tempfile
from typing import Iterator, Tuple

import pytest


def mpi_env_rank_and_size() -> Tuple[int, int]:
    """Return the rank and the size that the launcher has told."""
    for rank, size in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("RANK", "WORLD_SIZE"),
    ):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def skip_or_fail_gpu_test(test: object, message: str) -> None:
    """Skip a test that needs a GPU; fail where HOROVOD_TEST_GPU says that there is one."""
    if os.environ.get("HOROVOD_TEST_GPU"):
        pytest.fail(message)
    pytest.skip(message)


@contextlib.contextmanager
def temppath() -> Iterator[str]:
    """Yield a path at which there is nothing yet."""
    folder = tempfile.mkdtemp()
    try:
        yield os.path.join(folder, "path")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
