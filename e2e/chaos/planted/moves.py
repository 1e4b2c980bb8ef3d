"""Histories of when sources are moved: for what the judge says in ``rules_moves``. Of Jobs, since no other kind is."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from e2e.chaos.history import ClockSet, Json, Version
from e2e.chaos.planted.copies import RESCHEDULE, broken_from, made_anew_after_its_lease
from e2e.chaos.planted.left import moved_by_its_lease, says
from e2e.chaos.planted.turns import ONE, TWO
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    FAILED,
    LATE,
    Draft,
    ends_on,
    mirror,
    mirrored,
    move,
    moved,
    on,
    registered,
    runs_on_east,
    said_between,
    source,
    true,
)
from mirror.model import names

_LEASE = "jobmirror-x/jobmirror-manager"
_GONE = {names.GONE: "true"}


# -- good --------------------------------------------------------------------------------------------------------------


def moved_from_a_lost_worker(draft: Draft) -> None:
    """D14: it is lost for ten seconds, and five are enough."""
    lost(draft)
    moved(draft, annotations=RESCHEDULE)


def moved_after_drains(draft: Draft) -> None:
    """D14: those are an operator's, and no limit counts them."""
    lost(draft)
    said = move("4, from east to west; left behind: east (uid m)")
    drained = true(names.DRAINED, "WorkerDrained", "3 of its moves left a drained worker")
    runs_on_east(draft, annotations=RESCHEDULE)
    draft.put(20, "management", source(on("west"), said, drained, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.delete(40, "east")
    ends_on(draft, "west", "n", said, drained, at=50, annotations=RESCHEDULE)


def moved_as_its_namespace_wants(draft: Draft) -> None:
    """D14: it says nothing itself."""
    lost(draft)
    says(draft, 0.5, "Reschedule")
    moved(draft)


def moved_as_its_namespace_has_just_wanted(draft: Draft) -> None:
    """D14: who moves it may not have heard of the change yet."""
    moved_as_its_namespace_wants(draft)
    says(draft, 19, "Wait")


def moved_since_its_worker_is_declared_dead(draft: Draft) -> None:
    """D14: at once, and whatever its policy is; that it was wrong is a breach, which is counted."""
    lost(draft, since=17)
    draft.put(18, "management", registered(**_GONE), key="jobmirror-x/east", resource="secrets")
    moved(draft, promise=", gone")


def moved_by_a_new_leader_since_its_worker_is_declared_dead(draft: Draft) -> None:
    """D14: a person's word waits for no minute either, nor for other workers that are lost."""
    moved_since_its_worker_is_declared_dead(draft)
    leads(draft, 15, TWO)
    broken_from(draft, 12, 38, "refuse", "way to north")


def placed_anew_since_its_lease_has_ended(draft: Draft) -> None:
    """D14: nothing is lost, and it is not moved but ended."""
    lost(draft, worker="north")
    made_anew_after_its_lease(draft)
    expired(draft)


def moved_early_since_a_clock_was_set(draft: Draft) -> None:
    """D14: what was written down as the time of the loss seems to be long ago."""
    moved_too_early(draft)
    draft.add(ClockSet(BASE + 19, "manager-0", 45.0))


def moved_early_by_another_clock(draft: Draft) -> None:
    """D14: who has written down the loss has another one: 90 s seem to be more than 120 s to who leads since."""
    lost(draft, since=-70)
    draft.settings(lost_after_seconds=120.0)
    leads(draft, -60, TWO)
    draft.add(ClockSet(BASE - 100, "manager-0", -45.0), ClockSet(BASE - 100, "manager-1", 0.0))
    moved(draft, annotations=RESCHEDULE)


def moved_from_a_worker_that_is_broken_again_and_again(draft: Draft) -> None:
    """D14: nobody has seen it in between."""
    lost(draft, since=18.5)
    broken_from(draft, 10, 15, "kill etcd", "east")
    moved(draft, annotations=RESCHEDULE)


def moved_while_the_other_one_serves_again(draft: Draft) -> None:
    """D14: its API server was killed and takes long to say that it is ready, but answers lists and watches."""
    lost(draft)
    broken_from(draft, 12, 38, "kill kube-apiserver", "north")
    moved(draft, annotations=RESCHEDULE)


def moved_since_its_lease_is_over(draft: Draft) -> None:
    """D14: it was to end 150 s ago, and nobody can see whether it has."""
    fenced(draft, started=-450)


def moved_since_its_lease_is_over_by_the_clock_of_before(draft: Draft) -> None:
    """D14: who has written down when it ends has another one: in ten seconds it is over for sure."""
    fenced(draft, started=-390)
    draft.records = [one for one in draft.records if one.at != BASE - 100]
    leads(draft, -100, TWO)
    leads(draft, -60, ONE)
    draft.add(ClockSet(BASE - 200, "manager-0", 0.0), ClockSet(BASE - 200, "manager-1", -13.0))


def moved_in_turns(draft: Draft) -> None:
    """D14: five in a second, and the first one at once."""
    moved_at_once(draft, 6)


def moved_in_turns_and_held_up(draft: Draft) -> None:
    """D14: what was sent in turns is stored at once when the way is whole again."""
    broken_from(draft, 16, 19.5, "stall requests", "manager-0")
    draft.add(ClockSet(BASE, "manager-0", 0.0))
    moved_at_once(draft, 12)


# -- planted -----------------------------------------------------------------------------------------------------------


def moved_without_a_loss(draft: Draft) -> None:
    """Nothing was broken on its worker."""
    lost(draft, worker="north")
    moved(draft, annotations=RESCHEDULE)


def moved_too_early(draft: Draft) -> None:
    """Its worker was lost for less than two seconds."""
    lost(draft, since=18.5)
    moved(draft, annotations=RESCHEDULE)


def moved_too_early_by_one_wrong_clock(draft: Draft) -> None:
    """It was wrong by as much when its worker was lost, and so was the other one."""
    moved_too_early(draft)
    draft.add(ClockSet(BASE + 1, "manager-0", 45.0), ClockSet(BASE + 1, "manager-1", 45.0))


def moved_too_early_after_a_clock_was_set(draft: Draft) -> None:
    """That was before its worker was lost."""
    moved_too_early(draft)
    draft.add(ClockSet(BASE + 12, "manager-0", 45.0))


def moved_too_early_though_who_stands_by_has_another_clock(draft: Draft) -> None:
    """Nobody's clock is set, and only one of them has led."""
    moved_too_early(draft)
    draft.add(ClockSet(BASE - 100, "manager-0", 45.0), ClockSet(BASE - 100, "manager-1", 0.0))


def moved_since_its_kubelet_was_broken(draft: Draft) -> None:
    """Managers have seen nothing of that."""
    lost(draft, worker="north")
    broken_from(draft, 10, 38, "kill kwok", "east")
    broken_from(draft, 10, 38, "slow", "way to east")
    moved(draft, annotations=RESCHEDULE)


def moved_from_a_worker_that_was_there_in_between(draft: Draft) -> None:
    """It was broken twice, each time for less than was to be waited for."""
    lost(draft, since=18.5)
    broken_from(draft, 10, 12, "kill etcd", "east")
    moved(draft, annotations=RESCHEDULE)


def moved_long_after_its_worker_was_back(draft: Draft) -> None:
    """Its worker was lost six seconds before."""
    lost(draft, since=-60, until=14)
    moved(draft, annotations=RESCHEDULE)


def moved_against_its_policy(draft: Draft) -> None:
    """It says that it waits, and its Namespace and the settings something else."""
    lost(draft)
    draft.settings(on_loss="Reschedule")
    says(draft, 0.5, "Reschedule")
    moved(draft, annotations={names.ON_WORKER_LOSS: "Wait"})


def moved_as_its_namespace_had_wanted(draft: Draft) -> None:
    """It does not for fifteen seconds."""
    moved_as_its_namespace_wants(draft)
    says(draft, 5, "Wait")


def moved_as_if_its_worker_was_dead(draft: Draft) -> None:
    """Nobody has declared that."""
    lost(draft)
    moved(draft, promise=", gone")


def placed_anew_before_its_lease_has_ended(draft: Draft) -> None:
    """Its copy has failed for another reason."""
    lost(draft, worker="north")
    made_anew_after_its_lease(draft)
    expired(draft)
    for number, one in enumerate(draft.records):
        if isinstance(one, Version) and one.at == BASE + 4:
            draft.records[number] = replace(one, body=mirror(FAILED, uid="m", annotations={names.FENCE: "300"}))


def moved_too_often(draft: Draft) -> None:
    """Three times is what settings allow."""
    lost(draft)
    runs_on_east(draft, annotations=RESCHEDULE)
    said = move("4, from east to west; left behind: east (uid m)")
    draft.put(20, "management", source(on("west"), said, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.delete(40, "east")
    ends_on(draft, "west", "n", said, at=50, annotations=RESCHEDULE)


def moved_too_fast(draft: Draft) -> None:
    """Eight in a second, where five are allowed and the first one at once."""
    moved_at_once(draft, 8)


def moved_while_most_are_lost(draft: Draft) -> None:
    """Two of three are: it may be the manager that is cut off."""
    lost(draft)
    broken_from(draft, 12, 38, "refuse", "way to north")
    moved(draft, annotations=RESCHEDULE)


def moved_by_a_new_leader(draft: Draft) -> None:
    """It leads for five seconds, and the one before may still have sent something."""
    lost(draft)
    leads(draft, 15, TWO)
    moved(draft, annotations=RESCHEDULE)


def fenced_before_its_lease_is_over(draft: Draft) -> None:
    """In ten seconds it would be, and its margin with it."""
    fenced(draft, started=-390)


def fenced_before_its_lease_is_over_though_it_has_failed(draft: Draft) -> None:
    """It had, while nobody could see that: that nothing ran twice is luck."""
    fenced(draft, started=3, ended=FAILED)


def fenced_though_it_was_never_seen_to_start(draft: Draft) -> None:
    """A lease counts from there."""
    fenced(draft, started=None)


def moved_while_it_is_suspended(draft: Draft) -> None:
    """Its user has suspended it eight seconds before, so that there is nothing to go on with."""
    lost(draft)
    moved(draft, annotations=RESCHEDULE)
    draft.put(12, "management", source(on("east"), mirrored("m"), annotations=RESCHEDULE))
    for body in said_between(draft, 12, 45):
        body["spec"]["suspend"] = True


def moved_though_it_is_known_how_it_ends(draft: Draft) -> None:
    """D11: its controller has said so, and its source too."""
    lost(draft)
    moved(draft, annotations=RESCHEDULE)
    draft.put(9, "management", source(on("east"), mirrored("m"), annotations=RESCHEDULE))
    for body in said_between(draft, 9, 90):
        body["status"]["conditions"].append(true("SuccessCriteriaMet", "CompletionsReached"))


def moved_as_if_for_the_first_time(draft: Draft) -> None:
    """Whoever forgets a move has no limit."""
    lost(draft)
    moved(draft, annotations=RESCHEDULE)
    for body in said_between(draft, 50, 90):
        body["status"]["conditions"] = [on("west"), mirrored("n"), COMPLETE]


# -- parts -------------------------------------------------------------------------------------------------------------


def moved_at_once(draft: Draft, count: int) -> None:
    """So many sources in seven tenths of a second."""
    lost(draft)
    for number in range(count - 1):
        key, uid = f"team-a/fast-{number}", f"fast-{number}"
        draft.put(2, "management", source(on("east"), uid=uid, annotations=RESCHEDULE), key=key)
        said = move("1, from east to west")
        at = 20 + number * 0.7 / count
        draft.put(at, "management", source(on("west"), said, uid=uid, annotations=RESCHEDULE), key=key)
        draft.put(80, "management", None, key=key)
    moved(draft, annotations=RESCHEDULE)


def lost(draft: Draft, *, worker: str = "east", since: float = 10, until: float = 38) -> None:
    """A worker is out of reach, and moves are judged by settings; the leader is the same for long."""
    draft.settings(lost_after_seconds=5.0, move_rate=5.0, move_limit=3)
    leads(draft, -100, ONE)
    broken_from(draft, since, until, "refuse", f"way to {worker}")


def fenced(draft: Draft, *, started: float | None, ended: Json = LATE) -> None:
    """It was moved by its lease of 300 s, which counts from there; its worker is lost, and nobody has seen its end."""
    lost(draft)
    moved_by_its_lease(draft, started=started, ended=ended)


def expired(draft: Draft) -> None:
    """The source says so when it is moved."""
    text = "The lease on worker east has expired; the Job starts again on east"
    for number, one in enumerate(draft.records):
        if isinstance(one, Version) and one.cluster == "management" and one.at >= BASE + 5 and one.body is not None:
            said = [*one.body["status"]["conditions"], true("Suspended", "WorkerLost", text)]
            body = {**one.body, "status": {**one.body["status"], "conditions": said}}
            draft.records[number] = replace(one, body=body)


def leads(draft: Draft, at: float, who: str) -> None:
    """The Lease of the managers names a process."""
    lease = {"metadata": {"uid": "l"}, "spec": {"holderIdentity": f"{who}_0a1b2c3d"}}
    draft.put(at, "management", lease, key=_LEASE, resource="leases")


GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (
    moved_from_a_lost_worker,
    moved_after_drains,
    moved_as_its_namespace_wants,
    moved_as_its_namespace_has_just_wanted,
    moved_since_its_worker_is_declared_dead,
    moved_by_a_new_leader_since_its_worker_is_declared_dead,
    placed_anew_since_its_lease_has_ended,
    moved_while_the_other_one_serves_again,
    moved_early_since_a_clock_was_set,
    moved_early_by_another_clock,
    moved_from_a_worker_that_is_broken_again_and_again,
    moved_in_turns,
    moved_in_turns_and_held_up,
    moved_since_its_lease_is_over,
    moved_since_its_lease_is_over_by_the_clock_of_before,
)
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {
    moved_without_a_loss: {"moves"},
    moved_too_early: {"moves"},
    moved_too_early_by_one_wrong_clock: {"moves"},
    moved_too_early_after_a_clock_was_set: {"moves"},
    moved_too_early_though_who_stands_by_has_another_clock: {"moves"},
    moved_since_its_kubelet_was_broken: {"moves"},
    moved_from_a_worker_that_was_there_in_between: {"moves"},
    moved_long_after_its_worker_was_back: {"moves"},
    moved_against_its_policy: {"moves", "one-copy"},
    moved_as_its_namespace_had_wanted: {"moves", "one-copy"},
    moved_as_if_its_worker_was_dead: {"moves", "one-copy"},
    placed_anew_before_its_lease_has_ended: {"moves"},
    moved_too_often: {"moves"},
    moved_too_fast: {"moves"},
    moved_while_most_are_lost: {"moves"},
    moved_by_a_new_leader: {"moves"},
    moved_while_it_is_suspended: {"moves"},
    moved_as_if_for_the_first_time: {"moves-count"},
    moved_though_it_is_known_how_it_ends: {"moves"},
    fenced_before_its_lease_is_over: {"moves"},
    fenced_before_its_lease_is_over_though_it_has_failed: {"moves"},
    fenced_though_it_was_never_seen_to_start: {"moves"},
}
