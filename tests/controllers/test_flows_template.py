"""Admission on a worker that changes what was carried: no running pod is stopped for it (D9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from doubles.admission import mutate_jobs
from doubles.jobs import job
from doubles.world import WAITING, World, manager_of

from mirror.model import names

pytestmark = pytest.mark.looptime

Body = dict[str, Any]
POD_EDITS: dict[str, tuple[Body, Callable[[Body], None]]] = {
    "nodeSelector": (
        {"nodeSelector": {"pool": "green"}},
        lambda pod: pod.update(nodeSelector={"pool": "blue"}),
    ),
    "an added key of nodeSelector": (
        {"nodeSelector": {"pool": "green"}},
        lambda pod: pod.setdefault("nodeSelector", {}).update(zone="1"),
    ),
    "tolerations": (
        {"tolerations": [{"key": "x", "operator": "Exists"}]},
        lambda pod: pod.update(tolerations=[{"key": "y", "operator": "Exists"}]),
    ),
    "resources": (
        {
            "containers": [
                {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "2"}}},
            ]
        },
        lambda pod: pod["containers"][0].update(resources={"requests": {"cpu": "500m"}}),
    ),
}


def pod_of(body: Body) -> Body:
    found: Body = body["spec"]["template"]["spec"]
    return found


def of_pod(change: Callable[[Body], None]) -> Callable[[Body], None]:
    return lambda body: change(pod_of(body))


def suspends(world: World) -> int:
    """How often the mirror was changed to be suspended: its template is never changed otherwise."""
    return world.mirror("east")["metadata"]["generation"] - 1


@pytest.mark.slow
@pytest.mark.parametrize("operations", [("CREATE",), ("CREATE", "UPDATE")], ids=["on create", "on create and update"])
@pytest.mark.parametrize("what", POD_EDITS)
async def test_a_running_mirror_keeps_what_admission_made_of_its_template(
    what: str, operations: tuple[str, ...]
) -> None:
    """D9: a label is added and the manager restarts; the template is none of the user's changes, and is reported."""
    world = World()
    east = world.add_worker("east")
    wanted, change = POD_EDITS[what]
    mutate_jobs(east, of_pod(change), *operations)
    body = job(parallelism=2, completions=4)
    pod_of(body).update(wanted)
    async with manager_of(world) as manager:
        world.create(body)
        await manager.settle(5)
        world.controller("east").start("train", active=2)
        await manager.settle(5)
        is_reported = what != "an added key of nodeSelector"
        assert world.events().count("MirrorChanged") == int(is_reported)
        world.edit(lambda source: source["metadata"].setdefault("labels", {}).update(a="b"))
        await manager.settle(5)
        assert world.events().count("MirrorChanged") == int(is_reported)
    async with manager_of(world) as manager:
        await manager.settle(60)
    mirror = world.mirror("east")
    assert mirror["metadata"]["labels"]["a"] == "b"
    assert mirror["spec"]["suspend"] is False
    assert suspends(world) == 0
    assert len(east.writes()) == 2
    assert world.annotation(WAITING) is None


async def test_the_users_own_change_of_the_template_is_still_carried() -> None:
    """D3: suspended, changed and resumed while the worker was away; admission then changes another part of it."""
    world = World()
    east = world.add_worker("east")
    mutate_jobs(east, of_pod(lambda pod: pod.update(tolerations=[])))
    body = job()
    pod_of(body).update(tolerations=[{"key": "x", "operator": "Exists"}])
    async with manager_of(world) as manager:
        world.create(body)
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        east.go_down()
        world.edit(of_pod(lambda pod: pod.update(nodeSelector={"disk": "ssd"})))
        await manager.settle(5)
        east.restore()
        await manager.settle(5)
        assert world.mirror("east")["spec"]["suspend"] is True
        world.controller("east").suspend("train")
        await manager.settle(5)
        mirror = world.mirror("east")
        assert pod_of(mirror)["nodeSelector"] == {"disk": "ssd"}
        assert mirror["spec"]["suspend"] is False
        writes = len(east.writes())
        await manager.settle(300)
        assert len(east.writes()) == writes


@pytest.mark.parametrize("how", ["removed", "without a part", "of an earlier version", "nonsense"])
async def test_a_note_that_was_lost_is_no_change_by_the_user(how: str) -> None:
    """D9: a running mirror is not suspended because nothing is known of what was carried."""
    world = World()
    east = world.add_worker("east")
    body = job(parallelism=2, completions=4)
    pod_of(body)["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    pod_of(body)["nodeSelector"] = {"pool": "green"}
    mutate_jobs(east, of_pod(lambda pod: pod.update(nodeSelector={"pool": "blue"})), "CREATE")

    def lose(mirror: Body) -> None:
        annotations = mirror["metadata"]["annotations"]
        note = msgspec.json.decode(annotations[names.CARRIED])
        if how == "removed":
            del annotations[names.CARRIED]
            return
        if how == "without a part":
            del note["containers0"]
            del note["nodeSelector"]
        if how == "of an earlier version":
            del note[""]
            del note["containers0"]
        annotations[names.CARRIED] = "[7" if how == "nonsense" else msgspec.json.encode(note).decode()

    async with manager_of(world) as manager:
        world.create(body)
        await manager.settle(5)
        world.controller("east").start("train", active=2)
        await manager.settle(5)
        east.server.edit("jobs", "train", lose)
        await manager.settle(5)
        world.edit(lambda source: source["spec"].update(parallelism=3))
        await manager.settle(5)
        mirror = world.mirror("east")
        assert (mirror["spec"]["suspend"], mirror["spec"]["parallelism"]) == (False, 3)


@pytest.mark.parametrize(
    "strip",
    [
        pytest.param(lambda body: body["metadata"]["annotations"].pop(names.CARRIED, None), id="the note"),
        pytest.param(lambda body: body["metadata"]["labels"].pop("team", None), id="a label"),
        pytest.param(lambda body: body["spec"].update(backoffLimit=1), id="a scalar"),
    ],
)
async def test_what_admission_always_reverts_is_sent_a_few_times_only(strip: Callable[[Body], None]) -> None:
    """D9: reported, not fought; the user's other changes follow all the same."""
    world = World()
    east = world.add_worker("east")
    mutate_jobs(east, strip)
    async with manager_of(world) as manager:
        world.create(job(labels={"team": "x"}, backoffLimit=3))
        await manager.settle(5)
        before = len(east.writes())
        world.edit(lambda body: body["spec"].update(parallelism=3))
        await manager.settle(600)
        assert world.mirror("east")["spec"]["parallelism"] == 3
        assert len(east.writes()) - before <= 12
