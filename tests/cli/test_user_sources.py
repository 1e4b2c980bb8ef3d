"""What a Job says about itself, for people: ``mirror.cli.user.sources``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from mirror.cli.user.printing import seconds_between
from mirror.cli.user.sources import is_source, obstacles_of, view_of
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object, decode_object
from mirror.settings.kinds import KindEntry

OURS = "jobmirror.io/controller"
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def decoded(found: dict[str, Any]) -> Object:
    return decode_object(msgspec.json.encode({"metadata": {}} | found))


def job(*, conditions: dict[str, tuple[str, str]] | None = None, **parts: Any) -> Object:
    """A Job; conditions are reason and message by type, all of them True."""
    listed = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": "2026-03-01T11:59:00Z",
        }
        for kind, (reason, message) in (conditions or {}).items()
    ]
    metadata = {"namespace": "team-a", "name": "train", "uid": "u-1", "creationTimestamp": "2026-03-01T11:58:00Z"}
    return decoded(
        {
            "metadata": metadata | parts.get("metadata", {}),
            "spec": {"managedBy": OURS, "completions": 3} | parts.get("spec", {}),
            "status": {"conditions": listed} | parts.get("status", {}),
        }
    )


PLACED = {"jobmirror.io/Placed": ("Placed", "east")}
RUNS = {"startTime": "2026-03-01T11:58:30Z", "active": 2}
HELD = {"annotations": {"jobmirror.io/held": "true"}}

STATES = {
    "nothing happened yet": (job(), "Waiting"),
    "a worker is recorded": (job(conditions=PLACED), "Placed"),
    "it has started": (job(conditions=PLACED, status=RUNS), "Running"),
    "its user suspended it": (job(spec={"suspend": True}), "Suspended"),
    "it is suspended on its way": (job(conditions=PLACED, spec={"suspend": True}, status=RUNS), "Suspended"),
    "the webhook holds it": (job(spec={"suspend": True}, metadata=HELD), "Waiting"),
    "it is done": (job(conditions=PLACED | {"Complete": ("CompletionsReached", "")}), "Complete"),
    "it has failed": (job(conditions={"Failed": ("BackoffLimitExceeded", "")}), "Failed"),
    "it goes": (job(metadata={"deletionTimestamp": "2026-03-01T11:59:59Z"}), "Deleting"),
}


@pytest.mark.parametrize(("found", "state"), STATES.values(), ids=STATES)
def test_a_job_has_one_state(found: Object, state: str) -> None:
    """The words are those of ``model.views.JobView``."""
    assert view_of(JOB, found).state == state


def test_a_waiting_job_says_why() -> None:
    """The annotation is what it waits for."""
    waiting = job(metadata={"annotations": {"jobmirror.io/waiting-because": "east: cordoned"}})

    assert (view_of(JOB, waiting).worker, view_of(JOB, waiting).because) == ("", "east: cordoned")


def test_a_finished_job_says_how_it_ended() -> None:
    """The reason of its verdict, and the verdict's time where there is no completion time."""
    view = view_of(JOB, job(conditions=PLACED | {"Failed": ("DeadlineExceeded", "too late")}, status=RUNS))

    assert (view.because, view.finished) == ("DeadlineExceeded", "2026-03-01T11:59:00Z")


SOURCES = {
    "the default value": (job(), True),
    "nobody is named": (decoded({"spec": {}}), False),
    "the built-in controller": (decoded({"spec": {"managedBy": "kubernetes.io/job-controller"}}), False),
    "another value, and placed by us": (job(spec={"managedBy": "acme.io/x"}, conditions=PLACED), True),
    "another value, and waiting": (job(spec={"managedBy": "acme.io/x"}, metadata=HELD), True),
    "another value, and no mark of ours": (job(spec={"managedBy": "kueue.x-k8s.io/multikueue"}), False),
}


