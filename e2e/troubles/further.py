"""Troubles that docs/troubleshooting.md does not show: what is said of them, everywhere, and that it clears.

Most are rarer, or look like one that is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from e2e import shipped
from e2e.controlplane.client import Json
from e2e.jobs import is_failed, placed_on, runs, waits_because
from e2e.troubles.kubelet import NODE, RUNNING, forced_out, pod_of, waiting, warns, writes
from e2e.troubles.policies import Rule, until_refused
from e2e.troubles.stage import EU, JOB, Play, Sight, is_so, over, progresses, told
from mirror.model import names

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


async def probe_kills(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(backoffLimit=6), nodeName=NODE, restartPolicy="OnFailure")
    killed = {"exitCode": 137, "reason": "Error"}
    await writes(play, waiting("CrashLoopBackOff", "back-off 40s restarting failed container", last=killed, restarts=3))
    await warns(play, "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503")
    yield told("CrashLoopBackOff", "exit code 137", "; Liveness probe failed: HTTP probe failed with statuscode: 503")
    await writes(play, RUNNING)
    yield over()


async def pull_secret_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE, imagePullSecrets=[{"name": "regcred"}])
    await writes(play, waiting("ErrImagePull", "failed to resolve reference: no basic auth credentials"))
    why = "Unable to retrieve some image pull secrets (regcred)"
    await warns(play, "FailedToRetrieveImagePullSecret", f"{why}; attempting to pull the image may not succeed.")
    yield told("ImagePullBackOff", "no basic auth credentials", f"; {why}")
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
    pod = await pod_of(play)
    await play.on().delete(f"{play.core}/pods/{pod['metadata']['name']}")
    yield told("PodsNotReady", "are being deleted and have not ended")
    await forced_out(play, pod)
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
    """The scheduler writes why and deletes them; their kubelet says that they have ended, and they are gone."""
    await play.create(play.job(backoffLimit=6), nodeName=NODE)
    why = "default-scheduler: preempting to accommodate a higher priority pod"
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": why}
    for _ in range(2):
        pod = await pod_of(play)
        path = f"{play.core}/pods/{pod['metadata']['name']}"
        await play.on().merge(f"{path}/status", {"status": {"conditions": [disrupted]}})
        await play.on().delete(path)
        await forced_out(play, pod)
    yield told("Evicted", why)
    await writes(play, RUNNING)
    yield over()


async def command_missing(play: Play) -> AsyncGenerator[Sight, None]:
    """With ``restartPolicy: Never``: no container waits, each pod is over."""
    await play.create(play.job(backoffLimit=6), nodeName=NODE, restartPolicy="Never")
    why = 'exec: "trian": executable file not found in $PATH'
    text = f"failed to create containerd task: {why}: unknown"
    ended = {"terminated": {"exitCode": 128, "reason": "StartError", "message": text}}
    container = {"name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    for _ in range(2):
        await writes(play, {"phase": "Failed", "containerStatuses": [container]})
    yield told("CreateContainerError", why)
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
    await play.create(play.job(parallelism=1, completions=5, completionMode="Indexed"), nodeName=NODE)
    await writes(play, RUNNING)
    rule = Rule("object.spec.parallelism == oldObject.spec.parallelism", "parallelism is frozen")
    await rule.enforce(play.on(), play.namespace)
    await until_refused(play.on(), f"{play.scene.jobs('east')}/{JOB}", {"spec": {"parallelism": 2}})
    await play.scene.patch(JOB, {"spec": {"parallelism": 3}})
    yield told("ChangeRefused", "denied by ValidatingAdmissionPolicy change-refused: parallelism is frozen")
    await rule.lift(play.on(), play.namespace)
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


async def image_invalid(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    why = 'Failed to apply default image tag "Train:1": couldn\'t parse image name "Train:1": invalid reference format'
    await writes(play, waiting("InvalidImageName", why, image="Train:1"))
    yield told("InvalidImage", "invalid reference format")
    await writes(play, RUNNING)
    yield over()


async def too_much_goes_along(play: Play) -> AsyncGenerator[Sight, None]:
    body = play.job(annotations={**EU, "carry": "configmaps"})
    named = [{"configMapRef": {"name": f"settings-{number}", "optional": True}} for number in range(51)]
    await play.create(body, containers=[{"name": "main", "image": "any", "envFrom": named}])
    yield told("DependencyRefused", "it refers to more than 50 objects that are to go along")
    await play.create_anew()
    yield over()


async def copying_forbidden(play: Play) -> AsyncGenerator[Sight, None]:
    """The settings keep Secrets here: the Job runs without, and an event says so."""
    await play.create(play.job(annotations={**EU, "carry": "secrets"}), volumes=[_mounted("keys")])
    await play.scene.source_until(JOB, placed_on)
    yield Sight("", placed_on, ("DependencyNotCopied", "Secret keys: not copied, since the settings (dependencies)"))
    await play.create_anew()
    yield over(lambda found: placed_on(found) and progresses(found))


def _mounted(secret: str) -> Json:
    return {"name": secret, "secret": {"secretName": secret, "optional": True}}


async def labels_removed(play: Play) -> AsyncGenerator[Sight, None]:
    """Whatever removes them does so each time that they are back."""
    await play.create()
    await play.scene.source_until(JOB, runs())

    async def remove() -> None:
        without = {"metadata": {"labels": {names.ORIGIN: None, names.SOURCE_UID: None}}}
        while True:
            await play.scene.mirror_until("east", JOB, _is_labeled, seconds=600)
            await play.on().merge(f"{play.scene.jobs('east')}/{JOB}", without)

    async with asyncio.TaskGroup() as scope:
        removing = scope.create_task(remove(), name="remove labels")
        yield told("LabelsRemoved", "worker east removes the labels of the mirror")
        removing.cancel()
    yield over()


def _is_labeled(found: Json | None) -> bool:
    return found is not None and names.ORIGIN in found["metadata"].get("labels", {})


async def mirror_gone_before_its_pods(play: Play) -> AsyncGenerator[Sight, None]:
    """It is to start over, and whoever could tell that its pods have ended is away."""
    await play.create(play.job(annotations={**EU, "on-mirror-loss": "Recreate"}), nodeName=NODE)
    await writes(play, RUNNING)
    await play.scene.source_until(JOB, runs())
    pod = await pod_of(play)
    await play.on().delete(f"{play.scene.jobs('east')}/{JOB}")
    yield told("MirrorNotFound", "the Job starts over once its pods there have ended")
    await forced_out(play, pod)
    await writes(play, RUNNING)
    yield over(lambda found: runs()(found) and progresses(found))


async def lease_expired(play: Play) -> AsyncGenerator[Sight, None]:
    """Somebody on the worker makes it shorter than the Job has run; its Job controller ends it."""
    await play.create(play.job(annotations={**EU, "on-worker-loss": "Fence"}), nodeName=NODE)
    await writes(play, RUNNING)
    await play.scene.source_until(JOB, runs())
    mirror, pod = f"{play.scene.jobs('east')}/{JOB}", await pod_of(play)
    await play.scene.mirror_until("east", JOB, lambda found: found and found["spec"].get("activeDeadlineSeconds"))
    await play.on().merge(mirror, {"spec": {"activeDeadlineSeconds": 1}})
    yield told("LeaseExpired", "the lease on worker east has expired")
    await forced_out(play, pod)
    await writes(play, RUNNING)
    yield over(lambda found: runs()(found) and progresses(found))


async def record_refused(play: Play) -> AsyncGenerator[Sight, None]:
    """No condition can say so: it is what is refused."""
    is_placed = f"c.type == '{names.PLACED}' && c.status == 'True'"
    rule = Rule(
        f"!has(object.status.conditions) || !object.status.conditions.exists(c, {is_placed})",
        "nothing is placed on Sundays",
        resource="jobs/status",
    )
    await rule.enforce(play.client, play.namespace)
    now = "2026-01-01T00:00:00Z"
    placed = {"type": names.PLACED, "status": "True", "reason": "Placed", "lastTransitionTime": now}
    await play.until_status_refused({"conditions": [placed]})
    await play.create()
    text = "the API server rejects the record of a worker: denied by ValidatingAdmissionPolicy record-refused: nothing"
    yield Sight("", waits_because(text), ("RecordRefused", text))
    await rule.lift(play.client, play.namespace)
    yield over()


async def status_refused(play: Play) -> AsyncGenerator[Sight, None]:
    """Nothing on the Job can say so but events, and it clears by itself."""
    rule = Rule("!has(object.status.ready) || object.status.ready == 0", "ready is frozen", resource="jobs/status")
    await rule.enforce(play.client, play.namespace)
    await play.until_status_refused({"active": 1, "ready": 1})
    await play.create()
    text = "the API server rejects the status: denied by ValidatingAdmissionPolicy status-refused: ready is frozen"
    yield Sight("", placed_on, ("StatusRefused", text))
    await rule.lift(play.client, play.namespace)
    yield over(lambda found: runs()(found) and progresses(found))


async def release_refused(play: Play) -> AsyncGenerator[Sight, None]:
    """The webhook has held it, and somebody has forgotten the rights that come with the webhook."""
    await play.create(play.job(suspend=True, annotations={**EU, "held": "true"}))
    yield told("ReleaseRefused", "held by our webhook, and may not be unsuspended: not allowed to patch jobs (403")
    for one in shipped.read("webhook", namespace=play.stage.manager.namespace):
        await shipped.put(play.client, one)
    yield over(lambda found: runs()(found) and progresses(found))


STORIES = (
    scheduler_missing, claim_of_device_missing, kubelet_away, probe_fails, probe_kills, pull_secret_missing,
    node_not_ready, network_not_ready,
    pods_do_not_end, device_missing, pods_preempted, command_missing, scheduling_gated, init_container_crashes,
    quota_wants_limits, suspended_there, mirror_kept, change_refused, dependency_differs, annotations_without_effect,
    image_invalid, too_much_goes_along, copying_forbidden, labels_removed, mirror_gone_before_its_pods, lease_expired,
    record_refused, status_refused, release_refused,
)  # fmt: skip
