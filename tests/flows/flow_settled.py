"""What must be so once nothing disturbs any more: everything runs, has run, and agrees (D1–D15)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection

from doubles.managers import conditions, placed
from flow_invariants import MANAGEMENT, Invariants
from flow_world import MANAGER, FlowWorld, has_ended, tolerant

from mirror.model import names
from mirror.planes.api import Json

LONGEST_SECONDS = 3 * 3600.0
"""Clocks were an hour ahead at times, and what ended then is waited for until they have come there."""
LOOK_SECONDS = 20.0
QUIET_SECONDS = 180.0
"""Longer than a watch may be silent: one that hung when the last fault ended is given up within."""
ENDS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")


async def settle(world: FlowWorld, invariants: Invariants) -> None:
    """End all faults, and wait until everything agrees and the manager has nothing more to write.

    Raises:
        AssertionError: it does not, or was ever wrong.
    """
    await mend(world)
    await wait_until_settled(world, invariants, lambda: disagreements(world))


async def wait_until_settled(
    world: FlowWorld, invariants: Invariants, disagreements: Callable[[], Awaitable[list[str]]]
) -> None:
    """Wait until there is nothing to disagree about, and nothing more is written.

    Raises:
        AssertionError: that takes too long.
    """
    now = asyncio.get_running_loop().time
    ends_at = now() + LONGEST_SECONDS
    while True:
        before = invariants.written_by[MANAGER]
        problems = await disagreements()
        await asyncio.sleep(LOOK_SECONDS if problems else QUIET_SECONDS)
        invariants.check()
        written = invariants.written_by[MANAGER] - before
        if not problems and not written:
            break
        late = list(invariants.latest)[-3:] if written else []
        assert now() < ends_at, f"not settled after {LONGEST_SECONDS:g} s: {problems}, last written: {late}"
    await check_counted(world, invariants)


async def mend(world: FlowWorld) -> None:
    """Everything works from now on: clusters, clocks, ways, Secrets; the manager runs; strangers' Jobs are gone."""
    for plane in world.planes.values():
        plane.start()
        plane.clock.ahead_seconds = 0.0
        plane.faults.random_faults = None
        plane.faults.restore()
    for name, worker in world.workers.items():
        await world.register(name)
        for job in await worker.api.list("/apis/batch/v1/jobs"):
            if names.SOURCE_UID not in (job["metadata"].get("labels") or {}):
                await world.delete(job["metadata"]["name"], cluster=name)
    for source in await world.sources():
        if source["metadata"].get("finalizers"):
            await tolerant(world.management.api.merge(_path(source), {"metadata": {"finalizers": None}}))
    world.start_manager()


async def disagreements(world: FlowWorld) -> list[str]:
    """What is not (yet) as it should be."""
    sources = {source["metadata"]["uid"]: source for source in await world.sources()}
    mirrors: defaultdict[str, dict[str, Json]] = defaultdict(dict)
    problems: list[str] = []
    for name, worker in world.workers.items():
        for mirror in await worker.api.list("/apis/batch/v1/jobs"):
            source_uid = (mirror["metadata"].get("labels") or {}).get(names.SOURCE_UID, "")
            mirrors[source_uid][world.worker_name(name)] = mirror
            if source_uid not in sources:
                problems.append(f"{mirror['metadata']['name']} on {name} has no source")
    for uid, source in sources.items():
        if has_ended(source) and "ttlSecondsAfterFinished" in source["spec"]:
            problems.append(f"{source['metadata']['name']} is still to go by its time to live")
        if source["spec"].get("managedBy") == names.DEFAULT_MANAGED_BY:
            problems += _problems(source, mirrors[uid])
            problems += _unmarked(source, world.MANAGERS)
        elif not has_ended(source) and not source["spec"].get("suspend"):
            problems.append(f"{source['metadata']['name']}, which is not ours, has not ended: {source.get('status')}")
    return problems


