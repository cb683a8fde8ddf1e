"""Pipelines that are YAML: plain values as text, in the order in which they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEAD = (
    "# Written by `envbuild ci render`; see docs/ci.md of envbuild.\n"
    "# Rendering it again discards changes.\n"
)


def yaml_text(pipeline: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """Return comments and a pipeline as YAML: no line is folded, no value an alias."""
    # lazy import: 15 ms, which verbs that read no document need not wait for
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def lines(dumper: Dumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, lines)
    text = yaml.dump(dict(pipeline), Dumper=Dumper, sort_keys=False, width=10**6)
    return HEAD + "".join(f"# {line}\n" for line in comments) + text
