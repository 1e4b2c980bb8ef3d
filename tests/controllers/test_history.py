"""The record of what happened: bounded, cheap, and off unless somebody can ask."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from mirror.controllers import history
from mirror.controllers.history import History
from mirror.decide.plan import WriteSource
from mirror.decide.snapshot import Memory, Policy, Snapshot, Source
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import JOB
from mirror.kube.errors import Unreachable
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.settings.kinds import KindEntry
from mirror.workers.connection import State


class Ticking:
    """A clock that goes on by a second with each look."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


def kept(**more: Any) -> History:
    return History(Ticking(), is_kept=True, **more)


def source(number: int = 0) -> Object:
    return Object(Meta(name=f"job-{number}", namespace="team", uid=f"uid-{number}"))


def seen(number: int = 0, placed: str | None = None) -> Snapshot:
    found = source(number)
    state = Source(
        JOB,
        found,
        JOB.stored(found),
        is_suspended=False,
        is_finished=False,
        has_started=False,
        placed=placed,
        is_held=False,
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)
    key = SourceKey("Job", "team", f"job-{number}")
    return Snapshot(key, state, now, 0.0, Policy(), Memory())


def status(**counts: Any) -> WriteSource:
    return WriteSource(status=counts, is_mirrored_status=True)


def test_a_worker_that_is_left_is_told_with_its_cause() -> None:
    """It has refused the Job, or no pod of it ran there (D31)."""
    found = kept()
    found.on_written(seen(0, "east"), WriteSource(clears=True))
    found.on_written(seen(0, "west"), WriteSource(clears=True, retry="Retried"))
    assert told(found) == [("Refused", "its record was cleared", "east"), ("Retried", "no pod of it ran there", "west")]


def told(found: History, number: int = 0) -> list[tuple[str, str, str]]:
    return [entry[1:] for entry in found.of(f"uid-{number}")]


def test_a_life_is_told_in_order() -> None:
    """Waiting, placed and why there, mirrored, each status, the end."""
    found = kept(why_there=lambda _, worker: f"best is {worker}")
    found.on_written(seen(), WriteSource(annotations=((names.WAITING_BECAUSE, "east: at capacity"),)))
    found.on_written(seen(), WriteSource(status={}, records="east", annotations=((names.WAITING_BECAUSE, None),)))
    found.on_mirrored(seen(placed="east"), "east")
    found.on_written(seen(placed="east"), status(active=1, ready=0))
    found.on_written(seen(placed="east"), status(succeeded=1, conditions=[_condition("Complete")]))

    assert told(found) == [
        ("Waiting", "east: at capacity", ""),
        ("Placed", "best is east", "east"),
        ("Mirrored", "Job created on worker", "east"),
        ("Status", "active 1", "east"),
        ("Finished", "Complete: Done", "east"),
    ]


def test_a_mirror_is_called_by_its_kind() -> None:
    found = kept()
    job_set = kinds_of([KindEntry(kind="JobSet")])["JobSet"]
    found.on_mirrored(
        msgspec.structs.replace(seen(), source=msgspec.structs.replace(seen().source, kind=job_set)), "east"
    )
    assert told(found) == [("Mirrored", "JobSet created on worker", "east")]


def _condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": "Done"}


def test_what_is_told_again_is_no_news() -> None:
    """A failure that is tried again for hours is one entry; another one between makes two."""
    found = kept()
    for _ in range(5):
        found.on_error(seen(), Unreachable("no route"))
    found.on_event(seen(), "Refused", "no", is_warning=True)
    found.on_event(seen(), "Mirrored", "fine", is_warning=False)

    assert told(found) == [("Error", "no route", ""), ("Error", "Refused: no", "")]


def test_the_event_of_an_end_is_no_error_after_it() -> None:
    """``MirrorLost`` is the reason of the end; another warning is news."""
    found = kept()
    end = {"type": "Failed", "status": "True", "reason": "MirrorLost", "message": "it is gone"}
    found.on_written(seen(placed="east"), status(startTime="2026-03-01T11:00:00Z", conditions=[end]))
    found.on_event(seen(placed="east"), "MirrorLost", "it is gone", is_warning=True)
    assert told(found) == [("Finished", "Failed: MirrorLost: it is gone", "east")]
    found.on_event(seen(placed="east"), "StatusRefused", "no", is_warning=True)
    assert told(found)[1:] == [("Error", "StatusRefused: no", "east")]


