"""What this runtime can do, by the names of ``horovod.common.util``."""

import functools
import importlib.util
import os
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence

from distributed_dl_training import _missing
from distributed_dl_training._builds import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    mpi_built,
    nccl_built,
    rocm_built,
)

__all__ = [
    "ccl_built",
    "check_extension",
    "cuda_built",
    "ddl_built",
    "env",
    "extension_available",
    "gloo_built",
    "gpu_available",
    "is_version_greater_equal_than",
    "mpi_built",
    "nccl_built",
    "num_rank_is_power_2",
    "rocm_built",
    "split_list",
]

_missing.refuse(__name__, _missing.refused(__name__))
_cache = functools.lru_cache(maxsize=None)


@contextmanager
def env(**variables: Optional[str]) -> Iterator[None]:
    """Set environment variables, those that are not None, until the block ends."""
    given = {name: value for name, value in variables.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Tell whether TensorFlow can use a GPU here, or torch if that is not asked for."""
    try:
        if "tensorflow" in ext_base_name:
            import tensorflow as tf

            return bool(tf.config.experimental.list_physical_devices("GPU"))
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Tell whether ``horovod.<ext_base_name>`` can be imported here; tries it."""
    try:
        importlib.import_module(f"horovod.{ext_base_name}")
    except ImportError as error:
        if verbose:
            print(f"horovod.{ext_base_name}: {error}")
        return False
    return True


def check_extension(ext_name: str, *_: Any) -> None:
    """Raise ImportError, with the reason, if ``ext_name`` (``horovod.torch``) does not import."""
    importlib.import_module(ext_name)


def num_rank_is_power_2(num_rank: int) -> bool:
    """Tell whether ``num_rank`` is a power of two."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Tell whether version ``ver`` is ``target`` or later.  Raises ValueError for what is no text.

    It needs the package packaging, which TensorFlow and Keras bring.
    """
    from packaging.version import Version

    if not isinstance(ver, str) or not isinstance(target, str):
        raise ValueError(f"versions are texts, and not {ver!r} and {target!r}")
    return Version(ver) >= Version(target)


def split_list(items: Sequence[Any], num_parts: int) -> List[List[Any]]:
    """Return ``items`` in ``num_parts`` lists of nearly equal length, the first ones the longer."""
    each, rest = divmod(len(items), num_parts)
    starts = [at * each + min(at, rest) for at in range(num_parts + 1)]
    return [list(items[start:end]) for start, end in zip(starts, starts[1:])]
