"""YAML as text: the same value is the same text, and every reader takes it for the same."""

from __future__ import annotations

from typing import Any


def yaml_text(value: Any) -> str:
    """Return *value*, JSON types alone, as YAML; keys stay in their order."""
    # lazy import: 16 ms
    import yaml

    # Neither cut where lines grow long, nor with anchors where a value comes twice.
    dumper = type("_Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return text
