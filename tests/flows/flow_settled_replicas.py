"""What must be so in the end of a world in which anybody edited anything; as ``flow_settled`` for the quieter one.

First people put right what only people can: admission, workers' Secrets as the record of workers knows them, Jobs of
others in the way. What is left is the manager's.
"""

from __future__ import annotations

import asyncio
import itertools

import msgspec
from doubles.managers import conditions, placed
from flow_ownership import OwnershipInvariants
from flow_settled import _differences, wait_until_settled
from flow_world import HOME, has_ended, path, tolerant
from replica_world import MANAGEMENT_PREFIX, ReplicaWorld

from mirror.embedded.faults.targets import INSIDER
from mirror.model import names
from mirror.planes.api import Json

FORGOTTEN_SECONDS = 200.0
"""Longer than a worker without Secret and sources is kept."""
CAUGHT_UP_SECONDS = 90.0


async def settle(world: ReplicaWorld, laws: OwnershipInvariants) -> None:
    """End all faults, put right what people did, and wait until everything agrees.

    Raises:
        AssertionError: it does not, or was ever wrong.
    """
    _end_faults(world)
    await asyncio.sleep(CAUGHT_UP_SECONDS)
    laws.check()
    await _clean_up(world, laws)
    await _register(world)

    async def disagreements() -> list[str]:
        return _disagreements(world, laws, await world.sources())

    await wait_until_settled(world, laws, disagreements)


def _end_faults(world: ReplicaWorld) -> None:
    for plane in world.planes.values():
        plane.start()
        plane.clock.ahead_seconds = 0.0
        plane.faults.random_faults = None
        plane.faults.restore()
        plane.mutations.clear()
    for replica in world.replicas:
        replica.wake()
    world.start_manager()


async def _clean_up(world: ReplicaWorld, laws: OwnershipInvariants) -> None:
    """People take away what they made, and resume what they suspended."""
    sources = {source["metadata"]["uid"]: source for source in await world.sources()}
    for cluster in world.planes:
        for job in world.jobs_on(cluster):
            uid, own = job["metadata"]["uid"], path(job["metadata"]["name"], job["metadata"]["namespace"])
            source_uid = laws.made_for.get(uid)
            if source_uid is None or (source_uid not in sources and not _is_labelled(job, world.origin)):
                await tolerant(world.planes[cluster].api.delete(own, propagation="Background"))
            elif _was_suspended_by_others(job, sources.get(source_uid), laws):
                await tolerant(world.planes[cluster].api.merge(own, {"spec": {"suspend": False}}))
            if source_uid in sources and _cannot_be_told(job, sources[source_uid], world.origin):
                labels = {names.ORIGIN: world.origin, names.SOURCE_UID: source_uid}
                await tolerant(world.planes[cluster].api.merge(own, {"metadata": {"labels": labels}}))
    for source in await world.sources():
        metadata = source["metadata"]
        patch: Json = {"metadata": {"annotations": {names.WORKER_SELECTOR: None}, "finalizers": None}}
        if metadata["namespace"] == "default":
            await world.change(metadata["name"], patch)


def _was_suspended_by_others(job: Json, source: Json | None, laws: OwnershipInvariants) -> bool:
    if source is None or source["spec"].get("suspend") or not job["spec"].get("suspend"):
        return False
    return laws.suspended_by.get(job["metadata"]["uid"]) == INSIDER


def _cannot_be_told(mirror: Json, source: Json, origin: str) -> bool:
    """Whether others took its labels away before any manager knew it: the answer to its create was lost (D1)."""
    recorded = [one.get("message") for one in (source.get("status") or {}).get("conditions") or ()]
    return mirror["metadata"]["uid"] not in recorded and not _is_labelled(mirror, origin)


def _is_labelled(job: Json, origin: str) -> bool:
    """Whether its labels say that it is a mirror; a manager does not even see one of another origin (D1)."""
    labels = job["metadata"].get("labels") or {}
    return labels.get(names.ORIGIN) == origin and names.SOURCE_UID in labels


def _free_name(name: str, taken: set[str]) -> str:
    """This one, unless it is another cluster's by now."""
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain((name,), others) if one not in taken)


