"""Lives in which every right in ``config/rbac`` is used, on real servers: of a manager, and of our Job controller.

Used by ``test_shipped_rights``, which compares what is given with what is used, and by ``without_rights``, which takes
rights away. Not here: which rights there are (``shipped``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp

from e2e.controlplane.client import JSON_PATCH, Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import JOB_CONTROLLERS, MANAGEMENT, WORKER
from e2e.controlplane.kubeconfigs import read_kubeconfig
from e2e.job_controller import with_gangs
from e2e.jobs import Scene, indexed, is_complete, is_suspended, job, runs, until
from e2e.lives import ours_beside
from e2e.manager import ManagerProcess
from mirror.kinds.base import HELD
from mirror.model import names

OLD = ("--feature-gates=WatchList=false",)
"""Servers that know no watch that begins with what is there: their clients have to list."""
ENFORCED = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
"""Whoever makes an object that blocks the deletion of its owner needs a right on that."""
_OTHERS = ("job-controller", "ttl-after-finished-controller")
"""What of kube-controller-manager ours takes the place of."""
USER = "jane"
_ACCESS = {"access": {"enabled": True, "url": "https://jobmirror.example"}}
_HTTPS = {"webhook": {"enabled": True}, "https": {"listen": "127.0.0.1:0"}}
SHARDING: Json = {
    "leaderElection": {"leaseDuration": "10s", "renewDeadline": "8s", "retryPeriod": "1s"},
    "sharding": {"slots": 2},
}
"""Settings of one of several active managers."""
SERVING: Json = {**_HTTPS, **_ACCESS, "workers": {"createNamespaces": True}}
"""Settings with which rights on whom to trust, users and pods come in."""
COPYING: Json = {
    "dependencies": {"configMaps": True, "secrets": True, "serviceAccounts": True, "interval": "2s"},
    "sweep": {"interval": "2s"},
}
"""Settings with which what pods refer to goes along."""
WATCHING: Json = {"workers": {"watchPods": "labelled"}}
"""Settings with which it is told why pods do not run."""
PULLING: Json = {"phase": "Pending", "containerStatuses": [{
    "name": "main", "image": "nope:1", "imageID": "", "ready": False, "restartCount": 0,
    "state": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:1"'}},
}]}  # fmt: skip
"""What a kubelet says of a pod whose image is not there."""


def chosen_settings(namespace: str) -> Json:
    """Settings with which namespaced Roles take the place of all ClusterRoles on Jobs."""
    return {**_HTTPS, "namespaces": [namespace]}


@asynccontextmanager
async def old_clusters() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A management cluster and a worker, which knows the webhook's configurations but reaches nobody."""
    async with (
        Cluster.start("management", replace(MANAGEMENT, apiserver_args=OLD)) as management,
        Cluster.start("east", replace(WORKER, apiserver_args=OLD)) as east,
    ):
        yield management, east


@asynccontextmanager
async def strict_cluster(*, has_gangs: bool = False) -> AsyncIterator[Cluster]:
    """One whose Jobs nobody runs yet, and whose admission asks for every right that some distributions ask for."""
    kept = ",".join(one for one in JOB_CONTROLLERS.split(",") if one not in _OTHERS)
    shape = replace(WORKER, controllers=kept, apiserver_args=(*OLD, ENFORCED))
    async with Cluster.start("here", with_gangs(shape) if has_gangs else shape) as cluster:
        yield cluster


