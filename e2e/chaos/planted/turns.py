"""Histories of who writes when: for the judge's rule ``in-turn``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from e2e.chaos.history import ClockSet
from e2e.chaos.planted.copies import broken_from
from e2e.chaos.planted.writing import BASE, Draft, good_life, wrote
from mirror.model import names

ONE, TWO = "manager-0_11", "manager-1_22"
LASTS_SECONDS = 6


# -- good --------------------------------------------------------------------------------------------------------------


def written_while_its_lease_lasts(draft: Draft) -> None:
    """D28: at the end of its last renewal's six seconds."""
    good_life(draft)
    renews(draft, 10, ONE)
    renews(draft, 12, ONE)
    draft.add(wrote(10.5, "create", "east", process=ONE), wrote(17.9, "update", "management", process=ONE))


def written_by_both_in_turns(draft: Draft) -> None:
    """D28: the second one begins when the first one has handed over."""
    good_life(draft)
    renews(draft, 10, ONE)
    draft.add(wrote(11, "update", "management", process=ONE))
    renews(draft, 12, "")
    renews(draft, 12.1, TWO)
    draft.add(wrote(12.2, "update", "management", process=TWO))


def told_late_of_a_renewal(draft: Draft) -> None:
    """The management cluster's etcd is frozen, so that the history has the renewal only afterwards."""
    good_life(draft)
    renews(draft, 10, ONE)
    broken_from(draft, 15, 30, "freeze etcd", "management")
    renews(draft, 30.5, ONE, renewed_at=15.1)
    draft.add(wrote(20, "patch", "east", process=ONE))


def sent_in_time_and_held_up(draft: Draft) -> None:
    """D28: what was sent in time comes when the way is whole again, which no process can prevent."""
    good_life(draft)
    renews(draft, 10, ONE)
    broken_from(draft, 14, 22, "stall requests", "way to east")
    draft.add(wrote(22.5, "patch", "east", process=ONE))
    broken_from(draft, 14, 23, "freeze kube-apiserver", "management")
    draft.add(wrote(23.5, "patch", "management", process=ONE))


def refused_after_its_lease(draft: Draft) -> None:
    """What is refused has changed nothing."""
    good_life(draft)
    renews(draft, 10, ONE)
    draft.add(wrote(30, "update", "management", process=ONE, code=409))
    draft.add(wrote(11, "update", "management", process=ONE))


def renewed_by_a_clock_that_is_behind(draft: Draft) -> None:
    """D28: its Lease says that it was over half a minute ago, and others count by when they have seen it."""
    good_life(draft)
    draft.add(ClockSet(BASE + 1, "manager-0", -45.0))
    renews(draft, 10, ONE, renewed_at=-35)
    draft.add(wrote(14, "patch", "east", process=ONE))


def renewed_while_its_clock_jumps(draft: Draft) -> None:
    """It had taken the time before."""
    good_life(draft)
    renews(draft, 10, ONE)
    draft.add(ClockSet(BASE + 9.9, "manager-0", 45.0))
    draft.add(wrote(14, "patch", "east", process=ONE))


def renewed_on_a_way_that_stalls_while_its_clock_is_set(draft: Draft) -> None:
    """The renewal was sent by the clock of before, and comes with what was sent beside it."""
    good_life(draft)
    draft.add(ClockSet(BASE + 1, "manager-0", -20.0))
    renews(draft, 10, ONE, renewed_at=-10)
    broken_from(draft, 11, 17.2, "stall", "manager-0")
    draft.add(ClockSet(BASE + 13.6, "manager-0", 0.0))
    renews(draft, 17.6, ONE, renewed_at=-8.6)
    draft.add(wrote(17.6, "patch", "management", process=ONE))


def sent_in_time_on_a_slow_way(draft: Draft) -> None:
    """D28: each piece of it takes a while."""
    good_life(draft)
    renews(draft, 10, ONE)
    broken_from(draft, 13, 23, "slow", "way to east")
    draft.add(wrote(17.2, "patch", "east", process=ONE))


# -- planted -----------------------------------------------------------------------------------------------------------


def written_after_its_lease(draft: Draft) -> None:
    """It was frozen, and goes on where it was."""
    good_life(draft)
    renews(draft, 10, ONE)
    draft.add(wrote(16.1, "patch", "east", process=ONE))


def written_to_a_source_after_its_lease(draft: Draft) -> None:
    """The same, of a status."""
    good_life(draft)
    renews(draft, 10, ONE)
    draft.add(wrote(16.1, "update", "management", process=ONE))


