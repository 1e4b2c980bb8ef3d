"""Troubles that docs/troubleshooting.md does not show: what is said of them, everywhere, and that it clears.

Most are rarer, or look like one that is shown.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.controlplane.client import Json
from e2e.jobs import is_failed, placed_on, runs
from e2e.troubles.kubelet import NODE, RUNNING, pod_of, waiting, warns, writes
from e2e.troubles.stage import EU, JOB, Play, Sight, is_so, over, progresses, told
from mirror.model import names

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_UNREADY: Json = RUNNING | {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}


async def scheduler_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(schedulerName="volcano")
    yield told("PodsNotReady", "scheduler volcano has not reported anything about it")
    await play.create_anew()
    yield over()


async def claim_of_device_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    yield told("PodsNotReady", "it needs the resource claims gpu")
    await play.create_anew()
    yield over()


async def kubelet_away(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    yield told("PodsNotReady", f"the kubelet of node {NODE} has not taken it")
    await writes(play, RUNNING)
    yield over()


async def probe_fails(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    await writes(play, _UNREADY)
    await warns(play, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
    yield told("PodsNotReady", "Readiness probe failed: HTTP probe failed with statuscode: 503")
    await writes(play, RUNNING)
    yield over()


async def node_not_ready(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    await writes(play, _UNREADY)
    await warns(play, "NodeNotReady", "Node is not ready")
    yield told("PodsNotReady", "Node is not ready")
    await writes(play, RUNNING)
    yield over()


async def network_not_ready(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    await writes(play, waiting("ContainerCreating", ""))
    await warns(play, "NetworkNotReady", "network is not ready: cni plugin not initialized")
    yield told("FailedCreatePodSandBox", "cni plugin not initialized")
    await writes(play, RUNNING)
    yield over()


async def pods_do_not_end(play: Play) -> AsyncGenerator[Sight, None]:
    """Their node is away: nobody says that they have ended, and nothing takes their place."""
    await play.create(play.job(podReplacementPolicy="Failed", backoffLimit=6), nodeName=NODE)
    await writes(play, RUNNING)
    await play.scene.source_until(JOB, runs())
    pod = f"{play.core}/pods/{(await pod_of(play))['metadata']['name']}"
    await play.on().delete(pod)
    yield told("PodsNotReady", "are being deleted and have not ended")
    await play.on().merge(f"{pod}/status", {"status": {"phase": "Failed"}})
    await play.on().call("DELETE", pod, {"gracePeriodSeconds": 0})
    await writes(play, RUNNING)
    yield over()


async def device_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(backoffLimit=6), nodeName=NODE)
    why = "Pod was rejected: Node didn't have enough resource: example.com/gpu, requested: 1, used: 0, capacity: 0"
    for _ in range(2):
        await writes(play, {"phase": "Failed", "reason": "OutOfexample.com/gpu", "message": why})
    yield told("PodRejected", "OutOfexample.com/gpu")
    await writes(play, RUNNING)
    yield over()


async def pods_preempted(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(backoffLimit=6), nodeName=NODE)
    why = "default-scheduler: preempting to accommodate a higher priority pod"
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": why}
    for _ in range(2):
        await writes(play, {"phase": "Failed", "conditions": [disrupted]})
    yield told("Evicted", why)
    await writes(play, RUNNING)
    yield over()


async def scheduling_gated(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(schedulingGates=[{"name": "example.com/wait"}])
    yield told("SchedulingGated", "non-empty scheduling gates")
    await play.create_anew()
    yield over()


async def init_container_crashes(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(
        play.job(backoffLimit=9),
        nodeName=NODE,
        restartPolicy="OnFailure",
        initContainers=[{"name": "fetch", "image": "any"}],
    )
    crashed = waiting("CrashLoopBackOff", "back-off", last={"exitCode": 7, "reason": "Error"}, restarts=3)
    [container] = crashed["containerStatuses"]
    await writes(play, {"phase": "Pending", "initContainerStatuses": [container | {"name": "fetch"}]})
    yield told("CrashLoopBackOff", "container fetch: exit code 7")
    await writes(play, RUNNING | {"initContainerStatuses": None})
    yield over()


async def quota_wants_limits(play: Play) -> AsyncGenerator[Sight, None]:
    quota: Json = {"metadata": {"name": "team"}, "spec": {"hard": {"limits.cpu": "10"}}}
    await play.on().create(f"{play.core}/resourcequotas", quota)
    await play.create()
    yield told("PodsForbidden", "must specify limits.cpu")
    await play.on().delete(f"{play.core}/resourcequotas/team")
    yield over()


async def suspended_there(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create()
    await play.scene.source_until(JOB, runs())
    mirror = f"{play.scene.jobs('east')}/{JOB}"
    await play.on().merge(mirror, {"spec": {"suspend": True}})
    yield told("SuspendedOnWorker", "worker east keeps it suspended", state="Suspended")
    await play.on().merge(mirror, {"spec": {"suspend": False}})
    yield over()


async def mirror_kept(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    await writes(play, RUNNING)
    await play.scene.source_until(JOB, runs())
    mirror = f"{play.scene.jobs('east')}/{JOB}"
    await play.on().merge(mirror, {"metadata": {"finalizers": ["example.com/audit"]}})
    await play.on().delete(mirror)
    yield told("MirrorTerminating", "finalizers keep it: example.com/audit")
    await play.on().merge(mirror, {"metadata": {"finalizers": None}})
    yield over(lambda found: is_failed(found) and is_so("Failed", "MirrorLost")(found) and progresses(found))


async def change_refused(play: Play) -> AsyncGenerator[Sight, None]:
    rules = [
        {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["jobs"]},
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": play.namespace}}
    rule = {"expression": "object.spec.parallelism == oldObject.spec.parallelism", "message": "parallelism is frozen"}
    match = {"resourceRules": rules, "namespaceSelector": here}
    spec = {"failurePolicy": "Fail", "matchConstraints": match, "validations": [rule]}
    name = {"metadata": {"name": "frozen"}}
    await play.on().create(f"{_ADMISSION}/validatingadmissionpolicies", {**name, "spec": spec})
    await play.create(play.job(parallelism=1, completions=5, completionMode="Indexed"), nodeName=NODE)
    await writes(play, RUNNING)
    binding = {"policyName": "frozen", "validationActions": ["Deny"]}
    await play.on().create(f"{_ADMISSION}/validatingadmissionpolicybindings", {**name, "spec": binding})
    await play.until_refused(f"{play.scene.jobs('east')}/{JOB}", {"spec": {"parallelism": 2}})
    await play.scene.patch(JOB, {"spec": {"parallelism": 3}})
    yield told("ChangeRefused", "denied by ValidatingAdmissionPolicy frozen: parallelism is frozen")
    await play.on().delete(f"{_ADMISSION}/validatingadmissionpolicybindings/frozen")
    # Two of the three pods have no kubelet.
    yield over(lambda found: placed_on(found) and "ChangeRefused" not in str((found or {})["status"]))


async def dependency_differs(play: Play) -> AsyncGenerator[Sight, None]:
    for client, data in ((play.client, "ours"), (play.on(), "theirs")):
        body: Json = {"metadata": {"name": "settings"}, "data": {"a": data}}
        await client.create(f"{play.core}/configmaps", body)
    volume = {"name": "settings", "configMap": {"name": "settings"}}
    await play.create(play.job(annotations={**EU, "carry": "configmaps"}), volumes=[volume])
    yield told("RefusedByWorkers", "ConfigMap settings exists there with other contents")
    await play.on().delete(f"{play.core}/configmaps/settings")
    yield over()


async def annotations_without_effect(play: Play) -> AsyncGenerator[Sight, None]:
    """No condition says so, since the Job runs: an event does."""
    body = play.job(annotations={**EU, "on-worker-loss": "reschedule", "on-mirror-loss": "Retry"})
    body["spec"]["template"]["metadata"]["annotations"][names.WORKER_SELECTOR] = "region=us"
    await play.create(body)
    event = await play.scene.event(JOB, "UnknownAnnotation")
    for text in (
        "on-worker-loss: 'reschedule' is unknown (did you mean Reschedule?); Wait holds",
        "on-mirror-loss: 'Retry' is unknown; Fail holds",
        "worker-selector of the pod template has no effect",
    ):
        assert text in event["message"], event["message"]
    yield over(lambda found: placed_on(found) and progresses(found))


STORIES = (
    scheduler_missing, claim_of_device_missing, kubelet_away, probe_fails, node_not_ready, network_not_ready,
    pods_do_not_end, device_missing, pods_preempted, scheduling_gated, init_container_crashes, quota_wants_limits,
    suspended_there, mirror_kept, change_refused, dependency_differs, annotations_without_effect,
)  # fmt: skip
