"""How many small mistakes in the code the tests find, and which only tests that run when asked for.

    python benchmarks/mutants.py [--seed N] [--each N] [--limit SECONDS] [--tests PATH]
                                 [PACKAGE or FILE...]

Draws mutants of each package of envbuilder: a comparison turned round, ``and`` for ``or``, a
condition denied, a constant that is another, a statement that is gone. Each is written into the
checkout, which must be clean and is restored, and the tests of that package run as they do by
default; on one that survives, those marked ``long`` run as well. Prints a table, and the survivors.

The draw depends on the seed and the code alone. Integration tests run where TESTS names them. Tests
that do not end within the limit count as failed: it must be far more than they take.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
CODE = TOP / "envbuilder"
TURNED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# Tests beside tests/PACKAGE that are meant for a package, by default and of those marked long.
TESTS = {
    "(shared)": [
        "tests/test_process.py",
        "tests/build",
        "tests/record",
        "tests/doctor",
        "tests/cli",
    ],
    "backends": ["tests/render", "tests/planning"],
    "cli": ["tests/integration/test_failures.py"],
    "commands": [
        "tests/cli",
        "tests/integration/test_cached_locks.py",
        "tests/integration/test_killed.py",
    ],
    "host": ["tests/doctor"],
    "locking": ["tests/locking", "tests/cli/test_cli_diff.py"],
    "module_system": ["tests/sites"],
    "resolve": ["tests/resolve/test_oracle.py", "tests/resolve"],
    "root": ["tests/integration/test_killed.py", "tests/cli"],
    "schedulers": ["tests/launchers", "tests/render", "tests/doctor", "tests/cli"],
    "target_tools": ["tests/target_tools", "tests/smoke", "tests/root"],
    "targets": [
        "tests/render",
        "tests/integration/test_targets.py",
        "tests/integration/test_bundle_installed.py",
    ],
    "views": ["tests/cli"],
}


@dataclass(frozen=True)
class Mutant:
    """A place in a file, and the text to stand there."""

    path: Path
    node: ast.expr | ast.stmt
    text: str

    def __str__(self) -> str:
        was = " ".join((self.segment(self.path.read_text(encoding="utf-8"))).split())
        return f"{self.path.relative_to(TOP)}:{self.node.lineno}: {was[:60]}  ->  {self.text[:60]}"

    def segment(self, source: str) -> str:
        return ast.get_source_segment(source, self.node) or ""

    def applied(self, source: str) -> str:
        """Return the source with the mutant in it."""
        lines = source.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line.encode()))
        raw = source.encode()
        first = starts[self.node.lineno - 1] + self.node.col_offset
        last = starts[(self.node.end_lineno or 0) - 1] + (self.node.end_col_offset or 0)
        return (raw[:first] + self.text.encode() + raw[last:]).decode()


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {id(node) for node in annotations(tree)}
    for node in ast.walk(tree):
        text = None if id(node) in left_out else changed(node)
        if text is not None and isinstance(node, ast.expr | ast.stmt):
            yield Mutant(path, node, text)


def annotations(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what does nothing at run time, such as annotations; and what f-strings hold."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts.append(node.annotation)
        if isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        if isinstance(node, ast.JoinedStr):
            parts.extend(node.values)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.append(node)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            parts.append(node)
        for part in parts:
            if part is not None:
                yield from ast.walk(part)


def changed(node: ast.AST) -> str | None:
    """Return what stands in a mutant instead of a node; None: it has no mutant."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
        ops = [TURNED[type(node.ops[0])](), *node.ops[1:]]
        return f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
    if isinstance(node, ast.BoolOp):
        op: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return f"({ast.unparse(ast.BoolOp(op, node.values))})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"({ast.unparse(node.operand)})"
    if isinstance(node, ast.Constant):
        return changed_constant(node.value)
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if called or isinstance(node, ast.Raise | ast.AugAssign | ast.Continue | ast.Break):
        return "pass"
    return None


def changed_constant(value: object) -> str | None:
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int):
        return repr(value + 1)
    return repr(value + "_") if isinstance(value, str) and value.isidentifier() else None


def packages() -> dict[str, list[Path]]:
    """Return the files of each package; modules beside the packages are one of their own."""
    found: dict[str, list[Path]] = {}
    for path in sorted(CODE.rglob("*.py")):
        first, *below = path.relative_to(CODE).parts
        found.setdefault(first if below else "(shared)", []).append(path)
    return found


def tests_of(package: str) -> list[str]:
    own = [f"tests/{package}"] if (TOP / "tests" / package).is_dir() else []
    more = [path for path in TESTS.get(package, []) if (TOP / path).exists()]
    return [*more, *own] or ["tests/test_process.py", "tests/documents", "tests/cli"]


def fails(words: list[str], limit: float) -> bool:
    """Whether these tests fail; those that do not end in time do."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *words]
    try:
        done = subprocess.run(command, cwd=TOP, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return True
    # 5: none was selected.
    return done.returncode not in (0, 5)


def verdict(mutant: Mutant, tests: list[str], limit: float) -> str:
    """Return what becomes of a mutant."""
    source = mutant.path.read_text(encoding="utf-8")
    mutant.path.write_text(mutant.applied(source), encoding="utf-8")
    try:
        if fails([*tests, "-m", "not long and not network"], limit):
            return "killed"
        local = [each for each in tests if each.startswith("tests/integration")]
        if local and fails([*local, "-m", "not long"], limit):
            return "killed"
        return "killed by long" if fails([*tests, "-m", "long"], limit) else "survived"
    finally:
        mutant.path.write_text(source, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=6, help="mutants of each package")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for the tests of one")
    parser.add_argument("--tests", action="append", help="run these instead of a package's own")
    parser.add_argument("packages", nargs="*")
    options = parser.parse_args()
    status = ["git", "status", "--porcelain", "--", "envbuilder"]
    if subprocess.run(status, cwd=TOP, capture_output=True, check=True).stdout:
        sys.exit("envbuilder has changes that are not committed")
    print("| package | mutants | killed | killed only by `-m long` | survived |")
    print("| --- | --- | --- | --- | --- |")
    survivors = []
    for package, files in packages().items():
        named = not options.packages or package in options.packages
        taken = [each for each in files if named or str(each.relative_to(TOP)) in options.packages]
        every = [mutant for path in taken for mutant in mutants_of(path)]
        if not every:
            continue
        draw = random.Random(f"{options.seed} {package}")
        drawn = draw.sample(every, min(options.each, len(every)))
        ends: Counter[str] = Counter()
        for mutant in drawn:
            text = str(mutant)
            end = verdict(mutant, options.tests or tests_of(package), options.limit)
            ends[end] += 1
            if end != "killed":
                survivors.append(f"{end}: {text}")
        counts = (len(drawn), ends["killed"], ends["killed by long"], ends["survived"])
        print(f"| {package} | " + " | ".join(map(str, counts)) + " |", flush=True)
    print(*["", *survivors], sep="\n")


if __name__ == "__main__":
    main()
