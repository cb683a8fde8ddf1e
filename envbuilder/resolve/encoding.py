"""A stack problem as facts for ``engine.lp``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .assumptions import Atoms, atoms
from .dominance import UndominatedParts
from .ids import Numbers, identity, number
from .loading import closure
from .problem import Candidate, Module, Problem, Rule, Want


@dataclass(frozen=True)
class EncodedProblem:
    """A problem with what the logic program calls its parts.

    ``kept``: the modules and candidates that the program is told of, see ``dominance``.
    """

    problem: Problem
    kept: UndominatedParts

    @cached_property
    def numbers(self) -> Numbers:
        return number(self.problem, self.kept.candidates)

    @cached_property
    def atoms(self) -> Atoms:
        return atoms(self.problem, self.numbers)

    @cached_property
    def modules(self) -> dict[str, Module]:
        return {module.name: module for module in self.kept.modules}

    @cached_property
    def wants(self) -> tuple[Want, ...]:
        """All wants by their numbers: the addable ones come last."""
        return (*self.problem.wants, *self.problem.addable)

    @cached_property
    def loadable(self) -> frozenset[str]:
        """The modules that may be of use when they are loaded explicitly.

        These provide something, are parents, preloads, or can win over one of their key that
        another module brings. Only of these it matters what they bring, which of a long chain of
        loads would be a square of it.
        """
        found = {each.module for each in self.kept.candidates if each.module}
        found.update(self.problem.preload)
        brought = {name for module in self.kept.modules for name in module.loads}
        rivals: dict[str, set[str]] = {}
        for module in self.kept.modules:
            found.update(name for alternative in module.parents for name in alternative)
            if module.name in brought:
                rivals.setdefault(module.key, set()).add(module.name)
        found.update(m.name for m in self.kept.modules if rivals.get(m.key, set()) - {m.name})
        return frozenset(found & set(self.modules))

    @cached_property
    def brings(self) -> dict[str, frozenset[str]]:
        """What each loadable module brings: itself and all that is loaded along with it."""
        return {name: closure(self.modules, name) for name in sorted(self.loadable)}


def facts(encoded: EncodedProblem) -> str:
    """Return the problem as facts."""
    parts = (
        _module_facts(encoded),
        _candidate_facts(encoded),
        _want_facts(encoded),
        _rule_facts(encoded.problem, encoded.numbers),
        _other_facts(encoded.problem, encoded.numbers),
    )
    return "\n".join(line for part in parts for line in part)


def bar(encoded: EncodedProblem, loads: Iterable[str]) -> str:
    """Return a constraint against loading exactly these, while the law of loading holds."""
    there, numbers = frozenset(loads), encoded.numbers.modules
    literals = [
        f"{'' if name in there else 'not '}load({numbers[name]})" for name in encoded.brings
    ]
    return f":- {', '.join(literals)}, on(law(loading))."


def _module_facts(encoded: EncodedProblem) -> Iterator[str]:
    numbers = encoded.numbers
    number = numbers.modules
    for name, module in sorted(encoded.modules.items()):
        m = number[name]
        yield f"module({m}). key({m},{numbers.keys[module.key]}). name_place({m},{m})."
        yield f"abi({m},{numbers.abis[module.replaced_as]})."
        yield _all(f"family({m},", (numbers.families[each] for each in module.families))
        if module.generation is not None:
            yield f"generation({m},{numbers.generations[module.generation]})."
        if module.build_only:
            yield f"build_only({m})."
        abis = (numbers.abis[each] for each in module.replaces if each in numbers.abis)
        yield _all(f"replaces({m},", abis)
        yield from _conflicts(module, encoded)
        yield from _parents(module, encoded)
    for name, brought in encoded.brings.items():
        yield f"loadable({number[name]})."
        yield _all(f"brings({number[name]},", (number[each] for each in brought))


def _conflicts(module: Module, encoded: EncodedProblem) -> Iterator[str]:
    """Yield what a module conflicts with; by its own key it cannot: one of that is active."""
    numbers = encoded.numbers
    m = numbers.modules[module.name]
    against = frozenset(module.conflicts) - {module.key, module.name}
    yield _all(f"conflict_key({m},", (numbers.keys[each] for each in against & set(numbers.keys)))
    named = against & set(encoded.modules)
    yield _all(f"conflict({m},", (numbers.modules[each] for each in named))


def _parents(module: Module, encoded: EncodedProblem) -> Iterator[str]:
    """Yield what must be loaded before a module."""
    number, m = encoded.numbers.modules, encoded.numbers.modules[module.name]
    # An alternative that names an unknown module cannot come true.
    possible = [
        (a, names)
        for a, names in enumerate(module.parents)
        if all(each in encoded.modules for each in names)
    ]
    for a, alternative in possible:
        yield f"parents({m},{a})."
        yield _all(f"parent({m},{a},", (number[name] for name in alternative))
    if module.parents and not possible:
        yield f":- touched({m}), on(law(loading))."


def _candidate_facts(encoded: EncodedProblem) -> Iterator[str]:
    components = encoded.numbers.components
    yield _all("component(", components.values())
    for each in encoded.kept.candidates:
        yield from _one_candidate(each, encoded.numbers)
    optional = sorted(encoded.problem.optional & set(components))
    yield _all("optional(", (components[name] for name in optional))


def _one_candidate(each: Candidate, numbers: Numbers) -> Iterator[str]:
    k, roles = numbers.candidates[each.id], sorted(each.roles | {each.component})
    yield f"candidate({k},{numbers.components[each.component]}). rank({k},{each.rank})."
    yield f"version({k},{numbers.versions[identity(each)]})."
    yield _all(f"role({k},", (numbers.roles[role] for role in roles))
    if each.module is not None:
        yield f"in_module({k},{numbers.modules[each.module]})."
    if each.shadowable:
        yield f"shadowable({k})."
    if each.origin_cost:
        yield f"origin_cost({k},{each.origin_cost})."
    if each.component == "python":
        yield f"python({k})."
    if each.pythons is not None:
        yield f"limited({k})."
        yield _each(f"fits({k},", each.pythons, numbers)


def _want_facts(encoded: EncodedProblem) -> Iterator[str]:
    numbers, number = encoded.numbers, encoded.numbers.candidates
    by_role: dict[str, list[str]] = {}
    for each in encoded.kept.candidates:
        for role in each.roles | {each.component}:
            by_role.setdefault(role, []).append(each.id)
    for s, want in enumerate(encoded.wants):
        yield f"want({s}). place({s},{want.order})."
        if s >= len(encoded.problem.wants):
            yield f"addition({s})."
        yield _each(f"of({s},", by_role.get(want.component, ()), numbers)
        yield _each(f"allowed({s},", want.allowed, numbers)
        yield " ".join(f"distance({s},{number[k]},{n})." for k, n in want.distance if k in number)
        if want.distance:
            yield f"widenable({s})."
        if want.kind != "implied":
            yield f"{'line' if want.kind == 'line' else 'role_want'}({s})."
        if want.can_drop:
            yield f"can_drop({s})."
        if want.component in numbers.lacking:
            yield f"want_role({s},{numbers.lacking[want.component]})."


def _rule_facts(problem: Problem, numbers: Numbers) -> Iterator[str]:
    flags = {flag: n for n, flag in enumerate(problem.flags)}
    can_waive = {rule.row for rule in problem.rules if rule.can_waive}
    for row, n in numbers.rows.items():
        yield f"row({n})."
        if row in can_waive:
            yield f"can_waive({n})."
    for q, rule in enumerate(problem.rules):
        yield f"rule({q},{numbers.rows[rule.row]})." + (f" hard({q})." if rule.hard else "")
        for kind, sets in (("slot", rule.slots), ("lack", rule.lacks)):
            for i, candidates in enumerate(sets):
                yield f"{kind}({q},{i})."
                yield _each(f"in_{kind}({q},{i},", candidates, numbers)
        for i, role in enumerate(rule.lack_of):
            yield f"lack_of({q},{i},{numbers.lacking[role]})."
        for i, case in enumerate(rule.cases):
            yield f"case({q},{i})."
            yield _all(f"case_kept({q},{i},", (flags[f] for f in case.kept))
            yield _all(f"case_dropped({q},{i},", (flags[f] for f in case.dropped))
        yield from _remedies(q, rule, numbers)


def _remedies(q: int, rule: Rule, numbers: Numbers) -> Iterator[str]:
    for d, remedy in enumerate(rule.remedies):
        yield f"remedy({q},{d})." + (f" proved({q},{d})." if remedy.proved else "")
        if remedy.helps is not None:
            yield f"remedy_limited({q},{d})."
            yield _each(f"remedy_helps({q},{d},", remedy.helps, numbers)
        if remedy.needs is not None:
            yield f"remedy_needing({q},{d})."
            yield _each(f"remedy_needs({q},{d},", remedy.needs, numbers)


def _each(head: str, candidates: Iterable[str], numbers: Numbers) -> str:
    known = numbers.candidates
    return _all(head, (known[name] for name in candidates if name in known))


def _all(head: str, numbers: Iterable[int]) -> str:
    """Return one fact for each number: ``of(3,(1;4;5)).``, which clingo reads in half the time."""
    pool = ";".join(map(str, sorted(numbers)))
    return f"{head}({pool}))." if pool else ""


def _other_facts(problem: Problem, numbers: Numbers) -> Iterator[str]:
    yield _all("preload(", (numbers.modules[name] for name in problem.preload))
    yield _all("flag(", range(len(problem.flags)))
    if problem.preferred is not None:
        yield f"preferred({numbers.generations[problem.preferred]})."
    for i, barred in enumerate(sorted(problem.barred, key=sorted)):
        yield f"barred({i})."
        yield _all(f"in_barred({i},", (numbers.modules[name] for name in barred))
