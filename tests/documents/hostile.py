"""Broken and hostile documents, each with a part of the message that refuses it.

The command line's tests use the same list: write ``data`` to :func:`file_name` and load it.
"""

from __future__ import annotations

import codecs
from typing import Literal, NamedTuple

STEM = "broken"

RECIPE = """\
schema: 1
name: broken
summary: A recipe that is right but for one thing
arch: [x86_64, aarch64]
documented-for: {x86_64: some-site}
backend: virtualenv
system-site-packages: false
stack:
  python: ">=3.9"
  numpy: "*"
  mpich: ">=4.2"
packages: ["pandas>=2"]
env: {OMP_NUM_THREADS: "2"}
pip-indexes: ["https://index.example/simple"]
find-links: ["file:///srv/wheels"]
runtime: {package: distributed-dl-training, source: ../runtime}
smoke: {ranks: 2, max-bytes: 1024, timeout: 60}
"""

SITE = """\
schema: 1
name: broken
summary: A site that is right but for one thing
arch: [ppc64le]
module-system: lmod
module-init: /usr/share/lmod/init/bash
module-trees: [/sw/modules/ml]
modules:
  - name: Python/3.6.6-fosscuda-2018b
    provides: {python: 3.6.6}
    python: /sw/installed/Python/bin/python3
    loads: [fosscuda/2018b]
pythons: [/usr/bin/python3]
origins: [module, system, pip]
launcher: {kind: srun, command: [srun, --mpi=pmix]}
base: /scratch/envs
pip-indexes: ["https://index.example/simple"]
find-links: ["file:///srv/wheels"]
"""


class Case(NamedTuple):
    """One document that must be refused with ``expected`` in its message."""

    id: str
    kind: Literal["recipe", "site"]
    data: bytes
    expected: str


def file_name(case: Case) -> str:
    """Return the name, relative to a folder of recipes, under which the case is looked for."""
    return f"sites/{STEM}.yaml" if case.kind == "site" else f"{STEM}.yaml"


def _changed(base: str, old: str, new: str) -> bytes:
    if base.count(old) != 1:
        raise ValueError(f"{old!r} is not once in the document")
    return base.replace(old, new).encode()


def _recipe(id_: str, old: str, new: str, expected: str) -> Case:
    return Case(id_, "recipe", _changed(RECIPE, old, new), expected)


def _site(id_: str, old: str, new: str, expected: str) -> Case:
    return Case(id_, "site", _changed(SITE, old, new), expected)


def _raw(id_: str, data: str | bytes, expected: str) -> Case:
    return Case(id_, "recipe", data.encode() if isinstance(data, str) else data, expected)


def _laughs() -> str:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return RECIPE + "\n".join(lines)


ENCODING = [
    _raw("nul", RECIPE.replace("right", "ri\0ght"), "U+0000"),
    _raw("escape-character", RECIPE.replace("right", "\x1b[31mred"), "U+001B"),
    _raw("c1-control", RECIPE.replace("right", "ri\x85ght"), "U+0085"),
    _raw("line-separator", RECIPE.replace("right", "ri\u2028ght"), "U+2028"),
    _raw("right-to-left", RECIPE.replace("right", "\u202egnp.exe"), "U+202E"),
    _raw("second-bom", RECIPE.replace("right", "\ufeff"), "U+FEFF"),
    _raw("latin-1", RECIPE.replace("right", "für").encode("latin-1"), "not UTF-8: byte 0xfc"),
    _raw("utf-16", codecs.BOM_UTF16_LE + RECIPE.encode("utf-16-le"), "not UTF-8: byte 0xff"),
    _raw("utf-16-without-bom", RECIPE.encode("utf-16-be"), "U+0000"),
    _raw("overlong-utf-8", RECIPE.encode().replace(b"right", b"\xc0\xaf"), "not UTF-8: byte 0xc0"),
    _raw("cut-utf-8", RECIPE.encode() + b"# \xe2\x82", "not UTF-8: byte 0xe2"),
    _raw("random", bytes(range(256)) * 64, "not UTF-8: byte 0x80"),
    _raw("ten-megabytes", RECIPE + "# filler\n" * 1_200_000, "more than 1048576 bytes"),
]

