"""What pip is configured with, as ``pip config list`` prints it."""

import ast
import re
from collections.abc import Iterable


def read_settings(lines: "Iterable[str]", command: str) -> "dict[str, str]":
    """Return the settings that count for a command of pip: name -> value, as text.

    Later sections win: https://pip.pypa.io/en/stable/topics/configuration/#precedence-override-order
    """
    sections = ("global", command, ":env:")
    found: "dict[str, dict[str, str]]" = {section: {} for section in sections}
    for line in lines:
        match = re.match(r"([a-z:]+)\.([a-z-]+)=(.*)$", line.strip())
        if match and match.group(1) in found:
            section, name, value = match.groups()
            # It prints every value as Python writes it.
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in sections for name, value in found[section].items()}
