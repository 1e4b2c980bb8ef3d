"""A mirror that vanishes behind our back: its Job fails, or starts over where it says so (D11)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.watched_pods import watching
from doubles.world import WAITING, RunningManager, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.fences import FENCED, mark_of
from mirror.model.losses import OnLoss

pytestmark = pytest.mark.looptime

ALWAYS = 1_000_000
RECREATE = {names.ON_MIRROR_LOSS: "Recreate"}


def pod(
    world: World, name: str = "train-x", phase: str = "Running", worker: str = "east", uid: str | None = "", **more: Any
) -> None:
    """A pod of the mirror, as its controller makes it."""
    labels = {"job-name": "train", "batch.kubernetes.io/job-name": "train", "controller-uid": uid or ""}
    containers = [{"name": "main", "image": "busybox"}]
    spec = {"containers": containers, "restartPolicy": "Never", "nodeName": "node"}
    world.workers[worker].server.put("pods", {"metadata": {"name": name, "labels": labels}, "spec": spec} | more)
    world.workers[worker].server.edit("pods", name, lambda body: body.setdefault("status", {}).update(phase=phase))


def end_pod(world: World, name: str = "train-x") -> None:
    world.workers["east"].server.edit("pods", name, lambda body: body["status"].update(phase="Failed"))


async def running_on_east(world: World, manager: RunningManager, **more: Any) -> str:
    """A Job that says Recreate, and runs there; the uid of its mirror."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**{"annotations": RECREATE} | more))
    await manager.settle()
    world.controller("east").start("train")
    await manager.settle()
    return str(world.mirror("east")["metadata"]["uid"])


def uid_on_east(world: World) -> str | None:
    found = world.mirror("east")
    return None if found is None else str(found["metadata"]["uid"])


def counted(manager: RunningManager) -> float | None:
    return manager.metrics.registry.get_sample_value("jobmirror_secondary_mirrors_total", {"why": "Recreated"})


async def test_it_starts_over_once_no_pod_of_it_runs() -> None:
    """On the same worker, with another mirror; pods that have ended do not count; it is told and counted."""
    async with two_workers() as (world, manager):
        uid = await running_on_east(world, manager)
        started = world.source()["status"]["startTime"]
        pod(world)
        pod(world, "train-done", "Succeeded")
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        assert uid_on_east(world) is None
        assert "the Job starts over once its pods there have ended" in (world.annotation(WAITING) or "")
        assert "Failed" not in world.conditions()
        end_pod(world)
        await manager.settle(30)
        assert uid_on_east(world) not in (None, uid)
        assert (world.placed(), world.mirrors(), world.annotation(WAITING)) == ("east", ["east"], None)
        text = "started over on east (move 1): its mirror there had vanished, and no pod of it runs"
        assert world.texts("MirrorRecreated") == [text]
        assert "Moved" not in world.events()
        assert counted(manager) == 1
        world.controller("east").start("train")
        await manager.settle(2)
        assert "Suspended" not in world.conditions()
        assert world.source()["status"]["startTime"] != started
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


@pytest.mark.parametrize(("said", "ends"), [("Recreate", False), ("Fail", True)])
async def test_one_that_had_started_before_its_source_could_show_it_has_started(said: str, ends: bool) -> None:
    """Whoever deletes a mirror with ``--cascade=orphan`` leaves its pods: it is not made again beside them (D2)."""
    async with two_workers() as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(job(annotations={names.ON_MIRROR_LOSS: said}))
        await manager.settle()
        uid = uid_on_east(world)
        world.management.arrange("patch", "jobs/status", Refused(500, "InternalError"), times=4)
        world.controller("east").start("train")
        pod(world)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        assert uid_on_east(world) is None
        assert world.conditions().get("Failed") == ("MirrorLost" if ends else None)
        end_pod(world)
        await manager.settle(30)
        assert (uid_on_east(world) not in (None, uid)) is not ends


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
async def test_pods_show_that_it_had_started_while_nobody_looked(phase: str) -> None:
    """The worker was away from before its start until after it was deleted; pods are watched, so they may be listed."""
    world = World()
    world.add_worker("east")
    async with manager_of(world, **watching(world.origin)) as manager:
        await unseen(world, manager, phase)
        assert world.mirrors() == []
        assert world.conditions()["Failed"] == "MirrorLost"


async def test_pods_keep_it_from_starting_over_while_they_run() -> None:
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        uid = await unseen(world, manager, "Running", RECREATE)
        assert world.mirrors() == []
        end_pod(world)
        await manager.settle(30)
        assert uid_on_east(world) not in (None, uid)
        assert counted(manager) == 1


