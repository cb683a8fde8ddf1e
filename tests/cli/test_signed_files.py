"""``--key``: locks, bundles and images that OpenSSL signed, as ``cosign sign-blob --key`` does."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.images.oci import OciConfig, pack_layout
from envbuilder.model.plan import Plan
from envbuilder.workflow.signed import read_key
from tests.cli.published import planned, publish_plan
from tests.made_up_files import locked
from tests.verbs import problem_ids

pytest.importorskip("cryptography")
# Nothing in it depends on the Python.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on PATH"),
]

ARGUMENTS = {
    "p256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "ed25519": ["-algorithm", "ED25519"],
    "p384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
}
SIGNED = "application/vnd.dev.cosign.simplesigning.v1+json"


class Key(NamedTuple):
    """The files of a pair of keys that OpenSSL made."""

    kind: str
    private: Path
    public: Path

    def sign(self, file: Path) -> bytes:
        return openssl(*self._words("-sign", self.private, file))

    def accepts(self, file: Path, signature: bytes) -> bool:
        """What OpenSSL itself says of a signature."""
        said = file.with_name("openssl.sig")
        said.write_bytes(signature)
        checked = self._words("-verify", self.public, file, said)
        return subprocess.run(["openssl", *checked], capture_output=True).returncode == 0

    def _words(self, what: str, key: Path, file: Path, said: Path | None = None) -> Sequence[str]:
        of = ["-signature", str(said)] if self.kind != "ed25519" else ["-sigfile", str(said)]
        of = of if said else []
        if self.kind != "ed25519":
            return ["dgst", "-sha256", what, str(key), *of, str(file)]
        public = ["-pubin"] if said else []
        return ["pkeyutl", what, *public, "-inkey", str(key), "-rawin", "-in", str(file), *of]


def openssl(*words: str) -> bytes:
    return subprocess.run(["openssl", *words], check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Key]:
    folder = tmp_path_factory.mktemp("keys")

    def key(kind: str, name: str = "ours") -> Key:
        made = Key(kind, folder / f"{kind}-{name}.key", folder / f"{kind}-{name}.pub")
        if not made.public.exists():
            openssl("genpkey", *ARGUMENTS[kind], "-out", str(made.private))
            openssl("pkey", "-in", str(made.private), "-pubout", "-out", str(made.public))
        return made

    return key


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lock, an image in OCI's layout, and what is signed and no bundle."""
    folder = tmp_path_factory.mktemp("made")
    plan = planned("allreduce", "--site", "local")
    (folder / "bundle.tar.gz").write_bytes(b"none")
    lock = locked(Plan.model_validate_json(json.dumps(plan)))
    (folder / "lock.json").write_text(lock.text(), encoding="utf-8")
    root = folder / "system" / "opt" / "envbuild"
    publish_plan(root, plan, {"pyvenv.cfg": "home = /usr/bin\n"})
    pack_layout(folder / "system", folder / "image.oci", OciConfig("x86_64", "tag", (), {}))
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    for name in ("bundle.tar.gz", "lock.json"):
        shutil.copy(made / name, tmp_path)
    shutil.copytree(made / "image.oci", tmp_path / "image.oci")
    return tmp_path


def run(*words: object) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "300"})
    assert "Traceback" not in done.output
    return done


def manifest(layout: Path) -> Path:
    [listed] = json.loads((layout / "index.json").read_text())["manifests"][:1]
    return layout / "blobs" / "sha256" / listed["digest"].partition(":")[2]


VERBS = {
    "bundle.tar.gz": ["bundle", "verify"],
    "image.oci": ["info"],
    "lock.json": ["lock", "allreduce", "--site", "local", "--check"],
}


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("kind", ["p256", "ed25519"])
def test_what_openssl_signed_is_taken_and_nothing_else(
    kind: str, name: str, files: Path, keys: Callable[..., Key]
) -> None:
    file, key, other = files / name, keys(kind), keys(kind, "theirs")
    signed, beside = (manifest(file) if file.is_dir() else file), Path(f"{file}.sig")
    signature = key.sign(signed)
    beside.write_bytes(base64.b64encode(signature) + b"\n")
    assert key.accepts(signed, signature)
    assert not other.accepts(signed, signature)
    good = run(*VERBS[name], file, "--key", key.public)
    plain = run(*VERBS[name], file)
    assert (good.exit_code, good.stdout) == (plain.exit_code, plain.stdout), good.stderr
    identity = read_key(key.public).id
    assert identity == hashlib.sha256(der(key)).hexdigest()
    assert f"signed with key {identity}" in good.stderr

    theirs = run(*VERBS[name], file, "--key", other.public)
    assert_refused(theirs, file, read_key(other.public).id)
    beside.write_bytes(base64.b64encode(signature[:-1]))
    assert not key.accepts(signed, signature[:-1])
    assert_refused(run(*VERBS[name], file, "--key", key.public), file, identity)
    beside.write_text("no base64")
    assert_refused(run(*VERBS[name], file, "--key", key.public), file, identity)
    beside.unlink()
    assert_refused(run(*VERBS[name], file, "--key", key.public), file, identity)


def assert_refused(done: Result, file: Path, identity: str) -> None:
    """It ended before anything of the file was told."""
    assert (done.exit_code, done.stdout) == (8, "")
    assert str(file) in done.stderr
    assert identity in done.stderr


def der(key: Key) -> bytes:
    return openssl("pkey", "-pubin", "-in", str(key.public), "-outform", "DER")


