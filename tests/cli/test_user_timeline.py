"""A Job's story: ``mirror.cli.user.timeline`` and how ``explain`` tells it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import msgspec
import pytest

from mirror.cli.user.explain import Story, lines_of, story_of
from mirror.cli.user.server import KnownJob
from mirror.cli.user.terminal import Display
from mirror.cli.user.timeline import last_error, timeline
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object, decode_object
from mirror.model.views import JobView, Moment
from mirror.settings.kinds import KindEntry

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def at(second: int) -> str:
    return f"2026-03-01T11:00:{second:02}Z"


def condition(kind: str, second: int, *, status: str = "True", reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(second)}


def job(*conditions: dict[str, Any], annotations: dict[str, str] | None = None, **more: Any) -> Object:
    metadata = {"namespace": "team-a", "name": "train", "uid": "u-1", "creationTimestamp": at(0)}
    found = {
        "metadata": metadata | {"annotations": annotations or {}} | more.get("metadata", {}),
        "spec": {"managedBy": "jobmirror.io/controller", "completions": 2},
        "status": {"conditions": list(conditions)} | more.get("status", {}),
    }
    return decode_object(msgspec.json.encode(found))


def event(reason: str, message: str, second: int, **more: Any) -> dict[str, Any]:
    return {"reason": reason, "message": message, "type": "Normal", "lastTimestamp": at(second)} | more


PLACED = condition("jobmirror.io/Placed", 1, reason="Placed", message="east")
LEAST = "assigned to east: best score among eligible workers"
MIRRORED = event("Mirrored", "Mirrored to worker east", 1)
MOVED = condition(
    "jobmirror.io/Moved", 30, reason="WorkerLost", message="move 1, from east to west; left behind: east (uid m, gone)"
)
MOVE = "moved from east to west (move 1); the copy on east is declared dead"

STORIES: dict[str, tuple[Object, list[dict[str, Any]], list[tuple[str, int, str, str]]]] = {
    "only created": (job(), [], [("Created", 0, "created", "")]),
    "of a CronJob": (
        job(metadata={"ownerReferences": [{"kind": "CronJob", "name": "nightly", "controller": True}]}),
        [],
        [("Created", 0, "created by CronJob nightly", "")],
    ),
    "held, then placed": (
        job(PLACED, annotations={"jobmirror.io/held": "true"}),
        [MIRRORED],
        [
            ("Created", 0, "created", ""),
            ("Held", 0, "suspended by the webhook until a worker is assigned", ""),
            ("Placed", 1, LEAST, "east"),
            ("Mirrored", 1, "Mirrored to worker east", "east"),
        ],
    ),
    "placed by a selector": (
        job(PLACED, annotations={"jobmirror.io/worker-selector": "region=eu"}),
        [],
        [
            ("Created", 0, "created", ""),
            (
                "Placed",
                1,
                "assigned to east: best score among eligible workers that match region=eu",
                "east",
            ),
        ],
    ),
    "ran to its end": (
        job(
            PLACED,
            condition("SuccessCriteriaMet", 8, reason="CompletionsReached"),
            condition("Complete", 9, reason="CompletionsReached", message="all done"),
            status={"startTime": at(2)},
        ),
        [],
        [
            ("Created", 0, "created", ""),
            ("Placed", 1, LEAST, "east"),
            ("Started", 2, "Job started", "east"),
            ("Status", 8, "success criteria met; terminating pods: CompletionsReached", ""),
            ("Finished", 9, "Complete: CompletionsReached: all done", ""),
        ],
    ),
    "suspended: condition and event are one": (
        job(condition("Suspended", 3, reason="JobSuspended")),
        [event("Suspended", "Job suspended", 4)],
        [("Created", 0, "created", ""), ("Status", 3, "suspended", "")],
    ),
    "refused on the way": (
        job(),
        [event("Refused", "worker west: forbidden", 1, type="Warning", count=3)],
        [("Created", 0, "created", ""), ("Error", 1, "Refused: worker west: forbidden (3 times)", "")],
    ),
    "moved from a lost worker": (
        job(
            condition("jobmirror.io/Placed", 30, reason="Placed", message="west"),
            condition("Suspended", 31, status="False", reason="JobResumed"),
            MOVED,
            status={"startTime": at(2)},
        ),
        [
            event("WorkerLost", "worker east is lost (network); the Job waits for another worker", 20, type="Warning"),
            event("Moved", f"{MOVE}; what ran so far runs again", 30, type="Warning"),
        ],
        [
            ("Created", 0, "created", ""),
            ("Started", 2, "Job started", "west"),
            ("Lost", 20, "WorkerLost: worker east is lost (network); the Job waits for another worker", ""),
            ("Moved", 30, f"{MOVE}; what ran so far runs again", ""),
            ("Placed", 30, "assigned to west: best score among eligible workers", "west"),
            ("Status", 31, "resumed", ""),
        ],
    ),
    "moved, and its events are gone": (
        job(PLACED, MOVED),
        [],
        [("Created", 0, "created", ""), ("Placed", 1, LEAST, "east"), ("Moved", 30, MOVE, "")],
    ),
    "a record of moves that is none of ours": (
        job(condition("jobmirror.io/Moved", 30, reason="WorkerLost", message="by hand")),
        [],
        [("Created", 0, "created", "")],
    ),
    "being deleted": (
        job(metadata={"deletionTimestamp": at(5)}),
        [],
        [("Created", 0, "created", ""), ("Deleting", 5, "deletion requested", "")],
    ),
}


@pytest.mark.parametrize(("found", "events", "story"), STORIES.values(), ids=STORIES)
def test_a_job_and_its_events_tell_what_happened(
    found: Object, events: list[dict[str, Any]], story: list[tuple[str, int, str, str]]
) -> None:
    """Without the manager, by the right to read the Job (and its events) alone."""
    moments = timeline(JOB, found, events)

    assert [(moment.kind, moment.at, moment.text, moment.worker) for moment in moments] == [
        (kind, at(second), text, worker) for kind, second, text, worker in story
    ]


def test_what_the_manager_tells_wins_and_is_completed() -> None:
    """It knows why a worker was chosen; what it tells without words gets ours; nothing is told twice."""
    told = (
        Moment(at=at(0), kind="Created", text=""),
        Moment(at="2026-03-01T11:00:01.250Z", kind="Placed", text="the only one in region eu", worker="east"),
        Moment(at="2026-03-01T11:00:01.300Z", kind="Mirrored", text="Job created on worker", worker="east"),
        Moment(at="2026-03-01T11:00:02.100Z", kind="Status", text="active 1", worker="east"),
    )

    moments = timeline(JOB, job(PLACED, status={"startTime": at(2)}), [MIRRORED], told)

    assert [(moment.kind, moment.text) for moment in moments] == [
        ("Created", "created"),
        ("Placed", "the only one in region eu"),
        ("Mirrored", "Job created on worker"),
        ("Status", "active 1"),
    ]


def test_a_status_without_words_does_not_say_what_came_later() -> None:
    """Of kinds whose status says nothing at first: the Job's own step is of another moment."""
    told = (
        Moment(at=at(2), kind="Status", text="", worker="east"),
        Moment(at=at(20), kind="Status", text="Suspended", worker="east"),
    )
    found = job(PLACED, condition("Suspended", 20, reason="JobSuspended"))
    moments = timeline(JOB, found, [], told)
    assert [(one.at, one.text) for one in moments if one.kind == "Status"] == [(at(2), ""), (at(20), "Suspended")]


