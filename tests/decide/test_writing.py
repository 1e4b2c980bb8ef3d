"""The one write to a source: what goes with it, and when it has to wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from worlds import MONOTONIC, ON_EAST, seen, source

from mirror.decide.plan import EmitEvent, WriteSource
from mirror.decide.snapshot import Memory, Snapshot
from mirror.decide.writing import FromMirror, source_write
from mirror.kinds.stored_source import NextStatus
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason

WAITS = names.WAITING_BECAUSE


def found(waiting: str | None = None, *, written_ago: float = 1e9) -> Snapshot:
    annotations = ON_EAST | ({WAITS: waiting} if waiting else {})
    memory = replace(Memory("u"), waiting_written_at=MONOTONIC - written_ago)
    return seen(source(annotations=annotations), memory=memory)


def untold(text: str) -> Obstruction:
    """A reason that no condition shows."""
    return Obstruction("", text)


def from_mirror(status: dict[str, object] | None) -> FromMirror:
    """What mirror m brings."""
    return FromMirror("m", NextStatus(status, "it changed"))


def test_nothing_to_change_is_no_write() -> None:
    """Every reconcile ends here in the quiet case."""
    assert source_write(found()) == ((), None)
    assert source_write(found("same", written_ago=1), waiting=untold("same")) == ((), None)


@pytest.mark.parametrize(
    ("stored", "wanted", "written_ago", "writes", "again"),
    [
        pytest.param(None, "full", 1e9, True, None, id="the first reason is told at once"),
        pytest.param("full", "cordoned", 11, True, None, id="another one after ten seconds"),
        pytest.param("full", "cordoned", 10, True, None, id="exactly ten seconds"),
        pytest.param("full", "cordoned", 4, False, 6.0, id="before that it waits for the rest"),
        pytest.param(None, "full", 4, False, 6.0, id="also when it was taken away meanwhile"),
        pytest.param("full", None, 0, True, None, id="taking it away never waits"),
    ],
)
def test_the_reason_changes_at_most_every_ten_seconds(
    stored: str | None, wanted: str | None, written_ago: float, writes: bool, again: float | None
) -> None:
    """D21: measured by the monotonic clock since the last write of it."""
    actions, later = source_write(found(stored, written_ago=written_ago), waiting=untold(wanted) if wanted else None)
    assert (bool(actions), later) == (writes, again)


def test_a_status_takes_the_reason_along() -> None:
    """D21: a write that is made anyway costs nothing more."""
    (write,), later = source_write(found("full", written_ago=1), status={"active": 1}, waiting=untold("cordoned"))
    assert isinstance(write, WriteSource)
    assert (dict(write.annotations), later) == ({WAITS: "cordoned"}, None)


@pytest.mark.parametrize(
    ("annotations", "changes"),
    [
        pytest.param(ON_EAST, None, id="as it should be"),
        pytest.param({}, {names.ASSIGNED_WORKER: "east"}, id="gone"),
        pytest.param({names.ASSIGNED_WORKER: "west"}, {names.ASSIGNED_WORKER: "east"}, id="wrong"),
    ],
)
def test_the_assigned_worker_is_restored(annotations: dict[str, str], changes: dict[str, str] | None) -> None:
    """D5: it follows the record, whoever edits it."""
    actions, _ = source_write(seen(source(annotations=annotations)))
    assert (dict(actions[0].annotations) if actions else None) == changes


def test_the_mirrors_uid_goes_only_with_a_status() -> None:
    """§4: one write fewer for a mirror that has no status yet."""
    assert source_write(found(), mirror=from_mirror(None)) == ((), None)
    (write,), _ = source_write(found(), mirror=from_mirror({}))
    assert dict(write.annotations) == {names.MIRROR_UID: "m"}
    assert write.is_mirrored_status


def full_of_annotations(status: dict[str, object] | None = None) -> Snapshot:
    """A source whose annotations have room for ten bytes more."""
    return seen(source(status, annotations={"a": "x" * (256 * 1024 - 11)}))


def test_what_is_for_people_is_left_out_where_it_does_not_fit() -> None:
    """D5: the API server takes 256 KiB of annotations; the status is written whatever the user has in them."""
    (write,), later = source_write(full_of_annotations(), mirror=from_mirror({"active": 1}))
    assert write.status is not None
    assert (write.status["active"], write.annotations, later) == (1, (), None)
    assert [one["message"] for one in write.status["conditions"]] == ["m"]
    (write,), _ = source_write(full_of_annotations({}), status={"conditions": []}, records="east")
    assert (write.records, write.annotations) == ("east", ())
    assert source_write(full_of_annotations())[0] == ()


FULL = Obstruction(Reason.WORKERS_FULL, "east: full", summary="every eligible worker is at capacity")


def condition_of(write: object, type_name: str) -> dict[str, object] | None:
    assert isinstance(write, WriteSource)
    assert write.status is not None
    return next((one for one in write.status["conditions"] if one["type"] == type_name), None)


def test_the_reason_to_wait_is_a_condition_too() -> None:
    """D22: in the same write as the annotation, with an event; a Job that waits is no running one to kubectl."""
    (write, tell), _ = source_write(seen(source({}, annotations={})), waiting=FULL)
    assert isinstance(write, WriteSource)
    placed, suspended = condition_of(write, names.PLACED), condition_of(write, "Suspended")
    assert placed is not None
    assert suspended is not None
    message = "every eligible worker is at capacity: east: full"
    assert (placed["status"], placed["reason"], placed["message"]) == ("False", "WorkersFull", message)
    assert (suspended["status"], suspended["reason"]) == ("True", "WaitingForWorker")
    assert dict(write.annotations) == {WAITS: "east: full"}
    assert tell == EmitEvent("WorkersFull", message)


def test_a_reason_that_is_shown_is_not_told_again() -> None:
    """D21, D22: neither written nor told; another text of the same reason is written without an event."""
    (write, _), _ = source_write(seen(source({}, annotations={})), waiting=FULL)
    assert isinstance(write, WriteSource)
    shown = source(dict(write.status or {}), annotations={WAITS: "east: full"})
    assert source_write(seen(shown), waiting=FULL)[0] == ()
    ((again),), _ = source_write(seen(shown), waiting=Obstruction(Reason.WORKERS_FULL, "west: full"))
    assert condition_of(again, names.PLACED) is not None


def test_what_keeps_a_placed_job_from_progress_is_a_condition_of_its_own() -> None:
    """D22: the record stays; what nobody can know is Unknown; over, the condition goes with the annotation."""
    refused = Obstruction(Reason.CHANGE_REFUSED, "worker east rejected the change")
    (write, tell), _ = source_write(seen(source(annotations=ON_EAST)), waiting=refused)
    progressing = condition_of(write, names.PROGRESSING)
    assert progressing is not None
    assert (progressing["status"], progressing["reason"]) == ("False", "ChangeRefused")
    assert condition_of(write, names.PLACED) is not None
    assert isinstance(tell, EmitEvent)
    assert isinstance(write, WriteSource)
    shown = source(dict(write.status or {}), annotations=ON_EAST | {WAITS: refused.text})
    (over,), _ = source_write(seen(shown))
    assert condition_of(over, names.PROGRESSING) is None
    lost = Obstruction(Reason.WORKER_LOST, "worker east is lost (no answer)")
    (write, tell), _ = source_write(seen(shown), waiting=lost)
    progressing = condition_of(write, names.PROGRESSING)
    assert progressing is not None
    assert progressing["status"] == "Unknown"
    assert tell == EmitEvent("WorkerLost", "worker east is lost (no answer)")


def test_a_record_that_is_cleared_leaves_a_job_that_waits() -> None:
    """D22: in the write that clears it after a refusal, whose status is not a mirror's."""
    (write, *_), _ = source_write(
        seen(source(annotations=ON_EAST)), status={"conditions": []}, waiting=FULL, clears=True
    )
    suspended = condition_of(write, "Suspended")
    assert suspended is not None
    assert (suspended["status"], suspended["reason"]) == ("True", "WaitingForWorker")


