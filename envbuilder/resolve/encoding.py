"""A stack problem as facts for ``engine.lp``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import clingo

from .loading import closure
from .problem import LAWS, Assumption, Candidate, Rule, SolverModule, StackProblem, Want


@dataclass(frozen=True)
class EncodedProblem:
    """A problem with what the logic program calls its parts.

    ``kept``: the modules and candidates that the program is told of, see ``dominance``.
    """

    problem: StackProblem
    kept: StackProblem

    @cached_property
    def numbers(self) -> Mapping[str, Mapping[str, int]]:
        """The number of each name: its place among all of its kind, in text order.

        Candidates are those that the program is told of; modules have the place that they have
        among all of the problem. Wants, rules and flags have none here: theirs are their places in
        the problem.
        """
        modules, candidates = self.problem.modules, self.kept.candidates
        kinds: dict[str, Iterable[str | None]] = {
            "module": (module.name for module in modules),
            "key": (module.key for module in modules),
            "abi": (module.replaced_as for module in modules),
            "family": (family for module in modules for family in module.families),
            "generation": (self.problem.preferred, *(module.generation for module in modules)),
            "candidate": (each.id for each in candidates),
            "component": (each.component for each in candidates),
            "role": (role for each in candidates for role in roles(each)),
            "version": (_version(each) for each in candidates),
            "row": (rule.row for rule in self.problem.rules),
            "lacking": (role for rule in self.problem.rules for role in rule.lack_of),
        }
        return {
            kind: {name: n for n, name in enumerate(sorted(filter(None, set(names))))}
            for kind, names in kinds.items()
        }

    @cached_property
    def atoms(self) -> dict[Assumption, clingo.Symbol]:
        """The atom of each assumption, in the order in which a refusal names them."""
        return {each: clingo.parse_term(f"on({atom})") for each, atom in _assumptions(self)}

    @cached_property
    def modules(self) -> dict[str, SolverModule]:
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
        _rule_facts(encoded),
        _other_facts(encoded),
    )
    return "\n".join(line for part in parts for line in part)


def roles(candidate: Candidate) -> frozenset[str]:
    """Return the component and the virtuals that a candidate is a provider of."""
    return candidate.roles | {candidate.component}


def _version(candidate: Candidate) -> str:
    """Return what two effective candidates of one role have in common."""
    place = "outside" if candidate.module is None else "module"
    return f"{candidate.component} {candidate.version} {place}"


def _assumptions(encoded: EncodedProblem) -> Iterator[tuple[Assumption, str]]:
    problem, numbers = encoded.problem, encoded.numbers
    for n, want in enumerate(problem.wants):
        yield want.ref, f"want({n})"
    for n, flag in enumerate(problem.flags):
        yield Assumption("flag", flag), f"flag({n})"
    for row, n in numbers["row"].items():
        yield Assumption("row", row), f"row({n})"
    for name in sorted({c.component for c in problem.candidates if c.pythons is not None}):
        yield Assumption("fit", name), f"fit({numbers['component'][name]})"
    for role, n in numbers["role"].items():
        yield Assumption("provider", role), f"provider({n})"
    for law in LAWS:
        yield Assumption("law", law), f"law({law})"


def bar(encoded: EncodedProblem, loads: Iterable[str]) -> str:
    """Return a constraint against loading exactly these, while the law of loading holds."""
    there, numbers = frozenset(loads), encoded.numbers["module"]
    literals = [
        f"{'' if name in there else 'not '}load({numbers[name]})" for name in encoded.brings
    ]
    return f":- {', '.join(literals)}, on(law(loading))."


def _module_facts(encoded: EncodedProblem) -> Iterator[str]:
    numbers = encoded.numbers
    number = numbers["module"]
    for name, module in sorted(encoded.modules.items()):
        m = number[name]
        yield f"module({m}). key({m},{numbers['key'][module.key]}). name_place({m},{m})."
        yield f"abi({m},{numbers['abi'][module.replaced_as]})."
        yield _all(f"family({m},", module.families, numbers["family"])
        if module.generation is not None:
            yield f"generation({m},{numbers['generation'][module.generation]})."
        if module.build_only:
            yield f"build_only({m})."
        yield _all(f"replaces({m},", module.replaces, numbers["abi"])
        # By its own key it conflicts with none: one of that is active.
        against = frozenset(module.conflicts) - {module.key, name}
        yield _all(f"conflict_key({m},", against, numbers["key"])
        yield _all(f"conflict({m},", against & set(encoded.modules), number)
        yield from _parents(module, encoded)
        yield from _hidden(module, encoded)
    for name, brought in encoded.brings.items():
        yield f"loadable({number[name]})."
        yield _all(f"brings({number[name]},", brought, number)


def _parents(module: SolverModule, encoded: EncodedProblem) -> Iterator[str]:
    """Yield what must be loaded before a module."""
    number, m = encoded.numbers["module"], encoded.numbers["module"][module.name]
    # An alternative that names an unknown module cannot come true.
    possible = [
        (a, names)
        for a, names in enumerate(module.parents)
        if all(each in encoded.modules for each in names)
    ]
    for a, alternative in possible:
        yield f"parents({m},{a})."
        yield _all(f"parent({m},{a},", alternative, number)
    if module.parents and not possible:
        yield f":- touched({m}), on(law(loading))."


def _hidden(module: SolverModule, encoded: EncodedProblem) -> Iterator[str]:
    """Yield what a module may not be loaded beside, because its name means another one there."""
    number, m = encoded.numbers["module"], encoded.numbers["module"][module.name]
    for a, alternative in enumerate(module.hidden):
        if encoded.modules.keys() >= set(alternative):
            yield f"hidden({m},{a})."
            yield _all(f"hidden_behind({m},{a},", alternative, number)


def _candidate_facts(encoded: EncodedProblem) -> Iterator[str]:
    numbers = encoded.numbers
    components, known = numbers["component"], numbers["candidate"]
    yield _all("component(", components, components)
    yield _all("optional(", encoded.problem.optional, components)
    for each in encoded.kept.candidates:
        k = known[each.id]
        yield f"candidate({k},{components[each.component]}). rank({k},{each.rank})."
        yield f"version({k},{numbers['version'][_version(each)]})."
        yield _all(f"role({k},", roles(each), numbers["role"])
        if each.module is not None:
            yield f"in_module({k},{numbers['module'][each.module]})."
        if each.shadowable:
            yield f"shadowable({k})."
        if each.origin_cost:
            yield f"origin_cost({k},{each.origin_cost})."
        if each.component == "python":
            yield f"python({k})."
        if each.pythons is not None:
            yield f"limited({k})."
            yield _all(f"fits({k},", each.pythons, known)


def _want_facts(encoded: EncodedProblem) -> Iterator[str]:
    number, lacking = encoded.numbers["candidate"], encoded.numbers["lacking"]
    by_role: dict[str, list[str]] = {}
    for each in encoded.kept.candidates:
        for role in roles(each):
            by_role.setdefault(role, []).append(each.id)
    for s, want in enumerate(encoded.wants):
        yield f"want({s})."
        if s >= len(encoded.problem.wants):
            yield f"addition({s})."
        yield _all(f"of({s},", by_role.get(want.component, ()), number)
        yield _all(f"allowed({s},", want.allowed, number)
        yield " ".join(f"distance({s},{number[k]},{n})." for k, n in want.distance if k in number)
        if want.distance:
            yield f"widenable({s})."
        if want.kind != "implied":
            yield f"{'line' if want.kind == 'line' else 'role_want'}({s})."
        if want.can_drop:
            yield f"can_drop({s})."
        if want.component in lacking:
            yield f"want_role({s},{lacking[want.component]})."


def _rule_facts(encoded: EncodedProblem) -> Iterator[str]:
    numbers, known = encoded.numbers, encoded.numbers["candidate"]
    rules = encoded.problem.rules
    flags = {flag: n for n, flag in enumerate(encoded.problem.flags)}
    yield _all("flag(", flags, flags)
    yield _all("row(", numbers["row"], numbers["row"])
    yield _all("can_waive(", {rule.row for rule in rules if rule.can_waive}, numbers["row"])
    for q, rule in enumerate(rules):
        yield f"rule({q},{numbers['row'][rule.row]})." + (f" hard({q})." if rule.hard else "")
        for kind, sets in (("slot", rule.slots), ("lack", rule.lacks)):
            for i, candidates in enumerate(sets):
                yield f"{kind}({q},{i})."
                yield _all(f"in_{kind}({q},{i},", candidates, known)
        for i, role in enumerate(rule.lack_of):
            yield f"lack_of({q},{i},{numbers['lacking'][role]})."
        for i, case in enumerate(rule.cases):
            yield f"case({q},{i})."
            yield _all(f"case_kept({q},{i},", case.kept, flags)
            yield _all(f"case_dropped({q},{i},", case.dropped, flags)
        yield from _remedies(q, rule, known)


def _remedies(q: int, rule: Rule, known: Mapping[str, int]) -> Iterator[str]:
    for d, remedy in enumerate(rule.remedies):
        yield f"remedy({q},{d})." + (f" proved({q},{d})." if remedy.proved else "")
        if remedy.helps is not None:
            yield f"remedy_limited({q},{d})."
            yield _all(f"remedy_helps({q},{d},", remedy.helps, known)
        if remedy.needs is not None:
            yield f"remedy_needing({q},{d})."
            yield _all(f"remedy_needs({q},{d},", remedy.needs, known)


def _other_facts(encoded: EncodedProblem) -> Iterator[str]:
    problem, modules = encoded.problem, encoded.numbers["module"]
    yield _all("preload(", problem.preload, modules)
    if problem.preferred is not None:
        yield f"preferred({encoded.numbers['generation'][problem.preferred]})."


def _all(head: str, names: Iterable[str], numbers: Mapping[str, int]) -> str:
    """Return one fact for each name that has a number: ``of(3,(1;4;5)).``.

    clingo reads that in half the time that single facts take.
    """
    pool = ";".join(map(str, sorted(numbers[name] for name in names if name in numbers)))
    return f"{head}({pool}))." if pool else ""