SYNTAX = [
    _raw("empty", "", "the document is empty"),
    _raw("only-a-comment", "# nothing\n", "the document is empty"),
    _raw("only-a-marker", "---\n", "the document is empty"),
    _raw("a-list", "- schema: 1\n", "must be keys with values, not a list"),
    _raw("a-scalar", "allreduce\n", "must be keys with values, not text"),
    _recipe("tab-indent", "  numpy", "\tnumpy", "a tab cannot indent"),
    _recipe("crlf-and-tab", "  numpy", "\r\n\tnumpy", "a tab cannot indent"),
    _recipe("colon-first", "numpy: ", ": ", "does not fit the lines above"),
    _recipe("wrong-indent", "  numpy", " numpy", "does not fit the lines above"),
    _recipe("open-list", "x86_64, aarch64]", "x86_64, aarch64", "is not closed, or lacks a comma"),
    _recipe("open-mapping", "timeout: 60}", "timeout: 60", "is not closed, or lacks a comma"),
    _recipe("open-quote", '"pandas>=2"', '"pandas>=2', "is not closed, or lacks a comma"),
    _raw("open-quote-at-end", RECIPE + 'x: "never', "a quote is opened and not closed"),
    _recipe("two-colons", "A recipe", "A recipe: one", "a ':' where no key can stand"),
    _recipe("bare-range", '">=3.9"', ">=3.9", "a value cannot begin with '>'"),
    _recipe("bare-star", '"*"', "*", "a value cannot begin with '*'"),
    _recipe("bare-not", '"*"', "!=1.19.4 ", "tags are not allowed: '!=1.19.4'"),
    _recipe("bare-tag", '"*"', "!<x", "a value cannot begin with '!'"),
    _recipe("at-sign", "A recipe", "@recipe", "a value cannot begin with '@'"),
    _recipe("backtick", "A recipe", "`reboot`", "a value cannot begin with '`'"),
    _recipe("bad-escape", "A recipe that is right but for one thing", r'"\q"', "unknown escape"),
    _recipe("escape-out-of-range", "A recipe that is right but for one thing", r'"\UFFFFFFFF"', ""),
    _recipe("lone-surrogate", "A recipe that is right but for one thing", r'"\uD800"', ""),
    _raw("two-documents", RECIPE + "---\n" + RECIPE, "a second document begins here"),
    _raw("text-after-the-end", RECIPE + "...\nmore: 1\n", "does not belong to the document"),
    _raw("directive", "%YAML 1.1\n---\n" + RECIPE, "'%' directives are not allowed"),
    _raw("future-yaml", "%YAML 3.0\n---\n" + RECIPE, "directives are not allowed"),
    _raw("endless-yaml-version", f"%YAML 1.{'9' * 9000}\n---\n" + RECIPE, ""),
    _raw("tag-directive", "%TAG ! tag:x,1:\n---\n" + RECIPE, "'%' directives are not allowed"),
]

BOMBS = [
    _raw("billion-laughs", _laughs(), "anchors are not allowed: '&a0'"),
    _recipe("alias", "[x86_64, aarch64]", "*everything", "aliases are not allowed: '*everything'"),
    _recipe("cyclic-alias", '["pandas>=2"]', "&a [*a]", "anchors are not allowed: '&a'"),
    _recipe("merge-key", "env: {", "env: {<<: {A: b}, ", "merge keys are not allowed"),
    _recipe(
        "python-tag",
        "virtualenv",
        "!!python/object/apply:os.system [reboot]",
        "'!!python/object/apply:os",
    ),
    _recipe("binary-tag", "virtualenv", "!!binary aGk=", "tags are not allowed"),
    _recipe("own-tag", "virtualenv", "!mine virtualenv", "tags are not allowed: '!mine'"),
    _raw("deep-flow", "a: " + "[" * 100_000, "nested more than 24 levels deep"),
    _raw("deep-flow-mapping", "a: " + "{a: " * 10_000, "nested more than 24 levels deep"),
    _raw("deep-block", "- " * 5_000 + "x", "nested more than 24 levels deep"),
    _raw("many-values", RECIPE + f"x: [{'1,' * 200_000}]", "more than 50000 values"),
    _raw("many-keys", RECIPE + "".join(f"k{n}: 1\n" for n in range(20_000)), "more problems"),
    _raw("many-doubles", RECIPE + "name: broken\n" * 5_000, "duplicate key 'name'"),
    _raw("long-key", RECIPE + "x" * 1000 + ": 1\n", "unknown key 'xxxx"),
    _raw("long-quoted-key", RECIPE + f'? "{"x" * 900_000}"\n: 1\n', "unknown key 'xxxx"),
    _recipe("long-summary", "A recipe", "x" * 900_000, "must have at most 500 characters"),
    _recipe("list-as-key", "numpy: ", "? [a, b]\n  : ", "a key must be plain text"),
    _recipe("empty-key", "env: {", 'env: {"": x, ', "a key is missing before ':'"),
]

