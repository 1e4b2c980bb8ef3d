"""Histories of workers that are drained or cordoned, and of progress that goes along: for ``rules_operators``."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from e2e.chaos.history import Json, Request, Version
from e2e.chaos.planted.copies import RESCHEDULE, drained_to_west
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    DRAINED,
    KEY,
    USER,
    Draft,
    deleted_after_all,
    ends_on,
    good_life,
    mirror,
    mirrored,
    move,
    on,
    registered,
    runs_on_east,
    said_between,
    source,
    specified,
)
from mirror.model import names

_SAID = move("1, from east to west; left behind: east (uid m)")
_COUNTED: Json = {"completedIndexes": "0,2", "succeeded": 2, "failed": 1}


# -- good --------------------------------------------------------------------------------------------------------------


def placed_before_its_worker_is_cordoned(draft: Draft) -> None:
    """D15: it goes on there."""
    good_life(draft)
    says_of_east(draft, 5, names.CORDONED, "true")


def placed_just_after_its_worker_is_cordoned(draft: Draft) -> None:
    """D15: who places it may not have heard of that yet."""
    says_of_east(draft, 0.5, names.CORDONED, "true")
    good_life(draft)


def placed_on_a_worker_that_is_open_again(draft: Draft) -> None:
    """D14: it is declared alive."""
    says_of_east(draft, 0.5, names.GONE, "false")
    placed_late(draft)


def drain_that_is_cancelled(draft: Draft) -> None:
    """D15: its copy has stopped, and goes on where it is."""
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True))
    draft.put(16, "management", source(on("east"), mirrored("m"), DRAINED))
    draft.put(17, "east", mirror(uid="m"))
    ends_on(draft, "east", "m", at=50)


def drained_as_an_operator_wants(draft: Draft) -> None:
    """D15: those that have not started leave; that its worker is open again when it goes on is nothing."""
    says_of_east(draft, 6, names.DRAIN, "move")
    says_of_east(draft, 18, names.DRAIN, "")
    drained_to_west(draft)


def drained_with_what_has_started(draft: Draft) -> None:
    """D15: by the operator's word."""
    says_of_east(draft, 6, names.DRAIN, "move-started")
    started_and_drained(draft)


def drained_since_its_policy_agrees(draft: Draft) -> None:
    """D15: its user lets it start again elsewhere."""
    says_of_east(draft, 6, names.DRAIN, "move")
    started_and_drained(draft, annotations=RESCHEDULE)


def drained_while_its_user_has_suspended_it(draft: Draft) -> None:
    """D15: nothing is stopped by that."""
    says_of_east(draft, 6, names.DRAIN, "move")
    started_and_drained(draft)
    for body in said_between(draft, 3, 17):
        body["spec"]["suspend"] = True


def goes_on_from_what_was_counted(draft: Draft) -> None:
    """D14: its copy is held until it has that."""
    seeded(draft, {"completedIndexes": "0,2", "succeeded": 2, "failed": 1})


def begins_anew_where_nothing_was_counted(draft: Draft) -> None:
    """D14: there is nothing to go along."""
    seeded(draft, None, counted={})


def begins_anew_where_settings_say_so(draft: Draft) -> None:
    """D14: progress goes along where operators have allowed that."""
    seeded(draft, None)
    draft.settings(seeds_progress=False)


def begins_anew_since_its_worker_refuses(draft: Draft) -> None:
    """D14: without the permission on its worker it runs all the same."""
    seeded(draft, {}, state=names.SEED_REFUSED)
    draft.add(Request(BASE + 21.2, BASE + 21.1, "west", USER, "patch", "status", KEY, 403))