def test_moves_that_the_manager_forgot_are_still_told() -> None:
    """Its timeline has the last one; each had an event."""
    earlier = "moved from west to east (move 1); the copy on west may still run"
    last = "moved from east to west (move 2); the copy on east is declared dead"
    told = (Moment(at=at(30), kind="Moved", text=last, worker="west"),)
    events = [event("Moved", earlier, 10, type="Warning"), event("Moved", last, 30, type="Warning")]
    found = timeline(JOB, job(PLACED), events, told)
    assert [one.text for one in found if one.kind == "Moved"] == [earlier, last]


def test_what_follows_of_a_loss_is_explained() -> None:
    """D14: as the Job says it, and as the manager does, which knows the cause better."""
    follows = "the Job is moved to another one at 14:35:00 UTC unless it is back (its lease ends at 14:32:30 UTC)"
    found = job(
        PLACED,
        condition("jobmirror.io/Progressing", 5, status="Unknown", reason="WorkerUnreachable"),
        annotations={"jobmirror.io/waiting-because": f"worker east is unreachable (timeout); {follows}"},
        status={"startTime": at(2), "active": 1},
    )
    text = "\n".join(lines_of(story_of(JOB, found, [], None), NOW))
    assert f"worker east is unreachable (timeout); {follows}\n" in text
    because = f"worker east is unreachable: connection refused; {follows}"
    known = JobView(namespace="team-a", name="train", uid="u-1", state="Running", worker="east", because=because)
    assert because in "\n".join(lines_of(story_of(JOB, found, [], KnownJob(job=known)), NOW))


