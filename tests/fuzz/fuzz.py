#!/usr/bin/env python3
"""Fuzz a parser by atheris: it keeps the inputs that make other code run, and changes them again.

    python tests/fuzz/fuzz.py PARSER [OPTION...]      without a parser: list them

An option is libFuzzer's: -max_total_time=60, -runs=100000. An input that makes a parser raise what
it does not say, take over 10 s or 2 GB is printed with the exception, and written to crash-*; give
that file instead of options to run it again. Exit code 0: none was found.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
with atheris.instrument_imports(include=["envbuilder"]):
    from tests.fuzz.foreign import FOREIGN
    from tests.fuzz.parsers import PARSERS as OWN

PARSERS = {**OWN, **FOREIGN}

FOLDER = "ENVBUILD_FUZZ_FOLDER"
LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1")


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in PARSERS:
        print(__doc__, *PARSERS, sep="\n")
        return 2
    if FOLDER in os.environ:
        fuzz(sys.argv[1], sys.argv[2:], Path(os.environ[FOLDER]))
        return 0
    # libFuzzer ends the process by itself, and nobody would clean up.
    with tempfile.TemporaryDirectory(prefix="envbuild-fuzz-") as folder:
        environ = {**os.environ, FOLDER: folder, "TMPDIR": folder}
        return subprocess.run([sys.executable, *sys.argv], env=environ, check=False).returncode


def fuzz(name: str, given: list[str], folder: Path) -> None:
    """Fuzz a parser; never returns."""
    parser = PARSERS[name]
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir()
    for number, seed in enumerate(parser.seeds):
        (corpus / str(number)).write_bytes(seed)
    texts = ("".join(f"\\x{byte:02x}" for byte in word) for word in parser.words)
    words.write_text("".join(f'"{text}"\n' for text in texts))
    again = [each for each in given if not each.startswith("-")]
    dictionary = [f"-dict={words}"] if parser.words else []
    options = [*LIMITS, *dictionary, *given, *([] if again else [str(corpus)])]
    atheris.Setup([sys.argv[0], *options], lambda data: parser.read(data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