def test_of_a_long_story_the_beginning_and_the_end_are_kept() -> None:
    """The bound is per source; the middle goes."""
    found = kept()
    for number in range(500):
        found.on_written(seen(), status(succeeded=number))
    texts = [text for _, text, _ in told(found)]

    assert len(texts) == history.MOST_MOMENTS
    assert (texts[1], texts[history.FIRST_KEPT - 1], texts[-1]) == ("succeeded 1", "succeeded 5", "succeeded 499")


def test_of_many_sources_those_that_are_over_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the oldest."""
    monkeypatch.setattr(history, "MOST_SOURCES", 3)
    found = kept()
    for number in range(3):
        found.on_mirrored(seen(number), "east")
    found.on_written(seen(1), status(conditions=[_condition("Failed")]))
    found.on_mirrored(seen(3), "east")
    assert [bool(found.of(f"uid-{number}")) for number in range(4)] == [True, False, True, True]
    found.on_mirrored(seen(4), "east")
    assert [bool(found.of(f"uid-{number}")) for number in range(5)] == [False, False, True, True, True]


def test_nothing_is_kept_where_nobody_can_ask() -> None:
    """No entry, no text is made."""
    found = History(Ticking(), is_kept=False, why_there=lambda *_: pytest.fail("asked why"))
    found.on_written(seen(), WriteSource(status={}, records="east"))
    found.on_mirrored(seen(), "east")
    found.on_error(seen(), Unreachable("no"))
    found.on_worker("east", State.LOST, "no")

    assert (told(found), found.of_worker("east")) == ([], ())


def test_a_source_that_is_gone_is_forgotten() -> None:
    """Its namesake has a uid of its own."""
    found = kept()
    found.on_mirrored(seen(), "east")
    found.on_source(JOB, source(), None, is_leading=True)
    assert told(found) == []


def test_a_standby_tells_what_it_saw_of_the_leaders_writes() -> None:
    """Statuses as they changed; a leader knows them already."""
    before, after = source(), source()
    after.status = msgspec.Raw(msgspec.json.encode({"active": 2}))
    standby, leader = kept(), kept()
    standby.on_source(JOB, before, after, is_leading=False)
    leader.on_source(JOB, before, after, is_leading=True)

    assert (told(standby), told(leader)) == ([("Status", "active 2", "")], [])


def test_a_workers_first_contact_is_no_return() -> None:
    """Only what was lost comes back; the same loss in the same words is one."""
    found = kept()
    for state, because in (
        (State.CONNECTED, ""),
        (State.LOST, "no route"),
        (State.LOST, "no route"),
        (State.CONNECTED, ""),
    ):
        found.on_worker("east", state, because)
    assert [(entry.kind, entry.text) for entry in found.of_worker("east")] == [("Lost", "no route"), ("Back", "")]


async def test_changes_are_gathered_while_the_reader_is_busy() -> None:
    """Each source once; an empty set where only workers changed; who leaves is forgotten."""
    found = kept()
    reader = found.changes()
    found.on_mirrored(seen(1), "east")
    found.on_mirrored(seen(1), "west")
    found.touch(SourceKey("Job", "team", "job-2"))
    assert await anext(reader) == {SourceKey("Job", "team", "job-1"), SourceKey("Job", "team", "job-2")}
    found.on_worker("east", State.CONNECTED, "")
    assert await anext(reader) == frozenset()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(reader)
    another = found.changes()
    assert len(found._readers) == 2
    del another
    assert len(found._readers) == 1


@pytest.mark.parametrize(
    ("stored", "moment"),
    [
        ({}, ("Status", "no pods yet")),
        ({"active": 2, "ready": 1, "failed": 1}, ("Status", "active 2, ready 1, failed 1")),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, ("Status", "suspended")),
        (
            {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}]},
            ("Finished", "Failed: BackoffLimitExceeded: m"),
        ),
        ({"active": "x", "conditions": "y"}, ("Status", "no pods yet")),
        ({"startTime": "2026-03-01T11:00:00Z"}, ("Status", "no active pods")),
        ({"conditions": [{"type": "FailureTarget", "status": "True"}]}, ("Status", "no active pods")),
    ],
)
def test_a_status_in_words(stored: dict[str, Any], moment: tuple[str, str]) -> None:
    """What people want to know of it."""
    assert JOB.describe(stored) == moment
