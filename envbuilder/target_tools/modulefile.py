"""What a modulefile says of its number and of what was proved; the file that names the default.

envbuild renders a modulefile with marks in place of these: whoever publishes knows them.
"""

import re
from collections import Counter
from typing import Any

LUA_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
# Braces too: they count where a string stands inside a braced body.
TCL_SPECIAL = re.compile(r'[\\"$\[\]{}]')
CONTROL = re.compile(r"[\x01-\x1f\x7f]")


def lua(text: str) -> str:
    """Return *text* as a string of Lua 5.1 and later."""
    escaped = "".join(LUA_ESCAPES.get(char, char) for char in without_nul(text))
    return '"' + CONTROL.sub(lambda match: f"\\{ord(match.group()):03d}", escaped) + '"'


def tcl(text: str) -> str:
    """Return *text* as one word of Tcl 8.4 and later, also inside a braced body."""
    escaped = TCL_SPECIAL.sub(r"\\\g<0>", without_nul(text))
    return '"' + CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", escaped) + '"'


def without_nul(text: str) -> str:
    """Return *text*. Raises ValueError for a NUL character, which no variable can hold."""
    if "\0" in text:
        raise ValueError(f"an environment variable cannot contain a NUL character: {text!r}")
    return text


QUOTED = {"lua": lua, "tcl": tcl}
NUMBER = "@NUMBER@"
PROVED = "@PROVED@"
SUMMARY = "@SUMMARY@"

DEFAULT = {
    "lua": """\
-- The version that `module load {name}` means; replaced as a whole.
module_version({full_name}, "default")
""",
    "tcl": """\
#%Module1.0
# The version that `module load {name}` means; replaced as a whole.
set ModulesVersion {number}
""",
}


def default_text(name: str, number: int, dialect: str) -> str:
    """Return the text of the file that makes ``<name>/<number>`` the default."""
    quote = QUOTED[dialect]
    full_name = quote(f"{name}/{number}")
    return DEFAULT[dialect].format(name=name, full_name=full_name, number=quote(str(number)))


def filled(text: str, number: int, evidence: "dict[str, Any] | None", dialect: str) -> str:
    """Return a modulefile with its marks replaced by the number and the evidence.

    *evidence*: an Evidence as JSON; None if nothing was proved.
    """
    quote = QUOTED[dialect]
    lines = []
    for line in text.replace(NUMBER, str(number)).split("\n"):
        each = proved_lines(evidence) if quote(PROVED) in line else [PROVED]
        lines += [line.replace(quote(PROVED), quote(told)) for told in each]
    summary = "rendered, not tested"
    if evidence:
        how = ", with stand-ins" if evidence.get("stand-ins") else ""
        how = f" by {evidence['by']}{how}" if evidence.get("by") else how
        summary = f"{evidence['result']['tier']}{how}, {evidence['time']}"
    return "\n".join(lines).replace(SUMMARY, quote(summary)[1:-1])


def proved_lines(evidence: "dict[str, Any] | None") -> "list[str]":
    """Return the lines of the help about the evidence."""
    if evidence is None:
        return ["Proved: nothing (tier rendered)."]
    result = evidence["result"]
    nodes = ", ".join(result["nodes"]) or "unknown"
    total = Counter(check["name"] for check in result["checks"])
    stand_ins = ", ".join(evidence.get("stand-ins", ()))
    passed = Counter(check["name"] for check in result["checks"] if check["passed"])
    return [
        "{}: {}, {}, {}".format(
            "Proved" if result["verdict"] == "passed" else "A candidate, not proved",
            result["tier"] + (f" by {evidence['by']}" if evidence.get("by") else ""),
            evidence["execution"],
            evidence["time"],
        ),
        *(["  stand-ins, so this does not prove the recipe " + stand_ins] if stand_ins else []),
        f"  smoke test {result['verdict']}: {result['ranks']} ranks in {result['seconds']:.1f} s",
        f"  site {evidence['site']}, {evidence['arch']}, nodes: {nodes}",
        f"  MPI: {result['mpi'] or 'unknown'}",
        *("  lib{kind}: {path} (from {owner})".format(**each) for each in result["libraries"]),
        *(f"  {name}: {passed[name]} of {total[name]} checks passed" for name in total),
    ]