async def _register(world: ReplicaWorld) -> None:
    """Every cluster is registered once: as the worker that has Jobs there, by the record, or else as it is now."""
    recorded, load = await _recorded(world), world.load()
    wanted: dict[str, str] = {}
    for cluster, plane in world.planes.items():
        record = plane.storage.get("namespaces", "", "kube-system")
        assert record is not None
        known = [worker for worker, one in recorded.items() if one.uid == record.uid]
        here = [worker for worker, one in world.registrations.items() if one.leads_to == cluster]
        # One that is recorded as another cluster stays that one.
        here = [worker for worker in here if recorded.get(worker, Recorded()).uid in ("", record.uid)]
        choice = max((one for one in known if load[one]), key=load.__getitem__, default="")
        choice = choice or next((one for one in here if one in known), "") or next(iter(here), "")
        if not choice and cluster in world.workers:
            choice = next(iter(known), "") or _free_name(cluster, {*wanted, *world.registrations, *recorded})
        if choice:
            wanted[choice] = cluster
    bad = {worker for worker, cluster in wanted.items() if _is_another(world, recorded, worker, cluster)}
    for worker in set(world.registrations) - (wanted.keys() - bad):
        await world.unregister(worker)
    for source in await world.sources():
        if (worker := placed(source)) and not has_ended(source) and worker not in wanted.keys() - bad:
            await world.delete(source["metadata"]["name"])
    for worker in wanted.keys() - bad:
        await world.register(worker, leads_to=wanted[worker], prefix=_prefix(world, recorded, worker, wanted[worker]))
    if bad:
        await asyncio.sleep(FORGOTTEN_SECONDS)
    for worker in bad:
        await world.register(worker, leads_to=wanted[worker])


class Recorded(msgspec.Struct, frozen=True):
    """What the manager has written down about a worker."""

    uid: str = ""
    """Of its cluster."""
    prefix: str = msgspec.field(name="namespacePrefix", default="")


async def _recorded(world: ReplicaWorld) -> dict[str, Recorded]:
    """The record of workers."""
    found = world.management.storage.get("configmaps", HOME, names.WORKERS_CONFIGMAP)
    data = (msgspec.json.decode(found.raw).get("data") or {}) if found else {}
    return {worker: msgspec.json.decode(text, type=Recorded) for worker, text in data.items()}


def _is_another(world: ReplicaWorld, recorded: dict[str, Recorded], worker: str, cluster: str) -> bool:
    """Whether a worker of this name is known to be another cluster than it would lead to."""
    record = world.planes[cluster].storage.get("namespaces", "", "kube-system")
    known = recorded.get(worker, Recorded()).uid
    return bool(known) and record is not None and known != record.uid


def _prefix(world: ReplicaWorld, recorded: dict[str, Recorded], worker: str, cluster: str) -> str:
    """The prefix in use, as the manager reports it; for a new worker what its Secret says."""
    if cluster == world.management.name:
        return MANAGEMENT_PREFIX
    if recorded.get(worker, Recorded()).uid:
        return recorded[worker].prefix
    found = world.registrations.get(worker)
    return found.prefix if found else ""


def _disagreements(world: ReplicaWorld, laws: OwnershipInvariants, sources: list[Json]) -> list[str]:
    """What is not (yet) as it should be."""
    there = {source["metadata"]["uid"]: source for source in sources}
    problems: list[str] = []
    for cluster in world.planes:
        for job in world.jobs_on(cluster):
            uid, name = job["metadata"]["uid"], job["metadata"]["name"]
            if uid in laws.made_for and laws.made_for[uid] not in there and _is_labelled(job, world.origin):
                problems.append(f"{name} on {cluster} has no source")
    for uid, source in there.items():
        name, is_ours = source["metadata"]["name"], source["spec"].get("managedBy") == names.DEFAULT_MANAGED_BY
        if source["metadata"]["namespace"] != "default":
            continue
        if has_ended(source) and "ttlSecondsAfterFinished" in source["spec"]:
            problems.append(f"{name} has not been deleted after its time to live")
        if is_ours:
            problems += _problems(source, laws.mirrors[uid], world, laws)
        elif not has_ended(source) and not source["spec"].get("suspend"):
            problems.append(f"{name}, which is not ours, has not ended: {source.get('status')}")
    return problems


def _problems(
    source: Json, mirrors: dict[str, tuple[str, Json]], world: ReplicaWorld, laws: OwnershipInvariants
) -> list[str]:
    metadata, worker = source["metadata"], placed(source)
    name = metadata["name"]
    if "deletionTimestamp" in metadata:
        return [f"{name} is still being deleted"]
    if worker != (metadata.get("annotations") or {}).get(names.ASSIGNED_WORKER):
        return [f"{name} is placed on {worker}, and its annotation says something else"]
    if has_ended(source):
        if "MirrorLost" in conditions(source).values():
            return []
        return [f"{name} has {what}" for _, mirror in mirrors.values() for what in _differences(source, mirror)]
    known = laws.known_end(metadata["uid"], world.leader.identity) if world.leader else ""
    if known:
        return [f"{name} has not ended, and its mirror was seen to be {known}"]
    where = sorted(cluster for cluster, _ in mirrors.values())
    if not source["spec"].get("suspend"):
        waiting = (metadata.get("annotations") or {}).get(names.WAITING_BECAUSE)
        return [f"{name} has not ended: {source.get('status')}, mirrors on {where}, waiting because {waiting}"]
    if "Suspended" not in conditions(source):
        return [f"{name} is suspended, and its status is not"]
    running = [cluster for cluster, mirror in mirrors.values() if not mirror["spec"].get("suspend")]
    return [f"{name} is suspended, its mirror on {cluster} is not" for cluster in running]
