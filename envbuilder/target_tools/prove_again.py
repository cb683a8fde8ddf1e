"""Prove a published environment again, for ``prove.sh``: where its programs run.

    python -I target_tools prove-again GIVEN ROOT NAME NUMBER <ENVIRONMENT

GIVEN/proving.json says what is proved; GIVEN/proved.json gets the records, which are kept beside
the prefix too. ENVIRONMENT: as of ``install-bundle``. Exit code 0: there is a verdict, which may be
that it failed; 8: the files are not those that were published, and nothing of them was run.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from . import in_root
from .files import canonical_json, read_json, write_atomically
from .proving.evidence import prove
from .root import manifests, publish
from .root.layout import Home


def prove_again(given: Path, home: Home, number: int, environ: "Mapping[str, str]") -> None:
    """Compare the files, run the smoke tests, hand out their records. Raises DriftError."""
    version = publish.find_version(home, number)
    manifests.check_unchanged(home, version)
    proved = prove(read_json(given / "proving.json"), home, version.id, environ)
    write_atomically(given / "proved.json", canonical_json(proved))


def main(arguments: "list[str]") -> int:
    """Prove; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Run the smoke test of a published environment again."
    )
    parser.add_argument("given", type=Path)
    parser.add_argument("root", type=Path)
    parser.add_argument("name")
    parser.add_argument("number", type=int)
    options = parser.parse_args(arguments)
    home = Home(options.root, options.name)

    def work(environ: "Mapping[str, str]") -> None:
        prove_again(options.given, home, options.number, environ)

    return in_root.run(work, "nothing was proved")
