"""Broken and hostile documents, each with the id and a value of the problem that refuses it.

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
    """One document that must be refused.

    ``expected``: the id of one of its problems, and after a space what its message contains; empty:
    any problem.
    """

    id: str
    kind: Literal["recipe", "site"]
    data: bytes
    expected: str

    def is_expected(self, problem_id: str, message: str) -> bool:
        """Return whether a problem is the expected one."""
        expected_id, _, value = self.expected.partition(" ")
        return expected_id in ("", problem_id) and value in message


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
    _raw("nul", RECIPE.replace("right", "ri\0ght"), "document.control-character U+0000"),
    _raw(
        "escape-character",
        RECIPE.replace("right", "\x1b[31mred"),
        "document.control-character U+001B",
    ),
    _raw("c1-control", RECIPE.replace("right", "ri\x85ght"), "document.control-character U+0085"),
    _raw(
        "line-separator",
        RECIPE.replace("right", "ri\u2028ght"),
        "document.control-character U+2028",
    ),
    _raw(
        "right-to-left",
        RECIPE.replace("right", "\u202egnp.exe"),
        "document.control-character U+202E",
    ),
    _raw("second-bom", RECIPE.replace("right", "\ufeff"), "document.control-character U+FEFF"),
    _raw("latin-1", RECIPE.replace("right", "für").encode("latin-1"), "document.not-utf8 0xfc"),
    _raw("utf-16", codecs.BOM_UTF16_LE + RECIPE.encode("utf-16-le"), "document.not-utf8 0xff"),
    _raw("utf-16-without-bom", RECIPE.encode("utf-16-be"), "document.control-character U+0000"),
    _raw(
        "overlong-utf-8", RECIPE.encode().replace(b"right", b"\xc0\xaf"), "document.not-utf8 0xc0"
    ),
    _raw("cut-utf-8", RECIPE.encode() + b"# \xe2\x82", "document.not-utf8 0xe2"),
    _raw("random", bytes(range(256)) * 64, "document.not-utf8 0x80"),
    _raw("ten-megabytes", RECIPE + "# filler\n" * 1_200_000, "document.too-large 1048576"),
]

SYNTAX = [
    _raw("empty", "", "document.empty"),
    _raw("only-a-comment", "# nothing\n", "document.empty"),
    _raw("only-a-marker", "---\n", "document.empty"),
    _raw("a-list", "- schema: 1\n", "document.not-a-mapping"),
    _raw("a-scalar", "allreduce\n", "document.not-a-mapping"),
    _recipe("tab-indent", "  numpy", "\tnumpy", "document.tab"),
    _recipe("crlf-and-tab", "  numpy", "\r\n\tnumpy", "document.tab"),
    _recipe("colon-first", "numpy: ", ": ", "document.not-yaml"),
    _recipe("wrong-indent", "  numpy", " numpy", "document.not-yaml"),
    _recipe("open-list", "x86_64, aarch64]", "x86_64, aarch64", "document.not-yaml"),
    _recipe("open-mapping", "timeout: 60}", "timeout: 60", "document.not-yaml"),
    _recipe("open-quote", '"pandas>=2"', '"pandas>=2', "document.not-yaml"),
    _raw("open-quote-at-end", RECIPE + 'x: "never', "document.not-yaml"),
    _recipe("two-colons", "A recipe", "A recipe: one", "document.not-yaml"),
    _recipe("bare-range", '">=3.9"', ">=3.9", "document.missing-quotes '>'"),
    _recipe("bare-star", '"*"', "*", "document.missing-quotes '*'"),
    _recipe("bare-not", '"*"', "!=1.19.4 ", "document.not-allowed '!=1.19.4'"),
    _recipe("bare-tag", '"*"', "!<x", "document.missing-quotes '!'"),
    _recipe("at-sign", "A recipe", "@recipe", "document.missing-quotes '@'"),
    _recipe("backtick", "A recipe", "`reboot`", "document.missing-quotes '`'"),
    _recipe("bad-escape", "A recipe that is right but for one thing", r'"\q"', "document.not-yaml"),
    _recipe("escape-out-of-range", "A recipe that is right but for one thing", r'"\UFFFFFFFF"', ""),
    _recipe("lone-surrogate", "A recipe that is right but for one thing", r'"\uD800"', ""),
    _raw("two-documents", RECIPE + "---\n" + RECIPE, "document.several"),
    _raw("text-after-the-end", RECIPE + "...\nmore: 1\n", "document.not-yaml"),
    _raw("directive", "%YAML 1.1\n---\n" + RECIPE, "document.not-allowed '%'"),
    _raw("future-yaml", "%YAML 3.0\n---\n" + RECIPE, "document.not-yaml"),
    _raw("endless-yaml-version", f"%YAML 1.{'9' * 9000}\n---\n" + RECIPE, ""),
    _raw("tag-directive", "%TAG ! tag:x,1:\n---\n" + RECIPE, "document.not-allowed '%'"),
]

BOMBS = [
    _raw("billion-laughs", _laughs(), "document.not-allowed '&a0'"),
    _recipe("alias", "[x86_64, aarch64]", "*everything", "document.not-allowed '*everything'"),
    _recipe("cyclic-alias", '["pandas>=2"]', "&a [*a]", "document.not-allowed '&a'"),
    _recipe("merge-key", "env: {", "env: {<<: {A: b}, ", "document.not-allowed '<<'"),
    _recipe(
        "python-tag",
        "virtualenv",
        "!!python/object/apply:os.system [reboot]",
        "document.not-allowed python",
    ),
    _recipe("binary-tag", "virtualenv", "!!binary aGk=", "document.not-allowed !!binary"),
    _recipe("own-tag", "virtualenv", "!mine virtualenv", "document.not-allowed '!mine'"),
    _raw("deep-flow", "a: " + "[" * 100_000, "document.too-deep 24"),
    _raw("deep-flow-mapping", "a: " + "{a: " * 10_000, "document.too-deep 24"),
    _raw("deep-block", "- " * 5_000 + "x", "document.too-deep 24"),
    _raw("many-values", RECIPE + f"x: [{'1,' * 200_000}]", "document.too-large 50000"),
    _raw(
        "many-keys", RECIPE + "".join(f"k{n}: 1\n" for n in range(20_000)), "document.more-problems"
    ),
    _raw("many-doubles", RECIPE + "name: broken\n" * 5_000, "document.duplicate-key 'name'"),
    _raw("long-key", RECIPE + "x" * 1000 + ": 1\n", "document.unknown-key"),
    _raw("long-quoted-key", RECIPE + f'? "{"x" * 900_000}"\n: 1\n', "document.unknown-key"),
    _recipe("long-summary", "A recipe", "x" * 900_000, "document.invalid-value 500"),
    _recipe("list-as-key", "numpy: ", "? [a, b]\n  : ", "document.invalid-key plain"),
    _recipe("empty-key", "env: {", 'env: {"": x, ', "document.invalid-key ':'"),
]

TYPES = [
    _recipe("float-version", '">=3.9"', "3.10", "document.wrong-type stack.python"),
    _recipe("integer-version", '"*"', "2", "document.wrong-type stack.numpy"),
    _recipe("inf", "ranks: 2", "ranks: .inf", "document.wrong-type '.inf'"),
    _recipe("nan", "ranks: 2", "ranks: .nan", "document.wrong-type smoke.ranks"),
    _recipe("huge", "ranks: 2", f"ranks: {'9' * 5000}", "document.wrong-type smoke.ranks"),
    _recipe("large", "ranks: 2", "ranks: 99999", "document.invalid-value smoke.ranks"),
    _recipe("one-rank", "ranks: 2", "ranks: 1", "document.invalid-value smoke.ranks"),
    _recipe("negative", "ranks: 2", "ranks: -4", "document.invalid-value smoke.ranks"),
    _recipe("float-ranks", "ranks: 2", "ranks: 2.0", "document.wrong-type smoke.ranks"),
    _recipe("octal", "ranks: 2", "ranks: 010", "document.wrong-type smoke.ranks"),
    _recipe("hex", "ranks: 2", "ranks: 0x10", "document.wrong-type smoke.ranks"),
    _recipe("sexagesimal", "timeout: 60", "timeout: 1:00", "document.wrong-type smoke.timeout"),
    _recipe("quoted-number", "ranks: 2", 'ranks: "2"', "document.wrong-type number"),
    _recipe("boolean-number", "ranks: 2", "ranks: true", "document.wrong-type false"),
    _recipe("yes", "packages: false", "packages: yes", "document.wrong-type false"),
    _recipe("quoted-true", "packages: false", 'packages: "true"', "document.wrong-type false"),
    _recipe("one-for-true", "packages: false", "packages: 1", "document.wrong-type false"),
    _recipe("on-as-text", '"2"', "on", "document.wrong-type env.OMP_NUM_THREADS"),
    _recipe("number-as-text", '"2"', "2", "document.wrong-type env.OMP_NUM_THREADS"),
    _recipe("date-as-text", '"2"', "2026-11-21", "document.wrong-type must"),
    _recipe("null-text", '"2"', "~", "document.wrong-type env.OMP_NUM_THREADS"),
    _recipe("text-for-list", "[x86_64, aarch64]", "x86_64", "document.wrong-type arch"),
    _recipe("mapping-for-list", '["pandas>=2"]', "{pandas: 2}", "document.wrong-type packages"),
    _recipe("list-for-mapping", '{OMP_NUM_THREADS: "2"}', "[A=b]", "document.wrong-type mapping"),
    _recipe(
        "text-for-mapping",
        "{ranks: 2, max-bytes: 1024, timeout: 60}",
        "4",
        "document.wrong-type smoke",
    ),
    _recipe("list-for-text", "virtualenv", "[virtualenv]", "document.wrong-type virtualenv"),
    _recipe("empty-list", "[x86_64, aarch64]", "[]", "document.invalid-value 1"),
    _recipe(
        "empty-text",
        "A recipe that is right but for one thing",
        '""',
        "document.invalid-value empty",
    ),
    _recipe("schema-2", "schema: 1", "schema: 2", "document.unknown-schema 1"),
    _recipe("schema-true", "schema: 1", "schema: true", "document.unknown-schema 'true'"),
    _recipe("schema-text", "schema: 1", 'schema: "1"', "document.unknown-schema 1"),
    _site("site-float-version", "3.6.6}", "3.10}", "document.wrong-type provides.python"),
    _site(
        "site-text-for-list",
        "[/usr/bin/python3]",
        "/usr/bin/python3",
        "document.wrong-type pythons",
    ),
    _site(
        "site-text-for-modules", "[fosscuda/2018b]", "fosscuda/2018b", "document.wrong-type must"
    ),
    _site("site-no-origins", "[module, system, pip]", "[]", "document.invalid-value 1"),
    _site("site-no-command", "[srun, --mpi=pmix]", "[]", "document.invalid-value launcher.command"),
]

NAMES = [
    _recipe("unknown-key", "smoke:", "smok:", "document.unknown-key 'smok'"),
    _recipe("unknown-inner-key", "ranks:", "rank:", "document.unknown-key 'rank'"),
    _recipe("python-spelling", "max-bytes", "max_bytes", "document.unknown-key 'max-bytes'"),
    _recipe(
        "duplicate-key", "backend: virtualenv", "name: broken", "document.duplicate-key 'name'"
    ),
    _recipe("duplicate-component", "mpich:", "numpy:", "document.duplicate-key 'numpy'"),
    _recipe("missing-key", "arch: [x86_64, aarch64]\n", "", "document.missing-key 'arch'"),
    _recipe("no-python", '  python: ">=3.9"\n', "", "document.invalid-value python"),
    _recipe("unknown-component", "numpy:", "nunpy:", "component.unknown 'nunpy'"),
    _recipe("virtual-component", "mpich:", "mpi:", "component.unknown 'mpi'"),
    _recipe("unknown-arch", "[x86_64,", "[x86-64,", "document.unknown-value 'x86-64'"),
    _recipe("double-arch", "aarch64]", "x86_64]", "document.invalid-value architecture"),
    _recipe("unknown-backend", "virtualenv", "venv", "document.unknown-value 'venv'"),
    _recipe("image-for-backend", "virtualenv", "container", "document.invalid-value container"),
    _recipe(
        "unknown-runtime",
        "distributed-dl-training",
        "horovodd",
        "document.unknown-value 'horovodd'",
    ),
    _recipe("other-name", "name: broken", "name: other", "document.name-mismatch 'other'"),
    _recipe(
        "reserved-name", "name: broken", "name: modulefiles", "document.invalid-value reserved"
    ),
    _recipe(
        "climbing-name",
        "name: broken",
        "name: ../../etc/passwd",
        "document.invalid-value lower-case",
    ),
    _recipe(
        "absolute-name", "name: broken", "name: /etc/passwd", "document.invalid-value lower-case"
    ),
    _recipe(
        "cyrillic-name", "name: broken", "name: br\u043eken", "document.invalid-value lower-case"
    ),
    _recipe("emoji-name", "name: broken", "name: \U0001f4a5", "document.invalid-value lower-case"),
    _recipe("long-name", "name: broken", f"name: {'x' * 65}", "document.invalid-value 64"),
    _recipe(
        "climbing-site", "some-site", "../../x", "document.invalid-value documented-for.x86_64"
    ),
    _recipe("unknown-arch-key", "{x86_64:", "{x86:", "document.unknown-key 'x86'"),
    _recipe("full-width-digits", '">=3.9"', '">=\uff13"', "document.invalid-value stack.python"),
    _recipe("no-break-space", "numpy: ", "numpy\u00a0: ", "document.invalid-key 'numpy\\xa0'"),
    _recipe("protected-path", "OMP_NUM_THREADS", "PATH", "document.invalid-key envbuild"),
    _recipe(
        "protected-preload", "OMP_NUM_THREADS", "LD_PRELOAD", "document.invalid-key LD_PRELOAD"
    ),
    _recipe("protected-bash-env", "OMP_NUM_THREADS", "BASH_ENV", "document.invalid-key BASH_ENV"),
    _recipe("password", "//index", "//me:secret@index", "document.invalid-value credentials"),
    _recipe("ftp", "https://index", "ftp://index", "document.invalid-value https"),
    _recipe("pip-option", "pandas>=2", "--index-url=x", "document.invalid-value requirement"),
    _recipe(
        "pip-url",
        "pandas>=2",
        "pandas @ https://index.example/p.whl",
        "document.invalid-value cannot",
    ),
    _site("site-unknown-key", "pythons:", "python:", "document.unknown-key 'python'"),
    _site("site-unknown-inner", "loads:", "load:", "document.unknown-key 'load'"),
    _site("site-component", "{python:", "{pyton:", "component.unknown 'pyton'"),
    _site("site-arch", "[ppc64le]", "[ppc64el]", "document.unknown-value 'ppc64el'"),
    _site("site-launcher", "kind: srun", "kind: srn", "document.unknown-value 'srn'"),
    _site(
        "site-system", "lmod\nmodule-init", "lmode\nmodule-init", "document.unknown-value 'lmode'"
    ),
    _site("site-relative", "/scratch/envs", "envs", "document.invalid-value absolute"),
    _site("site-climbing", "/scratch/envs", "/scratch/../etc", "document.invalid-value '..'"),
    _site("site-variable", "/scratch/envs", "/scratch/$USER", "document.invalid-value expanded"),
    _site("site-colon", "/sw/modules/ml", "/sw/a:/sw/b", "document.invalid-value ':'"),
    _site("site-climbing-module", "[fosscuda/2018b]", "[../x]", "document.invalid-value module"),
    _site("site-option-module", "[fosscuda/2018b]", "[--force]", "document.invalid-value module"),
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
