"""What vanishes, hangs, comes back or lies: mirrors, workers, statuses (D10–D14, D19, D20)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused, forbidden
from doubles.transport import Gone
from doubles.world import HOME, WAITING, World, manager_of, two_workers

from mirror.decide.seen import Policy
from mirror.model import names

pytestmark = pytest.mark.looptime


async def test_a_mirror_that_vanishes_before_it_started_is_made_again() -> None:
    """D11: on the same worker, and nobody need know."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        first = world.mirror("east")["metadata"]["uid"]
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle()
        assert world.mirrors() == ["east"]
        assert world.mirror("east")["metadata"]["uid"] != first


async def test_a_mirror_that_vanishes_after_it_started_fails_its_source() -> None:
    """D11: MirrorLost, in one write that the API takes; nothing is created again."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle()
        conditions = world.conditions()
        assert (conditions["FailureTarget"], conditions["Failed"]) == ("MirrorLost", "MirrorLost")
        assert "active" not in world.source()["status"]
        assert world.events().count("MirrorLost") == 1
        await manager.settle(100)
        assert world.mirrors() == []


async def test_a_mirror_that_vanishes_with_a_verdict_ends_by_it() -> None:
    """D11: SuccessCriteriaMet is stored: it is complete, although nobody saw the end."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle(2)
        at = world.management.clock.text()
        verdict = condition("SuccessCriteriaMet", at, reason="CompletionsReached")
        status = world.mirror("east")["status"] | {"conditions": [verdict]}
        world.controller("east").set("train", status)
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle()
        assert world.conditions()["Complete"] == "CompletionsReached"


async def test_lost_labels_are_put_back() -> None:
    """D11: the watch says DELETED, a look by name says otherwise: the same object without our labels."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        uid = world.mirror("east")["metadata"]["uid"]
        world.workers["east"].server.edit("jobs", "train", lambda body: body["metadata"].update(labels={}))
        await manager.settle()
        mirror = world.mirror("east")
        assert mirror["metadata"]["uid"] == uid
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source()["metadata"]["uid"]
        assert "Failed" not in world.conditions()
        assert "MirrorChanged" in world.events()


async def test_a_relist_that_lacks_a_mirror_proves_nothing() -> None:
    """D11: only a look by name does; an error of that look means that nothing is known."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        east = world.workers["east"]
        east.arrange("get", "jobs", Refused(500, "InternalError"), times=3)
        east.server.remove("jobs", "train")
        await manager.settle(0.01)
        assert "Failed" not in world.conditions()
        await manager.settle(5)
        assert "Failed" in world.conditions()


async def test_deleting_the_source_deletes_the_mirror_even_with_a_finalizer() -> None:
    """D10: the deletionTimestamp is enough."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.edit(lambda body: body["metadata"].update(finalizers=["example.com/slow"]))
        world.delete()
        await manager.settle()
        assert world.mirrors() == []
        assert world.source()["metadata"]["deletionTimestamp"]


async def test_a_source_that_was_deleted_while_the_manager_was_down_is_found() -> None:
    """D10: at the start, by the origin label and a live look."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(3):
            world.create(job(f"train-{number}"))
        await manager.settle()
    world.delete("train-0")
    world.delete("train-1")
    world.create(job("train-1"))
    async with manager_of(world) as manager:
        await manager.settle(3)
        assert world.mirrors("train-0") == []
        mirror = world.mirror("east", "train-1")
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source("train-1")["metadata"]["uid"]
        assert world.mirrors("train-2") == ["east"]


async def test_a_source_that_was_deleted_while_its_worker_was_away_is_found() -> None:
    """D10: on reconnect."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(30)
        world.delete()
        await manager.settle(30)
        world.workers["east"].restore()
        await manager.settle(5)
        assert world.mirrors() == []


async def test_a_sweep_that_would_take_too_many_halts() -> None:
    """D10: more than 20 at once is more likely our mistake than the users' wish."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(30):
            world.create(job(f"train-{number}"))
        await manager.settle()
    for number in range(25):
        world.delete(f"train-{number}")
    async with manager_of(world) as manager:
        await manager.settle(200)
        assert len(world.workers["east"].server.all("jobs")) == 30
        assert world.events().count("SweepHalted") == 1


