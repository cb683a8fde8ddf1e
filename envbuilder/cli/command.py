"""How a function becomes a command: it gets the session, the options that all share are added."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

import typer

from .options import Json, Recipes
from .session import open_session, run_verb


def command(
    group: typer.Typer,
    name: str | None = None,
    *,
    example: str,
    recipes: bool = False,
    json: bool = True,
) -> Callable[[Callable[..., int | None]], Callable[..., None]]:
    """Add a function to *group* as the command *name*, else the function's own name.

    The function takes the session first and returns its exit code, None for 0. *example*: the words
    after ``envbuild``, shown at the end of its help. *recipes* and *json*: whether it has these
    options; the session knows what they say.
    """
    added = []
    if recipes:
        added.append(Parameter("recipes", Parameter.KEYWORD_ONLY, default=None, annotation=Recipes))
    if json:
        added.append(Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=Json))

    def add(function: Callable[..., int | None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()

        @functools.wraps(function)
        def run(**words: Any) -> None:
            session = open_session(
                as_json=words.pop("as_json", False), recipes=words.pop("recipes", None)
            )
            run_verb(session, lambda: function(session, **words))

        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own] + added
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        group.command(name, epilog=f"Example: envbuild {example}")(run)
        return run

    return add
