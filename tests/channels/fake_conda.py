"""A program of conda's family, as strict as their documentation, for what envbuild asks of it.

It takes ``create`` with an explicit list, no network and a package cache of its own; it links what
the list names by py-rattler, as micromamba does by its own code.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

WORDS = ["create", "--yes", "--offline", "--prefix", "PREFIX", "--file", "FILE"]


def main(words: list[str]) -> int:
    if len(words) != len(WORDS) or any(
        given != wanted for given, wanted in zip(words, WORDS, strict=True) if not wanted.isupper()
    ):
        print(f"error: unknown words: {words}", file=sys.stderr)
        return 2
    prefix, cache = Path(words[4]), Path(os.environ["CONDA_PKGS_DIRS"])
    if prefix.exists():
        print(f"error: {prefix} exists", file=sys.stderr)
        return 1
    mark, *urls = Path(words[6]).read_text().splitlines()
    assert mark == "@EXPLICIT"
    paths = [Path(unquote(urlsplit(url).path)) for url in urls]
    assert all(url.startswith("file:///") for url in urls)
    from envbuilder.target_tools import conda_link

    packages = []
    for path in paths:
        name, version, build = path.name.removesuffix(".conda").rsplit("-", 2)
        package = {"filename": path.name, "name": name, "version": version, "build": build}
        packages.append(package)
    said = {"platform": "linux-64", "packages": packages}
    asyncio.run(conda_link.link(prefix, cache, said, paths[0].parent, None))
    (prefix / "made-by").write_text(json.dumps(words[:1]))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