TYPES = [
    _recipe("float-version", '">=3.9"', "3.10", "stack.python must be text, not a number"),
    _recipe("integer-version", '"*"', "2", "stack.numpy must be text, not a number"),
    _recipe("inf", "ranks: 2", "ranks: .inf", "smoke.ranks must be a whole number, not '.inf'"),
    _recipe("nan", "ranks: 2", "ranks: .nan", "smoke.ranks must be a whole number"),
    _recipe("huge", "ranks: 2", f"ranks: {'9' * 5000}", "smoke.ranks must be a whole number"),
    _recipe("large", "ranks: 2", "ranks: 99999", "smoke.ranks must be at most 4096"),
    _recipe("one-rank", "ranks: 2", "ranks: 1", "smoke.ranks must be at least 2"),
    _recipe("negative", "ranks: 2", "ranks: -4", "smoke.ranks must be at least 2"),
    _recipe("float-ranks", "ranks: 2", "ranks: 2.0", "smoke.ranks must be a whole number"),
    _recipe("octal", "ranks: 2", "ranks: 010", "smoke.ranks must be a whole number"),
    _recipe("hex", "ranks: 2", "ranks: 0x10", "smoke.ranks must be a whole number"),
    _recipe("sexagesimal", "timeout: 60", "timeout: 1:00", "smoke.timeout must be a whole number"),
    _recipe("quoted-number", "ranks: 2", 'ranks: "2"', "must be a whole number, not text"),
    _recipe("boolean-number", "ranks: 2", "ranks: true", "not true or false"),
    _recipe("yes", "packages: false", "packages: yes", "must be true or false, not yes or no"),
    _recipe("quoted-true", "packages: false", 'packages: "true"', "must be true or false, not te"),
    _recipe("one-for-true", "packages: false", "packages: 1", "must be true or false, not a numb"),
    _recipe("on-as-text", '"2"', "on", "env.OMP_NUM_THREADS must be text, not yes or no"),
    _recipe("number-as-text", '"2"', "2", "env.OMP_NUM_THREADS must be text, not a number"),
    _recipe("date-as-text", '"2"', "2026-11-21", "must be text, not a date"),
    _recipe("null-text", '"2"', "~", "env.OMP_NUM_THREADS must be text, not empty"),
    _recipe("text-for-list", "[x86_64, aarch64]", "x86_64", "arch must be a list, not text"),
    _recipe("mapping-for-list", '["pandas>=2"]', "{pandas: 2}", "packages must be a list, not a m"),
    _recipe("list-for-mapping", '{OMP_NUM_THREADS: "2"}', "[A=b]", "env must be a mapping of"),
    _recipe("text-for-mapping", "{ranks: 2, max-bytes: 1024, timeout: 60}", "4", "smoke must be a"),
    _recipe("list-for-text", "virtualenv", "[virtualenv]", "backend must be one of virtualenv"),
    _recipe("empty-list", "[x86_64, aarch64]", "[]", "arch must have at least 1 entry"),
    _recipe("empty-text", "A recipe that is right but for one thing", '""', "must not be empty"),
    _recipe("schema-2", "schema: 1", "schema: 2", "this envbuild reads schema 1"),
    _recipe("schema-true", "schema: 1", "schema: true", "unknown schema 'true'"),
    _recipe("schema-text", "schema: 1", 'schema: "1"', "schema must be the number 1, not text"),
    _site("site-float-version", "3.6.6}", "3.10}", "modules[0].provides.python must be text, not"),
    _site("site-text-for-list", "[/usr/bin/python3]", "/usr/bin/python3", "pythons must be a list"),
    _site(
        "site-text-for-modules", "[fosscuda/2018b]", "fosscuda/2018b", "must be a list, not text"
    ),
    _site("site-no-origins", "[module, system, pip]", "[]", "origins must have at least 1 entry"),
    _site("site-no-command", "[srun, --mpi=pmix]", "[]", "launcher.command must have at least 1"),
]

