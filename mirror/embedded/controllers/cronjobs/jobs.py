"""The Jobs of a CronJob: what is created, which are over, which are too many; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mirror.batch import conditions
from mirror.embedded import schedules
from mirror.embedded.controllers.client import CRONJOBS, Json
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def owner_name(job: Object) -> str | None:
    """The CronJob that controls a Job."""
    for reference in job.metadata.owner_references or ():
        if reference.controller:
            return reference.name if reference.kind == CRONJOBS.kind else None
    return None


def name_of_run(cronjob: Mapping[str, Any], due: datetime) -> str:
    """The name of the Job of a time; the same one for the same minute, so that none is created twice."""
    return f"{cronjob['metadata']['name']}-{int(due.timestamp()) // 60}"


def body_of_run(cronjob: Mapping[str, Any], due: datetime) -> Json:
    """The Job of a time.

    Raises:
        BadZone: the time zone is none.
    """
    spec, meta = cronjob["spec"], cronjob["metadata"]
    template: Mapping[str, Any] = spec.get("jobTemplate") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    annotations = dict((template.get("metadata") or {}).get("annotations") or {})
    there = due.astimezone(schedules.zone(spec.get("timeZone") or ""))
    annotations[SCHEDULED_AT] = there.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": name_of_run(cronjob, due),
            "labels": dict(labels),
            "annotations": annotations,
            "creationTimestamp": due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "ownerReferences": [
                {
                    "apiVersion": CRONJOBS.api_version,
                    "kind": CRONJOBS.kind,
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": template.get("spec") or {},
    }


def reference_to(job: Mapping[str, Any]) -> Json:
    """How a CronJob's status names a Job that runs."""
    meta = job["metadata"]
    return {
        "kind": JOBS.kind,
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": JOBS.api_version,
        "resourceVersion": meta["resourceVersion"],
    }


def verdict_of(status: Mapping[str, Any]) -> str:
    """``Complete``, ``Failed``, or nothing while it is not finished."""
    final = conditions.final(conditions.of(status))
    return str(final["type"]) if final else ""


def surplus(
    cronjob: Mapping[str, Any], jobs: Sequence[tuple[Object, Mapping[str, Any]]]
) -> list[tuple[Object, Mapping[str, Any]]]:
    """Jobs (with their statuses) that are over and more than the history may have, oldest first."""
    found: list[tuple[Object, Mapping[str, Any]]] = []
    for limit, verdict in (("successfulJobsHistoryLimit", "Complete"), ("failedJobsHistoryLimit", "Failed")):
        most = cronjob["spec"].get(limit)
        if most is None:
            continue
        ended = sorted((one for one in jobs if verdict_of(one[1]) == verdict), key=_by_start)
        found += ended[: max(0, len(ended) - most)]
    return found


def _by_start(job: tuple[Object, Mapping[str, Any]]) -> tuple[bool, str, str]:
    """Those that never started come last."""
    start = str(job[1].get("startTime") or "")
    return not start, start, job[0].metadata.name
