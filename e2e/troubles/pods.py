"""Pods that do not run: what kubelets and the scheduler say of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.controlplane.client import Json
from e2e.jobs import placed_on, runs
from e2e.troubles.kubelet import (
    FULL_DISK,
    NODE,
    RUNNING,
    ends_unstarted,
    forced_out,
    pod_that_goes,
    waiting,
    warns,
    writes,
)
from e2e.troubles.stage import EU, JOB, Play, Sight, over, progresses, says

HERE: Json = {"nodeName": NODE}


async def wrong_image(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE, containers=[{"name": "main", "image": "trian:1"}])
    image = 'Back-off pulling image "trian:1": ErrImagePull: docker.io/library/trian:1: not found'
    await writes(play, waiting("ImagePullBackOff", image, image="trian:1"))
    yield Sight("An image cannot be pulled", says("ImagePullBackOff"))
    await writes(play, RUNNING)
    yield over()


async def config_map_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    await writes(play, waiting("CreateContainerConfigError", 'configmap "settings" not found'))
    yield Sight("A ConfigMap is not on the worker", says("CreateContainerConfigError"))
    await writes(play, RUNNING)
    yield over()


async def secret_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE)
    await warns(play, "FailedMount", 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found')
    yield Sight("A Secret that is mounted is not on the worker", says("FailedMount"))
    await writes(play, RUNNING)
    yield over()


async def memory_too_small(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(backoffLimit=20), nodeName=NODE, restartPolicy="OnFailure")
    killed = {"reason": "OOMKilled", "exitCode": 137}
    back_off = "back-off 5m0s restarting failed container=main"
    await writes(play, waiting("CrashLoopBackOff", back_off, last=killed, restarts=6))
    yield Sight("A container is killed for lack of memory, again and again", says("CrashLoopBackOff", "OOMKilled"))
    await writes(play, RUNNING)
    yield over()


async def wrong_command(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeName=NODE, restartPolicy="OnFailure")
    why = 'exec: "trian": executable file not found in $PATH'
    await writes(play, waiting("RunContainerError", f"failed to create containerd task: {why}: unknown"))
    yield Sight("A command does not exist in the image", says("CreateContainerError"))
    await writes(play, RUNNING)
    yield over()


async def pods_fail(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(run_for="100ms", exit_code=3, backoffLimit=6))
    yield Sight("Pods fail one after the other", says("PodsFailing"))
    await play.create_anew()
    yield over()


async def disk_full(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(backoffLimit=6), nodeName=NODE)
    why = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 12Mi."
    await writes(play, {"phase": "Failed", "reason": "Evicted", "message": why})
    yield Sight("A node's disk is full: pods are evicted", lambda found: says("Evicted")(found) and is_active(found))
    await writes(play, RUNNING)
    yield over()


async def disk_pressure(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeSelector={"disk": "full"})
    yield Sight("A node's disk is full: pods are not scheduled", says("Unschedulable", "untolerated taint"))
    # In life the disk is cleaned and the taint goes; other stories here rely on it.
    taint = {"key": FULL_DISK, "operator": "Exists"}
    await play.create_anew(None, nodeSelector={"disk": "full"}, tolerations=[taint])
    await writes(play, RUNNING)
    yield over()


async def too_large(play: Play) -> AsyncGenerator[Sight, None]:
    requests = {"requests": {"cpu": "200k"}}
    await play.create(containers=[{"name": "main", "image": "any", "resources": requests}])
    yield Sight("No node is large enough", says("Unschedulable", "Insufficient cpu"))
    await play.create_anew()
    yield over()


async def no_such_node(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(nodeSelector={"gpu": "a100"})
    yield Sight("No node has the labels that pods ask for", says("Unschedulable", "affinity/selector"))
    await play.create_anew()
    yield over()


async def claim_missing(play: Play) -> AsyncGenerator[Sight, None]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    await play.create(volumes=[volume])
    yield Sight("A PersistentVolumeClaim is not on the worker", says("Unschedulable", "persistentvolumeclaim"))
    await play.create_anew()
    yield over()


async def carried_config_map_missing(play: Play) -> AsyncGenerator[Sight, None]:
    volume = {"name": "settings", "configMap": {"name": "settings"}}
    await play.create(play.job(annotations={**EU, "carry": "configmaps"}), volumes=[volume])
    yield Sight("A ConfigMap that is to go along does not exist", says("DependencyMissing"))
    await play.client.create(f"{play.core}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "b"}})
    yield over()


async def pods_not_ready(play: Play) -> AsyncGenerator[Sight, None]:
    """Nothing says why: the kubelet has begun, and not said a word since."""
    await play.create(nodeName=NODE)
    await writes(play, waiting("ContainerCreating", ""))
    yield Sight("Pods are not ready, and nothing says why", says("PodsNotReady"))
    await writes(play, RUNNING)
    yield over(progresses)


async def tried_elsewhere(play: Play) -> AsyncGenerator[Sight, None]:
    """Its pod has a node there: what the kubelet writes last says that nothing of it ran."""
    async with play.stage.west:
        await _has_no_image(play)
        yield Sight("No pod starts, and another worker may run the Job", says("RetryingElsewhere"))
        await ends_unstarted(play)
        yield over(lambda found: placed_on(found) == "west" and progresses(found))
        await play.clear()


async def stays_after_all(play: Play) -> AsyncGenerator[Sight, None]:
    """The image comes while the copy is being stopped."""
    async with play.stage.west:
        await _has_no_image(play)
        await play.scene.source_until(JOB, says("RetryingElsewhere"), seconds=240)
        await play.scene.event(JOB, "RetryingElsewhere")
        pod = await pod_that_goes(play)
        await writes(play, RUNNING)
        await play.scene.event(JOB, "RetryGivenUp")
        await forced_out(play, pod)
        await writes(play, RUNNING)
        yield Sight("A pod has run after all: the Job stays", lambda found: runs()(found) and progresses(found))
        yield over(lambda found: placed_on(found) == "east" and progresses(found))
        await play.clear()


async def _has_no_image(play: Play) -> None:
    """The Job, on ``east`` first, where its image cannot be pulled."""
    either = {"worker-selector": "region in (eu, us)", "worker-order": "east"}
    await play.create(play.job(annotations=either, backoffLimit=6), nodeName=NODE)
    await writes(play, waiting("ErrImagePull", "docker.io/library/any:latest: not found"))
    await play.scene.event(JOB, "ImagePullBackOff")


def is_active(found: Json | None) -> bool:
    """Whether there is a new pod."""
    return bool(found and found["status"].get("active"))


STORIES = (
    wrong_image, config_map_missing, secret_missing, carried_config_map_missing, claim_missing, wrong_command,
    memory_too_small, pods_fail, disk_full, disk_pressure, too_large, no_such_node, pods_not_ready,
    tried_elsewhere, stays_after_all,
)  # fmt: skip
