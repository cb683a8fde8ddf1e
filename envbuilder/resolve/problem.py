"""The stack problem: what the solver is given, in plain values, and what it answers.

Nothing here knows documents. Building a problem from recipe, site, snapshot and knowledge is one
thing (``problem_builder``), solving it another (``engine``), and a brute-force oracle in the tests
solves the same values. What a *stack* is, and which one is best:

Loading. A set of modules is loaded explicitly, ``preload`` always and first. A module *brings*
itself and what it loads, directly or not; all that is brought is *touched*. Touched modules of one
``key`` are the same module to the module system: one of them stays *active*, and where there are
several, that one is loaded explicitly and ``replaces`` holds the ABI of each other one. No two
active modules share a family, none conflicts with another, and each touched module that has parents
finds all of one alternative active. Of no active module all of an alternative of ``hidden`` is
active. A module that is loaded explicitly is used, replaces something,
is a parent of an active one, or is a preload. There is an order in which the loads end like that
(``loading``).

Providers. A candidate of an active module is active; one of no module is active where it is used.
A shadowable active candidate is *shadowed* by one that is active, not shadowable and shares a role
(its component, or a virtual that the component fulfils). Active and not shadowed is *effective*.
Two effective candidates of one role are the same component in the same version, and both of
modules or both not. Each want is met by one used, effective candidate of its component (or virtual)
that it allows; of a component one candidate is used. A candidate outside all modules (pip, system,
build) that names Pythons fits the used one.

Generations. Modules that a load brings whose module is not ``build_only`` (the run-time ones) have
at most one generation.

Rules. A rule is violated where each of its slots holds an effective candidate, none of its lacks
does, and the flags that are kept are those of one of its cases. A hard rule may be violated only
where a remedy of it is taken that helps; a soft one costs a warning unless one is.

Assumptions. Whatever may be given up to find out what cannot hold together is an ``Assumption``:
that a want is met by what it allows, that a flag is set, that a row of knowledge counts, that the
releases of a component fit the Python, that a role has one provider, and the laws: generations,
replaces (who may take whose place), loading (families, conflicts, parents, order). A *conflict* is
a set of assumptions that do not hold together, each of which is needed for that: given up, it may
hold or not. A want that is given up is also met by any other candidate of its component, or thought
to be met by one that is not there.
Conflicts are *independent*: of each later one nothing is resolved by giving up the earlier ones.

Closest. What may be changed of what was asked: ``Change``. A want is widened (to what it names in
``distance``) or dropped, a flag dropped, a row waived, and one of ``addable`` added.

Best. ``LEVELS``, high to low; the costs of each are compared in that order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..knowledge.terms import Origin

CandidateId = str


@dataclass(frozen=True)
class SolverModule:
    """A module as the solver sees it. ``loads``: directly, in order, all of them known.

    ``hidden``: alternatives, each of which opens a tree where the name of this module is another
    one's. ``abi``: what it may be replaced as; None: by its own name. ``replaces``: the ABIs in
    whose place it may be loaded.
    """

    name: str
    key: str
    loads: tuple[str, ...] = ()
    parents: tuple[tuple[str, ...], ...] = ()
    hidden: tuple[tuple[str, ...], ...] = ()
    conflicts: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    generation: str | None = None
    build_only: bool = False
    replaces: frozenset[str] = frozenset()
    abi: str | None = None

    @property
    def replaced_as(self) -> str:
        return self.name if self.abi is None else self.abi


class Candidate(NamedTuple):
    """One provider of one component in one version.

    ``rank``: 0 for the best of its component (newest; then origin, then text order of locators).
    ``origin_cost``: place of its origin in the site's order, and 1 more where the site marks
    another module of that name as the default. ``pythons``: python candidates it works with; None:
    all of them.
    """

    id: CandidateId
    component: str
    version: str
    origin: Origin
    locator: str
    rank: int
    origin_cost: int = 0
    module: str | None = None
    roles: frozenset[str] = frozenset()
    shadowable: bool = False
    pythons: frozenset[CandidateId] | None = None


LAWS = ("generations", "replaces", "loading")
"""What holds whatever a user asks."""


class Assumption(NamedTuple):
    """What may be given up, by its name. ``kind``:

    - that a want of a component (or virtual) is met by what it allows: a "line" of the recipe, what
      the runtime or a build needs ("implied"), a user's "question", a possible "addition";
    - that a "flag" is set as the recipe sets it, that a "row" of knowledge counts;
    - that a release of a component is for the Python that is used ("fit");
    - that a component or virtual has one "provider" (an environment has one MPI), and each "law".
    """

    kind: Literal[
        "line", "implied", "question", "addition", "flag", "row", "fit", "provider", "law"
    ]
    name: str

    def __str__(self) -> str:
        return f"{'law:' if self.kind == 'provider' else ''}{self.kind}:{self.name}"

    @property
    def is_want(self) -> bool:
        return self.kind in ("line", "implied", "question", "addition")

    @property
    def is_law(self) -> bool:
        return self.kind in ("provider", "law")


WantKind = Literal["line", "role", "implied"]
"""Who wants it: a line of the recipe; the runtime, any provider of a role such as mpi; the runtime,
a component for which no module is loaded that would not be there anyway."""


@dataclass(frozen=True)
class Want:
    """Something that must be in the stack. ``ref`` names it in conflicts.

    ``distance``: for each candidate that it does not allow, how far that is from what was asked,
    from 1 on; those not named cannot stand in at all. ``can_drop``: a user could do without.
    """

    ref: Assumption
    component: str
    allowed: frozenset[CandidateId]
    kind: WantKind = "line"
    distance: tuple[tuple[CandidateId, int], ...] = ()
    can_drop: bool = False


class FlagCase(NamedTuple):
    """Flags of the recipe that are kept, and that are dropped, for a rule to be violated."""

    kept: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()


class RemedyOption(NamedTuple):
    """A remedy of a rule: helps where one of ``helps`` is effective, and one of ``needs`` too.

    ``helps`` None: always. ``needs`` None: nothing. ``proved``: it does not count as a remedy.
    """

    id: str
    helps: frozenset[CandidateId] | None = None
    needs: frozenset[CandidateId] | None = None
    proved: bool = False


@dataclass(frozen=True)
class Rule:
    """One grounded row of knowledge. Several may stem from one row (``row``), ``key`` is unique.

    ``lacks``: sets of candidates that are missing; ``lack_of``: of which component each.
    """

    key: str
    row: str
    hard: bool
    slots: tuple[frozenset[CandidateId], ...] = ()
    lacks: tuple[frozenset[CandidateId], ...] = ()
    lack_of: tuple[str, ...] = ()
    cases: tuple[FlagCase, ...] = (FlagCase(),)
    remedies: tuple[RemedyOption, ...] = ()
    can_waive: bool = False


@dataclass(frozen=True)
class StackProblem:
    """One stack problem. ``optional``: components that only a remedy may add.

    ``addable``: wants that a closest stack may add. ``flags``: those that the recipe sets, which
    a closest stack may drop.
    """

    modules: tuple[SolverModule, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    wants: tuple[Want, ...] = ()
    addable: tuple[Want, ...] = ()
    rules: tuple[Rule, ...] = ()
    preload: tuple[str, ...] = ()
    preferred: str | None = None
    flags: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()


# Levels of the objective, the first one weighs most. "newest" is one level for each want, in the
# order of the wants.
LEVELS = (
    "changes",  # of what was asked: see Change
    "distance",  # from what was asked, where a line was widened
    "additions",  # loads that nobody asked for, see below
    "preference",  # run-time generations that are not the preferred one
    "origins",  # sum of the used candidates' origin_cost
    "warnings",  # soft rules violated and not lifted, and modules replaced
    "remedies",  # that are taken, but for those that were proved
    "generations",  # how many there are among the active modules
    "newest",  # rank of the candidate that each want uses
    "loads",  # how many modules are loaded explicitly
    "names",  # places of the loads in the text order of all modules' names, of the remedies among
    # those of their rules, ranks of what only remedies use, and of what is changed the places among
    # the wants (addable ones last), flags, or rows in text order: nothing is left to chance
)

# An addition is a module loaded explicitly that is no preload, no parent of an active one and not
# the module of a candidate that a want of kind "line" uses, and that either is not the module of a
# candidate that a want of kind "role" uses or replaces another module.

ChangeKind = Literal["add", "widen", "flag", "drop", "waive"]

# What a change costs in a closest stack. Advice of the cheapest first; to do without something
# that was asked for, or to take a known risk, is advice of the last resort.
CHANGE_COSTS: dict[ChangeKind, int] = {
    "add": 9,
    "widen": 10,
    "flag": 11,
    "drop": 100,
    "waive": 1000,
}


@dataclass(frozen=True)
class Stack:
    """An answer. ``loads``: explicit ones, preloads first, in an order that ends as planned.

    ``final``: all active modules, sorted. ``replaced``: (module, the one that takes its place).
    ``used``: want -> candidate. ``effective``: all effective candidates. ``violated``:
    keys of rules that are violated, with the remedy taken for it or None. ``costs``: by level.
    """

    loads: tuple[str, ...]
    final: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]
    used: tuple[tuple[Assumption, CandidateId], ...]
    effective: tuple[CandidateId, ...]
    violated: tuple[tuple[str, str | None], ...]
    costs: tuple[tuple[str, tuple[int, ...]], ...] = field(default=(), compare=False)
    changes: tuple[Change, ...] = ()


class Change(NamedTuple):
    """What a closest stack changes of what was asked."""

    kind: ChangeKind
    of: Assumption
