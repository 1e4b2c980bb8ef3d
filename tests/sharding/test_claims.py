"""Who takes which slot and who gives one back: single decisions, and many replicas with old views of each other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from mirror.sharding.claims import STEADY_SECONDS, TURN_SECONDS, Board, Decision, decide
from mirror.sharding.slots import Slot, score

LONG = 1000.0


def board(me: str, members: Mapping[str, float], holders: Mapping[int, str], free: Mapping[int, float]) -> Board:
    return Board(me, len(holders) + len(free), members, dict(holders), dict(free))


def favourite(index: int, slots: int, members: Mapping[str, float]) -> str:
    return max(members, key=lambda one: score(one, Slot(index, slots)))


def test_a_free_slot_is_its_favourites_at_once_and_the_others_later() -> None:
    """S3: no slot waits for a replica that is sick."""
    members = dict.fromkeys(("a", "b", "c"), LONG)
    claims = {one: decide(Board(one, 3, members, {}, {0: 0.0, 1: 0.0, 2: 0.0})).claim for one in members}
    assert claims[favourite(0, 3, members)] == (0,)
    assert sorted(index for claim in claims.values() for index in claim) == [0, 1, 2], "all agree, and each has one"
    for place, one in enumerate(sorted(members, key=lambda one: -score(one, Slot(0, 3)))):
        waited = Board(one, 3, members, {}, {0: place * TURN_SECONDS})
        assert decide(waited).claim == (0,)
        if place:
            early = Board(one, 3, members, {}, {0: place * TURN_SECONDS - 0.5})
            assert decide(early) == Decision((), (), 0.5)


@pytest.mark.parametrize("index", range(4))
def test_who_has_fewest_comes_first(index: int) -> None:
    """Else who has given a slot back would be its favourite again."""
    members, free = {"a": LONG, "b": LONG}, {index: 0.0, (index + 1) % 4: 0.0}
    holders = {other: "a" for other in range(4) if other not in free}
    assert set(decide(board("b", members, holders, free)).claim) == set(free)
    assert decide(board("a", members, holders, free)).claim == ()


def test_who_has_just_begun_takes_nothing_yet() -> None:
    """It may be the only one that it knows."""
    assert decide(Board("a", 2, {"a": 0.5}, {}, {0: LONG, 1: LONG})) == Decision((), (), 1.5)
    assert decide(Board("a", 2, {}, {}, {0: LONG, 1: LONG})).claim == ()


def test_room_is_made_for_one_that_has_been_there_for_a_while() -> None:
    """S4: one slot at a time, and while nothing is free."""
    holders = {index: "a" if index < 8 else "b" for index in range(16)}
    fresh = {"a": LONG, "b": LONG, "c": STEADY_SECONDS - 3}
    assert decide(board("a", fresh, holders, {})) == Decision((), (), 3.0)
    steady = {**fresh, "c": STEADY_SECONDS}
    for me in ("a", "b"):
        (given,) = decide(board(me, steady, holders, {})).give_back
        assert holders[given] == me
        mine = [index for index, holder in holders.items() if holder == me]
        assert score("c", Slot(given, 16)) == max(score("c", Slot(index, 16)) for index in mine)
    assert decide(board("c", steady, holders, {})).give_back == ()
    del holders[3]
    assert decide(board("a", steady, holders, {3: 0.0})).give_back == ()


@pytest.mark.parametrize(("counts", "gives"), [((6, 5, 5), ""), ((7, 5, 4), "a"), ((4, 4, 8), "c"), ((8, 8, 0), "ab")])
def test_nothing_moves_between_those_who_have_as_many(counts: tuple[int, ...], gives: str) -> None:
    owners = [name for name, count in zip("abc", counts, strict=True) for _ in range(count)]
    holders = dict(enumerate(owners))
    members = dict.fromkeys("abc", LONG)
    found = {one for one in members if decide(board(one, members, holders, {})).give_back}
    assert found == set(gives)


def test_a_holder_that_is_no_member_any_more_makes_room_too() -> None:
    """Its own Lease has ended, and it still renews those of its slots."""
    holders = dict.fromkeys(range(4), "old")
    members = {"new": LONG}
    assert len(decide(board("old", members, holders, {})).give_back) == 1


LEASE_SECONDS, RENEW_SECONDS, TICK_SECONDS, MOST_LAG = 30.0, 15.0, 0.5, 4


class Replicas:
    """Replicas that renew Leases, see them late, die, freeze and come: only claims are ours, the rest is a model."""

    def __init__(self, slots: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.slots = slots
        self.now = 0.0
        # Of each Lease: its holder, its version, when it was renewed.
        self.leases: dict[str, tuple[str, int, float]] = {}
        self.history: list[dict[str, tuple[str, int, float]]] = []
        self.seen_until: dict[str, int] = {}
        self.alive: dict[str, bool] = {}
        self.cut_off_until: dict[str, float] = {}
        self.first_seen: dict[str, dict[str, tuple[str, int, float]]] = {}
        self.alive_since: dict[tuple[str, str], float] = {}
        self.valid_until: dict[tuple[str, int], float] = {}
        self.moves = 0

    def join(self, name: str) -> None:
        self.alive[name] = True
        self.first_seen[name] = {}

    def leave(self, name: str, *, killed: bool) -> None:
        del self.alive[name]
        for index in [index for who, index in self.valid_until if who == name]:
            del self.valid_until[name, index]
            if not killed:
                self._write(self._lease(index), "")
        if not killed:
            self.leases.pop(f"member-{name}", None)

    def _lease(self, index: int) -> str:
        return Slot(index, self.slots).lease

    def _write(self, lease: str, holder: str) -> None:
        _, version, _ = self.leases.get(lease, ("", 0, 0.0))
        self.leases[lease] = holder, version + 1, self.now

    def tick(self) -> None:
        self.now += TICK_SECONDS
        self.history.append(dict(self.leases))
        for name in sorted(self.alive):
            if self.cut_off_until.get(name, 0.0) <= self.now:
                self._renew(name)
                self._decide(name)
        self._check()

    def _renew(self, name: str) -> None:
        self._write(f"member-{name}", name)
        for who, index in list(self.valid_until):
            if who != name:
                continue
            if self.leases[self._lease(index)][0] == name:
                self._write(self._lease(index), name)
                self.valid_until[name, index] = self.now + RENEW_SECONDS
            else:
                del self.valid_until[name, index]  # somebody else has it: the renewal met a conflict

    def _decide(self, name: str) -> None:
        newest = len(self.history) - 1  # a watch is late, and never goes back
        at = max(self.seen_until.get(name, 0), newest - self.random.randint(0, MOST_LAG))
        self.seen_until[name], view = at, self.history[at]
        seen = self.first_seen[name]
        for lease, state in view.items():
            if lease not in seen or seen[lease][:2] != state[:2]:
                seen[lease] = (*state[:2], self.now)
        live = {lease: state for lease, state in seen.items() if lease in view and self.now < state[2] + LEASE_SECONDS}
        members = {one.removeprefix("member-") for one in live if one.startswith("member-")}
        for one in members:
            self.alive_since.setdefault((name, one), self.now)
        for gone in [key for key in self.alive_since if key[0] == name and key[1] not in members]:
            del self.alive_since[gone]
        holders: dict[int, str] = {}
        free: dict[int, float] = {}
        for index in range(self.slots):
            lease = self._lease(index)
            if lease in live and live[lease][0]:
                holders[index] = live[lease][0]
            else:
                free[index] = self.now - seen[lease][2] if lease in seen else self.now
                if lease in seen and seen[lease][0]:
                    free[index] -= LEASE_SECONDS
        ready = {one: self.now - self.alive_since[name, one] for one in members}
        decision = decide(Board(name, self.slots, ready, holders, free))
        for index in decision.claim:
            lease = self._lease(index)
            known, now = seen.get(lease), self.leases.get(lease)
            if (known[:2] if known else None) == (now[:2] if now else None):  # else: a conflict
                self._write(lease, name)
                self.valid_until[name, index] = self.now + RENEW_SECONDS
                self.moves += 1
        for index in decision.give_back:
            if (name, index) in self.valid_until:
                del self.valid_until[name, index]
                self._write(self._lease(index), "")

    def _check(self) -> None:
        valid = Counter(index for (_, index), until in self.valid_until.items() if until > self.now)
        assert max(valid.values(), default=0) <= 1, f"two work on a slot at {self.now}: {self.valid_until}"

    def held(self) -> Counter[str]:
        return Counter(who for who, _ in self.valid_until)

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / TICK_SECONDS)):
            self.tick()


QUIET_SECONDS = 150.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_whatever_comes_and_goes_each_slot_has_one_who_works_on_it(seed: int) -> None:
    """S3–S5: never two; all of them held, evenly, once it is quiet; and nothing moves any more."""
    replicas = Replicas(slots=16, seed=seed)
    names = [f"manager-{number}" for number in range(5)]
    for name in names[:3]:
        replicas.join(name)
    for _ in range(8):
        name = replicas.random.choice(names)
        if name not in replicas.alive:
            replicas.join(name)
        elif len(replicas.alive) > 1 and replicas.random.random() < 0.6:
            replicas.leave(name, killed=replicas.random.random() < 0.5)
        else:
            replicas.cut_off_until[name] = replicas.now + replicas.random.uniform(1.0, 70.0)
        replicas.run(replicas.random.uniform(0.5, 60.0))
    replicas.cut_off_until.clear()
    replicas.run(QUIET_SECONDS)
    held = replicas.held()
    assert held.total() == 16
    assert max(held.values()) - min(held[name] for name in replicas.alive) <= 1
    moves = replicas.moves
    replicas.run(300.0)
    assert replicas.moves == moves


@pytest.mark.slow
@pytest.mark.parametrize(("before", "slots"), [(1, 16), (2, 16), (3, 16), (4, 16), (3, 7)])
def test_one_more_moves_no_more_than_its_share(before: int, slots: int) -> None:
    """S4."""
    replicas = Replicas(slots, seed=before)
    for number in range(before):
        replicas.join(f"manager-{number}")
    replicas.run(QUIET_SECONDS)
    moves = replicas.moves
    replicas.join("manager-new")
    replicas.run(QUIET_SECONDS + 2 * slots)
    assert replicas.held()["manager-new"] >= slots // (before + 1)
    assert replicas.moves - moves <= -(-slots // (before + 1)) + 1


@pytest.mark.slow
@pytest.mark.parametrize("killed", [True, False])
def test_what_one_leaves_is_all_that_moves(killed: bool) -> None:
    replicas = Replicas(16, seed=1)
    for number in range(4):
        replicas.join(f"manager-{number}")
    replicas.run(QUIET_SECONDS)
    moves, had = replicas.moves, replicas.held()["manager-2"]
    replicas.leave("manager-2", killed=killed)
    replicas.run(8.0 if not killed else LEASE_SECONDS + 8.0)
    assert replicas.held().total() == 16
    replicas.run(QUIET_SECONDS)
    assert replicas.moves - moves <= had + 1
