"""Who has asked for what: the cache alone, without engines, threads or processes."""

import copy
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributed_dl_training import _agreement, _core
from distributed_dl_training._agreement import (
    JOIN,
    SHUTDOWN,
    Decision,
    Report,
    Request,
    ResponseCache,
    decode,
    encode,
)

SUM = {"dtype": "float32", "shape": (2,), "op": "Sum"}


def reduce(name, **facts):
    return Request("allreduce", name, **dict(SUM, **facts))


def tell(cache, by_rank):
    """Report what each rank newly asks for; ranks that ask for the same are one report."""
    reports = []
    for rank, asked in enumerate(by_rank):
        for at, (mask, other) in enumerate(reports):
            if other == asked:
                reports[at] = Report(mask | 1 << rank, asked)
                break
        else:
            reports.append(Report(1 << rank, asked))
    return cache.report(reports)


def named(*requests):
    return [(request.name, request) for request in requests]


@pytest.mark.parametrize(
    "ranks, text",
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([0, 1, 2, 5], "0-2,5"), ([1, 3, 4], "1,3-4")],
)
def test_fold_ranks(ranks, text):
    assert _core.fold_ranks(ranks) == text


def test_texts_tell_requests_apart():
    assert str(Request("barrier")) == "barrier()"
    assert str(Request("x", "a', root=1")) != str(Request("x", "a", root=1))
    assert str(Request("x", "None")) != str(Request("x", None))
    many = reduce("g", shape=((1,),) * 100)
    assert "and 96 more" in many.brief() and len(many.brief()) < 200 < len(str(many))


def test_reports_survive_the_way():
    report = [
        (3, Request("barrier")),
        ("\udcff ü", reduce("\udcff ü", shape=((2, 3), ()), place=("arena", 7), prescale=1e-320)),
        (10**13, Request("allgather", shape=("*", 3), root=10**30)),
        (-1, JOIN),
    ]
    assert decode(encode(report)) == report
    assert decode(encode([])) == []


def test_mismatch_text_and_copies():
    error = _agreement.mismatch(["b()", "a()", "b()", "b()"])
    assert str(error) == (
        "the ranks do not agree on a collective:\n"
        "  ranks 0,2-3: b()\n"
        "  rank 1: a()\n"
        "\n"
        "hint: all ranks must ask for the same collectives with equal arguments; those\n"
        "      without a name must come in the same order"
    )
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(other) == str(error) and other.requests == error.requests


def test_what_does_not_fit_fails_alone():
    cache = ResponseCache(2, 10)
    wrong = reduce("a", shape=(3,))
    decisions = tell(cache, [named(reduce("a"), reduce("b")), named(reduce("b"), wrong)])
    assert [one.label for one in decisions] == ["a", "b"]
    assert "rank 1: " in str(decisions[0].error) and decisions[1].error is None
    assert not cache.waiting and list(cache.bits) == [reduce("b")]


def test_a_removed_set_takes_no_slot():
    """Programs that add and remove sets for ever keep the slots of their tensors."""
    cache = ResponseCache(1, 4)
    for number in range(1, 9):
        removal = Request("remove_process_set", root=number)
        assert tell(cache, [[(number, removal)]]) == [Decision(number, removal)]
    assert cache.bits == {} and cache.requests == []


@pytest.mark.parametrize("capacity", [0, 1, 2, 3])
def test_slots_are_given_away_oldest_first(capacity):
    cache = ResponseCache(1, capacity)
    for number in range(5):
        tell(cache, [named(reduce(f"n{number}"))])
        assert len(cache.bits) == len(cache.requests) == min(capacity, number + 1)
    kept = {reduce(f"n{number}") for number in range(5 - capacity, 5)}
    assert set(cache.bits) == kept == set(cache.requests)
    assert all(cache.requests[bit] == one for one, bit in cache.bits.items())


def test_refused_requests_get_no_slot():
    cache = ResponseCache(2, 10)
    refused = reduce("a", refusal="TypeError")
    (decision,) = tell(cache, [named(refused)] * 2)
    assert decision.error is None and decision.request == refused and not cache.bits


