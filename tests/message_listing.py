"""Every message that envbuild can print, read from its code and its command line.

``text()`` is docs/messages.md. A message is listed by what its call states: the id, the error's
class, and the sentence, in which ``<name>`` stands for a value.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import typer.main
from typer.core import TyperOption

from envbuilder.cli import command_line
from envbuilder.errors import (
    BuildError,
    DocumentError,
    DriftError,
    EnvbuildError,
    KnownBadError,
    MissingToolError,
    NoSolutionError,
    SmokeError,
    UsageError,
)

from .layers import sources

ERRORS: dict[str, type[EnvbuildError]] = {
    error.__name__: error
    for error in (
        BuildError,
        DocumentError,
        DriftError,
        KnownBadError,
        MissingToolError,
        NoSolutionError,
        SmokeError,
        UsageError,
    )
}
ERRORS["Problem"] = DocumentError
ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*")
_PRINTED = frozenset({"say", "warn", "step_says"})

_HEAD = """\
# Messages

Each error has an id. It stays the same from release to release; the sentence may change. `--json`
prints it as `problems[].id`. `<name>` stands for a value. The exit codes are those of the
[README](../README.md#reference). `bundle.installer-failed` and `emulation.script-failed` end with
the exit code of the script, if it is one of these. This page is generated:
`ENVBUILD_UPDATE_GOLDENS=1 pytest tests/test_messages.py`.
"""


class Message(NamedTuple):
    """A message of one call."""

    id: str
    code: int
    text: str
    place: str


@cache
def errors() -> list[Message]:
    """Return the message of each error of the tool, in the order of the ids."""
    files = _trees()
    codes = _exit_codes(files)
    messages = []
    for path, tree in files.items():
        for call in _calls(tree):
            place = next((i for i, argument in enumerate(call.args) if _id(argument)), None)
            if place is None or _name(call) not in codes:
                continue
            name, code = _id(call.args[place]), codes[_name(call)]
            later = call.args[place + 1 :]
            # An error takes its message after the id; a helper function may take a place before it.
            later = later[:1] if _name(call) in ERRORS else later
            text = _sentence(later, _assigned(tree, call))
            messages.append(Message(name, code, text, f"{path}:{call.lineno}"))
    return sorted(messages, key=lambda message: (message.id, message.place))


def unidentified() -> list[str]:
    """Return the place of each call of an error class whose first argument is not an id.

    A name or an attribute is accepted: it holds an id that another call states.
    """
    return [
        f"{path}:{call.lineno}"
        for path, tree in _trees().items()
        for call in _calls(tree)
        if _name(call) in ERRORS
        and _name(call) != "DocumentError"
        and call.args
        and not (
            _id(call.args[0]) or isinstance(call.args[0], ast.Name | ast.Attribute | ast.Starred)
        )
        and not path.endswith("/errors.py")
    ]


def printed() -> list[str]:
    """Return the sentences of progress and of warnings."""
    return sorted(
        {
            text
            for tree in _trees().values()
            for call in _calls(tree)
            if _name(call) in _PRINTED and call.args
            if (text := template(call.args[0])) and not re.fullmatch(r"(<\w+>\s*)+", text)
        }
    )


def help_texts() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield the name, the help and the options with their help of each verb."""
    yield from _help_texts(typer.main.get_command(command_line()), "envbuild")


def _help_texts(command: Any, name: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    options = [
        ("/".join(option.opts + option.secondary_opts), " ".join((option.help or "").split()))
        for option in command.params
        if isinstance(option, TyperOption) and not option.hidden
    ]
    yield name, " ".join((command.help or "").split()), options
    for verb, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from _help_texts(inner, f"{name} {verb}")


def template(node: ast.expr, assigned: Mapping[str, ast.expr] = MappingProxyType({})) -> str:
    """Return a sentence with ``<name>`` for each of its values.

    A variable stands for the sentence of *assigned*.
    """
    if isinstance(node, ast.Name):
        node = assigned.get(node.id, node)
    return " ".join(_parts(node).split())


def _parts(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_parts(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"<{_value_name(node.value)}>"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _parts(node.left) + _parts(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_parts(node.body)} / {_parts(node.orelse)}"
    return f"<{_value_name(node)}>"


def _sentence(arguments: list[ast.expr], assigned: dict[str, ast.expr]) -> str:
    """Return the first of the arguments with words, or the first one."""
    later = [template(argument, assigned) for argument in arguments]
    worded = (text for text in later if re.search(r"[A-Za-z]", re.sub(r"<\w+>", "", text)))
    return next(worded, later[0] if later else "")


def _assigned(tree: ast.AST, call: ast.Call) -> dict[str, ast.expr]:
    """Return the value that the function around *call* last assigned to each of its variables."""
    values: dict[str, ast.expr] = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not function.lineno <= call.lineno <= (function.end_lineno or 0):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if node.lineno < call.lineno and node.lineno > _line(values.get(name)):
                    values[name] = node.value
    return values


def _line(node: ast.expr | None) -> int:
    return node.lineno if node else 0


def _value_name(node: ast.expr) -> str:
    """Return the name of the value that an expression prints: ``path`` of ``shown(str(path))``."""
    names = re.findall(r"[A-Za-z_]\w*", ast.unparse(node))
    return str(names[-1]).strip("_").lower() if names else "value"


@cache
def _trees() -> dict[str, ast.Module]:
    return {path: ast.parse(text) for path, text in sources("envbuilder").items()}


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    """Return the name of what is called; of ``_ERRORS.get(code, BuildError)(...)`` the default."""
    function = call.func
    if isinstance(function, ast.Call) and ast.unparse(function.func) == "_ERRORS.get":
        function = function.args[-1]
    if isinstance(function, ast.Name | ast.Attribute):
        return function.id if isinstance(function, ast.Name) else function.attr
    return ""


def _id(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) and ID.fullmatch(value) else ""


def _exit_codes(files: dict[str, ast.Module]) -> dict[str, int]:
    """Return the exit code of each error class and of each function that passes an id to one."""
    codes = {name: int(error.code) for name, error in ERRORS.items()}
    for tree in files.values():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                if not any(_passes_id(function, call) for call in _calls(function)):
                    continue
                classes = {_name(call) for call in _calls(function)} & ERRORS.keys()
                if len({ERRORS[name].code for name in classes}) == 1:
                    codes.setdefault(function.name, int(ERRORS[classes.pop()].code))
    return codes


def _passes_id(function: ast.FunctionDef, call: ast.Call) -> bool:
    """Return whether the first argument of *call* is a parameter of *function*."""
    parameters = {each.arg for each in (*function.args.posonlyargs, *function.args.args)}
    if function.args.vararg:
        parameters.add(function.args.vararg.arg)
    first = call.args[0] if call.args else None
    first = first.value if isinstance(first, ast.Starred) else first
    return isinstance(first, ast.Name) and first.id in parameters


def text() -> str:
    """Return docs/messages.md."""
    return "\n".join([_HEAD, *_error_lines(), *_printed_lines(), *_help_lines()]) + "\n"


def _error_lines() -> Iterator[str]:
    topics: dict[str, dict[str, list[Message]]] = defaultdict(lambda: defaultdict(list))
    for message in errors():
        topics[message.id.partition(".")[0]][message.id].append(message)
    yield "## Errors"
    for topic, ids in topics.items():
        yield f"\n### {topic}\n\n| id | exit code | message |\n| --- | --- | --- |"
        for problem, messages in ids.items():
            codes = sorted({str(message.code) for message in messages})
            sentences = dict.fromkeys(each.text for each in messages if each.text)
            cell = "<br>".join(f"`{_cell(sentence)}`" for sentence in sentences)
            yield f"| `{problem}` | {', '.join(codes)} | {cell} |"


def _printed_lines() -> Iterator[str]:
    yield "\n## Progress and warnings\n"
    yield from (f"- `{sentence.replace('`', '')}`" for sentence in printed())


def _help_lines() -> Iterator[str]:
    yield "\n## Help texts"
    for name, summary, options in help_texts():
        yield f"\n### {name}\n\n{summary}"
        if options:
            yield "\n| option | help |\n| --- | --- |"
            yield from (f"| `{words}` | {_cell(line)} |" for words, line in options)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "")