async def test_a_sweep_deletes_nothing_on_a_refusal() -> None:
    """D10: 403 for a source is no proof that it is gone."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
    world.delete()
    world.management.arrange("get", "jobs", forbidden(), times=2)
    async with manager_of(world) as manager:
        await manager.settle(30)
        assert world.mirrors() == ["east"]
        await manager.settle(150)
        assert world.mirrors() == []


async def test_an_unknown_object_with_our_labels_goes() -> None:
    """D2: a mirror of a source that never was here is deleted once the management cluster says so."""
    async with two_workers() as (world, manager):
        labels = {names.ORIGIN: world.origin, names.SOURCE_UID: "nobody"}
        world.workers["west"].server.put("jobs", job("stray", managed_by=None, labels=labels))
        await manager.settle(70)
        assert world.mirrors("stray") == []


async def test_a_hung_worker_delays_no_other() -> None:
    """D12: while east answers nothing at all, a Job on west goes its way in milliseconds."""
    async with two_workers() as (world, manager):
        pinned = {name: {names.WORKER_SELECTOR: f"name={name}"} for name in world.workers}
        for number in range(100):
            world.create(job(f"before-{number}", annotations=pinned["east"]))
        await manager.settle()
        world.workers["east"].is_hung = True
        for number in range(100):
            world.create(job(f"stuck-{number}", annotations=pinned["east"]))
            world.edit(lambda body: body["spec"].update(parallelism=2), f"before-{number}")
        world.create(job(annotations=pinned["west"]))
        await manager.settle(0.2)
        assert world.mirrors() == ["west"]
        world.controller("west").start("train")
        await manager.settle(0.1)
        assert world.source()["status"]["active"] == 1


async def test_a_worker_that_is_away_changes_nothing_within_the_grace() -> None:
    """D13: nothing is evicted, and after a minute the source says what is the matter."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(50)
        assert world.annotation(WAITING) is None
        await manager.settle(25)
        assert "worker east is out of reach" in (world.annotation(WAITING) or "")
        await manager.settle(600)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])

        world.workers["east"].restore()
        world.controller("east").start("train")
        await manager.settle(20)
        assert world.source()["status"]["active"] == 1
        assert world.annotation(WAITING) is None


async def test_status_flows_again_within_about_a_second_of_the_workers_return() -> None:
    """D13: probes go on about once a second, so a short outage costs a second."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(40)
        world.workers["east"].restore()
        world.controller("east").start("train")
        await manager.settle(1.5)
        assert world.source()["status"]["active"] == 1


async def test_the_grace_counts_from_the_first_loss_over_restarts() -> None:
    """D13, D14: WorkerLost is told once, lostAfter after the first loss, whoever is the manager by then."""
    world = World()
    world.add_worker("east")
    policy = Policy(lost_after_seconds=900)
    async with manager_of(world, policy=policy) as manager:
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(500)
    async with manager_of(world, policy=policy) as manager:
        await manager.settle(350)
        assert "WorkerLost" not in [event["reason"] for event in _about_jobs(world)]
        await manager.settle(100)
        assert [event["reason"] for event in _about_jobs(world)].count("WorkerLost") == 1
        assert world.placed() == "east"
        await manager.settle(500)
        assert [event["reason"] for event in _about_jobs(world)].count("WorkerLost") == 1


def _about_jobs(world: World) -> list[Any]:
    return [event for event in world.management.server.all("events") if event["involvedObject"]["kind"] == "Job"]


async def test_a_suspended_job_on_a_lost_worker_is_shown_as_suspended() -> None:
    """D3: kubectl would show Running otherwise."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(20)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle()
        assert world.conditions()["Suspended"] == "JobSuspended"
        assert world.source()["status"]["active"] == 1  # nobody knows better


