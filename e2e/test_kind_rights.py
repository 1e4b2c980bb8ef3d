"""The rights in ``config/rbac/kinds`` on real API servers: of every kind each right is used, and none is lacking.

The kinds have their own definitions, and no controllers: statuses are played, and what stands between mirrors and their
pods is made by the test. Rights for Jobs: ``test_shipped_rights``.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import Mapping, Sequence

import msgspec
import pytest
import yaml

from e2e import operators, shipped, shipped_life
from e2e.controlplane.client import JSON_PATCH, Json
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import defined
from e2e.go_modules import definition_of
from e2e.jobs import Scene, job, until
from e2e.kind_choice import ALL
from e2e.lives import KINDS, Kind, Lives
from e2e.manager import ManagerProcess
from e2e.operator_table import RAYJOBS
from e2e.people import Person, may_read, person
from e2e.played_statuses import status_of
from e2e.serving import serving_manager
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.form import resource_of
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.settings.kind_rules import need_parts
from mirror.settings.kinds import KindEntry
from mirror.workers.pod_owners import ASKED_SINGLY
from tests.doubles.carried_parts import SAMPLES

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

_AT = "2026-01-01T00:00:00Z"


async def test_every_kind_uses_every_right_on_it_and_lacks_none() -> None:
    """On servers that make it list before it watches."""
    async with shipped_life.old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, f"team-{uuid.uuid4().hex[:6]}")
        await scene.make_namespace()
        await scene.make_namespace("east")
        clients = (scene.client, scene.client_of("east"))
        for kind in ALL:  # all of them at once are megabytes, in which a server takes no other connection for seconds
            await asyncio.gather(*(operators.define(client, kind.resource) for client in clients))
        settings: Json = {"kinds": [str(kind) for kind in ALL]}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            all_lives = [Lives(scene, kind, manager.managed_by) for kind in ALL]
            for lives in all_lives:
                await lives.prepare()
            await asyncio.gather(*map(_live, all_lives))
            await _go_unseen(manager, all_lives)
            await manager.stop()
            user, namespace = shipped.user_of(manager.namespace), manager.namespace
            entries, on_east = await management.audit_entries(), await east.audit_entries()
        await scene.close()

    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    for kind in ALL:
        assert shipped.spare(_given("management", kind, namespace), entries, user) == set()
        assert shipped.spare(_given("worker", kind, namespace), on_east, user) == set()


def _given(side: str, kind: Kind, namespace: str) -> set[shipped.Permission]:
    """What its file gives on the kind itself."""
    objects = shipped.read(f"kinds/{side}-{str(kind).lower()}", namespace=namespace)
    return {one for one in shipped.rights(objects) if one.resource.partition("/")[0] == kind.resource.plural}


CHAINS = {
    "TrainJob": (("JobSet", "Job"),),
    "PipelineRun": (("TaskRun",),),
    "RayJob": (("RayCluster",), ("Job",)),
    "RayService": (("RayCluster",),),
    "AppWrapper": (
        *(("Job",), ("JobSet", "Job"), ("PyTorchJob",), ("RayCluster",)),
        *(("RayJob", "RayCluster"), ("RayJob", "Job")),
    ),
}
"""By kind, what may stand between one and its pods, its own child first; of the others it is nothing, or Jobs."""


@pytest.mark.parametrize("kind", [kind for kind in ALL if str(kind) in CHAINS], ids=str)
async def test_every_right_on_what_is_between_it_and_its_pods_is_used_and_none_is_lacking(
    kind: Kind, management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """A user finds the pods of each chain of owners: a few of them, which are asked for by name, and many."""
    chains = CHAINS[str(kind)]
    definitions = [definition_of(name) for name in sorted({str(kind), *itertools.chain(*chains)} - {"Job"})]
    before = len(await east.audit_entries())
    async with (
        defined((scene.client, scene.client_of("east")), definitions),
        serving_manager(management, {"east": east}, settings={"kinds": [str(kind)]}) as manager,
    ):
        lives = Lives(scene, kind, manager.managed_by)
        await lives.create("kept")
        await _say(lives, "kept", "running")
        ann = await person(management, scene.namespace, "ann", manager, may_view=True)
        await may_read(scene.client, ann, "ann", kind.resource)
        for chain in chains:
            await _make_pod(lives, chain, "kept")
        expected = await _pods(lives, len(chains))
        assert await _found_by(ann, kind) == expected
        chain = chains[0]
        if len(chain) == 1 and chain != ("Job",):
            for number in range(ASKED_SINGLY):
                await _make_pod(lives, chain, f"more-{number}")
            expected = await _pods(lives, len(chains) + ASKED_SINGLY)
            assert await _found_by(ann, kind) == expected
        user, namespace = shipped.user_of(manager.namespace), manager.namespace
    entries = (await east.audit_entries())[before:]
    assert shipped.refused(entries) == []
    given = set(shipped.rights(shipped.read(f"kinds/worker-{str(kind).lower()}", namespace=namespace)))
    # What an object names is looked for by mirror diff, which looks at no pod.
    named = {need_parts(text)[1].partition(".")[0] for text in built_in()[str(kind)].needs}
    owners = {one for one in given - _given("worker", kind, namespace) if one.resource not in named}
    assert owners
    assert shipped.spare(owners, entries, user) == set()


async def _make_pod(lives: Lives, chain: Sequence[str], name: str) -> None:
    """Be the controllers on the worker that make what is in this chain, and a pod at its end, but for those of Jobs.

    The Job that submits a RayJob has its name, by which its pods are found.
    """
    there, namespace = lives.scene.client_of("east"), lives.scene.namespace
    owner = await there.get(lives.path("kept"))
    labels = _labels_of_pods(lives.kind, owner) if lives.kind.resource != RAYJOBS or chain[-1] != "Job" else {}
    for place, child in enumerate(chain):
        called = f"{name}-{'-'.join(chain)}-{place}".lower() if labels else name
        metadata = {"name": called, "labels": labels, "ownerReferences": [_controlled_by(owner)]}
        if child == "Job":
            body, collection = job("any", run_for="never"), lives.scene.jobs("east")
            body["spec"]["template"]["metadata"]["labels"] = labels
        else:
            body = yaml.safe_load((SAMPLES / f"{child.lower()}.yaml").read_text())
            collection = resource_of(built_in()[child].resource, child).path(namespace)
        owner = await there.create(collection, {**body, "metadata": metadata})
    if chain[-1] != "Job":
        metadata = {"name": owner["metadata"]["name"], "labels": labels, "ownerReferences": [_controlled_by(owner)]}
        spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}
        await there.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": spec})


def _labels_of_pods(kind: Kind, mirror: Json) -> dict[str, str]:
    """What the entry of its kind says of them."""
    model = kinds_of([KindEntry(kind=str(kind))])[str(kind)]
    selector, *_ = model.pod_selectors(decode_object(msgspec.json.encode(mirror)))
    return dict(one.split("=") for one in selector.split(","))


def _controlled_by(owner: Json) -> Json:
    named = {key: owner[key] for key in ("apiVersion", "kind")}
    return {**named, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}


async def _found_by(ann: Person, kind: Kind) -> set[str]:
    """The pods that a user is shown."""
    listed = json.loads(await ann.mirror("pods", f"{kind}/kept".lower(), "-o", "json"))["items"]
    return {one["name"] for one in listed}


async def _pods(lives: Lives, count: int) -> set[str]:
    """All pods of the namespace on the worker, once there are so many."""
    path = f"/api/v1/namespaces/{lives.scene.namespace}/pods"
    found = await until(lambda: lives.scene.client_of("east").list(path), lambda found: len(found) == count)
    return {one["metadata"]["name"] for one in found}


async def _live(lives: Lives) -> None:
    """One that runs, and is labelled; one whose mirror vanishes; one whose time to live is over."""
    await lives.create("kept")
    await lives.create("waiting")
    mirror = (await until(lambda: lives.mirrors("waiting"), describe=lambda: lives.describe("waiting")))["east"]
    there = lives.scene.client_of("east")
    await there.delete(lives.path("waiting"))
    await until(lambda: _is_dealt_with(lives, mirror["metadata"]["uid"]), describe=lambda: lives.describe("waiting"))
    await _say(lives, "kept", "running")
    await lives.scene.client.merge(lives.path("kept"), {"metadata": {"labels": {"team": "a"}}})
    await there.wait_until(lives.path("kept"), lambda found: found and found["metadata"]["labels"].get("team") == "a")
    if lives.kind.has_ttl:
        await lives.create("over", ttlSecondsAfterFinished=0)
        await _say(lives, "over", "succeeded")
        await lives.until(lambda found: found is None, "over")


async def _is_dealt_with(lives: Lives, uid: str) -> bool:
    """Whether the loss of this mirror was: there is another, or the source has failed."""
    found = (await lives.mirrors("waiting")).get("east")
    return (found is not None and found["metadata"]["uid"] != uid) or lives.is_over(await lives.source("waiting"))


async def _say(lives: Lives, name: str, phase: str) -> None:
    """Be the worker's controller, once there is a mirror, until the source says something of it."""
    await until(lambda: lives.mirrors(name), describe=lambda: lives.describe(name))
    change = [{"op": "add", "path": "/status", "value": _status(lives.kind, phase)}]
    await lives.scene.client_of("east").call("PATCH", f"{lives.path(name)}/status", change, JSON_PATCH)
    if phase == "running":
        await lives.until(lambda found: bool((found or {}).get("status")), name)


def _status(kind: Kind, phase: str) -> Json:
    if kind not in KINDS:
        return status_of(str(kind), phase)
    said: Mapping[str, str] = {"running": "Running", "succeeded": kind.succeeded}
    one = {"type": said[phase], "status": "True", "reason": "Played", "message": "played", "lastTransitionTime": _AT}
    return {"conditions": [one]}


async def _go_unseen(manager: ManagerProcess, all_lives: list[Lives]) -> None:
    """Sources go while nobody looks; their mirrors are deleted once somebody does."""
    await manager.kill()
    await asyncio.gather(*(lives.delete("kept") for lives in all_lives))
    # Nobody waits for its end.
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{manager.namespace}/leases"
    await manager.client.delete(f"{leases}/{names.LEASE}")
    manager.launch()
    await manager.wait_until_ready()
    await asyncio.gather(*(lives.until_no_mirror("kept") for lives in all_lives))
