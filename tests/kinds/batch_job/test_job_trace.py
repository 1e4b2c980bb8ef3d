"""A Job's life as spans: what each holds, and what unlikely times make of it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from doubles.jobs import condition
from hypothesis import given
from hypothesis import strategies as st

from mirror.batch import times
from mirror.kinds.batch_job.trace import Ended, ended_at, spans_of
from mirror.model import names
from mirror.telemetry.spans import Span, span_id, trace_id

UID = "0b5a4f0e-55ad-4f6e-9a3e-1f0c2d3e4f50"
CREATED, PLACED, STARTED, ENDED = (f"2026-03-01T12:00:{second:02}Z" for second in (0, 5, 10, 40))
STORED = times.instant("2026-03-01T12:00:40.250Z")


def status(*, placed: str | None = PLACED, start: str | None = STARTED, end: str = ENDED, **final: Any) -> Any:
    wanted = {"type_name": "Complete", "reason": "CompletionsReached"} | final
    listed = [condition(wanted.pop("type_name"), end, **wanted)]
    if placed is not None:
        listed.append(condition(names.PLACED, placed, reason="Placed", message="east"))
    return {"conditions": listed} | ({} if start is None else {"startTime": start})


def ended(told: Any, *, uid: str = UID, created: str = CREATED) -> Ended:
    return Ended(uid=uid, namespace="team", name="train", created=created, status=told)


def seconds(spans: tuple[Span, ...]) -> dict[str, tuple[float, float]]:
    """Each span's begin and end after the creation."""
    begin = times.instant(CREATED)
    return {span.name: ((span.start - begin) / 1e9, (span.end - begin) / 1e9) for span in spans}


def test_a_job_waits_starts_runs_and_its_status_comes_back() -> None:
    """One root from the creation to the moment when the final status was stored, and its stretches without a gap."""
    assert seconds(spans_of(ended(status()), stored_at=STORED)) == {
        "Job": (0, 40.25),
        "waiting": (0, 5),
        "starting": (5, 10),
        "running": (10, 40),
        "status": (40, 40.25),
    }


@pytest.mark.parametrize(
    ("told", "stored_at", "expected"),
    [
        pytest.param(
            status(placed=None),
            STORED,
            {"Job": (0, 40.25), "running": (10, 40), "status": (40, 40.25)},
            id="no place on record",
        ),
        pytest.param(
            status(start=None),
            STORED,
            {"Job": (0, 40.25), "waiting": (0, 5), "status": (40, 40.25)},
            id="it never started",
        ),
        pytest.param(
            status(end="soon"),
            STORED,
            {"Job": (0, 40.25), "waiting": (0, 5), "starting": (5, 10)},
            id="nobody knows when it ended",
        ),
        pytest.param(
            status(),
            None,
            {"Job": (0, 40), "waiting": (0, 5), "starting": (5, 10), "running": (10, 40)},
            id="nobody knows when that was stored",
        ),
        pytest.param(
            status(start="2026-03-01T11:59:00Z"),
            STORED,
            {"Job": (0, 40.25), "waiting": (0, 5), "starting": (5, 5), "running": (5, 40), "status": (40, 40.25)},
            id="the worker's clock is behind",
        ),
        pytest.param(
            status(end="2026-03-01T12:00:45Z"),
            STORED,
            {"Job": (0, 40.25), "waiting": (0, 5), "starting": (5, 10), "running": (10, 40.25), "status": (40.25,) * 2},
            id="the worker's clock is ahead",
        ),
        pytest.param(
            status(),
            times.instant("2026-03-01T11:00:00Z"),
            dict.fromkeys(("Job", "waiting", "starting", "running", "status"), (0, 0)),
            id="our clock is behind the management cluster's",
        ),
    ],
)
def test_what_is_unknown_is_left_out_and_nothing_is_negative(told: Any, stored_at: int | None, expected: Any) -> None:
    """Clocks of clusters differ; each time is moved between its neighbours."""
    assert seconds(spans_of(ended(told), stored_at=stored_at)) == expected


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(ended({"startTime": STARTED}), id="it runs"),
        pytest.param(ended({"conditions": [condition("Failed", ENDED, status="False")]}), id="it has not failed"),
        pytest.param(ended(status(), created=""), id="created at no time"),
        pytest.param(ended(status(), created="1969-12-31T23:59:59Z"), id="created before time"),
        pytest.param(ended({"conditions": "junk", "startTime": 5}), id="junk"),
    ],
)
def test_without_an_end_or_a_beginning_there_is_no_trace(job: Ended) -> None:
    """A trace is of a whole life."""
    assert spans_of(job, stored_at=STORED) == ()


def test_spans_say_whose_they_are_and_how_it_ended() -> None:
    """Names are those of OpenTelemetry's conventions where there are such."""
    root, *children = spans_of(ended(status()), stored_at=STORED)
    about = {"k8s.namespace.name": "team", "k8s.job.name": "train", "k8s.job.uid": UID, "jobmirror.worker": "east"}
    assert dict(root.attributes) == about | {
        "jobmirror.result": "Complete",
        "jobmirror.reason": "CompletionsReached",
    }
    assert root.error is None
    assert all(dict(child.attributes) == about and child.error is None for child in children)


def test_a_failed_job_is_an_error_in_clean_words() -> None:
    """D18: a worker wrote them."""
    told = status(type_name="Failed", reason="BackoffLimitExceeded", message="too \x1b[2J often\n")
    root, *_ = spans_of(ended(told), stored_at=STORED)
    assert root.error == "BackoffLimitExceeded: too \\x1b[2J often\\n"
    assert dict(root.attributes)["jobmirror.result"] == "Failed"


def test_the_same_job_has_the_same_ids() -> None:
    """What is sent again after a restart is the same span; another Job's is another."""
    first, again = (spans_of(ended(status()), stored_at=at) for at in (STORED, None))
    assert {span.name: span.id for span in again}.items() <= {span.name: span.id for span in first}.items()
    assert {span.trace for span in first + again} == {uuid.UUID(UID).int}
    assert len({span.id for span in first}) == 5
    assert {span.parent for span in first[1:]} == {first[0].id}
    other = spans_of(ended(status(), uid=str(uuid.uuid4())), stored_at=STORED)
    assert not {span.id for span in other} & {span.id for span in first}


@given(st.text())
def test_ids_are_never_zero_and_fit(uid: str) -> None:
    """Zero would be no id; a uid need not be a UUID."""
    assert 0 < trace_id(uid) < 2**128
    assert 0 < span_id(uid, "Job") < 2**64


def test_the_uid_of_zeros_has_an_id() -> None:
    """The only UUID that OpenTelemetry would not take."""
    assert trace_id(str(uuid.UUID(int=0))) != 0


def test_the_end_is_the_final_conditions_time() -> None:
    """Else the time of completion, else nobody knows."""
    assert ended_at(status()) == times.instant(ENDED)
    assert ended_at(status(end="") | {"completionTime": STARTED}) == times.instant(STARTED)
    assert ended_at(status(end="")) is None
    assert ended_at({}) is None