NAMES = [
    _recipe("unknown-key", "smoke:", "smok:", "unknown key 'smok': did you mean 'smoke'?"),
    _recipe("unknown-inner-key", "ranks:", "rank:", "unknown key 'rank': did you mean 'ranks'?"),
    _recipe("python-spelling", "max-bytes", "max_bytes", "did you mean 'max-bytes'?"),
    _recipe("duplicate-key", "backend: virtualenv", "name: broken", "duplicate key 'name', first"),
    _recipe("duplicate-component", "mpich:", "numpy:", "duplicate key 'numpy', first written at"),
    _recipe("missing-key", "arch: [x86_64, aarch64]\n", "", "the key 'arch' is missing"),
    _recipe("no-python", '  python: ">=3.9"\n', "", "the stack names no python"),
    _recipe("unknown-component", "numpy:", "nunpy:", "unknown component 'nunpy': did you mean"),
    _recipe("virtual-component", "mpich:", "mpi:", "'mpi' is not a component"),
    _recipe(
        "unknown-arch", "[x86_64,", "[x86-64,", "unknown arch 'x86-64': did you mean 'x86_64'?"
    ),
    _recipe("double-arch", "aarch64]", "x86_64]", "the same architecture is listed twice"),
    _recipe("unknown-backend", "virtualenv", "venv", "unknown backend 'venv'"),
    _recipe(
        "image-for-backend", "virtualenv", "container", "container is not a backend but a target"
    ),
    _recipe("unknown-runtime", "distributed-dl-training", "horovodd", "unknown package 'horovodd'"),
    _recipe("other-name", "name: broken", "name: other", "the name 'other' is not the file's"),
    _recipe("reserved-name", "name: broken", "name: modulefiles", "is reserved"),
    _recipe("climbing-name", "name: broken", "name: ../../etc/passwd", "name must be lower-case"),
    _recipe("absolute-name", "name: broken", "name: /etc/passwd", "name must be lower-case"),
    _recipe("cyrillic-name", "name: broken", "name: br\u043eken", "name must be lower-case"),
    _recipe("emoji-name", "name: broken", "name: \U0001f4a5", "name must be lower-case"),
    _recipe("long-name", "name: broken", f"name: {'x' * 65}", "must have at most 64 characters"),
    _recipe("climbing-site", "some-site", "../../x", "documented-for.x86_64 must be lower-case"),
    _recipe("unknown-arch-key", "{x86_64:", "{x86:", "unknown key 'x86': did you mean 'x86_64'?"),
    _recipe("full-width-digits", '">=3.9"', '">=\uff13"', "stack.python: not a version range"),
    _recipe("no-break-space", "numpy: ", "numpy\u00a0: ", "stack: the name 'numpy\\xa0'"),
    _recipe("protected-path", "OMP_NUM_THREADS", "PATH", "env: PATH is managed by envbuild"),
    _recipe("protected-preload", "OMP_NUM_THREADS", "LD_PRELOAD", "env: LD_PRELOAD is managed"),
    _recipe("protected-bash-env", "OMP_NUM_THREADS", "BASH_ENV", "env: BASH_ENV is managed"),
    _recipe("password", "//index", "//me:secret@index", "credentials do not belong in a document"),
    _recipe("ftp", "https://index", "ftp://index", "must be an http, https or file URL"),
    _recipe("pip-option", "pandas>=2", "--index-url=x", "not a pip requirement"),
    _recipe("pip-url", "pandas>=2", "pandas @ https://index.example/p.whl", "by URL cannot be"),
    _site(
        "site-unknown-key", "pythons:", "python:", "unknown key 'python': did you mean 'pythons'"
    ),
    _site("site-unknown-inner", "loads:", "load:", "unknown key 'load': did you mean 'loads'?"),
    _site("site-component", "{python:", "{pyton:", "unknown component 'pyton': did you mean"),
    _site("site-arch", "[ppc64le]", "[ppc64el]", "unknown arch 'ppc64el': did you mean 'ppc64le'?"),
    _site("site-launcher", "kind: srun", "kind: srn", "unknown kind 'srn': did you mean 'srun'?"),
    _site(
        "site-system", "lmod\nmodule-init", "lmode\nmodule-init", "unknown module-system 'lmode'"
    ),
    _site("site-relative", "/scratch/envs", "envs", "base: must be an absolute path"),
    _site("site-climbing", "/scratch/envs", "/scratch/../etc", "base: must not contain '..'"),
    _site("site-variable", "/scratch/envs", "/scratch/$USER", "are not expanded, write it out"),
    _site("site-colon", "/sw/modules/ml", "/sw/a:/sw/b", "module-trees[0]: a ':' would split it"),
    _site("site-climbing-module", "[fosscuda/2018b]", "[../x]", "must be a module name such as"),
    _site("site-option-module", "[fosscuda/2018b]", "[--force]", "must be a module name such as"),
]

