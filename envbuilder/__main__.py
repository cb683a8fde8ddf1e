"""``python -m envbuilder``: the command line where no ``envbuild`` is on PATH."""

from .cli import main

main()