def test_join():
    cache = ResponseCache(3, 10)
    scatter = Request("reducescatter", "r", **SUM)
    largest = reduce("m", op="Max")
    assert not tell(cache, [named(reduce("a")), named(reduce("a"), scatter), []])
    ((label, _, error),) = tell(cache, [[], [], [(-1, JOIN)]])
    assert (label, error) == ("a", None)
    (decision,) = tell(cache, [named(scatter), [], []])
    assert decision.label == "r" and "rank 2: join()" in str(decision.error)
    (decision,) = tell(cache, [named(largest), named(largest), []])
    assert "rank 2: join()" in str(decision.error)
    (decision,) = tell(cache, [[(7, Request("barrier"))]] * 2 + [[]])
    assert decision.error is None
    assert not tell(cache, [[(-1, JOIN)], [], []])
    assert tell(cache, [[], [(-1, JOIN)], []])[0].request == JOIN
    assert cache.last_joined() == 1 and cache.epoch == 1 and not cache.joined


def test_leaving():
    cache = ResponseCache(2, 10)
    tell(cache, [named(reduce("a")), []])
    failed, end = tell(cache, [[], [(-2, SHUTDOWN)]])
    assert failed.label == "a" and failed.error is end.error
    assert failed.error.requests == (str(reduce("a")), "shutdown()")
    cache = ResponseCache(2, 10)
    (end,) = tell(cache, [[(-2, SHUTDOWN)]] * 2)
    assert end.request == SHUTDOWN and end.error is None


def test_giving_up_lists_a_few():
    cache = ResponseCache(2, 10)
    tell(cache, [named(*(reduce(f"n{n}") for n in range(9))), [(0, Request("barrier"))]])
    assert cache.missing()[0] == (reduce("n0"), [1])
    failed = cache.give_up()
    assert len(failed) == 10 and len({id(one.error) for one in failed}) == 1
    assert "and 5 more" in failed[0].error.requests[0]
    assert failed[0].error.requests[1] == "barrier()" and not cache.waiting


def wishes(chance, size, steps, names):
    """Return what each rank asks for in each step: every name once, some for something else."""
    kinds = [{}, {}, {}, {"shape": (3,)}, {"op": "Max"}]
    return [
        [
            {n: reduce(n, **chance.choice(kinds)) if chance.random() < 0.1 else reduce(n)}
            for n in names
        ]
        for _ in range(size * steps)
    ]


def in_any_order(chance, blocks):
    """Return the requests of one rank: those of a step in any order, the steps one by one."""
    queue = []
    for block in blocks:
        requests = [one for each in block for one in each.values()]
        chance.shuffle(requests)
        queue += requests
    return queue


class Player:
    """One rank: what it is going to ask for, what is under way, and what it ran."""

    def __init__(self, cache, queue):
        self.cache = cache
        self.queue = queue
        self.open = {}  # by name: request, reported
        self.ran = []

    def ask(self, most):
        """Ask for up to ``most`` more, unless one of that name is under way."""
        for _ in range(most):
            if self.queue and self.queue[0].name not in self.open:
                request = self.queue.pop(0)
                self.open[request.name] = [request, False]

    def bits(self):
        known, waiting = self.cache.bits, self.cache.waiting
        return {
            known[request]
            for request, reported in self.open.values()
            if not reported and request in known and request.name not in waiting
        }

    def report(self, agreed):
        done = {self.cache.requests[bit].name for bit in agreed}
        new = [entry for name, entry in self.open.items() if name not in done and not entry[1]]
        for entry in new:
            entry[1] = True
        return named(*(entry[0] for entry in new))

    def run(self, agreed, reports):
        good = [self.cache.requests[bit] for bit in sorted(agreed)]
        events = [(one.name, one, None) for one in good]
        events += [
            (one.label, one.request, one.error and str(one.error))
            for one in tell(self.cache, reports)
        ]
        for label, _, _ in events:
            del self.open[label]
        self.ran += events