# How to put "@" behind the text of each field. In the free ones any text that prints on one line
# may stand, as their values reach shells and modulefiles through quoting only; the narrow ones
# refuse what a shell could take for more than a name.
_FREE = {
    "recipe": {
        "summary": ("A recipe that is right but for one thing", '"A recipe@"'),
        "env-value": ('"2"', '"2@"'),
        "runtime-source": ("../runtime", '"../runtime@"'),
    },
    "site": {
        "summary": ("A site that is right but for one thing", '"A site@"'),
        "launcher-command": ("--mpi=pmix", '"--mpi=pmix@"'),
    },
}
_NARROW = {
    "recipe": {
        "name": ("name: broken", 'name: "broken@"'),
        "arch": ("aarch64]", '"aarch64@"]'),
        "documented-arch": ("{x86_64:", '{"x86_64@":'),
        "documented-site": ("some-site", '"some-site@"'),
        "backend": ("virtualenv", '"virtualenv@"'),
        "component": ("numpy:", '"numpy@":'),
        "range": (">=4.2", ">=4.2@"),
        "package": ("pandas>=2", "pandas>=2@"),
        "variable": ("OMP_NUM_THREADS", '"OMP_NUM_THREADS@"'),
        "index": ("https://index.example/simple", "https://index.example/simple@"),
        "find-links": ("file:///srv/wheels", "file:///srv/wheels@"),
        "runtime": ("distributed-dl-training", '"distributed-dl-training@"'),
    },
    "site": {
        "name": ("name: broken", 'name: "broken@"'),
        "arch": ("ppc64le", '"ppc64le@"'),
        "module-system": ("system: lmod", 'system: "lmod@"'),
        "module-init": ("/usr/share/lmod/init/bash", '"/usr/share/lmod/init/bash@"'),
        "tree": ("/sw/modules/ml", '"/sw/modules/ml@"'),
        "module": ("Python/3.6.6-fosscuda-2018b", '"Python/3.6.6-fosscuda-2018b@"'),
        "provides": ("{python:", '{"python@":'),
        "provided-version": ("3.6.6}", '"3.6.6@"}'),
        "interpreter": ("/sw/installed/Python/bin/python3", '"/sw/bin/python3@"'),
        "loads": ("fosscuda/2018b]", '"fosscuda/2018b@"]'),
        "pythons": ("/usr/bin/python3", '"/usr/bin/python3@"'),
        "origin": ("pip]", '"pip@"]'),
        "launcher": ("kind: srun", 'kind: "srun@"'),
        "base": ("/scratch/envs", '"/scratch/envs@"'),
        "index": ("https://index.example/simple", "https://index.example/simple@"),
        "find-links": ("file:///srv/wheels", "file:///srv/wheels@"),
    },
}
_LINE_BREAKS = {"newline": r"\nreboot", "bell": r"\a"}
_SHELL = {"command": "$(reboot)", "backticks": "`reboot`"}


def _in_every_field() -> list[Case]:
    fields = [
        (kind, field, change, spoil)
        for kind in ("recipe", "site")
        for changes, spoil in (
            (_FREE[kind], _LINE_BREAKS),
            (_NARROW[kind], _LINE_BREAKS | _SHELL),
        )
        for field, change in changes.items()
    ]
    return [
        _changed_case(f"{id_}-in-{kind}-{field}", kind, old, new.replace("@", text))
        for kind, field, (old, new), spoil in fields
        for id_, text in spoil.items()
    ]


def _changed_case(id_: str, kind: str, old: str, new: str) -> Case:
    make = _recipe if kind == "recipe" else _site
    return make(id_, old, new, "")


CASES: list[Case] = [*ENCODING, *SYNTAX, *BOMBS, *TYPES, *NAMES, *_in_every_field()]

# Refused as a whole, so that no line can be named.
WITHOUT_LINE = frozenset({"ten-megabytes"})
