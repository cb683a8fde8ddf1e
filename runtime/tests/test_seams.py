"""Frameworks that are not served yet: importing their module says what is."""

import importlib

import pytest


@pytest.mark.parametrize("name", ["mxnet", "jax"])
def test_what_is_there_is_told(name: str) -> None:
    with pytest.raises(ImportError, match=r"distributed_dl_training\.torch"):
        importlib.import_module(f"distributed_dl_training.{name}")