async def life(manager: ManagerProcess, scene: Scene) -> None:
    """What makes use of every right: an end, a suspension, a mirror that vanishes, a source that goes unseen."""
    (worker,) = scene.workers
    await scene.create(job("done", manager.managed_by), job("kept", manager.managed_by, run_for="never"))
    await scene.source_until("done", is_complete)
    await scene.source_until("kept", runs())
    await scene.patch("kept", {"spec": {"suspend": True}})
    await scene.mirror_until(worker, "kept", lambda found: found and found["spec"]["suspend"])
    # Somebody takes away a mirror that has not started: it is looked for, and made again.
    await scene.create(job("waiting", manager.managed_by, run_for="never"))
    first = await scene.mirror_until(worker, "waiting", bool)
    await scene.client_of(worker).delete(f"{scene.jobs(worker)}/waiting")
    await until(lambda: told(manager, scene, first["metadata"]["uid"]), describe=lambda: scene.describe("waiting"))
    # The same cluster a second time is refused, and its Secret says so.
    await manager.register("twin", scene.planes[worker])
    await until(lambda: manager.worker_events("twin", "IdentityRejected"))
    # A source goes while nobody looks.
    await manager.kill()
    await scene.delete("kept")
    await manager.client.delete(  # nobody waits for its end
        f"/apis/coordination.k8s.io/v1/namespaces/{manager.namespace}/leases/{names.LEASE}"
    )
    manager.launch()
    await manager.wait_until_ready()
    await scene.until_no_mirror("kept")


async def told(manager: ManagerProcess, scene: Scene, uid: str) -> bool:
    """Whether the loss of this mirror was dealt with: there is another, or the source has failed."""
    (worker,) = scene.workers
    found, source = await scene.mirror(worker, "waiting"), await scene.source("waiting")
    conditions = (source or {}).get("status", {}).get("conditions") or ()
    is_failed = any(one["type"] == "Failed" and one["status"] == "True" for one in conditions)
    return is_failed or bool(found and found["metadata"]["uid"] != uid)


async def held_life(manager: ManagerProcess, scene: Scene) -> None:
    """A Job that is suspended as if the webhook had held it, which nobody can reach here, is released."""
    await scene.create(job("held", manager.managed_by, annotations={"held": HELD}, suspend=True))
    await scene.source_until("held", is_complete)


async def serving_life(manager: ManagerProcess, scene: Scene) -> None:
    """A held Job, a lost authority, and a user who reads what there is to read of a Job.

    The webhook's configurations must be there (``config/webhook.yaml``).
    """
    (worker,) = scene.workers
    jane = await make_user(scene)
    await scene.create(job("long", manager.managed_by, run_for="never"))
    await scene.source_until("long", runs())
    (pod,) = await scene.pods(worker, "long")
    await held_life(manager, scene)
    # What is kept of certificates is lost; a new authority is made, and told.
    async with Client(jane) as client:
        first = await until(lambda: _told_where(manager, client))
        secret = f"/api/v1/namespaces/{manager.namespace}/secrets/{names.HTTPS_SECRET}"
        await manager.stop()
        await manager.client.call("PATCH", secret, [{"op": "remove", "path": "/data"}], JSON_PATCH)
        manager.launch()
        await manager.wait_until_ready()
        await until(lambda: _told_where(manager, client), lambda found: found != first)
    one, headers = f"/v1/namespaces/{scene.namespace}/jobs/long", read_kubeconfig(jane).headers
    for what in ("", "/pods", "/events"):
        assert await _ask(manager, one + what, headers) == 200, what
    # A log takes a kubelet. That it was asked for is seen by who looks at the worker's audit log.
    await _ask(manager, f"{one}/log?pod={pod['metadata']['name']}", headers)


NEEDED: Mapping[str, Json] = {
    "configmaps": {"metadata": {"name": "settings"}, "data": {"level": "1"}},
    "secrets": {"metadata": {"name": "token"}, "stringData": {"key": "first"}},
    "serviceaccounts": {"metadata": {"name": "builder"}, "automountServiceAccountToken": False},
}
"""What the pods of ``needing`` need, by resource."""


def needing(name: str, managed_by: str, *, run_for: str = "300ms") -> Json:
    """A Job whose pods refer to one object of each kind that goes along."""
    body = job(name, managed_by, annotations={"carry": ",".join(NEEDED)}, run_for=run_for)
    pod = body["spec"]["template"]["spec"]
    pod["serviceAccountName"] = "builder"
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "token"}}]
    return body


