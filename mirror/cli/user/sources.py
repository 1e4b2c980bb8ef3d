"""What a Job of the management cluster says about itself to somebody who may only read Jobs. Pure.

Used by ``get`` and ``explain``. Everything comes from the Job alone: the condition that records the worker, our
annotations, the mirrored status. How far behind that status is, only the manager knows (``server``).
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.batch import conditions, views
from mirror.model import names
from mirror.model.views import JobView

Json = Mapping[str, object]

_MARKS = (names.ASSIGNED_WORKER, names.WAITING_BECAUSE, names.MIRROR_UID, names.HELD)


def is_source(job: Json) -> bool:
    """Whether a manager of ours runs it, whatever value of ``managedBy`` it is configured for."""
    managed_by = views.text(views.mapping(job.get("spec")).get("managedBy"))
    if managed_by in ("", names.BUILT_IN_MANAGED_BY):
        return False
    if managed_by == names.DEFAULT_MANAGED_BY:
        return True
    return bool(placed(job)) or any(mark in annotations_of(job) for mark in _MARKS)


def view_of(job: Json) -> JobView:
    """One Job as a line for people."""
    metadata, spec, status = (views.mapping(job.get(part)) for part in ("metadata", "spec", "status"))
    listed = conditions.of(status)
    ending = conditions.find(listed, conditions.FAILED, conditions.TRUE) or conditions.find(
        listed, conditions.COMPLETE, conditions.TRUE
    )
    return JobView(
        namespace=views.text(metadata.get("namespace")),
        name=views.text(metadata.get("name")),
        uid=views.text(metadata.get("uid")),
        state=_state(job),
        worker=placed(job),
        because=_because(job, ending),
        created=views.text(metadata.get("creationTimestamp")),
        started=views.text(status.get("startTime")),
        finished=views.text(status.get("completionTime") or (ending or {}).get("lastTransitionTime")),
        active=views.number(status.get("active")),
        succeeded=views.number(status.get("succeeded")),
        failed=views.number(status.get("failed")),
        completions=views.optional_number(spec.get("completions")),
    )


def placed(job: Json) -> str:
    """The worker that is recorded (D5); empty for none."""
    found = conditions.find(conditions.of(views.mapping(job.get("status"))), names.PLACED, conditions.TRUE)
    return views.text(found.get("message")) if found else ""


def recorded_mirror(job: Json) -> str:
    """The uid of the mirror that is recorded in its status (D1); empty for none."""
    found = conditions.find(conditions.of(views.mapping(job.get("status"))), names.MIRRORED, conditions.TRUE)
    return views.text(found.get("message")) if found else ""


def annotations_of(job: Json) -> Json:
    """Its annotations."""
    return views.mapping(views.mapping(job.get("metadata")).get("annotations"))


def lacks_of(because: str) -> dict[str, str]:
    """Worker and what it lacks, of the text of ``waiting-because`` where it lists workers (D21)."""
    found: dict[str, str] = {}
    for part in because.split("; "):
        worker, colon, lack = part.partition(": ")
        if not colon or not worker or " " in worker:
            return {}
        found[worker] = lack
    return found


def _state(job: Json) -> str:
    metadata, spec, status = (views.mapping(job.get(part)) for part in ("metadata", "spec", "status"))
    if metadata.get("deletionTimestamp"):
        return "Deleting"
    listed = conditions.of(status)
    for ending in (conditions.FAILED, conditions.COMPLETE):
        if conditions.is_true(listed, ending):
            return ending
    if spec.get("suspend") is True:
        # One that our webhook holds waits for a worker like any other (D16).
        return "Waiting" if names.HELD in annotations_of(job) and not placed(job) else "Suspended"
    if not placed(job):
        return "Waiting"
    return "Running" if status.get("startTime") else "Placed"


def _because(job: Json, ending: Json | None) -> str:
    if ending is not None:
        return views.text(ending.get("reason"))
    waiting = views.text(annotations_of(job).get(names.WAITING_BECAUSE))
    if waiting or is_source(job):
        return waiting
    return "not run by mirror: spec.managedBy is " + (
        views.text(views.mapping(job.get("spec")).get("managedBy")) or "not set"
    )
