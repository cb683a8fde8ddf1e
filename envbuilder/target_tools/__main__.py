"""Run one of the tools: python [-I] target_tools TOOL [ARGUMENT...]."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

TOOLS = {
    "install-pip": "install the pip that Python bundles into a new virtualenv",
    "fetch": "fetch files by URL and sha256 without pip, or list missing files",
    "fetch-trees": "fetch git trees at their commits, with their submodules",
    "conda-engine": "read channels, solve and link conda packages with py-rattler",
    "conda-packages": "list conda packages for conda, or compare a prefix with them",
    "relocate": "pack a linked conda prefix, or unpack one into any folder",
    "install-wheels": "install locked wheels with several pips in parallel",
    "bytecode": "compile installed packages, or restore their bytecode from the cache",
    "check": "check that Python finds every pinned distribution in the prefix",
    "build-wheel": "build a wheel with the backend of pyproject.toml, without pip",
    "wheel-cache": "find, seal and store wheels that are built from source",
    "verify": "check source builds by their libraries",
    "load-libraries": "load native libraries and print what they report as JSON",
    "manifest": "record the files of a prefix, or compare them with a record",
    "unchanged": "compare the files of a published prefix with its manifest",
    "install-bundle": "build, prove and publish a bundle in a root",
    "prove": "run the smoke test of a build folder",
    "prove-again": "run the smoke test of a published environment again",
    "smoke": "run one rank of the smoke test",
}
# These run from folders in which nothing else may be left.
LEAVING_NOTHING = ("install-pip", "manifest", "prove", "prove-again", "smoke", "unchanged")


def usage() -> str:
    """Return the list of tools."""
    lines = [f"  {name:16}{summary}" for name, summary in TOOLS.items()]
    return "\n".join([__doc__, "", *lines, ""])


def main(arguments: "list[str]") -> int:
    """Run the tool; return its exit code."""
    if not arguments or arguments[0] not in TOOLS:
        sys.stderr.write(usage())
        return 2
    name = arguments[0]
    if name in LEAVING_NOTHING:
        sys.dont_write_bytecode = True
    # Python has put this folder first, which holds modules of a package; and no folder of ours is a
    # place to import anything else from.
    sys.path[0] = str(HERE.parent)
    importlib.import_module(HERE.name)
    del sys.path[0]
    # As argparse names it.
    sys.argv[0] = f"{HERE.name} {name}"
    tool = importlib.import_module("{}.{}".format(HERE.name, name.replace("-", "_")))
    return int(tool.main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