async def test_a_secret_that_is_deleted_and_made_again_evicts_nothing() -> None:
    """D15: GitOps tools do that; it is a loss like any other, and a short one."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.management.server.remove("secrets", "east", HOME)
        await manager.settle(30)
        assert world.mirrors() == ["east"]
        world.register("east")
        world.controller("east").start("train")
        await manager.settle(5)
        assert world.source()["status"]["active"] == 1
        assert world.mirrors() == ["east"]


async def test_a_worker_without_secret_and_sources_is_forgotten() -> None:
    """D15: drained, deleted, gone from the record too."""
    async with two_workers() as (world, manager):
        await manager.settle()
        assert set(world.record()) == {"east", "west"}
        world.management.server.remove("secrets", "east", HOME)
        await manager.settle(70)
        assert set(manager.registry.workers) == {"west"}
        assert set(world.record()) == {"west"}


async def test_a_secret_that_leads_to_another_cluster_is_refused() -> None:
    """D19: the uid that was recorded at first contact counts; mirrors stay where they are."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.add_worker("north")
        world.management.server.remove("secrets", "east", HOME)
        world.register("east", leads_to="north")
        await manager.settle(30)
        assert not manager.registry.worker("east").is_reachable
        assert "another cluster" in world.record()["east"]
        assert world.workers["north"].server.all("jobs") == []
        assert world.mirrors() == ["east"]
        assert "IdentityRefused" in world.events()


async def test_a_cluster_is_registered_once() -> None:
    """D19: the second Secret is refused, or a Job could be mirrored there twice."""
    async with two_workers() as (world, manager):
        world.register("twin", leads_to="east")
        await manager.settle(5)
        assert not manager.registry.worker("twin").is_reachable
        assert "registered already, as worker east" in world.record()["twin"]


async def test_the_management_cluster_is_a_worker_only_with_a_prefix() -> None:
    """D19: without a prefix a mirror would meet its own source."""
    world = World()
    world.register("self", leads_to="management")
    async with manager_of(world) as manager:
        await manager.settle(5)
        assert not manager.registry.worker("self").is_reachable


async def test_mirrors_live_under_the_prefix_on_the_management_cluster_itself() -> None:
    """D19: source and mirror on one cluster, over a restart too, without a loop."""
    world = World()
    world.register("self", leads_to="management", annotations={"namespace-prefix": "run-"})
    server = world.management.server
    server.put("namespaces", {"metadata": {"name": "run-default"}})
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(2)
        mirror = server.get("jobs", "train", "run-default")
        assert "managedBy" not in mirror["spec"]
        world.management.arrange("watch", "jobs", forbidden(), times=9999)  # the worker is lost, in the record too
        world.management.break_watches()
        await manager.settle(30)
    world.management.restore()
    async with manager_of(world) as manager:
        world.create(job("later"))
        await manager.settle(30)
        assert server.find("jobs", "later", "run-default") is not None
        world.delete()
        await manager.settle(5)
        assert server.find("jobs", "train", "run-default") is None


@pytest.mark.parametrize("form", list(Gone), ids=lambda form: form.value)
async def test_an_expired_watch_on_a_worker_is_listed_anew(form: Gone) -> None:
    """D12: one watch that ends does not unmake the worker, and nothing is missed."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        world.workers["east"].expire(form)
        await manager.settle(5)
        assert world.source()["status"]["active"] == 1
        assert manager.registry.worker("east").is_reachable


async def test_a_worker_that_is_too_old_is_refused() -> None:
    """D20: 1.29 is the oldest that works."""
    world = World()
    world.add_worker("east", minor=28)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(15)
        assert "too old" in world.record()["east"]
        assert world.annotation(WAITING) == "east: unreachable"


async def test_an_older_worker_without_streamed_lists_works() -> None:
    """D20: 1.29 knows no watch that begins with all objects."""
    world = World()
    world.add_worker("east", minor=29, streams_lists=False)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        assert world.source()["status"]["active"] == 1


async def test_a_status_that_others_keep_writing_is_left_alone() -> None:
    """D20: a cluster that ignores managedBy has a controller that runs the Job itself; no fight."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        for number in range(8):
            world.edit(lambda body, n=number: body["status"].update(active=20 + n))
            await manager.settle(0.5)
        before = len(world.management.writes())
        assert world.source()["status"]["active"] == 27
        assert "another controller writes" in (world.annotation(WAITING) or "")
        assert world.events().count("StatusConflict") == 1
        await manager.settle(20)
        assert len(world.management.writes()) == before