async def copying_life(manager: ManagerProcess, scene: Scene) -> None:
    """Copies that are made, shared, changed, and never owned, of which each kind's are deleted by the sweep."""
    (worker,) = scene.workers
    here, there = scene.client, scene.client_of(worker)
    core = f"/api/v1/namespaces/{scene.namespace}"
    for plural, body in NEEDED.items():
        await here.create(f"{core}/{plural}", body)
    await scene.create(needing("one", manager.managed_by, run_for="never"))
    await scene.source_until("one", runs())
    changes: Mapping[str, Json] = {
        "configmaps": {"data": {"level": "2"}},
        "secrets": {"data": {"key": "c2Vjb25k"}},
        "serviceaccounts": {"automountServiceAccountToken": True},
    }
    for plural, change in changes.items():
        path = f"{core}/{plural}/{NEEDED[plural]['metadata']['name']}"
        await here.merge(path, change)
        await until(partial(there.get, path), partial(_has, change))
    # A second Job shares them; after a restart nobody remembers that they are there.
    await manager.restart()
    await scene.create(needing("two", manager.managed_by, run_for="never"))
    await scene.source_until("two", runs())
    # Copies that were made for a Job which went before it had a mirror.
    for plural in NEEDED:
        marks = {names.COPY_OF: "u/1", f"{names.COPIED_FOR}u": "Job/gone"}
        metadata = {"name": "left", "labels": {names.ORIGIN: manager.identity.origin}, "annotations": marks}
        await there.create(f"{core}/{plural}", {"metadata": metadata})
    for plural in NEEDED:
        await until(partial(_is_gone, there, f"{core}/{plural}/left"), bool)


def obstruction_of(found: Json | None) -> Json:
    """The condition that says why a source makes no progress, or ``{}``; of a RayJob it is in the annotation."""
    listed: Sequence[Json] = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((one for one in (*listed, *ours_beside(found)) if one["type"] == names.PROGRESSING), {})


def is_obstructed_by(reason: str | None) -> Callable[[Json | None], bool]:
    return lambda found: found is not None and obstruction_of(found).get("reason") == reason


def unscheduled(name: str, managed_by: str) -> Json:
    """A Job whose pods wait for a scheduler that does not exist, so that a test is their kubelet."""
    body = job(name, managed_by, run_for="never")
    body["spec"]["template"]["spec"]["schedulerName"] = "nobody"
    return body


async def pods_life(manager: ManagerProcess, scene: Scene) -> None:
    """A pod whose image is not there, which its status says, and a volume that is not, which only an event does."""
    (worker,) = scene.workers
    there = scene.client_of(worker)
    core = f"/api/v1/namespaces/{scene.namespace}"
    await scene.create(unscheduled("image", manager.managed_by), unscheduled("volume", manager.managed_by))
    pods: dict[str, Json] = {}
    for name in ("image", "volume"):
        await scene.source_until(name, lambda found: bool((found or {}).get("status", {}).get("active")))
        (pods[name],) = await scene.pods(worker, name)
    await there.merge(f"{core}/pods/{pods['image']['metadata']['name']}/status", {"status": PULLING})
    await scene.source_until("image", is_obstructed_by("ImagePullBackOff"))
    await there.create(f"{core}/events", failed_mount(pods["volume"]))
    await scene.source_until("volume", is_obstructed_by("FailedMount"))


