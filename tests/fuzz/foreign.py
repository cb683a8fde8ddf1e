"""Further parsers of what others wrote: whole files of other tools, and what a scheduler says.

See ``parsers.py``. Parsers that start processes are ``slow``: the default run gives them few
inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from envbuilder.conda.contents import read_records
from envbuilder.conda.engine import Engine
from envbuilder.documents.source import source_of
from envbuilder.errors import BuildError, DriftError, EnvbuildError
from envbuilder.formats import conda_lock, environment_yml, explicit, pixi_lock
from envbuilder.formats.foreign import read_text
from envbuilder.formats.recipe import recipe_text
from envbuilder.formats.recipe_draft import KnownNames
from envbuilder.hang.stacks import _main_thread
from envbuilder.images.built import read_build_file
from envbuilder.images.contents import labels_of
from envbuilder.images.oci_contents import (
    DAMAGED,
    attached_to,
    read_manifest,
    unpack_layout_records,
)
from envbuilder.images.reference import BuildFile
from envbuilder.launching.hosts import hostfile, hosts_argument
from envbuilder.launching.schedulers import lsf, pbs, slurm
from envbuilder.launching.schedulers.protocol import LaunchNode
from envbuilder.locking.connection import _page
from envbuilder.machine.modules.shell import of_spider
from envbuilder.target_tools.conda_link import PackageError, check_package
from envbuilder.target_tools.git_tree import Revision, fetch_tree
from envbuilder.workflow.signed import read_signature
from tests.formats.test_environment_yml import TEXT as ENVIRONMENT
from tests.formats.test_package_lists import DATA, WHOLE
from tests.git_trees import ENVIRON, git
from tests.images.test_build_file import DEFINITION, DOCKERFILE

from .parsers import SEPARATOR, Parser

_NOTHING = KnownNames({}, {}, {})
_JSON = (b"null", b"[]", b"{}", b'""', b"1e999", b"true", b"[" * 12_000, b'"\\ud800"')
_YAML = (b"null", b"[]", b"{}", b"- ", b": ", b"1.10", b"!!python/object:x", b"&a", b"*a")
_DIGITS = b"1" * 5000


@cache
def folder() -> Path:
    """Return a folder for files; see ``parsers.scratch``."""
    return Path(tempfile.mkdtemp(prefix="envbuild-foreign-"))


_numbers = itertools.count()


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder that no parser has read before."""
    path = folder() / str(next(_numbers))
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _build_file(kind: str, data: bytes) -> object:
    with new_folder() as place, contextlib.suppress(EnvbuildError):
        (place / "tool.sh").touch()
        (place / "conf").mkdir()
        (place / "conf" / "a").touch()
        (place / "file").write_bytes(data)
        return read_build_file(BuildFile(kind, place / "file"))  # type: ignore[arg-type]
    return None


def read_spider(data: bytes) -> object:
    with contextlib.suppress(ValueError):
        return of_spider(data.decode("utf-8", "replace"))
    return None


def _listed(read: object, data: bytes) -> object:
    with contextlib.suppress(EnvbuildError):
        packages, notes = read(source_of(data, "file"))  # type: ignore[operator]
        asked = environment_yml.pinned(packages)
        return recipe_text(asked, _NOTHING, "name", "x86_64", "file", notes)
    return None


def read_environment_yml(data: bytes) -> object:
    with contextlib.suppress(EnvbuildError):
        asked, notes = environment_yml.read(source_of(data, "file"), "linux-64")
        return recipe_text(asked, _NOTHING, "name", "x86_64", "file", notes)
    return None


def read_any_format(data: bytes) -> object:
    """A file whose contents say which format it has."""
    with contextlib.suppress(EnvbuildError):
        found = read_text(source_of(data, "file"), None, "linux-64", lambda _: None)
        with contextlib.suppress(EnvbuildError):
            return recipe_text(found.asked, _NOTHING, "name", "x86_64", "file", found.notes)
        return found  # of module names alone no recipe is made
    return None


# One file of each kind that people have.
_KINDS = ("conda-list", "easyconfig", "spack", "open-ce", "pylock", "pyproject", "dockerfile")
_KINDS += ("definition", "module-list", "lmod-collection", "requirements")
_CORPUS = Path(__file__).parent.parent / "field" / "files"
_FIELD = tuple(
    next(file for file in sorted(_CORPUS.glob(f"*-{kind}/*")) if file.name != "truth.yaml")
    for kind in _KINDS
)