def test_a_byte_more_is_refused(files: Path, keys: Callable[..., Key]) -> None:
    file, key = files / "bundle.tar.gz", keys("p256")
    beside = files / "somewhere"
    beside.write_bytes(base64.b64encode(key.sign(file)))
    words = ["bundle", "verify", file, "--key", key.public, "--signature", beside]
    assert "signed with key" in run(*words).stderr
    file.write_bytes(file.read_bytes() + b"\0")
    assert_refused(run(*words), file, read_key(key.public).id)
    file.write_bytes(b"")
    assert_refused(run(*words), file, read_key(key.public).id)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda text: {"messageSignature": {"messageDigest": {}, "signature": text}},
        lambda text: {"base64Signature": text, "rekorBundle": None},
    ],
    ids=["cosign 3", "cosign 2"],
)
def test_what_cosign_writes_as_json_is_read(
    wrapped: Callable[[str], object], files: Path, keys: Callable[..., Key]
) -> None:
    file, key = files / "lock.json", keys("p256")
    text = base64.b64encode(key.sign(file)).decode()
    beside = files / "lock.sigstore.json"
    words = [*VERBS["lock.json"], file, "--key", key.public, "--signature", beside]
    beside.write_text(json.dumps(wrapped(text)))
    assert run(*words).exit_code == 0
    for other in ('{"dsseEnvelope": {}}', "{", "[]", "{} "):
        beside.write_text(other)
        assert_refused(run(*words), file, read_key(key.public).id)


def test_only_keys_that_are_known_are_keys(files: Path, keys: Callable[..., Key]) -> None:
    private, p384 = keys("p256").private, keys("p384").public
    for key, problem in (
        (private, "key.not-pem"),
        (p384, "key.unsupported-type"),
        (files / "none", "key.not-readable"),
    ):
        done = run("bundle", "verify", files / "bundle.tar.gz", "--key", key, "--json")
        assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem])
        assert str(key) in done.stderr


def test_there_has_to_be_a_file_that_is_signed(files: Path, keys: Callable[..., Key]) -> None:
    key = keys("p256").public
    for words in (
        ["create", "allreduce", "--root", files / "root", "--key", key],
        ["lock", "allreduce", "--key", key],
        ["info", "allreduce", "--root", files, "--key", key],
        ["bundle", "verify", files, "--key", key],
        ["bundle", "verify", files / "bundle.tar.gz", "--signature", key],
    ):
        done = run(*words)
        assert (done.exit_code, done.stdout) == (2, ""), words
        assert "--key" in done.stderr


@pytest.mark.parametrize("verb", [["create", "--bundle"], ["render"]])
def test_nothing_is_made_of_a_lock_that_is_not_signed(
    verb: list[str], files: Path, keys: Callable[..., Key]
) -> None:
    file, key = files / "lock.json", keys("ed25519")
    Path(f"{file}.sig").write_bytes(base64.b64encode(key.sign(file)))
    file.write_text(file.read_text() + "\n")
    words = ["--site", "local", "--locked", file, "--key", key.public, "--output", files / "out"]
    done = run(verb[0], "allreduce", *verb[1:], *words)
    assert_refused(done, file, read_key(key.public).id)
    assert not (files / "out").exists()


def attach(layout: Path, key: Key, claim: object, **annotations: str) -> None:
    """Put a signature beside the image, as cosign puts it into a registry, and save copies it."""
    text = layout.with_name("payload.json")
    text.write_text(json.dumps(claim))
    signature = base64.b64encode(key.sign(text)).decode()
    layer = {**blob(layout, text.read_bytes()), "mediaType": SIGNED}
    layer["annotations"] = {"dev.cosignproject.cosign/signature": signature}
    image = {"schemaVersion": 2, "config": blob(layout, b"{}"), "layers": [layer]}
    listed = {**blob(layout, json.dumps(image).encode()), "annotations": annotations}
    index = json.loads((layout / "index.json").read_text())
    index["manifests"].append(listed)
    (layout / "index.json").write_text(json.dumps(index))


def blob(layout: Path, data: bytes) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs" / "sha256" / digest).write_bytes(data)
    return {"mediaType": "application/json", "digest": f"sha256:{digest}", "size": len(data)}


def claim(digest: str, kind: str = "cosign container image signature") -> object:
    image = {"docker-manifest-digest": f"sha256:{digest}"}
    identity = {"docker-reference": "registry.example/allreduce"}
    return {"critical": {"identity": identity, "image": image, "type": kind}, "optional": None}


@pytest.mark.parametrize("named", ["kind", "org.opencontainers.image.ref.name"])
def test_a_signature_in_the_layout_counts(
    named: str, files: Path, keys: Callable[..., Key]
) -> None:
    layout, key = files / "image.oci", keys("p256")
    digest = manifest(layout).name
    cosign = {
        "kind": "dev.cosignproject.cosign/sigs",
        "org.opencontainers.image.ref.name": f"sha256-{digest}.sig",
    }
    words = ["info", layout, "--key", key.public]
    attach(layout, key, claim("0" * 64), **{named: cosign[named]})
    attach(layout, key, claim(digest, "atomic container signature"), **{named: cosign[named]})
    assert_refused(run(*words), layout, read_key(key.public).id)
    attach(layout, keys("p256", "theirs"), claim(digest), **{named: cosign[named]})
    assert_refused(run(*words), layout, read_key(key.public).id)
    attach(layout, key, claim(digest), **{named: cosign[named]})
    good = run(*words)
    assert good.exit_code == 0, good.stderr
    assert good.stdout == run("info", layout).stdout
    manifest(layout).write_text("{}")
    refused = run(*words)
    assert (refused.exit_code, refused.stdout) == (8, "")
