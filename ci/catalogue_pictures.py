"""Draw docs/images/catalogue-*.png: a real root's catalogue in a real browser, and on paper.

An environment is built and proved five times, and its page looked at by Chromium: as wide as a
telephone, as a desk's screen, and printed. It needs ``chromium`` and ``pdftoppm`` (poppler-utils).
Run it as ``python ci/catalogue_pictures.py`` where envbuild is installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images"
SHOWN_ROOT = "/projects/envbuild/here/x86_64"
# Pixels, width and height: the page of one environment fills them.
SCREENS = {"phone": (390, 1160), "desktop": (1280, 1010)}
# Of paper, dots per inch.
PAPER = 60
PROOFS = 5


def run(*words: str | Path) -> None:
    subprocess.run([str(each) for each in words], check=True, timeout=600)


def make_page(folder: Path) -> Path:
    """Return the catalogue of a new root."""
    envbuild, root = Path(sys.executable).parent / "envbuild", folder / "env"
    run(envbuild, "create", "allreduce", "--site", "local", "--root", root)
    for _ in range(PROOFS - 1):
        run(envbuild, "smoke", "allreduce", "--root", root)
    page = folder / "index.html"
    run(envbuild, "catalogue", "--root", root, "--output", page)
    # Root and Python of this run lie in folders of no interest; the pictures show likely ones.
    text = page.read_text().replace(str(root), SHOWN_ROOT).replace(sys.base_prefix, "/usr")
    page.write_text(text)
    return page


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = make_page(folder)
        browser = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        for screen, (width, height) in SCREENS.items():
            picture = TARGET / f"catalogue-{screen}.png"
            size = f"--window-size={width},{height}"
            run(*browser, size, f"--screenshot={picture}", page.as_uri())
        paper = folder / "paper.pdf"
        run(*browser, "--no-pdf-header-footer", f"--print-to-pdf={paper}", page.as_uri())
        printed = TARGET / "catalogue-paper"
        run("pdftoppm", "-png", "-singlefile", "-r", str(PAPER), paper, printed)


if __name__ == "__main__":
    main()
