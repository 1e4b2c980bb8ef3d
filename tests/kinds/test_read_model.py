"""What people see of a source: a reason wherever they would ask for one (``mirror.kinds.read_model``)."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from kinds.declared.declared_objects import built_in_kind, job_set, source_of

from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.read_model import view_of
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.settings.load import parse

TRAIN: dict[str, Any] = {
    "metadata": {"name": "train", "namespace": "team", "uid": "u-1", "creationTimestamp": "2026-03-01T11:58:00Z"},
    "spec": {"managedBy": names.DEFAULT_MANAGED_BY},
    "status": {},
}


def true(kind: str, message: str = "", reason: str = "") -> dict[str, str]:
    at = "2026-03-01T11:59:00Z"
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": at}


PLACED = true(names.PLACED, "east")
GOES: dict[str, Any] = {"deletionTimestamp": "2026-03-01T11:59:30Z"}
SUSPENDED: dict[str, Any] = {"suspend": True}
MISSING = {names.WAITING_BECAUSE: "worker east: ConfigMap settings not found"}


def job(*conditions: dict[str, str], spec: dict[str, Any] | None = None, **parts: Any) -> Object:
    body = copy.deepcopy(TRAIN)
    body["metadata"] |= parts.pop("metadata", {})
    body["spec"] |= spec or {}
    body["status"] = {"conditions": list(conditions), **parts}
    return decode_object(msgspec.json.encode(body))


HELD_THERE = true("Suspended", reason="JobSuspended"), true(names.MIRRORED, "m-1")
STARTED = {"startTime": "2026-03-01T11:59:10Z"}
REASONS = {
    "nothing happened yet": (job(), "Waiting", "no worker assigned yet"),
    "its user suspended it": (job(spec=SUSPENDED), "Suspended", "spec.suspend is true"),
    "its user suspended it on its way": (job(PLACED, spec=SUSPENDED), "Suspended", "spec.suspend is true"),
    "a queue here has not admitted it": (
        job(spec=SUSPENDED, metadata={"labels": {names.QUEUE_NAME: "team-a"}}),
        "Suspended",
        "spec.suspend is true; queue team-a has not admitted it",
    ),
    "it is suspended there alone": (job(PLACED, *HELD_THERE), "Suspended", "suspended on worker east"),
    "it has not started": (job(PLACED), "Placed", "not started on the worker yet"),
    "it runs": (job(PLACED, **STARTED, active=2), "Running", ""),
    "it has started and has no pod": (job(PLACED, **STARTED), "Running", "no pod is active"),
    "it is to run no pods": (job(PLACED, spec={"parallelism": 0}), "Placed", "spec.parallelism is 0"),
    "it is to run no further pods": (
        job(PLACED, **STARTED, spec={"parallelism": 0}),
        "Running",
        "spec.parallelism is 0",
    ),
    "it runs those that it had": (job(PLACED, **STARTED, active=1, spec={"parallelism": 0}), "Running", ""),
    "it is done": (job(PLACED, true("Complete", reason="CompletionsReached")), "Complete", "CompletionsReached"),
    "it has failed, and nobody says why": (job(true("Failed")), "Failed", "failed; no reason is given"),
    "it is being deleted": (job(metadata=GOES), "Deleting", "deletion requested"),
    "a finalizer keeps it": (
        job(PLACED, metadata=GOES | {"finalizers": ["example.com/keep"]}),
        "Deleting",
        "deletion requested; waits for finalizer example.com/keep",
    ),
    "several do": (
        job(metadata=GOES | {"finalizers": ["a.io/x", "foregroundDeletion"]}),
        "Deleting",
        "deletion requested; waits for finalizers a.io/x, foregroundDeletion",
    ),
    "it had trouble and is being deleted": (
        job(PLACED, metadata=GOES | {"annotations": MISSING}),
        "Deleting",
        "deletion requested",
    ),
    "it is over and is being deleted": (
        job(true("Failed", reason="DeadlineExceeded"), metadata=GOES | {"finalizers": ["a.io/x"]}),
        "Deleting",
        "deletion requested; waits for finalizer a.io/x",
    ),
    "its annotation says it": (job(PLACED, metadata={"annotations": MISSING}), "Placed", *MISSING.values()),
}


def test_a_failed_one_has_the_words_of_its_end() -> None:
    """The reason alone is for machines: a rule of podFailurePolicy names the container and its exit code in words."""
    said = "Container main for pod a/b failed with exit code 42 matching FailJob rule at index 0"
    seen = view_of(JOB, job(PLACED, true("Failed", reason="PodFailurePolicy", message=said)))
    assert (seen.because, seen.message, seen.why) == ("PodFailurePolicy", said, f"PodFailurePolicy: {said}")
    assert view_of(JOB, job(true("Failed", reason="Bad", message="a\x1bb" + "x" * 2000))).why.isprintable()
    done = view_of(JOB, job(PLACED, true("Complete", reason="CompletionsReached", message="Reached expected number")))
    assert (done.message, done.why) == ("", "CompletionsReached")
    goes = view_of(JOB, job(true("Failed", reason="Bad", message="words"), metadata=GOES))
    assert goes.why == "deletion requested"


@pytest.mark.parametrize(("found", "state", "because"), REASONS.values(), ids=REASONS)
def test_there_is_a_reason_where_somebody_would_ask(found: Object, state: str, because: str) -> None:
    """The page, access and commands show this text; only what runs or is complete needs none."""
    seen = view_of(JOB, found)
    assert (seen.state, seen.because) == (state, because)


def test_who_knows_of_nothing_in_the_way_leaves_the_plain_reason() -> None:
    """The manager gives an empty text where it has none."""
    assert view_of(JOB, job(spec=SUSPENDED), because="").because == "spec.suspend is true"
    assert view_of(JOB, job(), because="east: cordoned").because == "east: cordoned"


SUSPENDED_KINDS = {
    "JobSet": ({"suspend": True}, "spec.suspend is true"),
    "PyTorchJob": ({"runPolicy": {"suspend": True}}, "spec.runPolicy.suspend is true"),
    "PipelineRun": ({"status": "PipelineRunPending"}, "spec.status is PipelineRunPending"),
}


@pytest.mark.parametrize(("kind", "suspended"), SUSPENDED_KINDS.items(), ids=SUSPENDED_KINDS)
def test_the_field_that_suspends_is_the_kinds_own(kind: str, suspended: tuple[dict[str, Any], str]) -> None:
    """Kinds keep it in different places."""
    spec, because = suspended
    seen = view_of(built_in_kind(kind), source_of(built_in_kind(kind), job_set(**spec)))
    assert (seen.state, seen.because) == ("Suspended", because)


def test_of_another_kind_no_pods_are_missed() -> None:
    """Some count nothing, so that none proves nothing."""
    kind = built_in_kind("JobSet")
    placed = {"type": names.PLACED, "status": "True", "message": "east"}
    seen = view_of(kind, source_of(kind, job_set(), {"conditions": [placed], "startTime": "2026-01-01T00:00:00Z"}))
    assert (seen.state, seen.because) == ("Running", "")


OWN = """
kinds:
- kind: Simulation
  resource: simulations.v1.example.com
  done: {succeeded: [phase=Done], failed: [phase=Lost]}
  lost: {set: {phase: Lost}}
