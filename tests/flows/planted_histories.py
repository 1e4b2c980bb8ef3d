"""Short histories, each of which meets the fault that ``planted_faults`` plants under its name.

Without the fault, each ends well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flow_machine_base import Machine
from flow_machine_declared import Annotated, Declared
from flow_machine_fence import Fencing
from flow_machine_guards import Guarded
from flow_machine_interference import Interference
from flow_machine_kinds import BothKinds
from flow_machine_moves import Moving
from flow_machine_queues import Queues
from flow_machine_recreate import StartingOver
from flow_machine_retry import Retrying
from flow_machine_retry_slots import RetryingSlots
from flow_machine_slots import Slots
from flow_machine_two_managers import TwoManagers
from planted_histories_moves import OF_GUARDS, OF_PLACES
from planted_histories_slots import OF_RETRYING_SLOTS, OF_SLOTS

from mirror.model import names

ON_ITSELF = ("a source may be a mirror",)
"""Histories in which the management cluster is a worker, too."""
LATE = "while it is down, sources late"


def play(name: str) -> None:
    """Play one, to its quiet end.

    Raises:
        AssertionError: a rule was broken.
    """
    form, history = next((form, found[name]) for form, found in PLAYED.items() if name in found)
    machine = form()
    try:
        if isinstance(machine, Interference):
            machine.an_operator_sets_it_up(prefix="", is_own_worker=name in ON_ITSELF, has_standby=False)
        history(machine)
    finally:
        machine.teardown()


def told(name: str) -> None:
    """Print which rule it breaks; nothing for one that ends well."""
    try:
        play(name)
    except AssertionError as error:
        print(f"AssertionError: {error}")


def _create(machine: Interference, kind: str = "slow", wait: float = 3.0) -> None:
    machine.a_user_creates(name="a", kind=kind, annotations="east only", is_suspended=False, is_ours=True, wait=wait)


def _others_label(machine: Interference) -> None:
    machine.a_person_has_a_job_of_that_name(cluster="east", name="a", labels="origin", prefix="", wait=0.1)
    _create(machine, wait=12.0)


def _source_of_a_user(machine: Interference) -> None:
    _create(machine)
    machine.a_user_deletes(name="a", propagation="Background", wait=12.0)
    machine.a_user_creates_with_our_annotations(
        name="a", cluster="management", is_suspended=True, of="source that is gone", wait=70.0
    )


def _annotation(machine: Interference) -> None:
    machine.a_person_has_a_job_of_that_name(cluster="east", name="a", labels="none", prefix="", wait=0.1)
    machine.a_user_creates_with_our_annotations(
        name="a", cluster="east", is_suspended=False, of="job of others", wait=3.0
    )
    machine.time_passes(seconds=12.0)


def _label_changed(machine: Interference) -> None:
    _create(machine)
    machine.a_person_edits_our_labels(cluster="east", name="a", key=names.SOURCE_UID, value="x", wait=12.0)


def _label_removed(machine: Interference) -> None:
    _create(machine)
    machine.a_person_edits_our_labels(cluster="east", name="a", key=names.ORIGIN, value=None, wait=12.0)


def _template(machine: Interference) -> None:
    for cluster in ("east", "west"):
        machine.admission_changes_jobs(cluster=cluster, operation="CREATE", change="node selector", wait=0.1)
    machine.a_user_creates_with_all_parts(name="a", kind="slow", is_suspended=False, wait=3.0)
    machine.the_manager_dies(wait=0.1)
    machine.the_manager_starts(wait=12.0)


def _note(machine: Interference) -> None:
    for cluster in ("east", "west"):
        machine.admission_changes_jobs(cluster=cluster, operation="CREATE", change="node selector", wait=0.1)
    machine.a_user_creates_with_all_parts(name="a", kind="slow", is_suspended=False, wait=3.0)
    for cluster in ("east", "west"):
        machine.a_person_edits_a_mirror(cluster=cluster, name="a", edit="note removed", wait=12.0)


def _prefix(machine: Interference) -> None:
    _create(machine)
    machine.an_operator_changes_a_prefix(worker="east", prefix="b-", when=LATE, wait=3.0, then=12.0)


def _end(machine: Interference) -> None:
    _create(machine, kind="plain", wait=0.5)
    machine.something_happens_at_the_next_end(
        cluster="east", what="the mirror is deleted", is_stored=False, delay=0.3, wait=12.0
    )
    machine.time_passes(seconds=70.0)


def _renamed(machine: Interference) -> None:
    _create(machine, kind="plain", wait=12.0)
    machine.an_operator_renames_a_worker(cluster="east", when="while it is down", wait=1.0, then=70.0)


def _swapped(machine: Interference) -> None:
    _create(machine)
    machine.an_operator_swaps_kubeconfigs(when="while it runs", wait=3.0, then=12.0)


def _two_managers(machine: Interference) -> None:
    machine.a_standby_starts(wait=3.0)
    for _ in range(4):
        _create(machine, kind="wide", wait=3.0)
        machine.a_user_deletes(name="a", propagation="Background", wait=1.0)


def _create_in_a_queue(machine: Queues) -> None:
    machine.a_user_creates_in_a_queue(name="a", kind="slow", queue="users", least=None, is_suspended=True, wait=3.0)


def _reset(machine: Queues) -> None:
    machine.an_operator_changes_a_queue(cluster="management", quota=1, flavor="spot", wait=0.1)
    _create_in_a_queue(machine)
    machine.a_queue_preempts(cluster="management", name="a", times=5, step_seconds=0.0, wait=6.0)


def _admission(machine: Queues) -> None:
    _create_in_a_queue(machine)
    machine.time_passes(seconds=12.0)


def _partial(machine: Queues) -> None:
    machine.a_user_creates_in_a_queue(name="a", kind="wide", queue="there", least="1", is_suspended=False, wait=3.0)
    machine.time_passes(seconds=12.0)


QUEUE_HISTORIES: Mapping[str, Callable[[Queues], None]] = {
    "a queue's reset is another controller's write": _reset,
    "a queue's notes go along": _admission,
    "a partial admission is put back": _partial,
}


def _drill_that_has_begun(machine: Declared) -> None:
    """And that stays as it is: it counts no more."""
    machine.time_passes(seconds=70.0)  # until the kind is followed everywhere
    machine.a_user_creates_a_drill(name="a", is_paused=False, wait=1.0)
    machine.a_user_pauses_or_resumes_a_drill(name="a", is_paused=True, wait=3.0)


def _tampered(machine: Declared) -> None:
    _drill_that_has_begun(machine)
    for worker in ("east", "west"):
        machine.a_user_tampers_with_a_record(name="a", text=worker, wait=3.0)


def _undefined(machine: Declared) -> None:
    _drill_that_has_begun(machine)
    machine.a_definition_goes_and_comes_back(cluster="management", seconds=100.0, wait=12.0)


def _run_here(how: str) -> Callable[[Declared], None]:
    return lambda machine: machine.a_kind_is_run_here_on_a_quiet_day(worker="east", how=how, wait=3.0)


def _mortal(machine: Declared) -> None:
    machine.a_user_creates_a_drill_with_a_time_to_live(name="a", seconds=60, wait=12.0)
    machine.time_passes(seconds=70.0)


def _changed_as_it_runs(machine: Declared) -> None:
    machine.time_passes(seconds=70.0)
    machine.a_user_creates_a_drill(name="a", is_paused=False, wait=1.0)
    machine.a_user_changes_what_cannot_follow(name="a", rounds=60, wait=12.0)


OF_ANNOTATED_KINDS: Mapping[str, Callable[[Annotated], None]] = {
    "a record that users change is believed": _tampered,
}
OF_KINDS: Mapping[str, Callable[[Declared], None]] = {
    "a kind that is run here is placed": _run_here("run here"),
    "a mirror of one that is handed over stays": _run_here("handed over"),
    "a time to live goes along": _mortal,
    "a time to live is over at once": _mortal,
    "a change that cannot follow is told of": _changed_as_it_runs,
    "a deletion is believed while the kind goes": _undefined,
}


def _lose_east(machine: Moving, seconds: float, *, policy: str | None = "Reschedule", is_back: bool = False) -> None:
    machine.a_worker_is_lost_on_a_quiet_day(
        name="a", kind="long", policy=policy, worker="east", trouble="", seconds=seconds, is_back=is_back, wait=3.0
    )


def _kept(machine: Moving) -> None:
    _lose_east(machine, 130.0, policy=None)


def _soon(machine: Moving) -> None:
    _lose_east(machine, 30.0)
    machine.a_user_labels(name="a", value="x", wait=1.0)  # so that it is looked at


def _taken_over(machine: Moving) -> None:
    _lose_east(machine, 30.0)
    machine.the_manager_dies(wait=0.1)
    machine.the_manager_starts(wait=12.0)
    for _ in range(3):
        machine.time_passes(seconds=12.0)


def _suspended(machine: Moving) -> None:
    _lose_east(machine, 30.0)
    machine.a_user_suspends_or_resumes(name="a", is_suspended=True, wait=0.1)
    machine.time_passes(seconds=70.0)


def _moved(machine: Moving) -> None:
    _lose_east(machine, 75.0, is_back=True)
    machine.time_passes(seconds=12.0)


def _completed(machine: Moving) -> None:
    _lose_east(machine, 220.0, is_back=True)
    machine.time_passes(seconds=12.0)


def _counting(machine: Moving) -> None:
    machine.a_worker_is_lost_on_a_quiet_day(
        name="a",
        kind="counting",
        policy="Reschedule",
        worker="east",
        trouble="",
        seconds=75.0,
        is_back=True,
        wait=12.0,
    )
    machine.time_passes(seconds=12.0)


def _drained(machine: Moving) -> None:
    machine.a_worker_is_lost_on_a_quiet_day(
        name="a", kind="counting", policy=None, worker="east", trouble="", seconds=0.1, is_back=True, wait=3.0
    )
    machine.an_operator_drains_a_worker_by_moving(worker="east", how="move-started", wait=12.0)
    machine.time_passes(seconds=12.0)


def _vanished(said: str | None, propagation: str) -> Callable[[StartingOver], None]:
    def history(machine: StartingOver) -> None:
        machine.somebody_deletes_a_mirror_on_a_quiet_day(
            name="a", kind="long", said=said, worker="east", propagation=propagation, then="", seconds=120.0
        )
        machine.time_passes(seconds=12.0)

    return history


def _ran_unstored(machine: StartingOver) -> None:
    machine.somebody_deletes_a_mirror_that_starts_again(
        name="a", said=None, worker="east", fails=8, gap=0.1, seconds=20.0
    )


def _cancelled_drain(*, is_deaf: bool) -> Callable[[StartingOver], None]:
    def history(machine: StartingOver) -> None:
        machine.an_operator_cancels_a_drain_as_a_mirror_goes(
            name="a", said=None if is_deaf else "Recreate", worker="east", lost=0 if is_deaf else 8, gap=0.0,
            is_deaf=is_deaf, seconds=20.0,
        )  # fmt: skip

    return history


OF_STARTING_OVER: Mapping[str, Callable[[StartingOver], None]] = {
    "a vanished mirror is made again while its pods run": _vanished("Recreate", "Orphan"),
    "a started Job that may not start over does": _vanished(None, "Background"),
    "a mirror that ran unstored had never started": _ran_unstored,
    "what a drain has deleted had run on": _cancelled_drain(is_deaf=False),
    "what the cache has of a drained mirror is stored": _cancelled_drain(is_deaf=True),
}


OF_MOVES: Mapping[str, Callable[[Moving], None]] = {
    "a Job is moved under Wait": _kept,
    "a Job is moved before its time": _soon,
    "who has just taken over moves Jobs": _taken_over,
    "a suspended Job is moved": _suspended,
    "what is left behind is not said": _moved,
    "what was left behind stays": _moved,
    "a complete copy is deleted": _completed,
    "what ran before a move counts as started": _moved,
    "a mirror is resumed before it is seeded": _counting,
    "progress counts twice": _counting,
    "what is stored is joined in part": _counting,
    "a drain deletes before the last status is stored": _drained,
    "a drain records another worker before the mirror is gone": _drained,
}


def _fenced(
    trouble: str, *, after: float = 20.0, seconds: float = 330.0, is_back: bool = True
) -> Callable[[Fencing], None]:
    def history(machine: Fencing) -> None:
        machine.a_worker_with_a_fenced_job_is_lost(
            name="a",
            kind="endless",
            worker="east",
            trouble=trouble,
            after=after,
            seconds=seconds,
            is_back=is_back,
            wait=12.0,
        )
        machine.time_passes(seconds=12.0)

    return history


def _user_deadline(machine: Fencing) -> None:
    """Of 400 s, and it would end by that; the lease is renewed past it."""
    machine.a_worker_with_a_fenced_job_is_lost(
        name="a", kind="endless", worker="east", trouble="", after=1.0, seconds=1.0, is_back=True, wait=1.0
    )
    machine.a_user_sets_a_deadline(name="a", seconds=400, wait=3.0)
    for _ in range(36):
        machine.time_passes(seconds=12.0)


def _declared_dead(machine: Fencing) -> None:
    """And it runs."""
    machine.a_worker_with_a_fenced_job_is_lost(
        name="a", kind="endless", worker="east", trouble="", after=1.0, seconds=10.0, is_back=False, wait=1.0
    )
    machine.an_operator_declares_it_dead(worker="east", is_gone=True, wait=12.0)
    machine.a_cluster_is_back(cluster="east", wait=12.0)


OF_FENCES: Mapping[str, Callable[[Fencing], None]] = {
    "a fence is renewed late": _fenced("", after=20.0, seconds=255.0),
    "a lease is over before it has ended": _fenced("", after=150.0, seconds=330.0),
    "a lease is sent before its end is stored": _fenced("records are not written", after=150.0, seconds=100.0),
    "what is stored of leases is not read after a restart": _fenced(
        "the manager restarts while it is away", after=150.0, seconds=330.0
    ),
    "a lease is above the deadline of its user": _user_deadline,
    "an expired lease is a verdict": _fenced("", after=20.0, seconds=330.0),
    "a lease that somebody made longer counts": _fenced(
        "somebody restarts it there after a renewal", after=1.0, seconds=700.0
    ),
    "a copy that still ran is not reported": _declared_dead,
}


def _placed_by_either(machine: TwoManagers) -> None:
    """Both have an east; one that starts anew has nothing but the mark to go by."""
    for name in ("a", "b", "c", "d"):
        machine.a_user_creates(
            name=name, kind="slow", annotations="east only", is_suspended=False, is_ours=True, wait=3.0
        )
    machine.the_other_manager_dies(wait=1.0)
    machine.the_other_manager_starts(wait=12.0)
    machine.the_manager_dies(wait=1.0)
    machine.the_manager_starts(wait=12.0)


OF_TWO_MANAGERS: Mapping[str, Callable[[TwoManagers], None]] = {
    "another manager's record is taken for one's own": _placed_by_either,
    "who has placed a Job is not written": _placed_by_either,
}


def _standby(standing_by: float, *, is_deaf: bool) -> Callable[[Interference], None]:
    def history(machine: Interference) -> None:
        machine.a_standby_takes_over_on_a_quiet_day(standing_by=standing_by, is_frozen=False, is_deaf=is_deaf)

    return history


def _unstarted(kind: str, event: str, pull: str = "0s", *, is_closed: bool = True) -> Callable[[Retrying], None]:
    def history(machine: Retrying) -> None:
        machine.one_does_not_start_on_a_quiet_day(kind, pull, is_closed, event, 0.0, 60.0)

    return history


def _of_one_name(machine: BothKinds) -> None:
    """A Job that runs, and a Drill of its name; the Drill goes first."""
    machine.a_user_creates(name="a", kind="slow", annotations="plain", is_suspended=False, is_ours=True, wait=3.0)
    machine.a_user_creates_a_drill(name="a", is_paused=False, wait=12.0)
    machine.a_user_deletes_a_drill(name="a", wait=12.0)


OF_BOTH_KINDS: Mapping[str, Callable[[BothKinds], None]] = {
    "mirrors of all kinds are in one store": _of_one_name,
}
OF_RETRIES: Mapping[str, Callable[[Retrying], None]] = {
    "a pod that runs is no pod that ran": _unstarted("unready", "", is_closed=False),
    "a mirror that was restarted was only stopped": _unstarted("unready", "it runs there without a manager"),
    "a mirror of which nothing ran is deleted as it is now": _unstarted("unready", "it runs there unseen"),
    "the start of a mirror of which nothing ran counts": _unstarted("one", ""),
}


HISTORIES: Mapping[str, Callable[[Interference], None]] = {
    "one label is enough": _others_label,
    "a source may be a mirror": _source_of_a_user,
    "the annotation says whose it is": _annotation,
    "labels decide about the recorded mirror": _label_changed,
    "a watch proves a loss": _label_removed,
    "the template of the worker is put back": _template,
    "a note that is missing proves a change": _note,
    "the prefix is what the Secret says": _prefix,
    "an end that was seen is forgotten": _end,
    "mirrors of a renamed worker are deleted": _renamed,
    "a worker may be another cluster": _swapped,
    "a Lease that is held is taken": _two_managers,
    "who takes over believes what it has heard": _standby(600.0, is_deaf=True),
    "who takes over judges before it has heard anything": _standby(15.0, is_deaf=False),
}
PLAYED: Mapping[type[Machine], Mapping[str, Callable[[Any], None]]] = {
    Interference: HISTORIES,
    Queues: QUEUE_HISTORIES,
    Declared: OF_KINDS,
    Annotated: OF_ANNOTATED_KINDS,
    BothKinds: OF_BOTH_KINDS,
    Fencing: OF_FENCES,
    StartingOver: OF_STARTING_OVER,
    Moving: {**OF_MOVES, **OF_PLACES},
    TwoManagers: OF_TWO_MANAGERS,
    Retrying: OF_RETRIES,
    Guarded: OF_GUARDS,
    Slots: OF_SLOTS,
    RetryingSlots: OF_RETRYING_SLOTS,
}
"""The histories that each machine plays, by the name of the fault that is met."""