def _problems(source: Json, mirrors: dict[str, Json]) -> list[str]:
    name, worker, is_suspended = source["metadata"]["name"], placed(source), source["spec"].get("suspend")
    if "deletionTimestamp" in source["metadata"]:
        return [f"{name} is still going"]
    if worker != (source["metadata"].get("annotations") or {}).get(names.ASSIGNED_WORKER):
        return [f"{name} is placed on {worker}, and its annotation does not say so"]
    if has_ended(source):
        return [problem for where, mirror in mirrors.items() for problem in _leftovers(source, where, mirror)]
    if not is_suspended:
        return [f"{name} has not ended: {source.get('status')}, mirrors on {sorted(mirrors)}"]
    if "Suspended" not in conditions(source):
        return [f"{name} is suspended, and does not say so"]
    if set(mirrors) - {worker}:
        return [f"{name} is placed on {worker}, and has mirrors on {sorted(mirrors)}"]
    return [f"{name} is suspended, its mirror is not" for mirror in mirrors.values() if not mirror["spec"]["suspend"]]


def _unmarked(source: Json, managers: Collection[str]) -> list[str]:
    """Whether it is placed and does not say by whom; one that has ended is nobody's any more (D2)."""
    metadata = source["metadata"]
    if not placed(source) or has_ended(source) or (metadata.get("annotations") or {}).get(names.MANAGER) in managers:
        return []
    return [f"{metadata['name']} does not say which manager has placed it"]


def _leftovers(source: Json, where: str, mirror: Json) -> list[str]:
    """What is wrong with a mirror that is left of a source that has ended."""
    name, uid = source["metadata"]["name"], mirror["metadata"]["uid"]
    recorded = (source["metadata"].get("annotations") or {}).get(names.MIRROR_UID)
    if where != placed(source) or recorded not in (None, uid):
        return [f"{name} ended on {placed(source)} as {recorded}, and {where} has {uid}"]
    if "MirrorLost" in conditions(source).values():
        return [f"{name} lost its mirror, and {where} has one"]
    return [f"{name} tells {what}" for what in _differences(source, mirror)]


def _differences(source: Json, mirror: Json) -> list[str]:
    """Where the final status of a source is another than its mirror's."""
    ours, theirs = source["status"], mirror.get("status") or {}
    fields = ("succeeded", "failed", "completedIndexes", "failedIndexes")
    wrong = [f"{one}={ours.get(one)}, not {theirs.get(one)}" for one in fields if ours.get(one) != theirs.get(one)]
    ends = [{kind: reason for kind, reason in conditions(job).items() if kind in ENDS} for job in (source, mirror)]
    return wrong if ends[0] == ends[1] else [*wrong, f"{ends[0]}, not {ends[1]}"]


async def check_counted(world: FlowWorld, invariants: Invariants) -> None:
    """Every pod was counted once."""
    for cluster, plane in world.planes.items():
        for job in await plane.api.list("/apis/batch/v1/jobs"):
            if cluster != MANAGEMENT or job["spec"].get("managedBy") is None:
                _check_counted(job, invariants)


def _check_counted(job: Json, invariants: Invariants) -> None:
    """Each pod that was ever listed as ended is counted beside what it began with, and no other."""
    status = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    name = job["metadata"]["name"]
    assert not any(uncounted.values()), f"{name} still has uncounted pods"
    if job["spec"].get("completionMode") == "Indexed":
        return
    uid = job["metadata"]["uid"]
    for kind, uids in invariants.counted[uid].items():
        before, now = invariants.begun_with[uid][kind], status.get(kind, 0)
        assert now == before + len(uids), f"{name}: {kind} is {now}, {len(uids)} were listed beside {before}"


def _path(source: Json) -> str:
    metadata = source["metadata"]
    return f"/apis/batch/v1/namespaces/{metadata['namespace']}/jobs/{metadata['name']}"