def test_errors_that_the_manager_forgot_are_still_told() -> None:
    """It may have been restarted; the events are there for an hour."""
    told = (Moment(at=at(9), kind="Error", text="Refused: worker east: no"),)
    events = [
        event("Refused", "worker west: forbidden", 1, type="Warning"),
        event("Refused", "worker east: no", 9, type="Warning"),
    ]

    moments = timeline(JOB, job(), events, told)

    assert [moment.text for moment in moments if moment.kind == "Error"] == [
        "Refused: worker west: forbidden",
        "Refused: worker east: no",
    ]
    last = last_error(moments)
    assert last is not None
    assert last.text == "Refused: worker east: no"


def test_events_without_any_time_come_first_and_hurt_nobody() -> None:
    """Whoever may create events chooses their content."""
    junk: list[dict[str, Any]] = [{}, {"reason": 1, "message": ["x"], "count": "many", "series": 3}, {"message": "m"}]

    assert timeline(JOB, job(), junk)[-1].kind == "Created"


def test_a_waiting_job_shows_what_each_worker_lacks() -> None:
    """The annotation's list as a table, when the manager is not asked."""
    waiting = job(annotations={"jobmirror.io/waiting-because": "east: cordoned; west: at capacity"})

    text = "\n".join(lines_of(story_of(JOB, waiting, [], None, ("events are not included: missing permission",)), NOW))

    assert "Waiting because:  east: cordoned; west: at capacity\n" in text
    assert "Workers:\n  WORKER   NOT PLACED BECAUSE\n  east     cordoned\n  west     at capacity\n" in text
    assert text.endswith("Notes:\n  events are not included: missing permission")


def of_kind(name: str, *conditions: dict[str, str], spec: dict[str, Any] | None = None) -> tuple[Kind, Object]:
    kind = kinds_of([KindEntry(kind=name)])[name]
    body = {"metadata": {"name": "train", "uid": "u-1"}, "spec": spec or {}, "status": {"conditions": conditions}}
    return kind, decode_object(msgspec.json.encode(body))


ENDED = condition("Succeeded", 9)
TROUBLE = condition("jobmirror.io/Progressing", 5, status="False", reason="Unschedulable", message="no node")
UNCOUNTED = (
    "PipelineRun does not count ready pods, so nothing is reported of pods that do not start: see them with "
    "kubectl mirror pods pipelinerun/train; an operator can have them watched (setting workers.watchPods)"
)


@pytest.mark.parametrize(
    ("found", "notes"),
    [
        pytest.param(of_kind("PipelineRun", PLACED), (UNCOUNTED,), id="nothing counts its pods"),
        pytest.param(of_kind("JobSet", PLACED), (), id="its controller does"),
        pytest.param(of_kind("PipelineRun"), (), id="it has no worker"),
        pytest.param(of_kind("PipelineRun", PLACED, ENDED), (), id="it is over"),
        pytest.param(of_kind("PipelineRun", PLACED, TROUBLE), (), id="what is wrong is told: pods are watched"),
        pytest.param(of_kind("PipelineRun", PLACED, spec={"status": "PipelineRunPending"}), (), id="it is suspended"),
    ],
)
def test_where_nothing_counts_ready_pods_that_is_said(found: tuple[Kind, Object], notes: tuple[str, ...]) -> None:
    """Or silence would look as if all were well (D22)."""
    assert story_of(*found, [], None).notes == notes


def test_the_managers_reasons_are_shown_instead_where_it_answers() -> None:
    """Its own knowledge is newer than the annotation, and says more."""
    view = JobView(namespace="team-a", name="train", uid="u-1", state="Waiting", because="east: full", lag_seconds=1.5)
    told = KnownJob(job=view, obstacles={"east": "at capacity: 3 of 3"})

    story = story_of(JOB, job(), [], told)

    assert (story.job.because, story.job.lag_seconds, story.obstacles) == (
        "east: full",
        1.5,
        {"east": "at capacity: 3 of 3"},
    )


