"""How a base is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.errors import UsageError
from envbuilder.images.reference import ImageFile, RegistryImage, is_loopback, parse_base

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("debian:12", RegistryImage("docker.io", "library/debian", "12")),
        ("debian", RegistryImage("docker.io", "library/debian", "latest")),
        ("nvidia/cuda:12.6.3", RegistryImage("docker.io", "nvidia/cuda", "12.6.3")),
        (
            f"reg.example:5000/a/b-c@sha256:{DIGEST}",
            RegistryImage("reg.example:5000", "a/b-c", None, DIGEST),
        ),
        (f"localhost/x:1@sha256:{DIGEST}", RegistryImage("localhost", "x", "1", DIGEST)),
    ],
)
def test_an_image_of_a_registry(text: str, image: RegistryImage, tmp_path: Path) -> None:
    assert parse_base(f"docker://{text}", tmp_path) == image


def test_a_digest_is_what_counts_beside_a_tag(tmp_path: Path) -> None:
    found = parse_base(f"docker://debian:12@sha256:{DIGEST}", tmp_path)
    assert str(found) == f"docker.io/library/debian@sha256:{DIGEST}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Debian",
        "a//b",
        "a/b:",
        "x@sha256:12",
        f"x@md5:{DIGEST}",
        "host:port/x",
        "-h.x/y",
        "x y",
    ],
)
def test_what_is_no_name_of_an_image(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        parse_base(f"docker://{text}", tmp_path)
    assert raised.value.id == "base.malformed-name"


def test_a_password_in_a_name_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        parse_base("docker://me:hunter2@reg.example/x:1", tmp_path)
    [problem] = raised.value.problems
    assert problem.id == "base.credentials-in-name"
    assert "hunter2" not in f"{problem}{raised.value}"


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "layout").mkdir()
    (tmp_path / "a.tar").write_bytes(b"")
    layout, archive = tmp_path / "layout", tmp_path / "a.tar"
    assert parse_base("oci:layout:12", tmp_path) == ImageFile("oci", layout, "12")
    assert parse_base(f"oci:{layout}", tmp_path) == ImageFile("oci", layout)
    assert parse_base("oci-archive:a.tar", tmp_path) == ImageFile("oci-archive", archive)
    assert parse_base("docker-archive:a.tar", tmp_path) == ImageFile("docker-archive", archive)
    assert parse_base("a.tar", tmp_path) == ImageFile("tar", archive)
    assert parse_base("layout", tmp_path) == layout
    (tmp_path / "other:thing").mkdir()
    assert parse_base("other:thing", tmp_path) == tmp_path / "other:thing"
    with pytest.raises(UsageError) as raised:
        parse_base("oci:none", tmp_path)
    assert raised.value.id == "base.missing"


@pytest.mark.parametrize(
    ("registry", "loopback"),
    [("127.0.0.1:5000", True), ("localhost", True), ("[::1]:5000", False), ("10.0.0.1", False)],
)
def test_a_registry_of_this_machine(registry: str, loopback: bool) -> None:
    assert is_loopback(registry) is loopback
