"""JobSets on real control planes: their own CRD, and a player that writes what the JobSet controller would.

The player does what reference reading and runs of JobSet 0.12 have shown of statuses; it makes no pods. JobSet's
webhooks are not there, so ``job_set`` writes what they would set by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from e2e import definitions
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.go_modules import jobset_definition
from mirror.kube.resources import Resource

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
NAME = "jobsets.jobset.x-k8s.io"
ENDS = "e2e.jobmirror.io/ends"
"""An annotation: the condition with which the player ends it; without it, it runs on."""
_LOOK_SECONDS = 0.1


def job_set(name: str, managed_by: str, *, ends: str = "", **spec: Any) -> Json:
    """A JobSet of one replicated job, as it is stored after JobSet's own defaults."""
    pod = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "busybox"}]}}
    job = {"spec": {"completionMode": "Indexed", "parallelism": 1, "completions": 1, "template": pod}}
    body = {
        "managedBy": managed_by,
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "replicatedJobs": [{"name": "main", "replicas": 1, "template": job}],
        **spec,
    }
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {"name": name, "annotations": {ENDS: ends} if ends else {}},
        "spec": body,
    }


def defined(*clients: Client) -> AbstractAsyncContextManager[None]:
    """JobSets are served on each of these clusters."""
    return definitions.defined(clients, [jobset_definition()])


async def define(client: Client) -> None:
    """Serve JobSets."""
    await definitions.define(client, jobset_definition())


async def undefine(client: Client) -> None:
    """Serve them no more; with that, all of them go."""
    await definitions.undefine(client, NAME)


@asynccontextmanager
async def played(*planes: ControlPlane) -> AsyncIterator[None]:
    """A player on each of these clusters, whether they serve JobSets already or not."""
    clients = [plane.client(user_agent="jobset-player") for plane in planes]
    try:
        async with asyncio.TaskGroup() as scope:
            running = [scope.create_task(_play(client), name="play JobSets") for client in clients]
            try:
                yield
            finally:
                for task in running:
                    task.cancel()
    finally:
        for client in clients:
            await client.close()


async def _play(client: Client) -> None:
    while True:
        found: list[Json] = []
        with suppress(StatusError):  # not served now
            found = await client.list(JOBSETS.path())
        for one in found:
            if not one["spec"].get("managedBy") and (status := next_status(one)) != one.get("status"):
                path = JOBSETS.path(one["metadata"]["namespace"], one["metadata"]["name"], "status")
                with suppress(StatusError):  # gone meanwhile, or changed
                    await client.merge(path, {"status": status})
        await asyncio.sleep(_LOOK_SECONDS)


def next_status(found: Json) -> Json:
    """What the JobSet controller says of one: first that it runs, then its end."""
    status, spec = found.get("status") or {}, found["spec"]
    listed = {one["type"]: one for one in status.get("conditions") or ()}
    if "Completed" in listed or "Failed" in listed:
        return dict(status)
    is_suspended = bool(spec.get("suspend"))
    if is_suspended or "Suspended" in listed:
        reason = "SuspendedJobs" if is_suspended else "ResumeJobs"
        _set(listed, "Suspended", is_suspended, reason, found)
    counts = (status.get("replicatedJobsStatus") or [{}])[0]
    ends = found["metadata"].get("annotations", {}).get(ENDS)
    is_over = bool(ends) and not is_suspended and counts.get("active") == 1
    if is_over:
        _set(listed, str(ends), True, "AllJobsCompleted" if ends == "Completed" else "FailedJobs", found)
    counts = {
        "name": spec["replicatedJobs"][0]["name"],
        "active": int(not is_suspended and not is_over),
        "ready": int(not is_suspended and not is_over),
        "suspended": int(is_suspended),
        "succeeded": int(is_over and ends == "Completed"),
        "failed": int(is_over and ends == "Failed"),
    }
    more = {"terminalState": ends} if is_over else {}
    return {"conditions": list(listed.values()), "restarts": 0, "replicatedJobsStatus": [counts], **more}


def _set(listed: dict[str, Json], type_name: str, is_true: bool, reason: str, found: Json) -> None:
    state = "True" if is_true else "False"
    if listed.get(type_name, {}).get("status") != state:
        listed[type_name] = {
            "type": type_name,
            "status": state,
            "reason": reason,
            "message": reason,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "observedGeneration": found["metadata"]["generation"],
        }