def test_a_record_ends_the_wait_in_one_write() -> None:
    """D5, D22: placed means neither waiting nor suspended."""
    (write, _), _ = source_write(seen(source({}, annotations={})), waiting=FULL)
    assert isinstance(write, WriteSource)
    waits = seen(source(dict(write.status or {}), annotations={WAITS: FULL.text}))
    status = waits.source.stored.placed_status("east", waits.now)
    (write,), _ = source_write(waits, status=status, records="east")
    placed = condition_of(write, names.PLACED)
    assert placed is not None
    assert (placed["status"], placed["message"]) == ("True", "east")
    assert condition_of(write, "Suspended") is None


def test_the_reason_is_a_condition_where_the_annotation_does_not_fit() -> None:
    """D22: it is written once."""
    (write, _), _ = source_write(full_of_annotations({}), waiting=FULL)
    assert isinstance(write, WriteSource)
    assert condition_of(write, names.PLACED) is not None
    assert (write.annotations, write.shows_waiting) == ((), True)
    assert source_write(full_of_annotations(dict(write.status or {})), waiting=FULL)[0] == ()


def test_characters_that_take_more_bytes_count_for_more() -> None:
    """The limit is one of bytes."""
    long = Obstruction(Reason.WORKERS_FULL, "w" * 40)
    (write, _), _ = source_write(seen(source({}, annotations={"a": "ü" * (128 * 1024 - 20)})), waiting=long)
    assert isinstance(write, WriteSource)
    assert write.annotations == ()