"""
READY = {"type": "PodsReady", "status": "True", "reason": "SufficientPodsReady"}


def own_kind(more: str = "") -> Kind:
    return kinds_of(parse((OWN + more).encode(), "mirror.yaml").kinds)["Simulation"]


@pytest.mark.parametrize(
    ("kind", "status", "state", "because"),
    [
        (built_in_kind("AppWrapper"), {"phase": "Running", "conditions": [READY]}, "Running", ""),
        (built_in_kind("AppWrapper"), {"phase": "Resuming"}, "Placed", "phase is Resuming"),
        (built_in_kind("PyTorchJob"), {"conditions": [true("Created")]}, "Placed", "not started on the worker yet"),
        (built_in_kind("RayCluster"), {"conditions": [true("HeadPodReady")]}, "Running", ""),
        (own_kind(), {}, "Placed", "not started on the worker yet"),
        (own_kind(), {"phase": "Running"}, "Placed", "phase is Running"),
        (own_kind(), {"phase": "a\x1bb" + "x" * 99}, "Placed", "phase is a\\x1bb" + "x" * 58 + "…"),
        (own_kind("  started: [phase=Running|Paused]"), {"phase": "Running"}, "Running", ""),
        (own_kind("  started: [phase=Running|Paused]"), {"phase": "Queued"}, "Placed", "phase is Queued"),
        (own_kind(), {"phase": "Queued", "steps": 3}, "Running", ""),
        (own_kind("  counts: {active: [pods]}"), {"phase": "Queued", "steps": 3}, "Placed", "phase is Queued"),
    ],
)
def test_one_that_counts_nothing_runs_once_its_status_says_so(
    kind: Kind, status: dict[str, Any], state: str, because: str
) -> None:
    """By a condition, a number or what its entry says; until then in its own words."""
    placed = {"conditions": [PLACED, *status.get("conditions", ())]}
    seen = view_of(kind, source_of(kind, {"managedBy": names.DEFAULT_MANAGED_BY}, status | placed))
    assert (seen.state, seen.because) == (state, because)
