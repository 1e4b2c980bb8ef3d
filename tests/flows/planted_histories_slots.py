"""Short histories of several managers at once, each of which meets the fault that is planted under its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flow_machine_retry_slots import RetryingSlots
from flow_machine_slots import Slots
from slot_world import lease_of_worker


def _begin(machine: Slots, *rates: float) -> None:
    """Two managers, and as many more, that have shared the slots."""
    machine.managers_begin(rates=list(rates), wait=70.0)
    machine.time_passes(seconds=70.0)


def _create(machine: Slots, name: str = "a", kind: str = "slow", wait: float = 3.0) -> None:
    machine.a_user_creates(name=name, kind=kind, annotations="east only", is_suspended=False, is_ours=True, wait=wait)


def _which(machine: Slots, lease: str) -> int:
    """Who holds it, of the managers that are there."""
    holder = machine.world.lease_holder(lease)
    return next(which for which, one in enumerate(machine.world.replicas) if one.identity == holder)


def _who_assigns(machine: Slots) -> None:
    _begin(machine)
    for name in ("a", "b", "c", "d") * 3:
        _create(machine, name, kind="plain", wait=1.0)
        machine.a_user_deletes(name=name, propagation="Background", wait=0.5)


def _taken_over(machine: Slots) -> None:
    """A slot has changed hands, and something is created there."""
    _begin(machine, 1.0)
    machine.a_manager_is_killed(which=_which(machine, lease_of_worker("east")), wait=70.0)
    _create(machine, wait=12.0)


def _refused(late: str) -> Callable[[Slots], None]:
    def history(machine: Slots) -> None:
        _begin(machine, 1.0)
        for worker in ("east", "west"):  # of at least one of them the holder is not who assigns
            machine.a_holder_dies_as_its_worker_refuses(
                name="a", kind="slow", worker=worker, late=late, dies="killed", wait=1.0
            )

    return history


def _joined(machine: Slots) -> None:
    _begin(machine)
    machine.a_manager_joins(wait=70.0)


def _killed(machine: Slots) -> None:
    _begin(machine, 1.0)
    machine.a_manager_is_killed(which=2, wait=70.0)


def _all_lost(machine: Slots) -> None:
    """Each has lost what it held, and is whole again."""
    _begin(machine)
    for which in (0, 1):
        machine.a_manager_is_cut_off(which=which, ways="management", wait=0.1)
    machine.time_passes(seconds=70.0)
    machine.all_managers_are_healed(wait=12.0)


def _created(machine: Slots) -> None:
    _begin(machine)
    _create(machine, wait=12.0)


def _heard_late(machine: Slots) -> None:
    _begin(machine)
    machine.a_slow_holder_hears_late_of_its_lease(name="a", wait=12.0)


OF_SLOTS: Mapping[str, Callable[[Slots], None]] = {
    "who assigns is replaced although its Lease is held": _who_assigns,
    "a Lease counts from when its renewal was answered": _heard_late,
    "a slot is worked on for longer than its Lease lasts": _heard_late,
    "the work goes on when its Lease is lost": _all_lost,
    "a record of another term is not touched": _refused("the clear"),
    "each time of holding a slot is the same term": _taken_over,
    "a refusal is believed whoever has sent the first create": _refused("the create"),
    "no slot is given back": _joined,
    "a slot whose holder has died stays its": _killed,
    "a slot that was lost is never taken again": _all_lost,
    "members that are gone count": _killed,
    "a holder is connected to all workers": _created,
}


def _not_started(machine: RetryingSlots) -> None:
    """While the other worker is full for some time."""
    _begin(machine)
    for name in ("r", "s"):
        machine.a_user_creates_one_that_takes_its_time(name=name, kind="unready", worker="west", pull="0s", wait=0.1)
    machine.one_does_not_start_on_a_quiet_day(
        kind="one", pull="0s", is_closed=True, event="", moment=15.0, seconds=20.0
    )


OF_RETRYING_SLOTS: Mapping[str, Callable[[RetryingSlots], None]] = {
    "one is stopped before there is another place for it": _not_started,
}