def written_though_another_one_leads(draft: Draft) -> None:
    """It has handed over, and its own renewal would not have been over yet."""
    good_life(draft)
    renews(draft, 10, ONE)
    renews(draft, 10.5, "")
    renews(draft, 11, TWO)
    draft.add(wrote(15, "patch", "east", process=ONE))


def written_by_who_never_led(draft: Draft) -> None:
    """The other one holds the Lease, and this one stands by."""
    good_life(draft)
    renews(draft, 10, ONE)
    draft.add(wrote(12, "patch", "east", process=TWO))


def written_before_it_leads(draft: Draft) -> None:
    """It takes the Lease afterwards."""
    good_life(draft)
    renews(draft, 20, ONE)
    draft.add(wrote(12, "patch", "east", process=ONE))


def held_up_elsewhere(draft: Draft) -> None:
    """What was stalled is the way to another worker, and answers from this one."""
    good_life(draft)
    renews(draft, 10, ONE)
    broken_from(draft, 14, 22, "stall requests", "way to west")
    broken_from(draft, 14, 22, "stall answers", "way to east")
    draft.add(wrote(22.5, "patch", "east", process=ONE))


def sent_after_its_lease_and_held_up(draft: Draft) -> None:
    """The way was stalled only when its Lease was over."""
    good_life(draft)
    renews(draft, 10, ONE)
    broken_from(draft, 16.5, 22, "stall requests", "way to east")
    draft.add(wrote(22.5, "patch", "east", process=ONE))


def written_after_its_lease_by_a_clock_that_is_ahead(draft: Draft) -> None:
    """Its Lease says that it lasts for another minute."""
    good_life(draft)
    draft.add(ClockSet(BASE + 1, "manager-0", 45.0))
    renews(draft, 10, ONE, renewed_at=55)
    draft.add(wrote(17, "patch", "east", process=ONE))


def written_long_after_its_lease_on_a_slow_way(draft: Draft) -> None:
    """That is slow by parts of a second, however long it is."""
    good_life(draft)
    renews(draft, 10, ONE)
    renews(draft, 17, TWO)
    broken_from(draft, 15.9, 23.9, "slow", "way to east")
    draft.add(wrote(25, "patch", "east", process=ONE))


def written_after_its_lease_since_its_clock_was_set(draft: Draft) -> None:
    """Its clock was 45 s ahead and is set right: a Lease that was stored then lasts no longer for that."""
    good_life(draft)
    draft.add(ClockSet(BASE + 1, "manager-0", 45.0), ClockSet(BASE + 10.5, "manager-0", 0.0))
    renews(draft, 10.7, ONE, renewed_at=55.4)
    draft.add(wrote(40, "patch", "east", process=ONE))


# -- parts -------------------------------------------------------------------------------------------------------------


def renews(draft: Draft, at: float, process: str, *, renewed_at: float | None = None) -> None:
    """The history has a version of the managers' Lease, renewed then or at another time; nobody's: handed over."""
    renewed = datetime.fromtimestamp(BASE + (at if renewed_at is None else renewed_at), UTC)
    spec = {
        "holderIdentity": f"{process}_0a1b2c3d" if process else "",
        "leaseDurationSeconds": LASTS_SECONDS if process else 1,
        "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}",
    }
    lease = {"metadata": {"uid": "l"}, "spec": spec}
    draft.put(at, "management", lease, key=f"jobmirror-x/{names.LEASE}", resource="leases")


GOOD: tuple[Callable[[Draft], None], ...] = (
    written_while_its_lease_lasts,
    written_by_both_in_turns,
    told_late_of_a_renewal,
    sent_in_time_and_held_up,
    refused_after_its_lease,
    renewed_by_a_clock_that_is_behind,
    renewed_while_its_clock_jumps,
    renewed_on_a_way_that_stalls_while_its_clock_is_set,
    sent_in_time_on_a_slow_way,
)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    written_after_its_lease: {"in-turn"},
    written_to_a_source_after_its_lease: {"in-turn"},
    written_though_another_one_leads: {"in-turn"},
    written_by_who_never_led: {"in-turn"},
    written_before_it_leads: {"in-turn"},
    held_up_elsewhere: {"in-turn"},
    sent_after_its_lease_and_held_up: {"in-turn"},
    written_long_after_its_lease_on_a_slow_way: {"in-turn"},
    written_after_its_lease_since_its_clock_was_set: {"in-turn"},
    written_after_its_lease_by_a_clock_that_is_ahead: {"in-turn"},
}
