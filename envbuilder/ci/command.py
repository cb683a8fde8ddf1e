"""``envbuild ci``: a site's pipeline in a provider's language."""

from __future__ import annotations

from ..knowledge.entries import check_choice
from ..workflow.context import Context
from ..workflow.matrix import Matrix, for_pipeline, matrix
from ..workflow.options import CiOptions
from .jobs import pipeline
from .providers import PROVIDERS


def render(options: CiOptions, provider: str | None, context: Context) -> str:
    """Return the text of a pipeline. Raises UsageError for an unknown provider."""
    check_choice("provider", provider, PROVIDERS)
    entry = PROVIDERS[provider or next(iter(PROVIDERS))]
    jobs = pipeline(rows_of(options, context), context.recipe_folders, emulate=options.emulate)
    return entry.render(jobs)


def rows_of(options: CiOptions, context: Context) -> Matrix:
    """Return the rows of a pipeline. Raises NoSolutionError as ``for_pipeline`` does."""
    return for_pipeline(matrix(options, context), context)
