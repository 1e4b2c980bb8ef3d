"""Short histories of moves, of places for them, and of what holds them back, each for the fault of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from doubles.managers import placed
from flow_machine_guards import Guarded
from flow_machine_moves import Moving


def _lost(other: str = "", *, seconds: float = 75.0, kind: str = "endless") -> Callable[[Guarded], None]:
    def history(machine: Guarded) -> None:
        machine.workers_with_several_jobs_are_lost(
            kind=kind, worker="east", other=other, apart=0.0, seconds=seconds, wait=12.0
        )

    return history


def _again_and_again(machine: Guarded) -> None:
    """There and back, as often as nothing holds it."""
    machine.a_worker_is_lost_on_a_quiet_day(
        name="a", kind="endless", policy="Reschedule", worker="east", trouble="", seconds=75.0, is_back=True, wait=12.0
    )
    for _ in range(2):
        where = next(placed(one) for one in machine.laws.sources.values())
        machine.a_worker_is_away(worker=str(where), seconds=75.0, is_back=True, wait=12.0)


def _other_word(machine: Guarded) -> None:
    """Its Namespace would have it moved; it says itself that it waits."""
    machine.an_operator_has_the_namespace_say(policy="Reschedule", wait=3.0)
    machine.a_worker_is_lost_on_a_quiet_day(
        name="a", kind="endless", policy="Wait", worker="east", trouble="", seconds=130.0, is_back=True, wait=12.0
    )


def _back_without_room(machine: Moving) -> None:
    machine.a_worker_without_room_is_back(kind="endless", worker="east", wait=12.0)


def _two_for_one_place(machine: Moving) -> None:
    machine.an_operator_annotates_a_worker(worker="east", annotations={"capacity": "1"}, wait=3.0)
    for name in ("a", "b"):
        machine.a_user_creates(
            name=name, kind="slow", annotations="east only", is_suspended=False, is_ours=True, wait=3.0
        )


OF_PLACES: Mapping[str, Callable[[Moving], None]] = {
    "copies that were left behind take no place": _back_without_room,
    "a full worker takes one more": _two_for_one_place,
}
OF_GUARDS: Mapping[str, Callable[[Guarded], None]] = {
    "moves go on while most workers are lost": _lost("west"),
    "a Job is moved more often than the limit allows": _again_and_again,
    "all that are to move go at once": _lost(),
    "what a Namespace says goes before what its Job says": _other_word,
    "copies that lose are deleted though they are to be suspended": _lost(),
}
