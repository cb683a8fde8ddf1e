"""A stack problem as facts for ``engine.lp``, and the way back from numbers to names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import clingo

from .loading import closure
from .problem import Candidate, Change, Module, Problem, Want

LAWS = ("generations", "provider", "replaces", "loading")
"""What holds whatever a user asks: one generation, one provider of a role, no release in another's
place unless it may stand in for it, and what the module system refuses."""


@dataclass(frozen=True)
class Encoded:
    """A problem with the numbers that its parts have in the logic program."""

    problem: Problem

    @cached_property
    def modules(self) -> dict[str, Module]:
        return {module.name: module for module in self.problem.modules}

    @cached_property
    def brings(self) -> dict[str, frozenset[str]]:
        """What each module brings: itself and all that is loaded along with it."""
        return {name: closure(self.modules, name) for name in self.modules}

    @cached_property
    def module_names(self) -> tuple[str, ...]:
        return tuple(sorted(self.modules))

    @cached_property
    def candidate_ids(self) -> tuple[str, ...]:
        return tuple(sorted(each.id for each in self.problem.candidates))

    @cached_property
    def rows(self) -> tuple[str, ...]:
        return tuple(sorted({rule.row for rule in self.problem.rules}))

    @cached_property
    def components(self) -> tuple[str, ...]:
        return tuple(sorted({each.component for each in self.problem.candidates}))

    @cached_property
    def limited(self) -> tuple[str, ...]:
        """The components some of whose candidates work with some Pythons only."""
        limited = {c.component for c in self.problem.candidates if c.pythons is not None}
        return tuple(sorted(limited))

    @cached_property
    def symbols(self) -> dict[str, clingo.Symbol]:
        """All switches by name: the wants' own, row:ID, flag:NAME, fit:COMPONENT and law:NAME."""
        problem = self.problem
        parts = {
            **{want.switch: ("want", clingo.Number(n)) for n, want in enumerate(problem.wants)},
            **{f"flag:{flag}": ("flag", clingo.Number(n)) for n, flag in enumerate(problem.flags)},
            **{f"row:{row}": ("row", clingo.Number(n)) for n, row in enumerate(self.rows)},
            **{
                f"fit:{name}": ("fit", clingo.Number(self.components.index(name)))
                for name in self.limited
            },
            **{f"law:{law}": ("law", clingo.Function(law)) for law in LAWS},
        }
        return {
            name: clingo.Function("on", [clingo.Function(kind, [number])])
            for name, (kind, number) in parts.items()
        }

    @cached_property
    def switches(self) -> tuple[str, ...]:
        return tuple(self.symbols)

    @cached_property
    def unrelaxed(self) -> tuple[str, ...]:
        """The switches that stay on also where the closest stacks are looked for."""
        can = {want.switch for want in self.problem.wants if want.distance or want.can_drop}
        can |= {f"flag:{flag}" for flag in self.problem.flags}
        can |= {f"row:{rule.row}" for rule in self.problem.rules if rule.can_waive}
        return tuple(name for name in self.switches if name not in can)

    @cached_property
    def facts(self) -> str:
        parts = (
            self._module_facts(),
            self._candidate_facts(),
            self._want_facts(),
            self._rule_facts(),
            self._other_facts(),
        )
        return "\n".join(line for part in parts for line in part)

    @cached_property
    def _module_number(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.module_names)}

    @cached_property
    def _candidate_number(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.candidate_ids)}

    def _module_facts(self) -> Iterator[str]:
        number = self._module_number
        keys = _numbers(module.key for module in self.modules.values())
        families = _numbers(f for module in self.modules.values() for f in module.families)
        generations = _numbers(self._generations())
        for name, module in sorted(self.modules.items()):
            m = number[name]
            yield f"module({m}). key({m},{keys[module.key]}). name_place({m},{m})."
            yield " ".join(f"brings({m},{number[each]})." for each in sorted(self.brings[name]))
            yield " ".join(f"family({m},{families[each]})." for each in module.families)
            if module.generation is not None:
                yield f"generation({m},{generations[module.generation]})."
            if module.build_only:
                yield f"build_only({m})."
            known = sorted(each for each in module.replaces if each in number)
            yield " ".join(f"replaces({m},{number[each]})." for each in known)
            yield from self._relations(module)

    def _relations(self, module: Module) -> Iterator[str]:
        number, m = self._module_number, self._module_number[module.name]
        against = frozenset(module.conflicts)
        for other in self.modules.values() if against else ():
            if other is not module and (other.name in against or other.key in against):
                yield f"conflict({m},{number[other.name]})."
        for a, alternative in enumerate(module.parents):
            # An alternative that names an unknown module cannot come true.
            if all(name in number for name in alternative):
                yield f"parents({m},{a})."
                yield " ".join(f"parent({m},{a},{number[name]})." for name in alternative)
        if module.parents and not any(all(p in number for p in a) for a in module.parents):
            yield f":- touched({m}), on(law(loading))."

    def _generations(self) -> Iterator[str]:
        for module in self.modules.values():
            if module.generation is not None:
                yield module.generation
        if self.problem.preferred is not None:
            yield self.problem.preferred

    def _candidate_facts(self) -> Iterator[str]:
        components = {name: n for n, name in enumerate(self.components)}
        roles = _numbers(role for c in self.problem.candidates for role in c.roles | {c.component})
        versions = _numbers(_identity(c) for c in self.problem.candidates)
        for name in self.components:
            yield f"component({components[name]})."
        for each in self.problem.candidates:
            k = self._candidate_number[each.id]
            yield f"candidate({k},{components[each.component]}). rank({k},{each.rank})."
            yield f"version({k},{versions[_identity(each)]})."
            yield " ".join(f"role({k},{roles[r]})." for r in sorted(each.roles | {each.component}))
            if each.module is not None:
                yield f"in_module({k},{self._module_number[each.module]})."
            if each.shadowable:
                yield f"shadowable({k})."
            if each.origin_cost:
                yield f"origin_cost({k},{each.origin_cost})."
            if each.component == "python":
                yield f"python({k})."
            if each.pythons is not None:
                fitting = sorted(p for p in each.pythons if p in self._candidate_number)
                yield f"limited({k})."
                yield " ".join(f"fits({k},{self._candidate_number[p]})." for p in fitting)
        for name in sorted(self.problem.optional & set(components)):
            yield f"optional({components[name]})."

    def _want_facts(self) -> Iterator[str]:
        number = self._candidate_number
        by_role: dict[str, list[str]] = {}
        for each in self.problem.candidates:
            for role in each.roles | {each.component}:
                by_role.setdefault(role, []).append(each.id)
        for s, want in enumerate(self.problem.wants):
            yield f"want({s}). place({s},{want.order})."
            yield " ".join(f"of({s},{number[k]})." for k in by_role.get(want.component, ()))
            yield " ".join(f"allowed({s},{number[k]})." for k in sorted(want.allowed))
            yield " ".join(f"distance({s},{number[k]},{far})." for k, far in want.distance)
            if want.distance:
                yield f"widenable({s})."
            if want.kind in ("line", "role"):
                yield f"{want.kind}({s})."
            if want.can_drop:
                yield f"can_drop({s})."

    def _rule_facts(self) -> Iterator[str]:
        rows = {row: n for n, row in enumerate(self.rows)}
        flags = {flag: n for n, flag in enumerate(self.problem.flags)}
        for row, n in rows.items():
            yield f"row({n})."
            if any(rule.can_waive for rule in self.problem.rules if rule.row == row):
                yield f"can_waive({n})."
        for q, rule in enumerate(self.problem.rules):
            yield f"rule({q},{rows[rule.row]})." + (f" hard({q})." if rule.hard else "")
            for kind, sets in (("slot", rule.slots), ("lack", rule.lacks)):
                for i, candidates in enumerate(sets):
                    yield f"{kind}({q},{i})."
                    yield self._each(f"in_{kind}({q},{i},", candidates)
            for i, case in enumerate(rule.cases):
                yield f"case({q},{i})."
                yield " ".join(f"case_kept({q},{i},{flags[f]})." for f in sorted(case.kept))
                yield " ".join(f"case_dropped({q},{i},{flags[f]})." for f in sorted(case.dropped))
            for d, remedy in enumerate(rule.remedies):
                yield f"remedy({q},{d})."
                if remedy.helps is not None:
                    yield f"remedy_limited({q},{d})."
                    yield self._each(f"remedy_helps({q},{d},", remedy.helps)
                if remedy.needs is not None:
                    yield f"remedy_needing({q},{d})."
                    yield self._each(f"remedy_needs({q},{d},", remedy.needs)

    def _each(self, head: str, candidates: Iterable[str]) -> str:
        number = self._candidate_number
        return " ".join(f"{head}{number[k]})." for k in sorted(candidates))

    def _other_facts(self) -> Iterator[str]:
        generations = _numbers(self._generations())
        yield " ".join(f"preload({self._module_number[name]})." for name in self.problem.preload)
        yield " ".join(f"flag({n})." for n in range(len(self.problem.flags)))
        if self.problem.preferred is not None:
            yield f"preferred({generations[self.problem.preferred]})."
        for i, barred in enumerate(sorted(self.problem.barred, key=sorted)):
            yield f"barred({i})."
            yield " ".join(f"in_barred({i},{self._module_number[name]})." for name in barred)

    def replacements(
        self, replaced: Iterable[str], active: Iterable[str]
    ) -> tuple[tuple[str, str], ...]:
        """Return each replaced module with the active one of its key, sorted."""
        winners = {self.modules[name].key: name for name in active}
        return tuple(sorted((name, winners[self.modules[name].key]) for name in replaced))

    def bar(self, loads: Iterable[str]) -> str:
        """Return a constraint against loading exactly these, while the law of loading is on."""
        there = frozenset(loads)
        atoms = [
            f"{'' if name in there else 'not '}load({number})"
            for name, number in self._module_number.items()
        ]
        return f":- {', '.join(atoms)}, on(law(loading))."

    def used(
        self, candidates: frozenset[str], dropped: frozenset[int]
    ) -> tuple[tuple[str, str], ...]:
        """Return which candidate each want uses."""
        return tuple(
            (want.switch, self._of_want(want, candidates))
            for s, want in enumerate(self.problem.wants)
            if s not in dropped
        )

    def _of_want(self, want: Want, used: frozenset[str]) -> str:
        return next(
            each.id
            for each in self.problem.candidates
            if each.id in used and want.component in each.roles | {each.component}
        )

    def violated(self, rule: int, remedy: int | None) -> tuple[str, str | None]:
        """Return the key of a rule and the remedy that was taken for it."""
        found = self.problem.rules[rule]
        return found.key, None if remedy is None else found.remedies[remedy].id

    def changes(self, atoms: Iterable[clingo.Symbol]) -> tuple[Change, ...]:
        """Return what a model changes of what was asked."""
        there = frozenset(atoms)
        wide = {s.arguments[0].number for s in there if s.name == "wide"}
        found = []
        for name, symbol in self.symbols.items():
            if symbol in there:
                continue
            kind, part = symbol.arguments[0].name, symbol.arguments[0].arguments[0]
            if kind == "want":
                found.append(Change("widen" if part.number in wide else "drop", name))
            elif kind == "flag":
                found.append(Change("flag", name))
            elif kind == "row":
                found.append(Change("waive", name))
        return tuple(found)

    def changed(self, change: Change) -> str:
        """Return the atom of the logic program that says that this is changed."""
        symbol = self.symbols[change.switch]
        number = symbol.arguments[0].arguments[0]
        return {
            "widen": f"wide({number})",
            "drop": f"dropped({number})",
            "flag": f"not {symbol}",
            "waive": f"not {symbol}",
        }[change.kind]


def _identity(candidate: Candidate) -> str:
    """Return what two effective candidates of one role have in common."""
    place = "outside" if candidate.module is None else "module"
    return f"{candidate.component} {candidate.version} {place}"


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: n for n, name in enumerate(sorted(set(names)))}