def test_what_another_manager_does_not_say_is_noted() -> None:
    """With several that work at once: the rest is as this one knows it."""
    why = "manager two, which follows worker east, does not answer: connection refused"
    story = story_of(JOB, job(), [], KnownJob(unavailable=why))

    assert story.notes == (f"history and delays are not included: {why}",)


def test_another_job_of_the_name_is_not_mixed_in() -> None:
    """The manager may not have seen yet that it was deleted and created anew."""
    view = JobView(namespace="team-a", name="train", uid="u-0", state="Failed", because="old")

    assert "old" not in story_of(JOB, job(), [], KnownJob(job=view)).job.because


def test_nothing_that_a_worker_says_reaches_the_terminal_unclean() -> None:
    """Cursor movements, colours, bidirectional marks and new lines are escaped (D18)."""
    evil = "\x1b[2Jboom\n\u202egnp.exe\x9b31m"
    found = job(PLACED, condition("Failed", 5, reason=evil, message=evil))

    for line in lines_of(story_of(JOB, found, [event(evil, evil, 3, type="Warning")], None), NOW):
        assert line == "" or line.isprintable(), line


DESCRIBED = {
    "runs": (
        JobView(namespace="n", name="j", uid="u", state="Running", worker="east", started=at(0), completions=2),
        {"State": "Running", "Worker": "east", "Duration": "60m", "Completions": "0/2"},
    ),
    "over": (
        JobView(namespace="n", name="j", uid="u", state="Failed", worker="w", started=at(0), finished=at(7), failed=2),
        {"State": "Failed", "Duration": "7s", "Pods": "0 active, 0 succeeded, 2 failed"},
    ),
    "behind": (
        JobView(namespace="n", name="j", uid="u", state="Running", worker="w", started=at(0), lag_seconds=2.25),
        {"Status lag": "2.2s"},
    ),
    "waits": (
        JobView(namespace="n", name="j", uid="u", state="Waiting", because="no worker is registered"),
        {"Worker": "-", "Waiting because": "no worker is registered"},
    ),
}


@pytest.mark.parametrize(("view", "expected"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_story_begins_with_aligned_fields(view: JobView, expected: dict[str, str]) -> None:
    """As ``kubectl describe`` has them: a name, a colon, the value; all values begin in one column, none is empty."""
    lines = list(lines_of(Story(job=view, timeline=()), NOW))
    fields = lines[: lines.index("Timeline:  -")]

    found = {name: value.strip() for name, _, value in (line.partition(":") for line in fields)}
    assert expected.items() <= found.items()
    assert all(found.values())
    starts = {len(line) - len(line.partition(":")[2].lstrip()) for line in fields}
    assert len(starts) == 1


def test_a_story_on_a_terminal_is_coloured_and_fits() -> None:
    """Only the state and what went wrong have colours; long texts of the timeline are cut."""
    found = job(PLACED, condition("Failed", 5, reason="BackoffLimitExceeded", message="x" * 300))
    lines = list(lines_of(story_of(JOB, found, [], None), NOW, Display(width=80, has_colors=True)))

    assert any(line.startswith("State:") and line.endswith("\x1b[31mFailed\x1b[0m") for line in lines)
    timeline_lines = lines[lines.index("Timeline:") + 1 :]
    assert max(len(click.unstyle(line)) for line in timeline_lines) == 80


def test_the_event_of_an_end_is_not_told_after_it() -> None:
    """``MirrorLost`` is the condition's reason; the worker that is lost before is part of the story."""
    found = timeline(
        JOB,
        job(
            PLACED,
            condition("FailureTarget", 8, reason="MirrorLost", message="gone"),
            condition("Failed", 8, reason="MirrorLost", message="gone"),
            status={"startTime": at(2)},
        ),
        [event("WorkerLost", "no route", 5, type="Warning"), event("MirrorLost", "gone", 9, type="Warning")],
    )
    assert [moment.kind for moment in found] == ["Created", "Placed", "Started", "Lost", "Status", "Finished"]
