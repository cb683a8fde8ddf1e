"""The header of a SIF file; real ones: tests/integration/test_image.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.images.sif import arch_of


@pytest.mark.parametrize(
    ("code", "arch"), [(b"02", "x86_64"), (b"04", "aarch64"), (b"06", "ppc64le"), (b"01", None)]
)
def test_the_architecture(code: bytes, arch: str | None, tmp_path: Path) -> None:
    image = tmp_path / "image.sif"
    start = b"#!/usr/bin/env run-singularity\n\0"
    image.write_bytes(start + b"SIF_MAGIC\0" + b"01\0" + code + b"\0" + bytes(80))
    assert arch_of(image) == arch


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n" * 9, b"SIF_MAGIC\0" * 9])
def test_what_is_none(content: bytes, tmp_path: Path) -> None:
    image = tmp_path / "image.sif"
    image.write_bytes(content)
    with pytest.raises(ValueError, match="SIF file"):
        arch_of(image)