def left_copy_wins_where_it_is_drained(draft: Draft) -> None:
    """D14: it is Complete there, and nothing new comes; its end is stored a moment later."""
    won = move("1, from east to west; left behind: west (uid n)", "Moved")
    says_of_east(draft, 21, names.DRAIN, "wait")
    runs_on_east(draft, annotations=RESCHEDULE)
    draft.put(20, "management", source(on("west"), _SAID, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(24, "east", mirror(COMPLETE, uid="m"))
    draft.put(40, "management", source(on("east"), mirrored("m"), won, annotations=RESCHEDULE))
    draft.put(40.2, "management", source(on("east"), mirrored("m"), won, COMPLETE, annotations=RESCHEDULE))
    draft.delete(41, "west")
    deleted_after_all(draft, "east")


# -- planted -----------------------------------------------------------------------------------------------------------


def placed_on_a_cordoned_worker(draft: Draft) -> None:
    """Its worker is cordoned for fourteen seconds."""
    says_of_east(draft, 0.5, names.CORDONED, "true")
    placed_late(draft)


def placed_on_a_drained_worker(draft: Draft) -> None:
    """What is drained gets nothing new."""
    says_of_east(draft, 0.5, names.DRAIN, "move-started")
    placed_late(draft)


def placed_on_a_dead_worker(draft: Draft) -> None:
    """It is reachable all the same."""
    says_of_east(draft, 0.5, names.GONE, "true")
    placed_late(draft)


def drained_and_left_running(draft: Draft) -> None:
    """The record goes before the copy has stopped, and no policy allows two."""
    drained_to_west(draft)
    draft.records = [one for one in draft.records if not BASE + 14 < one.at < BASE + 18]
    draft.delete(40, "east")


def drained_though_nobody_drains(draft: Draft) -> None:
    """Its worker is cordoned."""
    says_of_east(draft, 6, names.CORDONED, "true")
    drained_to_west(draft)


def drained_where_all_are_to_end(draft: Draft) -> None:
    """The operator waits."""
    says_of_east(draft, 6, names.DRAIN, "wait")
    drained_to_west(draft)


def drained_with_what_has_started_unasked(draft: Draft) -> None:
    """Its policy is to wait, and the operator has drained those that have not started."""
    says_of_east(draft, 2.5, names.DRAIN, "move")
    started_and_drained(draft)


def begins_anew(draft: Draft) -> None:
    """It had counted something, which the copy knows nothing of."""
    seeded(draft, None)


def goes_on_from_less(draft: Draft) -> None:
    """One index runs again."""
    seeded(draft, {"completedIndexes": "0", "succeeded": 1, "failed": 1})


def goes_on_from_more(draft: Draft) -> None:
    """Two of its indexes have never run, and never will."""
    seeded(draft, {"completedIndexes": "0-3", "succeeded": 4, "failed": 1})


def fails_less_than_before(draft: Draft) -> None:
    """Its backoffLimit begins anew."""
    seeded(draft, {"completedIndexes": "0,2", "succeeded": 2})


def runs_before_it_has_its_seed(draft: Draft) -> None:
    """It is held for that."""
    seeded(draft, {}, state=names.SEED_PENDING)


def begins_anew_although_nobody_refuses(draft: Draft) -> None:
    """No answer of its worker says so."""
    seeded(draft, {}, state=names.SEED_REFUSED)


# -- parts -------------------------------------------------------------------------------------------------------------


def says_of_east(draft: Draft, at: float, name: str, value: str) -> None:
    """An operator has written this on the Secret of east."""
    draft.put(at, "management", registered(**{name: value}), key="jobmirror-x/east", resource="secrets")


def started_and_drained(draft: Draft, *, annotations: Json | None = None) -> None:
    """It is drained, and its source says that it has started."""
    drained_to_west(draft)
    for body in said_between(draft, 1, 90):
        body["metadata"]["annotations"] = annotations or {}
    for body in said_between(draft, 3, 90):
        body["status"]["startTime"] = "t"


def placed_late(draft: Draft) -> None:
    """It waits for a quarter of a minute, and gets a place on east."""
    draft.put(1, "management", source())
    draft.put(15, "management", source(on("east")))
    draft.put(15.1, "east", mirror(uid="m"))
    ends_on(draft, "east", "m", at=40)


def seeded(draft: Draft, has: Json | None, *, counted: Json = _COUNTED, state: str = names.SEED_DONE) -> None:
    """It was moved from east, where it had counted something, to west, where its copy has this when it runs.

    ``has``: None, if it is not held for that.
    """
    draft.settings(seeds_progress=True)
    runs_on_east(draft, annotations=RESCHEDULE)
    draft.put(9.9, "east", mirror(uid="m", **counted))
    draft.put(10, "management", source(on("east"), mirrored("m"), annotations=RESCHEDULE, **counted))
    draft.put(20, "management", source(on("west"), _SAID, annotations=RESCHEDULE, **counted))
    if has is not None:
        draft.put(21, "west", mirror(uid="n", suspend=True, annotations={names.SEED: names.SEED_PENDING}))
    marked = {} if has is None else {names.SEED: state}
    draft.put(22, "west", mirror(uid="n", annotations=marked, **(has or {})))
    draft.delete(30, "east")
    draft.put(50, "west", mirror(COMPLETE, uid="n", annotations=marked))
    ended = source(on("west"), mirrored("n"), _SAID, COMPLETE, annotations=RESCHEDULE, **counted)
    draft.put(50.1, "management", ended)
    for number, one in enumerate(draft.records):
        if isinstance(one, Version) and one.body is not None:
            draft.records[number] = replace(one, body=specified(one.body, completions=4))
    deleted_after_all(draft, "west")


GOOD: tuple[Callable[[Draft], None], ...] = (
    placed_before_its_worker_is_cordoned,
    placed_just_after_its_worker_is_cordoned,
    placed_on_a_worker_that_is_open_again,
    drain_that_is_cancelled,
    left_copy_wins_where_it_is_drained,
    drained_as_an_operator_wants,
    drained_with_what_has_started,
    drained_since_its_policy_agrees,
    drained_while_its_user_has_suspended_it,
)
GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (
    goes_on_from_what_was_counted,
    begins_anew_where_nothing_was_counted,
    begins_anew_where_settings_say_so,
    begins_anew_since_its_worker_refuses,
)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    placed_on_a_cordoned_worker: {"closed"},
    placed_on_a_drained_worker: {"closed"},
    placed_on_a_dead_worker: {"closed"},
    drained_and_left_running: {"one-copy"},
    drained_though_nobody_drains: {"drained"},
    drained_where_all_are_to_end: {"drained"},
    drained_with_what_has_started_unasked: {"drained"},
}
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {
    begins_anew: {"seed"},
    goes_on_from_less: {"seed"},
    goes_on_from_more: {"seed"},
    fails_less_than_before: {"seed"},
    runs_before_it_has_its_seed: {"seed"},
    begins_anew_although_nobody_refuses: {"seed"},
}