def read_layout(data: bytes) -> object:
    """Files of a layout: index, manifest, configuration, layer. Hashes are put in afterwards."""
    index, manifest, config, layer = (data.split(SEPARATOR, 3) + [b""] * 3)[:4]
    with new_folder() as place, contextlib.suppress(EnvbuildError):
        blobs = place / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        for name, content in ((b"@LAYER@", layer), (b"@CONFIG@", config)):
            manifest = manifest.replace(name, _blob(blobs, content))
        (place / "index.json").write_bytes(index.replace(b"@MANIFEST@", _blob(blobs, manifest)))
        found = read_manifest(place)
        with contextlib.suppress(*DAMAGED):
            attached_to(place)
        records = place / "records"
        records.mkdir()
        return unpack_layout_records(place, found, Path("/opt/envbuild"), records)
    return None


def _blob(blobs: Path, content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    (blobs / digest).write_bytes(content)
    return b"sha256:" + digest.encode()


def _layer() -> bytes:
    return _tar({"opt/envbuild/.envbuild.json": b"{}", "opt/envbuild/x/pyvenv.cfg": b"a"}, "w:gz")


def _tar(files: dict[str, bytes], mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def read_labels(data: bytes) -> object:
    return labels_of(data.decode("utf-8", "replace"))


def _job(scheduler: object, data: bytes) -> object:
    """Lines NAME=VALUE of the environment, a file of hosts, and what a program answers."""
    mark = SEPARATOR.decode()
    lines, _, rest = data.decode("utf-8", "replace").partition(mark)
    file, _, answer = rest.partition(mark)
    pairs = (line.partition("=") for line in lines.split("\n"))
    environ = {scheduler.JOB_ID: "1", **{name: value for name, _, value in pairs}}  # type: ignore[attr-defined]
    with contextlib.suppress(EnvbuildError):
        scheduler.job_task(environ)  # type: ignore[attr-defined]
        scheduler.job_step(environ, lambda *_: answer)  # type: ignore[attr-defined]
        return scheduler.job_hosts(  # type: ignore[attr-defined]
            environ, lambda *_: file, lambda *_: answer, LaunchNode(room=6)
        )
    return None


def read_hosts(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    found = []
    for read in (hostfile, hosts_argument):
        with contextlib.suppress(EnvbuildError):
            found.append(read(text))
    return found or None


def read_signature_file(data: bytes) -> object:
    with new_folder() as place, contextlib.suppress(ValueError):
        (place / "file").write_bytes(data)
        return read_signature(place / "file")
    return None


def read_index_page(data: bytes) -> object:
    content_type = "application/vnd.pypi.simple.v1+json" if data[:1] == b"{" else "text/html"
    with contextlib.suppress(ValueError):
        return _page("https://index.example/simple/one/", content_type, data, "one")
    return None


def read_stack(data: bytes) -> object:
    return _main_thread(data.decode("utf-8", "replace"), 1)


def read_conda_package(data: bytes) -> object:
    """Files of a package: its index, its list of files, and the file that this list names."""
    index, listed, content = (data.split(SEPARATOR, 2) + [b""] * 2)[:3]
    files = {"info/index.json": index, "info/paths.json": listed, "share/x": content}
    with new_folder() as place, contextlib.suppress(PackageError):
        (place / "one-1-0.tar.bz2").write_bytes(_tar(files, "w:bz2"))
        return check_package(place / "one-1-0.tar.bz2", place / "one-1-0")
    return None


def read_archive(data: bytes) -> object:
    """A whole package as it is packed."""
    with new_folder() as place, contextlib.suppress(PackageError):
        (place / "one-1-0.tar.bz2").write_bytes(data)
        return check_package(place / "one-1-0.tar.bz2", place / "one-1-0")
    return None


@cache
def engine() -> Engine:
    return Engine(dict(os.environ), folder() / "cache")


def read_repodata(data: bytes) -> object:
    """The index of a channel. The engine may refuse it, but not crash."""
    with new_folder() as place:
        for subdir in ("linux-64", "noarch"):
            (place / subdir).mkdir()
            (place / subdir / "repodata.json").write_bytes(
                data if subdir == "linux-64" else b'{"packages": {}}'
            )
        try:
            urls = {"own": (place.as_uri(),)}
            return read_records(urls, ["one"], "x86_64", engine(), (), lambda _: None)
        except BuildError as error:
            if error.id != "channel.unreadable":
                raise AssertionError(error.id) from error
    return None


def read_git_tree(data: bytes) -> object:
    """A tree object as git stores it, and .gitmodules."""
    tree, _, modules = data.partition(SEPARATOR)
    with new_folder() as place, contextlib.suppress(BuildError, DriftError):
        source = place / "source"
        source.mkdir()
        git(source, "init", "-q", "--bare")
        blob = git(source, "hash-object", "-w", "--stdin", stdin=modules)
        tree = tree.replace(b"@BLOB@", bytes.fromhex(blob))
        words = ("hash-object", "-w", "-t", "tree", "--literally", "--stdin")
        identity = git(source, *words, stdin=tree)
        text = f"tree {identity}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n"
        commit = git(
            source,
            "hash-object",
            "-w",
            "-t",
            "commit",
            "--literally",
            "--stdin",
            stdin=text.encode(),
        )
        (source / "refs" / "tags" / "v1").write_text(f"{commit}\n")
        return fetch_tree(Revision(source.as_uri(), "v1", commit), place / "x-1.tar", ENVIRON)
    return None


_PAGE = {
    "meta": {"api-version": "1.0"},
    "name": "one",
    "files": [
        {
            "filename": "one-1-py3-none-any.whl",
            "url": "https://index.example/one-1-py3-none-any.whl",
            "hashes": {"sha256": "ab" * 32},
            "requires-python": ">=3.6",
            "yanked": False,
        }
    ],
}
_HTML = b"""<html><head><meta name="pypi:repository-version" content="1.0"></head><body>
<a href="../one-1.tar.gz#sha256=ab" data-requires-python="&gt;=3.6" data-yanked="">one-1.tar.gz</a>
</body></html>"""
_PROPERTIES = {
    "fullName": "GCC/1",
    "mpath": "/t",
    "wV": "^1",
    "parentAA": [["a/1", "b/1"]],
    "hidden": False,
}
_RECORD = {
    "name": "one",
    "version": "1.0",
    "build": "0",
    "build_number": 0,
    "subdir": "linux-64",
    "md5": "ab" * 16,
    "sha256": "ab" * 32,
    "size": 5,
    "timestamp": 1,
    "license": "MIT",
    "depends": ["python >=3.6,<4", "x"],
    "constrains": ["y <2"],
}
_REPODATA = {
    "info": {"subdir": "linux-64"},
    "packages": {"one-1.0-0.tar.bz2": _RECORD},
    "packages.conda": {"one-1.1-0.conda": {**_RECORD, "version": "1.1"}},
    "removed": [],
    "repodata_version": 1,
}
_INDEX = {"manifests": [{"digest": "@MANIFEST@", "annotations": {"kind": "x"}}]}
_MANIFEST = {"config": {"digest": "@CONFIG@"}, "layers": [{"digest": "@LAYER@"}]}
_CONFIG = {"architecture": "amd64", "config": {"Labels": {"a": "b"}, "Env": ["A=b"]}}
_X = b"as packed\n"
_ENTRY = {
    "_path": "share/x",
    "path_type": "hardlink",
    "sha256": hashlib.sha256(_X).hexdigest(),
    "size_in_bytes": len(_X),
}
_PACKAGE = SEPARATOR.join(
    (
        json.dumps({**_RECORD, "build_number": 0}).encode(),
        json.dumps({"paths": [_ENTRY], "paths_version": 1}).encode(),
        _X,
    )
)
_QSTAT = (
    b"Job Id: 1\n    exec_host = n1/0*16+n2/0*16\n"
    b"    exec_vnode = (n1[0]:ncpus=16:ngpus=4)+(n2:ncpus=32:ngpus=8)\n"
)


def _dumped(value: object) -> bytes:
    return json.dumps(value).encode()


FOREIGN: dict[str, Parser] = {
    "dockerfile": Parser(
        lambda data: _build_file("containerfile", data),
        (DOCKERFILE.encode(),),
        (b"RUN ", b"FROM ", b"<<EOF", b"\\\n", b"${", b'["', b"--mount=", b"[" * 12_000),
    ),
    "definition-file": Parser(
        lambda data: _build_file("definition", data),
        (DEFINITION.encode(),),
        (b"%post", b"%files", b"Bootstrap: ", b"{{ x }}", b"%files from x", b"../"),
    ),
    "spider-json": Parser(read_spider, (_dumped({"GCC": {"/t/GCC/1.lua": _PROPERTIES}}),), _JSON),
    "environment.yml": Parser(read_environment_yml, (ENVIRONMENT.encode(),), _YAML),
    "conda-lock.yml": Parser(
        lambda data: _listed(lambda source: conda_lock.read(source, "linux-64"), data),
        ((DATA / "conda-lock.yml").read_bytes(),),
        _YAML,
    ),
    "pixi.lock": Parser(
        lambda data: _listed(lambda source: pixi_lock.read(source, "linux-64", "dev"), data),
        ((DATA / "pixi.lock").read_bytes(),),
        _YAML,
    ),
    "field-files": Parser(
        read_any_format,
        tuple(file.read_bytes() for file in _FIELD),
        (b"%s", b" % ", b"${", b"<<EOF", b"^", b"@", b"%(version)s", b"(((", _DIGITS, *_YAML),
    ),
    "explicit-list": Parser(
        lambda data: _listed(explicit.read, data),
        (explicit.write(WHOLE).encode(),),
        (b"@EXPLICIT", b"#", b"://", b".conda", _DIGITS),
    ),
    "oci-layout": Parser(
        read_layout,
        (SEPARATOR.join((*map(_dumped, (_INDEX, _MANIFEST, _CONFIG)), _layer())),),
        (*_JSON, SEPARATOR, b"@LAYER@", b"@CONFIG@"),
    ),
    "image-labels": Parser(read_labels, (b'{"a": "b"}',), _JSON),
    "slurm": Parser(
        lambda data: _job(slurm, data),
        (
            b"SLURM_JOB_NODELIST=n[1-2,7],login1\nSLURM_TASKS_PER_NODE=4(x2),3(x2)\n"
            b"SLURM_JOB_CPUS_PER_NODE=16(x4)\nSLURM_GPUS_ON_NODE=2\nSLURM_CPUS_PER_TASK=2\n"
            b"SLURM_STEP_ID=0" + SEPARATOR * 2 + b"slurm 20.11\n  Nodes=n[1-2] CPU_IDs=0 "
            b"GRES=gpu:a100:8(IDX:0-7)\n",
        ),
        (b"[", b"]", b"-", b",", b"(x", _DIGITS, "\N{SUPERSCRIPT TWO}".encode()),
    ),
    "lsf": Parser(
        lambda data: _job(lsf, data),
        (b"LSB_MCPU_HOSTS=batch2 1 a01 42 a02 42", b"LSB_DJOB_HOSTFILE=x\n%%\nbatch1\na01\na02\n"),
        (_DIGITS, b" ", b"\n"),
    ),
    "pbs": Parser(
        lambda data: _job(pbs, data),
        (b"PBS_NODEFILE=x" + SEPARATOR + b"n1\nn2\n" + SEPARATOR + _QSTAT,),
        (b"ngpus=" + _DIGITS, b"+", b":ncpus=", b"("),
    ),
    "hosts": Parser(read_hosts, (b"a slots=4\nb slots=2 max-slots=3\n", b"a:4,b:2"), (_DIGITS,)),
    "signature": Parser(
        read_signature_file, (b'{"messageSignature": {"signature": "YQ=="}}', b"YQ=="), _JSON
    ),
    "index-page": Parser(read_index_page, (_dumped(_PAGE), _HTML), (*_JSON, b"<a", b"&#x110000;")),
    "py-spy": Parser(
        read_stack,
        (_dumped([{"os_thread_id": 1, "frames": [{"name": "f", "filename": "x", "line": 3}]}]),),
        _JSON,
    ),
    "conda-package": Parser(read_conda_package, (_PACKAGE,), (*_JSON, b"../", b"softlink")),
    "conda-archive": Parser(
        read_archive,
        (
            _tar(
                {
                    "info/index.json": _dumped(_RECORD),
                    "info/paths.json": _dumped({"paths": [_ENTRY], "paths_version": 1}),
                    "share/x": _X,
                },
                "w:bz2",
            ),
        ),
    ),
    "conda-repodata": Parser(read_repodata, (_dumped(_REPODATA),), _JSON, slow=True),
    "git-tree": Parser(
        read_git_tree,
        (
            b"100644 .gitmodules\0@BLOB@100755 run\0@BLOB@"
            + SEPARATOR
            + b'[submodule "x"]\n\tpath = x\n\turl = ../x\n',
        ),
        (b"160000 x\0" + b"1" * 20, b"120000 l\0@BLOB@", b"40000 d\0@BLOB@", b"../", b".git"),
        slow=True,
    ),
}
