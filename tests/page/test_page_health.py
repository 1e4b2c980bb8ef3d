"""How a Job is told to be: never as if more were known than is, never without a reason."""

from importlib.resources import files

import pytest

from mirror.model.tones import tone_of
from mirror.model.views import STATES, JobView, WorkerView
from mirror.page.badges import badge
from mirror.page.health import UNKNOWN, is_stuck, judged, outlined, reason_of
from mirror.page.listing import why
from tests.doubles.pretended import NOW, before, job

LOST = WorkerView(name="east", state="Lost", lost_since=before(seconds=40), because="connection refused")


@pytest.mark.parametrize("state", ["Running", "Placed"])
def test_a_job_on_a_lost_worker_is_unknown(state: str) -> None:
    """Its last status may be long over; how long nobody knows is said before the cause."""
    seen = judged(job("train", state), LOST)
    assert (seen.state, seen.reason) == (UNKNOWN, "WorkerUnreachable")
    assert not seen.is_finished
    told = why(seen, NOW)
    assert told.striptags() == "east unreachable for 40s: connection refused"
    assert 'data-as="for"' in told


def test_a_worker_that_nothing_registers_is_told() -> None:
    """Its Secret is gone."""
    seen = judged(job("train"), None)
    assert (seen.state, seen.why) == (UNKNOWN, "east unreachable: no Secret registers it")


FOLLOWS = (
    "the Job is moved to another one at 14:35:00 UTC unless it is back",
    "the Job is moved to another one at 14:35:00 UTC unless it is back (its lease ends at 14:32:30 UTC)",
    "it is not fenced: it was not seen to start",
    "the Job stays assigned to it (it was moved as often as workers.moveLimit allows)",
    "the Job stays assigned to it (nothing is moved while most workers are unreachable)",
    "the Job stays assigned to it until 14:35:00 UTC (its lease ends at 14:32:30 UTC)",
    "the Job stays assigned to it (it is moved once it is resumed)",
    "the Job waits for another worker: west: at capacity; north: labels do not match worker-selector",
)
"""What ``decide`` says of a Job on a lost worker (``tests/decide/test_loss_texts``)."""


@pytest.mark.parametrize("follows", FOLLOWS)
def test_when_a_job_moves_or_why_it_stays_is_seen(follows: str) -> None:
    """D14: before the cause, which may be long; for who is no operator without that."""
    seen = judged(job("train", because=f"worker east is unreachable: connection refused; {follows}"), LOST)
    assert why(seen, NOW).striptags() == f"east unreachable for 40s; {follows}: connection refused"
    assert why(outlined(seen), NOW).striptags() == f"east unreachable for 40s; {follows}"


@pytest.mark.parametrize(
    "because",
    [
        "worker east is unreachable: connection refused",
        "worker west is lost; the Job waits for another worker",
        "1 pod: ImagePullBackOff; the Job waits",
        "",
    ],
)
def test_what_is_about_something_else_is_not_mixed_in(because: str) -> None:
    """What its annotation said before the loss, or of another worker."""
    seen = judged(job("train", because=because), LOST)
    assert why(seen, NOW).striptags() == "east unreachable for 40s: connection refused"
    assert why(outlined(seen), NOW).striptags() == "east unreachable for 40s"


@pytest.mark.parametrize("state", ["Complete", "Failed"])
def test_an_end_is_an_end(state: str) -> None:
    """It is stored here, whatever becomes of the worker."""
    assert judged(job("train", state), LOST).state == state


def test_a_deletion_stays_one_and_says_what_it_waits_for() -> None:
    """The mirror cannot be deleted before the worker is back."""
    seen = judged(job("train", "Deleting", worker="east", because="deletion requested"), LOST)
    assert (seen.state, seen.because) == ("Deleting", "deletion requested; east unreachable")
    assert seen.reason == "WorkerUnreachable"


@pytest.mark.parametrize(
    ("seen", "because"),
    [
        (job("train", active=1), "1 pod is active"),
        (job("train", active=2000), "2,000 pods are active"),
        (job("train", "Complete"), "complete"),
        (job("train", "SomeKindsOwnEnd"), "somekindsownend"),
        (job("train", kind="JobSet", active=2), "2 active"),
        (job("train", kind="JobSet", active=0), "running"),
        (job("train", "Suspended", because="spec.suspend is true"), "spec.suspend is true"),
    ],
)
def test_there_is_always_a_reason(seen: JobView, because: str) -> None:
    """An empty field would be a question; of what runs or is complete the read model gives none (``read_model``)."""
    assert judged(seen, WorkerView(name="east", state="Connected")).because == because


@pytest.mark.parametrize(
    ("seen", "reason", "stuck"),
    [
        (job("a", "Waiting", reason="WorkersFull"), "WorkersFull", False),
        (job("a", reason="ImagePullBackOff"), "ImagePullBackOff", True),
        (job("a", "Failed", because="BackoffLimitExceeded"), "BackoffLimitExceeded", False),
        (job("a", "Failed", because="three words only"), "", False),
        (job("a"), "", False),
    ],
)
def test_reasons_are_for_machines(seen: JobView, reason: str, stuck: bool) -> None:
    """What filters and numbers go by."""
    assert (reason_of(seen), is_stuck(seen)) == (reason, stuck)


def test_the_page_and_the_commands_judge_a_state_alike() -> None:
    """One table says what is good or bad, and each of its words has a colour on the page."""
    css = (files("mirror.page") / "assets" / "page.css").read_text()
    for state in (*STATES, "Connected", "Connecting", "Lost", "Pending", "Succeeded", "Terminating", "made up"):
        tone = tone_of(state)
        assert f"tone-{tone}" in str(badge(state))
        assert tone in ("muted", "plain") or f".tone-{tone} {{" in css
