"""Draw docs/images/create.svg: a real run of ``envbuild create allreduce`` in a terminal.

The command runs under a pseudo-terminal of 80 columns in a new root, what it writes is kept as it
comes, and the finished screen is drawn. Run it as ``python ci/picture.py`` where envbuild is
installed.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from pathlib import Path

import pyte
from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 80, 60
TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "create.svg"
SHOWN_ROOT = "/scratch/me/env"
COLOURS = {"default": "", "brown": "yellow"}


def run_in_terminal(command: list[str]) -> bytes:
    """Return everything that the command wrote to its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)  # noqa: S606 - a picture's subject, not the tool
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written = bytearray()
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        written += piece
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(written.decode())
    return bytes(written)


def screen_lines(written: bytes) -> list[Text]:
    """Return the lines that a terminal shows in the end, with their colours."""
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.ByteStream(screen).feed(written)
    lines = []
    for number, plain in enumerate(screen.display):
        line = Text()
        for column in range(len(plain.rstrip())):
            cell = screen.buffer[number][column]
            colour = COLOURS.get(cell.fg, cell.fg)
            line.append(cell.data, style=f"{'bold ' if cell.bold else ''}{colour}".strip())
        lines.append(line)
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "env"
        command = [str(Path(sys.executable).parent / "envbuild"), "create", "allreduce"]
        written = run_in_terminal([*command, "--root", str(root)])
        # The root of this run lies in a folder of no interest; the picture shows a likely one.
        written = written.replace(str(root).encode(), SHOWN_ROOT.encode())
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ envbuild create allreduce --root {SHOWN_ROOT}", style="bold"))
    for line in screen_lines(written):
        console.print(line, no_wrap=True)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    # A picture that fetches its fonts from elsewhere is no picture of ours alone.
    svg = re.sub(r"@font-face \{.*?\}\n", "", console.export_svg(title="envbuild"), flags=re.DOTALL)
    TARGET.write_text(re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL))


if __name__ == "__main__":
    main()