async def test_a_source_that_already_runs_here_is_left_alone() -> None:
    """D20: a status with a startTime and no record of ours is somebody else's work."""
    async with two_workers() as (world, manager):
        world.create(job(suspend=True))
        world.edit(lambda body: body.update(status={"active": 1, "startTime": world.management.clock.text()}))
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(10)
        assert world.mirrors() == []
        assert world.source()["status"]["active"] == 1


async def test_a_worker_that_lies_is_bounded_by_what_the_api_takes() -> None:
    """D7, D12: counters that fall, times that jump, unknown fields: the source never goes back."""
    async with two_workers() as (world, manager):
        world.create(job(completions=5, parallelism=5))
        await manager.settle()
        start = world.management.clock.text()
        world.controller("east").set("train", {"active": 3, "succeeded": 2, "ready": 9, "startTime": start})
        await manager.settle()
        world.controller("east").set("train", {"active": "many", "succeeded": 1, "evil": [1], "startTime": "1999"})
        await manager.settle()
        status = world.source()["status"]
        assert (status["succeeded"], status["startTime"]) == (2, start)
        assert "evil" not in status
        assert "StatusRefused" not in world.events()


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param({"status": {"conditions": "none"}}, id="conditions that are no list"),
        pytest.param({"status": {"conditions": ["x", None, {"type": 7}]}}, id="conditions that are none"),
        pytest.param({"status": ["x"]}, id="a status that is no object"),
        pytest.param({"spec": {"suspend": "perhaps", "template": 7}}, id="a spec of wrong types"),
        pytest.param({"spec": 7}, id="a spec that is no object"),
    ],
)
async def test_nonsense_on_a_worker_stops_nobody(nonsense: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """D7, D12: one object that no API server would serve does not end its worker's watch, nor is it an error of ours."""
    async with two_workers() as (world, manager):
        for name in ("train", "other"):
            world.create(job(name, annotations={names.WORKER_SELECTOR: "name=east"}))
        await manager.settle()
        world.workers["east"].server.edit("jobs", "train", lambda body: body.update(nonsense))
        world.controller("east").start("other")
        await manager.settle(5)
        assert world.source("other")["status"]["active"] == 1
        assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_worker_whose_watch_is_refused_is_not_hammered() -> None:
    """D13: probes stay at about one a second, and the worker comes back once the right is there again."""
    async with two_workers() as (world, manager):
        east = world.workers["east"]
        east.arrange("watch", "jobs", forbidden(), times=9999)
        east.break_watches()
        await manager.settle(5)
        before = len(east.sent)
        await manager.settle(60)
        assert len(east.sent) - before < 5 * 60
        assert not manager.registry.worker("east").is_reachable
        east.restore()
        await manager.settle(3)
        assert manager.registry.worker("east").is_reachable


async def test_a_secret_without_a_kubeconfig_says_so() -> None:
    """D13: the record holds the real reason, not a consequence of it; mending the Secret is enough."""
    world = World()
    world.add_worker("east")
    secret = world.management.server.get("secrets", "east", HOME)
    world.management.server.edit("secrets", "east", lambda body: body.update(data={}), HOME)
    async with manager_of(world) as manager:
        await manager.settle(30)
        assert "data.kubeconfig" in world.record()["east"]
        assert any("data.kubeconfig" in text for text in world.texts("WorkerLost"))
        world.management.server.edit("secrets", "east", lambda body: body.update(data=secret["data"]), HOME)
        await manager.settle(3)
        assert manager.registry.worker("east").is_reachable
        assert "data.kubeconfig" not in world.record()["east"]


async def test_events_that_are_waiting_are_sent_before_a_manager_ends() -> None:
    """What was told is not lost by a clean stop."""
    async with two_workers() as (world, manager):
        world.create(job("held", suspend=True))
        await manager.settle(0.0015)
    assert world.events() == ["Suspended"]