def play(size, capacity, seed):
    """Let ranks ask in random orders, with bits and reports as the controller uses them.

    Returns what was asked for, and what each rank ran, in order.
    """
    chance = random.Random(seed)
    steps = chance.randint(1, 4)
    names = [f"n{n}" for n in range(chance.randint(1, 8))]
    wanted = wishes(chance, size, steps, names)
    players = [
        Player(
            ResponseCache(size, capacity),
            in_any_order(chance, wanted[rank * steps : (rank + 1) * steps]),
        )
        for rank in range(size)
    ]
    for _ in range(10000):
        for player in players:
            player.ask(chance.randint(0, 3))
        if all(player.open for player in players):
            cycle(players)
        elif not any(player.queue or player.open for player in players):
            return steps, names, wanted, [player.ran for player in players]
    raise AssertionError("no end")


def cycle(players):
    """Let the ranks agree once; their caches must stay equal."""
    agreed = set.intersection(*(player.bits() for player in players))
    reports = [player.report(agreed) for player in players]
    for player in players:
        player.run(agreed, reports)
    first = players[0].cache
    for player in players[1:]:
        other = player.cache
        assert (other.bits, other.requests) == (first.bits, first.requests)
        assert (other.waiting, other.without_joined) == (first.waiting, first.without_joined)


def check(size, capacity, seed):
    steps, names, wanted, ran = play(size, capacity, seed)
    assert all(each == ran[0] for each in ran)
    assert len(ran[0]) == steps * len(names)
    seen = dict.fromkeys(names, 0)
    for label, request, error in ran[0]:
        place = names.index(label)
        asked = [wanted[rank * steps + seen[label]][place][label] for rank in range(size)]
        assert (error is None) == (len(set(asked)) == 1)
        assert request == asked[0]
        assert error is None or all(str(one) in error for one in asked)
        seen[label] += 1


@pytest.mark.parametrize("capacity", [0, 1, 2, 3, 100])
def test_all_ranks_run_the_same_in_the_same_order(capacity):
    for seed in range(60):
        check(1 + seed % 4, capacity, seed)


@settings(max_examples=100)
@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 2**60))
def test_any_orders(size, capacity, seed):
    check(size, capacity, seed)


texts = st.text(max_size=5)
shapes = st.lists(st.integers(0, 9), max_size=3).map(tuple)
requests = st.builds(
    Request,
    call=st.sampled_from(["allreduce", "allgather", "barrier"]),
    name=st.one_of(st.none(), texts),
    shape=st.one_of(shapes, st.lists(shapes, min_size=1, max_size=3).map(tuple)),
    op=st.sampled_from(["", "Sum", "Max"]),
    prescale=st.floats(allow_nan=False),
    postscale=st.floats(allow_nan=False),
    place=st.one_of(st.just(()), st.tuples(texts, st.integers(0, 9))),
    refusal=st.sampled_from(["", "", "TypeError"]),
)


@given(st.lists(st.tuples(st.one_of(texts, st.integers(0, 9)), requests), max_size=5))
def test_any_report_survives_the_way(report):
    assert decode(encode(report)) == report


@given(st.integers(1, 3), st.integers(0, 3), st.data())
def test_ledgers_fed_alike_stay_equal(size, capacity, data):
    """Whatever is reported, in whatever state: no crash, no difference, nothing twice."""
    caches = [ResponseCache(size, capacity) for _ in range(2)]
    events = requests.map(lambda one: (one.name if one.name is not None else 0, one))
    for _ in range(data.draw(st.integers(1, 6))):
        waiting, joined = caches[0].waiting, caches[0].joined
        reports = []
        for rank in range(size):
            drawn = data.draw(st.lists(events, max_size=4))
            fresh = {
                label: one
                for label, one in drawn
                if not any(mask >> rank & 1 for mask in waiting.get(label, {}).values())
            }
            reports.append(list(fresh.items()))
            if rank not in joined and data.draw(st.integers(0, 4)) == 0:
                reports[-1].append((-1, JOIN))
        told = [
            [(d.label, d.request, str(d.error)) for d in tell(each, reports)] for each in caches
        ]
        assert told[0] == told[1]
        assert len({label for label, _, _ in told[0]}) == len(told[0])
        if (-1, JOIN, "None") in told[0]:
            assert len({each.last_joined() for each in caches}) == 1
        for each in caches:
            assert len(each.bits) == len(each.requests) <= capacity
            assert not any(each._complete(label) for label in each.waiting)
        assert caches[0].waiting == caches[1].waiting and caches[0].bits == caches[1].bits