async def test_pods_are_not_asked_for_where_nobody_expects_that() -> None:
    """The permission is for those who watch pods, or want ``Recreate``: without it a mirror is made again."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        uid = await unseen(world, manager, "Running")
        assert uid_on_east(world) not in (None, uid)
        assert not [sent for sent in world.workers["east"].sent if "/pods" in sent.path]


async def unseen(world: World, manager: RunningManager, phase: str, said: dict[str, str] | None = None) -> str | None:
    """A mirror starts and is deleted while its worker is away for its watch; the uid."""
    world.create(job(annotations=said or {}))
    await manager.settle()
    uid = uid_on_east(world)
    world.workers["east"].go_down()
    world.controller("east").start("train")
    pod(world, phase=phase, uid=uid)
    world.workers["east"].server.remove("jobs", "train")
    world.workers["east"].server.compact()
    world.workers["east"].restore()
    await manager.settle(60)
    return uid


async def test_without_pods_it_is_made_again() -> None:
    """It had not started."""
    world = World()
    world.add_worker("east")
    async with manager_of(world, **watching(world.origin)) as manager:
        world.create(job())
        await manager.settle()
        uid = uid_on_east(world)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(30)
        assert uid_on_east(world) not in (None, uid)


@pytest.mark.parametrize("said", [{}, {names.ON_MIRROR_LOSS: "Fail"}, {names.ON_MIRROR_LOSS: "recreate"}])
async def test_by_default_it_fails(said: dict[str, str]) -> None:
    """D11: ``Fail``, and what means nothing, is the same as no annotation."""
    async with two_workers() as (world, manager):
        await running_on_east(world, manager, annotations=said)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(20)
        assert world.conditions()["Failed"] == "MirrorLost"


async def test_a_pod_that_appears_late_is_waited_for() -> None:
    """The worker's Job controller may make one by what it had cached: a single look proves nothing."""
    async with two_workers() as (world, manager):
        uid = await running_on_east(world, manager)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(3)
        pod(world)
        await manager.settle(60)
        assert uid_on_east(world) is None
        end_pod(world)
        await manager.settle(40)
        assert uid_on_east(world) not in (None, uid)


async def test_who_may_not_list_pods_waits_and_says_so() -> None:
    async with two_workers() as (world, manager):
        await running_on_east(world, manager)
        world.workers["east"].arrange("list", "pods", forbidden(), times=ALWAYS)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        assert uid_on_east(world) is None
        assert "once it is known that none of its pods run, which the worker does not tell" in (
            world.annotation(WAITING) or ""
        )
        world.workers["east"].restore()
        await manager.settle(40)
        assert uid_on_east(world) is not None


async def test_a_verdict_that_is_stored_is_the_end() -> None:
    """It is known how it ends: that way, and not again."""
    async with two_workers() as (world, manager):
        await running_on_east(world, manager)
        at = world.management.clock.text()
        status = world.mirror("east")["status"]
        target = condition("FailureTarget", at, reason="BackoffLimitExceeded")
        world.controller("east").set("train", status | {"conditions": [target]})
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(30)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert world.mirrors() == []


async def test_it_starts_over_as_often_as_the_limit_allows() -> None:
    """``workers.moveLimit``: then it fails, and says why."""
    async with two_workers(policy=Policy(move_limit=2)) as (world, manager):
        await running_on_east(world, manager)
        for _ in range(2):
            world.workers["east"].server.remove("jobs", "train")
            await manager.settle(30)
            assert "Failed" not in world.conditions()
            world.controller("east").start("train")
            await manager.settle(2)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(30)
        assert world.conditions()["Failed"] == "MirrorLost"
        (text,) = world.texts("MirrorLost")
        assert text.endswith("(it has started over as often as workers.moveLimit allows)")
        assert counted(manager) == 2


async def test_what_replaced_the_mirror_goes_and_is_never_adopted() -> None:
    """``kubectl replace --force`` on the worker: another uid with our labels. Its end counts for nothing (D1)."""
    async with two_workers() as (world, manager):
        uid = await running_on_east(world, manager)
        body = world.mirror("east")
        assert body is not None
        world.workers["east"].server.remove("jobs", "train")
        kept = {key: body["metadata"][key] for key in ("name", "labels", "annotations") if key in body["metadata"]}
        spec = {key: value for key, value in body["spec"].items() if key != "selector"}
        spec["template"] = {**spec["template"], "metadata": {}}
        labels = {key: value for key, value in kept["labels"].items() if key.startswith(names.PREFIX)}
        replaced = world.workers["east"].server.put("jobs", {"metadata": {**kept, "labels": labels}, "spec": spec})
        world.controller("east").complete("train")
        await manager.settle(40)
        assert "Complete" not in world.conditions()
        assert uid_on_east(world) not in (None, uid, replaced["metadata"]["uid"])