@pytest.mark.parametrize(("found", "is_ours"), SOURCES.values(), ids=SOURCES)
def test_sources_are_known_by_their_marks(found: Object, is_ours: bool) -> None:
    """Users do not know what ``managedBy`` the manager is configured for."""
    assert is_source(JOB, found) is is_ours


def test_a_job_of_somebody_else_is_told_as_such() -> None:
    """Who asks for it by name learns why nothing mirrors it."""
    assert view_of(JOB, decoded({"spec": {}})).because == "not mirrored: spec.managedBy is not set"


JUNK = [
    {},
    {"spec": [], "status": "running"},
    {"spec": {"completions": True}, "status": {"conditions": ["x", {}]}},
    {"status": {"active": "2", "conditions": [{"type": "jobmirror.io/Placed", "status": "True", "message": None}]}},
]


@pytest.mark.parametrize("found", JUNK)
def test_whatever_stands_there_a_view_comes_out(found: dict[str, Any]) -> None:
    """Types are not trusted."""
    assert view_of(JOB, decoded(found)).state == "Waiting"


OBSTACLES = {
    "one worker": ("east: cordoned", {"east": "cordoned"}),
    "several": (
        "east: labels do not match worker-selector; west: at capacity",
        {"east": "labels do not match worker-selector", "west": "at capacity"},
    ),
    "no worker at all": ("no worker is registered", {}),
    "a sentence with a colon": ("worker east rejected the change: spec: Invalid", {}),
    "nothing": ("", {}),
}


@pytest.mark.parametrize(("text", "obstacles"), OBSTACLES.values(), ids=OBSTACLES)
def test_why_workers_are_not_eligible_is_read_from_the_annotation(text: str, obstacles: dict[str, str]) -> None:
    """Only where the text is such a list (D21)."""
    assert obstacles_of(text) == obstacles


def test_times_that_are_none_last_for_nobody_knows_how_long() -> None:
    """A worker's or a user's text may stand where a time should."""
    assert seconds_between("soon", "", NOW) is None
    assert seconds_between("2026-03-01T11:59:00Z", "", NOW) == 60
    assert seconds_between("2026-03-01T11:59:00Z", "2026-03-01T11:59:30Z", NOW) == 30


def test_a_job_that_no_manager_touches_says_so() -> None:
    """Without a manager nobody else would: kubectl shows nothing at all."""
    lonely = (
        "no manager acts on it: is one running, with managedBy jobmirror.io/controller, "
        "and watching namespace team-a (setting namespaces)?"
    )
    held = job(spec={"suspend": True}, metadata=HELD)  # by the webhook, which a manager serves that does not lead, too
    for one in (job(), held):
        assert view_of(JOB, one, NOW).because == lonely
    young = job(metadata={"creationTimestamp": "2026-03-01T11:59:30Z"})
    waits = job(metadata={"annotations": {"jobmirror.io/waiting-because": "east: at capacity"}})
    for other in (young, waits, job(conditions=PLACED), job(spec={"suspend": True})):
        assert view_of(JOB, other, NOW).because != lonely


def test_a_misspelt_manager_is_pointed_out() -> None:
    """Only where the value has our domain, or one like it; a kind may have a value of its own."""
    because = "not mirrored: spec.managedBy is jobmirror.io/Manager (did you mean jobmirror.io/controller?)"
    assert view_of(JOB, job(spec={"managedBy": "jobmirror.io/Manager"}), NOW).because == because
    kueue = "not mirrored: spec.managedBy is kueue.x-k8s.io/multikueue"
    assert view_of(JOB, job(spec={"managedBy": "kueue.x-k8s.io/multikueue"}), NOW).because == kueue
    declared = kinds_of([KindEntry(kind="PyTorchJob")])["PyTorchJob"]
    claimed = decoded({"metadata": {"name": "train"}, "spec": {"runPolicy": {"managedBy": OURS}}})
    because = f"not mirrored: spec.runPolicy.managedBy is {OURS} (did you mean kueue.x-k8s.io/multikueue?)"
    assert view_of(declared, claimed, NOW).because == because