def failed_mount(pod: Json) -> Json:
    """The event of a kubelet that cannot mount a volume of this pod."""
    about = {key: pod["metadata"][key] for key in ("namespace", "name", "uid")}
    return {
        "metadata": {"name": f"{about['name']}.mount", "namespace": about["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
        "type": "Warning",
        "reason": "FailedMount",
        "message": 'MountVolume.SetUp failed for volume "settings": configmap "settings" not found',
        "source": {"component": "kubelet"},
        "lastTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _has(change: Json, found: Json) -> bool:
    return change.items() <= found.items()


async def _is_gone(client: Client, path: str) -> bool:
    try:
        await client.get(path)
    except StatusError as error:
        return error.status == 404
    return False


async def make_user(scene: Scene) -> Path:
    """The kubeconfig of a user who may see what there is in the scene's namespace."""
    kubeconfig = await scene.management.service_account_kubeconfig(scene.namespace, USER)
    who = f"--serviceaccount={scene.namespace}:{USER}"
    await scene.management.kubectl(
        *("create", "rolebinding", USER, "--clusterrole=view", who, "--namespace", scene.namespace)
    )
    return kubeconfig


async def _told_where(manager: ManagerProcess, user: Client) -> str:
    """The authority in the ConfigMap that tells users where access is."""
    found = await user.get(f"/api/v1/namespaces/{manager.namespace}/configmaps/{names.ACCESS_CONFIGMAP}")
    return str(found["data"].get("ca.crt", ""))


async def _ask(manager: ManagerProcess, path: str, headers: Mapping[str, str]) -> int:
    """The status of an answer of the manager's HTTPS address."""
    (*_, line) = (line for line in manager.log_lines() if " https: serving listen=" in line)
    address = line.rpartition("listen=")[2].split()[0]
    timeout = aiohttp.ClientTimeout(total=120)
    async with (
        aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
        session.get(f"https://{address}{path}", ssl=False) as answer,
    ):
        await answer.read()
        return answer.status


async def renewing_life(manager: ManagerProcess, scene: Scene) -> None:
    """A worker's token is due (``aged``): the Secret gets a new one, within half a minute."""
    (worker,) = scene.workers
    secret = f"/api/v1/namespaces/{manager.namespace}/secrets/{worker}"
    before = (await manager.client.get(secret))["data"]
    await manager.client.wait_until(secret, lambda found: found and found["data"] != before)


async def sharded_life(manager: ManagerProcess, scene: Scene) -> None:
    """One of several active managers, alone: it takes all slots, works, and takes its leave."""
    await scene.create(job("done", manager.managed_by))
    await scene.source_until("done", is_complete)
    await manager.stop()
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{manager.namespace}/leases"
    await until(lambda: manager.client.list(leases), lambda found: not any(map(is_of_a_member, found)))


def is_of_a_member(lease: Json) -> bool:
    return str(lease["metadata"]["name"]).startswith(names.MEMBER_LEASE)


async def life_of_jobs(scene: Scene) -> None:
    """A short time to live, two suspensions, which one event tells, and a pod that loses its owner."""
    (here,) = scene.workers
    await scene.create(job("short", ttlSecondsAfterFinished=0), job("long", run_for="never"))
    await scene.source_until("long", runs())
    for _ in range(2):
        await scene.patch("long", {"spec": {"suspend": True}})
        await scene.source_until("long", is_suspended)
        await scene.patch("long", {"spec": {"suspend": False}})
        await scene.source_until("long", runs())
    # After pods have been deleted: who may not delete them may not give them an owner here, either.
    (pod,) = (one for one in await scene.pods(here, "long") if "deletionTimestamp" not in one["metadata"])
    path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
    await scene.client.merge(path, {"metadata": {"ownerReferences": None}})
    await scene.client.wait_until(path, lambda found: found and found["metadata"].get("ownerReferences"))
    await until(lambda: _times_told(scene), lambda times: times == 2)
    await scene.source_until("short", lambda found: found is None)


async def life_of_gangs(scene: Scene) -> None:
    """A Job whose pods are scheduled together."""
    await scene.create(indexed("gang", completions=2))
    await scene.source_until("gang", is_complete)


async def _times_told(scene: Scene) -> int:
    """How often one event says that the Job was suspended."""
    path = f"/api/v1/namespaces/{scene.namespace}/events"
    events = await scene.client.list(path, fieldSelector="reason=Suspended")
    return max((int(event.get("count") or 1) for event in events), default=0)
