"""What runs inside a target: on the environment's own Python, from Python 3.6 on.

A build folder, a bundle and an image hold a copy of this folder. There ::

    python -I target_tools TOOL [ARGUMENT...]

runs one of its tools, whatever the current folder; without -I where the tool must see what the
environment's PYTHONPATH brings. envbuild imports the same modules where it needs what they know.

Nothing here imports anything of envbuild, nor anything outside the standard library but pyelftools,
which is among the build tools of every lock that builds from sources. The syntax is that of Python
3.6. A test checks all three.

mypy checks the types. Python 3.6 evaluates neither ``list[str]`` nor ``X | None``, so annotations
that it cannot evaluate are quoted. Importing ``typing`` takes about 10 ms there. A module that
needs it for annotations alone imports it below ``TYPE_CHECKING = False`` and ``if TYPE_CHECKING:``,
which mypy takes as true.
"""
