"""What a module's name says: the component, its version, the toolchain generation.

``NCCL/2.3.7-fosscuda-2018b`` is NCCL 2.3.7 of generation 2018b, ``CMake/3.12.1-GCCcore-7.3.0`` is
of 2018b as well, ``TensorFlow/1.14.0-PythonAnaconda-3.6`` of none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..knowledge.components import Component
from ..knowledge.rows import Generation, ToolchainKind
from ..machine.modules.names import provided_by_name, stems
from ..model.site import StatedModule


class Names(NamedTuple):
    """What the knowledge knows of names, in the form that looking one up needs."""

    of_module: Mapping[str, str]
    generations: Mapping[str, str]

    def provides(self, module: StatedModule) -> dict[str, str]:
        """Return components and versions: what is stated, else what the name says."""
        if module.provides:
            return dict(module.provides)
        return provided_by_name(module.name, self.of_module)

    def generation(self, module: StatedModule) -> str | None:
        """Return the toolchain generation: what is stated, else what the name says; None: none."""
        if module.toolchain is not None:
            return module.toolchain
        return self._of_words(module.name.replace("/", "-").split("-"))

    def _of_words(self, words: list[str]) -> str | None:
        for start in range(len(words)):
            # The longest first: GCC-7.3.0-2.30 before GCC-7.3.0.
            for end in (start + 3, start + 2):
                found = self.generations.get("-".join(words[start:end]))
                if found is not None:
                    return found
        return None


def names(
    components: Mapping[str, Component],
    kinds: Mapping[str, ToolchainKind],
    generations: Mapping[str, Generation],
) -> Names:
    """Return the names of the knowledge, ready to be looked up.

    A kind of which only the MPI is known may stand on other releases than its generation has.
    """
    marks: dict[str, str] = {}
    for generation, known in sorted(generations.items()):
        for compiler in known.compilers:
            marks.setdefault(compiler, generation)
        for kind in (name for name, each in kinds.items() if each.on):
            marks.setdefault(f"{kind}-{generation}", generation)
    return Names(stems(components), marks)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return what sorts ``1.7.0-10`` after ``1.7.0-9``."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
