"""What an optimizer of any framework does around its steps so that all ranks take the same one.

A framework's optimizer holds a :class:`Steps` and adds its own surface: it calls ``before_step``
before its step, ``add`` for parameters that come later, ``refuse_reset`` where gradients are set to
zero, and pickles the :class:`Recipe`.
"""

import warnings
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from distributed_dl_training._core import Op
from distributed_dl_training._gradients import (
    Gradients,
    Options,
    Parameters,
    form_groups,
    name_parameters,
)


class Recipe(NamedTuple):
    """What the gradients of an optimizer are made from; pickles if the framework does."""

    framework: Parameters
    named: List[Tuple[str, Any]]
    num_groups: int
    groups: Any
    options: Options

    def make(self) -> Optional[Gradients]:
        """Return what sees to the gradients; None where nobody else trains with this rank.

        Raises ValueError for Adasum.
        """
        process_set = self.options.process_set
        if self.options.op is Op.ADASUM:
            raise ValueError("op=Adasum combines what a step changes, and not gradients")
        if process_set.size() == 1 or not process_set.included():
            return None
        parameters = [one for _, one in self.named]
        together = form_groups(parameters, self.num_groups, self.groups, self.framework.trains)
        return Gradients(self.framework, self.named, together, self.options)


def recipe(
    framework: Parameters,
    parameters: Sequence[Any],
    named_parameters: Optional[Iterable[Any]],
    options: Options,
    num_groups: int = 0,
    groups: Any = None,
) -> Recipe:
    """Return how an optimizer's gradients are to be reduced.

    Raises ValueError for parameters that are not named, or not uniquely, and for options that do
    not go together.
    """
    op = options.op
    if not isinstance(op, Op):
        raise ValueError(f"op must be one of ours, not {op!r}")
    named = name_parameters(parameters, named_parameters)
    if options.factors != (1.0, 1.0) and op is not Op.AVERAGE:
        raise ValueError("gradient_predivide_factor requires op=Average")
    if options.passes < 1:
        raise ValueError("backward_passes_per_step must be at least 1")
    return Recipe(framework, named, num_groups, groups, options)


class Steps:
    """The gradients of one optimizer, from step to step.

    gradients: None for a single rank, and before ``open``.
    """

    def __init__(self, recipe: Recipe) -> None:
        """Note how gradients are to be reduced; ``open`` joins the other ranks."""
        self.recipe = recipe
        self.gradients: Optional[Gradients] = None
        self._open = False

    def open(self) -> None:
        """Join the other ranks, unless that is done.  Raises NotInitializedError before init."""
        if not self._open:
            self.gradients, self._open = self.recipe.make(), True

    def add(self, parameters: Iterable[Any]) -> None:
        """See to the gradients of these too, from now on."""
        if self.gradients is not None:
            self.gradients.add(parameters)

    def synchronize(self, parameters: Iterable[Any]) -> None:
        """Wait until the gradients of all parameters are reduced; collective.

        parameters: those of the optimizer now: added and unfrozen ones are found here.
        """
        self.open()
        self.add(parameters)
        if self.gradients is not None:
            self.gradients.synchronize()

    def before_step(self, parameters: Iterable[Any]) -> None:
        """Reduce the gradients, unless the program has told to ``skip`` that."""
        self.open()
        gradients = self.gradients
        if gradients is None:
            return
        if gradients.should_synchronize:
            if gradients.synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after "
                    "optimizer.synchronize(): it reduces the gradients again",
                    stacklevel=3,
                )
            self.synchronize(parameters)
        gradients.synchronized = False

    @contextmanager
    def skip(self) -> Iterator[None]:
        """Let a step take the gradients as they are."""
        gradients = self.gradients
        if gradients is None:
            yield
            return
        gradients.should_synchronize = False
        try:
            yield
        finally:
            gradients.should_synchronize = True

    def set_passes(self, passes: int) -> None:
        """Change how many backward passes make a step."""
        options = self.recipe.options._replace(passes=passes)
        self.recipe = self.recipe._replace(options=options)
        if self.gradients is not None:
            self.gradients.set_passes(passes)

    def refuse_reset(self) -> None:
        """Raise AssertionError while gradients are under way."""
        if self.gradients is not None and self.gradients.pending():
            raise AssertionError(
                "zero_grad() between backward() and step() or synchronize(): the gradients are "
                "being reduced"
            )
