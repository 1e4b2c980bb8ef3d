"""The one write to a source: what goes with it, and when it has to wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from worlds import MONOTONIC, ON_EAST, seen, source

from mirror.decide.plan import WriteSource
from mirror.decide.snapshot import Memory, Snapshot
from mirror.decide.writing import source_write
from mirror.model import names

WAITS = names.WAITING_BECAUSE


def found(waiting: str | None = None, *, written_ago: float = 1e9) -> Snapshot:
    annotations = ON_EAST | ({WAITS: waiting} if waiting else {})
    memory = replace(Memory("u"), waiting_written_at=MONOTONIC - written_ago)
    return seen(source(annotations=annotations), memory=memory)


def test_nothing_to_change_is_no_write() -> None:
    """Every reconcile ends here in the quiet case."""
    assert source_write(found()) == ((), None)
    assert source_write(found("same", written_ago=1), waiting="same") == ((), None)


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
    actions, later = source_write(found(stored, written_ago=written_ago), waiting=wanted)
    assert (bool(actions), later) == (writes, again)


def test_a_status_takes_the_reason_along() -> None:
    """D21: a write that is made anyway costs nothing more."""
    (write,), later = source_write(found("full", written_ago=1), status={"active": 1}, waiting="cordoned")
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
    assert source_write(found(), mirror_uid="m") == ((), None)
    (write,), _ = source_write(found(), status={}, mirror_uid="m")
    assert dict(write.annotations) == {names.MIRROR_UID: "m"}
    assert write.is_mirrored_status


def full_of_annotations(status: dict[str, object] | None = None) -> Snapshot:
    """A source whose annotations have room for ten bytes more."""
    return seen(source(status, annotations={"a": "x" * (256 * 1024 - 11)}))


def test_what_is_for_people_is_left_out_where_it_does_not_fit() -> None:
    """D5: the API server takes 256 KiB of annotations; the status is written whatever the user has in them."""
    (write,), later = source_write(full_of_annotations(), status={"active": 1}, mirror_uid="m")
    assert write.status is not None
    assert (write.status["active"], write.annotations, later) == (1, (), None)
    assert [one["message"] for one in write.status["conditions"]] == ["m"]
    (write,), _ = source_write(full_of_annotations({}), status={"conditions": []}, records="east")
    assert (write.records, write.annotations) == ("east", ())
    assert source_write(full_of_annotations())[0] == ()


def test_the_reason_to_wait_is_a_condition_where_the_annotation_does_not_fit() -> None:
    """D22: it is written once, and not at all where a worker is recorded."""
    (write,), _ = source_write(full_of_annotations({}), waiting="east: full")
    assert write.status is not None
    (told,) = write.status["conditions"]
    assert (told["type"], told["status"], told["message"]) == (names.PLACED, "False", "east: full")
    assert (write.annotations, write.shows_waiting) == ((), True)
    assert source_write(full_of_annotations({"conditions": [told]}), waiting="east: full")[0] == ()
    assert source_write(full_of_annotations(), waiting="east rejected the change")[0] == ()


def test_characters_that_take_more_bytes_count_for_more() -> None:
    """The limit is one of bytes."""
    (write,), _ = source_write(seen(source({}, annotations={"a": "ü" * (128 * 1024 - 20)})), waiting="w" * 40)
    assert write.annotations == ()