async def test_a_foreign_job_of_its_name_stays() -> None:
    """It is never touched; the Job waits until the name is free."""
    async with two_workers() as (world, manager):
        await running_on_east(world, manager)
        world.workers["east"].server.remove("jobs", "train")
        foreign = world.workers["east"].server.put("jobs", job(managed_by=None))
        await manager.settle(60)
        assert uid_on_east(world) == foreign["metadata"]["uid"]
        assert "once nothing else has its name there" in (world.annotation(WAITING) or "")
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        assert uid_on_east(world) not in (None, foreign["metadata"]["uid"])


async def test_suspended_meanwhile_it_starts_over_once_it_is_resumed() -> None:
    async with two_workers() as (world, manager):
        await running_on_east(world, manager)
        world.edit(lambda body: body["spec"].update(suspend=True))
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        assert world.mirrors() == []
        assert "Failed" not in world.conditions()
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(40)
        assert world.mirrors() == ["east"]


@pytest.mark.parametrize("fault", ["write", "create"])
async def test_killed_in_between(fault: str) -> None:
    """With the answer to the write or to the create lost: it ends as if not killed, with one mirror."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world) as manager:
        uid = await running_on_east(world, manager)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(3)
        if fault == "write":
            world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER, times=3)
        else:
            world.workers["east"].arrange("create", "jobs", Fault.LOSE_ANSWER)
        await manager.settle(10)
    world.management.restore()
    async with manager_of(world) as manager:
        await manager.settle(60)
        assert uid_on_east(world) not in (None, uid)
        world.controller("east").start("train")
        await manager.settle(2)
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()
        listed = world.source()["status"]["conditions"]
        (moved,) = (one["message"] for one in listed if one["type"] == names.MOVED)
        assert moved == "move 1, from east to east"


async def test_what_was_counted_goes_along_where_that_is_on() -> None:
    """And a Job that is to be fenced has its lease from the beginning."""
    policy = Policy(on_loss=OnLoss.FENCE, seed_progress=True)
    async with two_workers(policy=policy) as (world, manager):
        spec = {"completionMode": "Indexed", "completions": 4, "parallelism": 2}
        await running_on_east(world, manager, **spec)
        status = world.mirror("east")["status"]
        world.controller("east").set("train", status | {"succeeded": 1, "completedIndexes": "2"})
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(30)
        mirror = world.mirror("east")
        assert mirror is not None
        assert mirror["status"]["completedIndexes"] == "2"
        assert mark_of(world.source()["status"]) == FENCED
        assert mirror["spec"]["activeDeadlineSeconds"] == policy.fence_ttl_seconds


MANUAL = {"manualSelector": True, "selector": {"matchLabels": {"app": "mine"}}}


def manual(said: str) -> dict[str, Any]:
    body = job(annotations={names.ON_MIRROR_LOSS: said}, **MANUAL)
    body["spec"]["template"]["metadata"] = {"labels": {"app": "mine"}}
    return body


def pod_of_manual(world: World, uid: str | None) -> None:
    """Of a Job whose user wrote the selector: no label tells its name, or uid."""
    spec = {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never", "nodeName": "node"}
    name = "other" if uid == "another" else "train"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    metadata = {"name": "train-x", "labels": {"app": "mine"}} | ({"ownerReferences": [owner]} if uid else {})
    server = world.workers["east"].server
    server.put("pods", {"metadata": metadata, "spec": spec})
    server.edit("pods", "train-x", lambda body: body.setdefault("status", {}).update(phase="Running"))


@pytest.mark.parametrize("is_orphan", [False, True])
async def test_pods_of_a_selector_that_its_user_wrote_are_found_by_that(*, is_orphan: bool) -> None:
    """They lack the labels that others have: without a look by it none would be found, and it would run twice (D2)."""
    async with two_workers() as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(manual("Recreate"))
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        uid = uid_on_east(world)
        pod_of_manual(world, None if is_orphan else uid)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        assert uid_on_east(world) is None
        assert "the Job starts over once its pods there have ended" in (world.annotation(WAITING) or "")
        end_pod(world)
        await manager.settle(30)
        assert uid_on_east(world) not in (None, uid)


@pytest.mark.parametrize(("owner", "counts"), [("its own", True), ("nobody", True), ("another", False)])
async def test_such_pods_show_that_it_had_started(owner: str, *, counts: bool) -> None:
    """While nobody looked; those that another Job controls, with the same selector, say nothing of it."""
    async with two_workers() as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(manual("Recreate"))
        await manager.settle()
        uid = uid_on_east(world)
        world.workers["east"].go_down()
        await manager.settle()
        world.controller("east").start("train")
        pod_of_manual(world, {"its own": uid, "nobody": None}.get(owner, "another"))
        world.workers["east"].server.remove("jobs", "train")
        world.workers["east"].server.compact()
        world.workers["east"].restore()
        await manager.settle(60)
        assert (uid_on_east(world) is None) is counts
        end_pod(world)
        await manager.settle(30)
        assert uid_on_east(world) not in (None, uid)
        assert counted(manager) == (1 if counts else None)
