"""What ranks tell each other through a store, here a dictionary: how soon, and who does not."""

import threading
import time

import pytest

from distributed_dl_training import _heartbeat
from distributed_dl_training._heartbeat import Heartbeat


class Store:
    """As torch's, for threads."""

    def __init__(self):
        self.values = {}
        self.calls = 0
        self._lock = threading.Lock()

    def set(self, key, value):
        with self._lock:
            self.values[key] = value.encode("utf-8")

    def get(self, key):
        return self.values[key]

    def check(self, keys):
        return all(key in self.values for key in keys)

    def add(self, key, number):
        with self._lock:
            self.calls += 1
            self.values[key] = self.values.get(key, 0) + number
            return self.values[key]


@pytest.fixture
def beats(monkeypatch):
    """Make ranks that look rarely after 0.3 s, each 1 s; end them."""
    monkeypatch.setattr(_heartbeat, "_LONG", 0.3)
    monkeypatch.setattr(_heartbeat, "_RARELY", 1.0)
    monkeypatch.setattr(_heartbeat, "SOON", 0.1)
    monkeypatch.setattr(_heartbeat, "_BEAT", 0.05)
    store, made = Store(), []

    def make(size):
        made.extend(Heartbeat(store, rank, size) for rank in range(size))
        return made

    make.store = store
    yield make
    for each in made:
        each.close()


def probe(beat, seconds):
    started = time.monotonic()
    answers = beat.probe(seconds)
    return answers, time.monotonic() - started


def test_who_has_done_the_same_for_long_is_given_longer(beats):
    """It looks rarely, says so, and is not taken for a lost one; a lost one is given as long."""
    first, second, third = beats(3)
    for rank, each in enumerate((first, second, third)):
        each.note(f"{rank} is idle")
    time.sleep(0.8)
    calls = beats.store.calls
    time.sleep(0.9)
    assert beats.store.calls - calls <= 2 * 3
    assert first.probe(0.2) == {1: "1 is idle", 2: "2 is idle"}
    third.close()
    time.sleep(0.5)
    answers, took = probe(first, 0.2)
    assert answers == {1: "1 is idle", 2: None}
    assert took >= 2.0


def test_who_does_something_else_looks_at_once(beats, monkeypatch):
    monkeypatch.setattr(_heartbeat, "_RARELY", 60.0)
    first, second = beats(2)
    first.note("idle")
    second.note("idle")
    time.sleep(0.8)
    first.note("waiting")
    second.note("waiting, too")
    answers, took = probe(first, 0.1)
    assert answers == {1: "waiting, too"} and took < 30


def test_a_loss_that_one_tells_all_hear_of(beats):
    first, second, third = beats(3)
    second.tell_lost("rank 2 gone: deliberate")
    end = time.monotonic() + 20
    while first.lost is None or third.lost is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert {each.lost for each in (first, second, third)} == {"rank 2 gone: deliberate"}
