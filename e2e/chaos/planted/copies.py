"""Histories of how many copies a source has, and where: for what the judge says in ``rules_mirrors``."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.history import Fault, Restored
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    DRAINED,
    LATE,
    Draft,
    deleted_after_all,
    ends_on,
    good_life,
    mirror,
    mirrored,
    move,
    moved,
    moved_source,
    on,
    runs_on_east,
    source,
    true,
)
from mirror.model import names

RESCHEDULE = {names.ON_WORKER_LOSS: "Reschedule"}
FENCE = {names.ON_WORKER_LOSS: "Fence"}
RECREATE = {names.ON_MIRROR_LOSS: "Recreate"}


# -- good --------------------------------------------------------------------------------------------------------------


def moved_as_its_user_wants(draft: Draft) -> None:
    """D14: two copies run for a while, and the source names the one that may still run."""
    moved(draft, annotations=RESCHEDULE)


def moved_as_the_operator_wants(draft: Draft) -> None:
    """D14: the same by a setting."""
    draft.settings(on_loss="Reschedule")
    moved(draft)


def moved_by_the_policy_of_that_time(draft: Draft) -> None:
    """D14: it is read at the decision; that its user takes it away later changes nothing about that."""
    moved(draft, annotations=RESCHEDULE)
    draft.put(60, "management", moved_source())


def record_that_a_frozen_etcd_tells_late(draft: Draft) -> None:
    """It was stored, and its answer sent, before that froze: the copy did not come first."""
    broken_from(draft, 2, 12, "freeze etcd", "management")
    recorded_late(draft)


def recreated_as_its_user_wants(draft: Draft) -> None:
    """D11: somebody has deleted the copy, and another one is made."""
    runs_on_east(draft, annotations=RECREATE)
    draft.put(5, "east", None)
    draft.put(6, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", at=9, annotations=RECREATE)


def made_again_before_it_was_seen_to_start(draft: Draft) -> None:
    """D11: somebody has deleted the copy, and its source knows of nothing that had run."""
    draft.put(1, "management", source())
    draft.put(2, "management", source(on("east")))
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(2.5, "east", None)
    draft.put(3, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", at=9)


def made_anew_after_its_lease(draft: Draft) -> None:
    """D14: a fenced copy that its lease has ended is no verdict; it goes, and the next one comes to the same worker."""
    said = move("1, from east to east; left behind: east (uid m, fenced)")
    runs_on_east(draft, annotations=FENCE)
    draft.put(4, "east", mirror(LATE, uid="m", annotations={names.FENCE: "300"}))
    draft.put(5, "management", source(on("east"), said, annotations=FENCE))
    draft.delete(6, "east")
    draft.put(7, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", said, at=9, annotations=FENCE)


def create_that_is_late_and_counted(draft: Draft) -> None:
    """D14: whether it was made was not known when its worker was lost, which the source says."""
    said = move("1, from east to west; left behind: east (uid unknown)")
    draft.put(1, "management", source(annotations=RESCHEDULE))
    draft.put(2, "management", source(on("east"), annotations=RESCHEDULE))
    draft.put(20, "management", source(on("west"), said, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(30, "east", mirror(uid="m"))
    draft.delete(33, "east")
    ends_on(draft, "west", "n", said, at=50, annotations=RESCHEDULE)


def copy_that_a_restore_brings_back(draft: Draft) -> None:
    """Drained and deleted since the snapshot, it runs again beside its successor until a manager sees that."""
    draft.add(Restored(BASE + 24, "east", BASE + 14))
    drained_to_west(draft)
    draft.put(26, "east", mirror(uid="m"))
    draft.delete(38, "east")


def suspension_that_a_restore_forgets(draft: Draft) -> None:
    """Its copy was suspended before it went on elsewhere; that is lost with the data of its worker."""
    draft.add(Restored(BASE + 24, "east", BASE + 14))
    said = move("1, from east to west; left behind: east (uid m)")
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True))
    draft.put(20, "management", source(on("west"), said))
    draft.put(21, "west", mirror(uid="n"))
    draft.put(26, "east", mirror(uid="m"))
    draft.delete(38, "east")
    ends_on(draft, "west", "n", said, at=50)


def copy_that_a_restore_forgets(draft: Draft) -> None:
    """D11: it was made since the snapshot, and had not started; the next one needs no move."""
    draft.add(Restored(BASE + 8, "east", BASE + 1.5))
    draft.put(1, "management", source())
    draft.put(2, "management", source(on("east")))
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(9, "east", None)
    draft.put(10, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", at=40)


def moved_copy_that_a_restore_forgets(draft: Draft) -> None:
    """D11, D14: what had run of it was elsewhere, before it was moved; nothing is known of this one."""
    waits = true("Suspended", "WorkerLost", "Worker east is lost; the Job starts again on west")
    said = move("1, from east to west; left behind: east (uid m)")
    draft.add(Restored(BASE + 28, "west", BASE + 19))
    runs_on_east(draft, annotations=RESCHEDULE)
    draft.put(10, "management", source(on("east"), mirrored("m"), annotations=RESCHEDULE, startTime="t"))
    draft.put(20, "management", source(on("west"), said, waits, annotations=RESCHEDULE, startTime="t"))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(28.5, "west", None)
    draft.put(30, "west", mirror(uid="o"))
    draft.delete(40, "east")
    draft.put(50, "west", mirror(COMPLETE, uid="o"))
    ended = source(on("west"), mirrored("o"), said, COMPLETE, annotations=RESCHEDULE, startTime="t")
    draft.put(50.1, "management", ended)
    deleted_after_all(draft, "west")


def made_again_since_its_drain_is_cancelled(draft: Draft) -> None:
    """D15: its copy had stopped, was said to go and deleted; another place was not recorded yet."""
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True))
    draft.put(16, "management", source(on("east"), mirrored("m"), DRAINED, startTime="t"))
    draft.delete(17, "east")
    draft.put(20, "east", mirror(uid="n"))
    draft.put(20.5, "management", source(on("east"), mirrored("n"), startTime="t"))
    ends_on(draft, "east", "n", at=50)


# -- planted -----------------------------------------------------------------------------------------------------------


def overlap(draft: Draft) -> None:
    """It was moved although its policy is to wait."""
    moved(draft)


def uncounted_overlap(draft: Draft) -> None:
    """The source does not say that a copy may still run."""
    moved(draft, is_counted=False, annotations=RESCHEDULE)


def overlap_on_a_worker_that_was_restored(draft: Draft) -> None:
    """That the worker had lost data has nothing to do with a copy that ran before and after."""
    draft.add(Restored(BASE + 19, "east", BASE + 5))
    moved(draft, is_counted=False)


def overlap_since_a_snapshot_was_taken(draft: Draft) -> None:
    """An etcd that is to go back to it tells all until it is stopped for that."""
    broken_from(draft, 18, 48, "etcd loses data", "east")
    draft.add(Restored(BASE + 46, "east", BASE + 18))
    uncounted_overlap(draft)


def overlap_long_before_a_copy_came_back(draft: Draft) -> None:
    """A restore explains why it runs again, and not that it had run beside another one before."""
    draft.add(Restored(BASE + 45, "east", BASE + 35))
    moved(draft, is_counted=False)
    draft.put(46, "east", mirror(uid="m", suspend=True))
    draft.delete(48, "east")


def overlap_long_after_a_restore(draft: Draft) -> None:
    """A restore had forgotten that it had stopped, which was put right; that somebody resumes it later is no excuse."""
    draft.add(Restored(BASE + 5, "east", BASE + 3))
    runs_on_east(draft)
    draft.put(4, "east", mirror(uid="m", suspend=True))
    said = move("1, from east to west; left behind: east (uid m)")
    draft.put(20, "management", source(on("west"), said))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(70, "east", mirror(uid="m"))
    draft.delete(75, "east")
    ends_on(draft, "west", "n", said, at=80)


def another_copy_for_no_reason(draft: Draft) -> None:
    """Its copy had ended, and was there."""
    good_life(draft)
    draft.put(42, "east", None)
    draft.put(43, "east", mirror(COMPLETE, uid="n"))


def made_again_after_it_was_seen_to_start(draft: Draft) -> None:
    """D11: it has to fail, since nobody asked for another one."""
    runs_on_east(draft)
    draft.put(5, "management", source(on("east"), mirrored("m"), startTime="t"))
    draft.put(10, "east", None)
    draft.put(11, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", at=20)


def another_copy_after_a_restore_that_kept_it(draft: Draft) -> None:
    """The worker had lost data, but not this copy, which was older than the snapshot."""
    draft.add(Restored(BASE + 19, "east", BASE + 15))
    another_copy_for_no_reason(draft)


def made_again_after_a_restore_though_it_had_started(draft: Draft) -> None:
    """D11: the restore has forgotten a copy that was seen to run; its source has to fail."""
    draft.add(Restored(BASE + 8, "east", BASE + 1.5))
    made_again_after_it_was_seen_to_start(draft)


def made_again_on_account_of_an_old_move(draft: Draft) -> None:
    """D11: it was moved before its copy came, which started, and vanished without a wish for another one."""
    said = move("1, from east to west; left behind: east (uid unknown)")
    draft.put(1, "management", source(annotations=RESCHEDULE))
    draft.put(2, "management", source(on("east"), annotations=RESCHEDULE))
    draft.put(20, "management", source(on("west"), said, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(22, "management", source(on("west"), mirrored("n"), said, annotations=RESCHEDULE, startTime="t"))
    draft.put(30, "west", None)
    draft.put(31, "west", mirror(uid="o"))
    ends_on(draft, "west", "o", said, at=50, annotations=RESCHEDULE)


def recreated_where_it_is_not_recorded(draft: Draft) -> None:
    """``Recreate`` is about the copy that counts; this one had vanished where the source is not any more."""
    runs_on_east(draft, annotations=RECREATE)
    draft.put(20, "management", source(on("west"), annotations=RECREATE))
    draft.put(30, "east", None)
    draft.put(31, "west", mirror(uid="n"))
    ends_on(draft, "west", "n", at=50, annotations=RECREATE)


def copy_before_its_record(draft: Draft) -> None:
    """It is not known to anybody where it is."""
    recorded_late(draft)


def copy_just_before_its_record(draft: Draft) -> None:
    """Two thirds of a second: whoever is killed in between leaves a copy that nobody knows of."""
    draft.put(1, "management", source())
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(2.77, "management", source(on("east")))
    ends_on(draft, "east", "m", at=40)


def late_create_where_it_was_before(draft: Draft) -> None:
    """It was there two moves ago, and proved not to be any more: a create of that time must not come."""
    drained_to_west(draft, via="north")
    draft.put(30, "east", mirror(uid="o", suspend=True))
    draft.delete(33, "east")


def loser_is_left(draft: Draft) -> None:
    """A copy on a worker that the source never named."""
    good_life(draft)
    draft.put(50, "west", mirror(uid="n", suspend=True))
    draft.put(94, "west", None)


def mirror_outlives_its_source(draft: Draft) -> None:
    """Nobody deletes it."""
    good_life(draft)
    del draft.records[-2:]


def orphan_is_left(draft: Draft) -> None:
    """Its source is gone for long before its copy is."""
    good_life(draft)
    draft.put(70, "management", None)


def copy_is_recorded_elsewhere(draft: Draft) -> None:
    """Once all is healed no copy is anywhere else than its source says."""
    good_life(draft)
    draft.put(70, "management", source(on("west"), mirrored("m"), COMPLETE, succeeded=1, completionTime="t"))


# -- parts -------------------------------------------------------------------------------------------------------------


def broken_from(draft: Draft, since: float, until: float, name: str, target: str) -> None:
    """A fault, from its beginning to its end."""
    draft.add(Fault(BASE + since, name, target), Fault(BASE + until, name, target, True))


def recorded_late(draft: Draft) -> None:
    """The copy is there ten seconds before its record."""
    draft.put(1, "management", source())
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(12.1, "management", source(on("east")))
    ends_on(draft, "east", "m", at=40)


def drained_to_west(draft: Draft, *, via: str = "") -> None:
    """Its worker is drained by moving: its copy stops, goes, and is made anew on west; ``via``: after a third one."""
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True))
    draft.put(16, "management", source(on("east"), mirrored("m"), DRAINED))
    draft.delete(17, "east")
    said = move("1, from east to west", "WorkerDrained")
    if via:
        draft.put(18, "management", source(on(via), DRAINED, move(f"1, from east to {via}", "WorkerDrained")))
        said = move(f"2, from {via} to west", "WorkerDrained")
    draft.put(20, "management", source(on("west"), DRAINED, said))
    draft.put(21, "west", mirror(uid="n"))
    ends_on(draft, "west", "n", said, at=50)


GOOD: tuple[Callable[[Draft], None], ...] = (
    good_life,
    moved_as_its_user_wants,
    moved_as_the_operator_wants,
    moved_by_the_policy_of_that_time,
    record_that_a_frozen_etcd_tells_late,
    recreated_as_its_user_wants,
    made_again_before_it_was_seen_to_start,
    made_anew_after_its_lease,
    create_that_is_late_and_counted,
    drained_to_west,
    copy_that_a_restore_brings_back,
    suspension_that_a_restore_forgets,
    copy_that_a_restore_forgets,
    moved_copy_that_a_restore_forgets,
    made_again_since_its_drain_is_cancelled,
)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    overlap: {"one-copy"},
    uncounted_overlap: {"one-copy"},
    overlap_on_a_worker_that_was_restored: {"one-copy"},
    overlap_since_a_snapshot_was_taken: {"one-copy"},
    overlap_long_before_a_copy_came_back: {"one-copy"},
    overlap_long_after_a_restore: {"one-copy"},
    another_copy_for_no_reason: {"second-copy"},
    made_again_after_it_was_seen_to_start: {"second-copy"},
    another_copy_after_a_restore_that_kept_it: {"second-copy"},
    made_again_after_a_restore_though_it_had_started: {"second-copy"},
    made_again_on_account_of_an_old_move: {"second-copy"},
    recreated_where_it_is_not_recorded: {"second-copy"},
    copy_before_its_record: {"recorded-first"},
    copy_just_before_its_record: {"recorded-first"},
    late_create_where_it_was_before: {"recorded-first", "second-copy"},
    loser_is_left: {"second-copy", "recorded-first", "left-behind"},
    mirror_outlives_its_source: {"left-behind"},
    orphan_is_left: {"left-behind"},
    copy_is_recorded_elsewhere: {"left-behind"},
}
