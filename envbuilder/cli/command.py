"""How a function becomes a command: it gets the session, the options that all share are added."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from .session import open_session, run_verb

_RECIPES = Parameter(
    "recipes",
    Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        list[Path] | None,
        typer.Option(
            "--recipes", metavar="DIR", help="An additional folder of recipes. May be repeated."
        ),
    ],
)
_JSON = Parameter(
    "as_json",
    Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")],
)


class _Command(TyperCommand):
    """A command whose help names the entries of the variation points: ``{launchers}``."""

    def format_help(self, *words: Any) -> None:
        for each in self.params:
            if isinstance(text := getattr(each, "help", None), str):
                named = re.sub(r"\{(\w+)\}", lambda match: _entry_names(match[1]), text)
                each.help = named  # type: ignore[attr-defined]
        super().format_help(*words)


def _entry_names(point: str) -> str:
    """Return the names of launchers, schedulers, providers or forms, as help lists them."""
    # lazy import: only help lists them
    if point == "launchers":
        from ..launching.launchers import LAUNCHERS

        return f"{', '.join([*LAUNCHERS][:-1])} or {[*LAUNCHERS][-1]}"
    if point == "schedulers":
        from ..launching.schedulers import SCHEDULERS

        return ", ".join(SCHEDULERS)
    if point == "providers":
        from ..ci.providers import PROVIDERS

        return ", ".join(PROVIDERS)
    from ..workflow.texts import forms

    return ", ".join(forms())


Verb = Callable[..., "int | None"]
"""Takes the session first, then its own parameters; returns its exit code, None for 0."""


class Group:
    """The commands that share a word, or none. Typer's are made of those that a call can mean.

    Of twenty-five commands a call runs one; to make all of them takes 10 ms.
    """

    def __init__(self, word: str | None = None, about: str | None = None) -> None:
        """*word*: what stands in front of them; *about*: what its help says."""
        self.word = word
        self._about = about
        self._commands: dict[str, Callable[[typer.Typer], None]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its commands, without its word."""
        return tuple(self._commands)

    def verb(self, words: Sequence[str]) -> str | None:
        """Return the command of this group that *words* begin with."""
        if self.word is not None:
            words = words[1:] if words[:1] == [self.word] else []
        return words[0] if words and words[0] in self._commands else None

    def add(self, name: str, make: Callable[[typer.Typer], None]) -> None:
        """Add a command, which *make* adds to an app."""
        self._commands[name] = make

    def app(self, only: str | None = None) -> typer.Typer:
        """Return all commands, or the one."""
        made = typer.Typer(help=self._about, no_args_is_help=self.word is not None)
        for name, make in self._commands.items():
            if only in (None, name):
                make(made)
        return made


def command(
    group: Group,
    name: str | None = None,
    *,
    example: str,
    recipes: bool = True,
    json: bool = True,
    hidden: bool = False,
) -> Callable[[Verb], Verb]:
    """Add a verb to *group* as the command *name*, else the function's own name.

    A parameter that is a dataclass stands for the options that its fields are. *example*: the words
    after ``envbuild``, shown at the end of its help. *recipes* and *json*: whether it has these
    options; the session knows what they say. *hidden*: a verb that is gone: it takes any words.
    """
    added = [*([_RECIPES] if recipes else []), *([_JSON] if json else [])]

    def add(verb: Verb) -> Verb:
        called = name or verb.__name__

        def make(app: typer.Typer) -> None:
            settings = {"ignore_unknown_options": hidden}
            epilog = f"Example: envbuild {example}"
            app.command(
                called, cls=_Command, epilog=epilog, hidden=hidden, context_settings=settings
            )(_callback(verb, added))

        group.add(called, make)
        return verb

    return add


def _callback(verb: Verb, added: Sequence[Parameter]) -> Callable[..., None]:
    """Return what Typer calls with all options, of which *added* are the session's."""
    _, *own = inspect.signature(verb, eval_str=True).parameters.values()
    parameters = [*chain.from_iterable(map(_options, own)), *added]

    @functools.wraps(verb)
    def run(**words: Any) -> None:
        session = open_session(as_json=words.get("as_json", False), recipes=words.get("recipes"))
        run_verb(session, lambda: verb(session, **{each.name: _value(each, words) for each in own}))

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _options(one: Parameter) -> Iterator[Parameter]:
    """Yield an option, or those of the fields of a dataclass."""
    if not is_dataclass(one.annotation):
        yield one.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for each in _fields(one):
        yield from _options(each)


def _fields(one: Parameter) -> Iterator[Parameter]:
    """Yield the fields of a dataclass that the command line knows."""
    hints = get_type_hints(one.annotation, include_extras=True)
    for each in fields(one.annotation):
        default = Parameter.empty if each.default is MISSING else each.default
        if is_dataclass(hints[each.name]) or get_origin(hints[each.name]) is Annotated:
            yield Parameter(
                each.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name]
            )


def _value(one: Parameter, words: Mapping[str, Any]) -> Any:
    """Return what was said for an option, or for all options of a dataclass."""
    if not is_dataclass(one.annotation):
        return words[one.name]
    own = (each for each in _fields(one) if is_dataclass(each.annotation) or each.name in words)
    value: Any = one.annotation
    return value(**{each.name: _value(each, words) for each in own})
