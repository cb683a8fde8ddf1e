"""The lines of the seed documents that a reader types, submits or runs.

Five documents are what this project implements. ``tests/documents/lines.yaml`` has a row for each
line that ``seed_lines`` returns; the documents themselves are not part of the checkout.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Names the folder of the documents; else they lie beside the checkout, as CI has them.
NAMED = "ENVBUILD_SEEDS"
BESIDE = Path(__file__).parents[3] / "shared" / "seeds"

# A fence of Markdown, or a directive of reStructuredText that opens a block of code.
_FENCE = re.compile(r"```")
_DIRECTIVE = re.compile(r"\.\. code(-block)?::")
# What a shell prints before a command: "$ ", "bash-4.2$ ", "(demo) [bnelson@dlw12 ~]$ ".
_PROMPT = re.compile(r"^(\([\w.-]+\) )?(\[[^]]+\]|bash-[\d.]+)? ?\$ +")
# What programs print: "...", a rule, "total images/sec: 1248.06", bsub's words on the job.
_OUTPUT = re.compile(r"\.\.\.|-+|total images/sec.*|Job <\d+>.*|<<.*>>|\([\w.-]+\) \$")
# Words of a sentence that a reader puts into a command: a program with its options, a variable of a
# build or a job, an option, a compiler, a package, a module.
_SPAN = re.compile(r"`{1,2}([^`]+?)`{1,2}")
_IN_SENTENCE = re.compile(
    r"(module load|horovodrun|ddllrun) .+|(HOROVOD|SLURM)_[A-Z_{},*]+(=\w+)? ?"
    r"|--gloo|g\+\+-[\d.]+|gxx_linux-64|Distributed-DL-trainingrun"
)
_MODULE = re.compile(r"\b[A-Z][A-Za-z]+/\d[\w.]*-[\w.-]+\w")
_SETTING = re.compile(r"\bHOROVOD_[A-Z_*]+=\w+")
_PROGRAM = re.compile(r"(import|from) \w")


@dataclass(frozen=True)
class SeedLine:
    """One line, with what continues it; of a program its first and its last one.

    ``line``: where it begins, from 1.
    """

    document: str
    line: int
    text: str


def seeds() -> Path | None:
    """Return the folder of the documents, None if it is not on this machine."""
    folder = Path(os.environ[NAMED]) if os.environ.get(NAMED) else BESIDE
    return folder if folder.is_dir() else None


def seed_lines(folder: Path) -> tuple[SeedLine, ...]:
    """Return the lines of all documents, by document and line."""
    return tuple(
        SeedLine(file.name.partition("_")[0], number, text)
        for file in sorted(folder.glob("*.txt"))
        for number, text in sorted(_lines(file.read_text(encoding="utf-8").splitlines()))
    )


def _lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    covered: set[int] = set()
    for block in _blocks(lines):
        covered.update(number for number, _ in block)
        yield from _of_block(block)
    for number, line in enumerate(lines, start=1):
        if number not in covered:
            spans = (span for span in _SPAN.findall(line) if _IN_SENTENCE.fullmatch(span))
            words = (*map(str.strip, spans), *_MODULE.findall(line), *_SETTING.findall(line))
            for text in dict.fromkeys(words):
                yield number, text


Block = list[tuple[int, str]]


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks of code: fenced, below a directive, behind a tab, or quoted commands."""
    block: Block = []
    fenced = directive = False
    for number, line in enumerate([*lines, ""], start=1):
        if _FENCE.match(line):
            fenced = not fenced
        elif _DIRECTIVE.match(line):
            directive = True
        elif fenced or (directive and (not line.strip() or line.startswith("   "))):
            block.append((number, line))
            continue
        elif _is_indented(line, block):
            block.append((number, line.removeprefix(">")))
            continue
        else:
            directive = False
        if block:
            yield block
        block = []


def _is_indented(line: str, block: Block) -> bool:
    """Whether a line of Markdown is code: behind a tab, or a command that is quoted."""
    quoted = line.startswith((">mpirun", ">    "))
    continued = bool(block) and line.startswith("    ") and block[-1][1].rstrip().endswith("\\")
    return line.startswith(("\t", " python")) or quoted or continued


def _of_block(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the commands of a block, a line that ends with a backslash joined with the next."""
    program = [(number, line) for number, line in block if line.strip()]
    begin = next((i for i, (_, line) in enumerate(program) if _is_python(line)), None)
    if begin is not None:
        yield from _commands(program[:begin])
        (number, first), (last, text) = program[begin], program[-1]
        yield number, f"{' '.join(first.split())} ... {' '.join(text.split())} (to line {last})"
        return
    yield from _commands(program)


def _is_python(line: str) -> bool:
    code = re.sub(r"^[|>] ", "", line.strip())
    return bool(_PROGRAM.match(code) or re.match(r"# DDL: |callbacks = ", code))


def _commands(block: Block) -> Iterator[tuple[int, str]]:
    start, text = 0, ""
    for number, line in block:
        words = _PROMPT.sub("", line.strip())
        if text:
            words = f"{text} {words}"
        elif _OUTPUT.fullmatch(words) or (words.startswith("# ") or words == "#"):
            continue
        else:
            start = number
        if words.endswith("\\"):
            text = words[:-1].rstrip()
            continue
        text = ""
        yield start, _without_comment(words)


def _without_comment(words: str) -> str:
    command = words if words.startswith("#") else re.sub(r"\s+# ?\S.*$|\s+#[a-zA-Z].*$", "", words)
    return " ".join(command.split())
