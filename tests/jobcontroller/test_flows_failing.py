"""Requests that fail, answers that are lost, watches that lag, processes that die: nothing is counted twice or lost."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from doubles.jobworld import JobWorld, job_world
from doubles.refusals import Refused, not_found
from doubles.transport import Fault, MemoryTransport

from mirror.jobcontroller.controller import ControllerSettings
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.limits import Limiter

pytestmark = pytest.mark.looptime

QUOTA = Refused(403, "Forbidden", 'pods "train-" is forbidden: exceeded quota')
NO_WEBHOOK = Refused(500, "InternalError", 'Internal error occurred: failed calling webhook "x": no endpoints')
CONFLICT = Refused(409, "Conflict", "the object has been modified")


def create_times(world: JobWorld) -> list[float]:
    return [one.at for one in world.wire.writes() if one.verb == "create" and "/pods" in one.path]


@pytest.mark.parametrize("refusal", [QUOTA, NO_WEBHOOK], ids=["quota", "webhook"])
async def test_refused_pods_are_tried_one_at_a_time_and_less_and_less_often(refusal: Refused) -> None:
    """§5.13, A8, K2: one POST per attempt, after 1, 2, 4 s; the status is written all the same (Y18)."""
    async with job_world() as world:
        world.wire.arrange("create", "pods", refusal, times=4)
        world.create(completions=5, parallelism=5)
        await world.settle(0.5)
        assert "startTime" in world.status()
        assert world.told.events == [("Warning", "FailedCreate", f"Error creating: {refusal.message}")]
        await world.settle(20)
        times = create_times(world)
        assert [round(later - sooner) for sooner, later in pairwise(times[:5])] == [1, 2, 4, 8]
        assert len(world.active()) == 5
        assert world.told.counts["pods created", "new", "failed"] == 4


async def test_in_a_namespace_that_ends_nothing_is_told_or_tried_again() -> None:
    """A9: neither event nor retry."""
    async with job_world() as world:
        ending = Refused(403, "Forbidden", "being terminated", cause="NamespaceTerminating")
        world.wire.arrange("create", "pods", ending, times=9)
        world.create()
        await world.settle(20)
        assert len(create_times(world)) == 1
        assert world.told.events == []


async def test_a_template_without_labels_makes_no_pods() -> None:
    """A10: an error, tried again, that says so nowhere but in the log."""
    async with job_world() as world:
        world.create()
        world.edit(lambda body: body["spec"]["template"].update(metadata={}))
        await world.settle()
        assert create_times(world) == []
        assert world.told.counts["synced", "NonIndexed", "error", "pods_created"] >= 1


async def test_a_conflict_is_tried_again_with_what_the_watch_brings() -> None:
    """Q19: no fetch-and-overwrite."""
    async with job_world() as world:
        world.wire.arrange("update", "jobs", CONFLICT, name="train")
        world.create()
        await world.settle()
        assert world.status()["active"] == 1
        assert [one.verb for one in world.wire.sent].count("get") == 0
        assert len(create_times(world)) == 1


async def test_a_pod_whose_patch_fails_is_counted_once() -> None:
    """T11, Q4: it stays in uncounted until the finalizer is really gone."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2)
        await world.settle()
        first, second = world.pods()
        world.wire.arrange("patch", "pods", Refused(500, "InternalError", "no"), name=first)
        world.node.succeed(first)
        world.node.succeed(second)
        await world.settle(1.5)
        status = world.status()
        assert len(status["uncountedTerminatedPods"]["succeeded"]) == 1
        assert status["succeeded"] == 1
        await world.settle(5)
        assert world.status()["succeeded"] == 2
        assert "Complete" in world.conditions()


async def test_a_failed_patch_of_an_indexed_success_delays_the_end() -> None:
    """T11: an index is counted by its text, and the Job still must not end with a finalizer left."""
    async with job_world() as world:
        world.create(completionMode="Indexed")
        await world.settle()
        (pod,) = world.pods()
        world.wire.arrange("patch", "pods", Refused(500, "InternalError", "no"))
        world.node.succeed(pod)
        await world.settle(1.5)
        assert "Complete" not in world.conditions()
        await world.settle(5)
        assert "Complete" in world.conditions()
        assert world.pods(tracked=True) == []


async def test_a_pod_that_is_gone_has_no_finalizer_either() -> None:
    """T10: 404 counts as removed."""
    async with job_world() as world:
        world.create()
        await world.settle()
        (pod,) = world.pods()
        world.wire.arrange("patch", "pods", not_found("pods", pod))
        world.node.succeed(pod)
        await world.settle()
        assert "Complete" in world.conditions()


@pytest.mark.parametrize("verb", ["create", "patch", "update"])
async def test_a_lost_answer_counts_nothing_twice(verb: str) -> None:
    """Q4: the write was made; its echo in the watch tells."""
    async with job_world() as world:
        world.create(completions=2, parallelism=1)
        world.wire.arrange(verb, "jobs" if verb == "update" else "pods", Fault.LOSE_ANSWER)
        for _ in range(4):
            await world.settle(8)
            for pod in world.active():
                world.node.succeed(pod)
        await world.settle(10)
        assert "Complete" in world.conditions()
        assert world.status()["succeeded"] <= 3
        assert world.pods(tracked=True) == []


async def test_a_pod_whose_creation_was_not_answered_is_not_created_again_while_the_watch_is_silent() -> None:
    """Q1, beyond upstream: the server is asked what there is, and the watch waited for until it shows that."""
    async with job_world() as world:
        world.create(completions=3, parallelism=2, completionMode="Indexed")
        await world.settle()
        world.wire.mute_watches("pods")
        world.wire.arrange("create", "pods", Fault.LOSE_ANSWER)
        world.set_spec(parallelism=3)
        await world.settle(20)
        assert len(world.pods()) == 3
        await world.settle(120)  # the watch is found silent, and begins anew
        assert len(world.pods()) == 3
        for pod in world.active():
            world.node.succeed(pod)
        await world.settle(20)
        assert "Complete" in world.conditions()
        assert world.status()["succeeded"] == 3


async def test_a_pod_that_was_not_created_is_created_by_the_next_sync() -> None:
    """A request that may have been carried out, and was not, costs a look and no waiting."""
    async with job_world() as world:
        world.wire.arrange("create", "pods", Fault.LOSE_REQUEST)
        world.create()
        await world.settle(3)
        assert len(world.pods()) == 1


async def test_a_failed_delete_leaves_the_decision_for_the_next_sync() -> None:
    """Y15, Q3: FailureTarget is not written before every active pod was told to go."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, activeDeadlineSeconds=5)
        await world.settle(2)
        for pod in world.pods():
            world.node.run(pod)
        world.wire.arrange("delete", "pods", Refused(500, "InternalError", "no"))
        await world.settle(3.7)
        assert world.conditions() == {}
        assert world.told.reasons()["FailedDelete"] == 1
        await world.settle(4)
        assert world.conditions() == {"FailureTarget": "DeadlineExceeded"}
        assert world.status()["failed"] == 2


async def test_a_verdict_whose_status_is_refused_is_not_changed_by_its_deletions() -> None:
    """Beyond upstream, where the pods that the deadline deleted exceed the backoff limit at the next try (Y13)."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, activeDeadlineSeconds=5, backoffLimit=0)
        await world.settle(2)
        for pod in world.pods():
            world.node.run(pod)
        await world.settle(2)
        world.wire.arrange("update", "jobs", CONFLICT)
        await world.settle(4)
        assert world.conditions() == {"FailureTarget": "DeadlineExceeded"}
        assert world.status()["failed"] == 2


async def test_another_spec_may_take_back_a_verdict_that_is_not_stored() -> None:
    """As upstream: the deletes are refused again and again, and a person gives the Job more time."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, activeDeadlineSeconds=5)
        await world.settle(2)
        world.wire.arrange("delete", "pods", Refused(500, "InternalError", "no"), times=99)
        await world.settle(4)
        assert world.told.reasons()["FailedDelete"] >= 2
        world.set_spec(activeDeadlineSeconds=1000)
        await world.settle(20)
        assert world.conditions() == {}
        assert len(world.active()) == 2


async def test_what_was_asked_for_and_never_comes_is_given_up_after_five_minutes() -> None:
    """K4: nothing else would bring the Job again."""
    async with job_world() as world:
        world.create()
        await world.settle()
        memory = world.controller.memories.of(world.job()["metadata"]["uid"])
        memory.expected.expect_creations(1, world.wire.clock.monotonic())
        world.edit(lambda job: job["metadata"].setdefault("labels", {}).update(touched="yes"))
        await world.settle(2)
        (pod,) = world.pods()
        world.wire.server.edit("pods", pod, lambda body: body["metadata"].update(finalizers=[]))
        world.wire.server.remove("pods", pod)
        before = len(world.writes())
        await world.settle(280)
        assert "create pods" not in world.writes(before)
        await world.settle(30)
        assert "create pods" in world.writes(before)


async def test_after_a_restored_backup_nothing_is_waited_for_that_is_gone() -> None:
    """What we wrote and the end that we stored are undone, and versions are small again."""
    async with job_world() as world:
        world.create()
        await world.settle()
        memory = world.controller.memories.of(world.job()["metadata"]["uid"])
        memory.written.wrote_job(10**9)
        memory.is_finished = True
        world.controller.jobs.store.restart("", world.controller.jobs.store.progress("") - 1)
        world.node.succeed(world.pods()[0])
        await world.settle(5)
        assert "Complete" in world.conditions()


async def test_while_the_watch_of_pods_is_silent_nothing_is_created_again() -> None:
    """Y1, Q1, Q20: what was created and is not seen yet is not missing."""
    async with job_world() as world:
        world.create(completions=3, parallelism=3)
        world.wire.mute_watches("pods")
        await world.settle(0.5)
        world.set_spec(activeDeadlineSeconds=1000)
        await world.settle(10)
        assert len(world.pods()) == 3
        assert world.told.counts["stale", "", "pods"] >= 1


async def test_a_finished_job_whose_update_is_late_is_not_redone() -> None:
    """Y5, Q5: pod events that come before the Job's own recreate nothing."""
    async with job_world() as world:
        world.create()
        await world.settle()
        (pod,) = world.pods()
        world.wire.mute_watches("jobs")
        world.node.succeed(pod)
        await world.settle()
        assert "Complete" in world.conditions()
        world.wire.server.remove("pods", pod)
        await world.settle(30)
        assert world.wire.server.all("pods") == []
        assert world.told.reasons()["Completed"] == 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
async def test_killed_again_and_again_every_pod_is_counted_once(seed: int) -> None:
    """Q4: whatever the last request was, and whether it was carried out, the next process goes on from it."""
    chance = random.Random(seed)
    world = JobWorld(ControllerSettings())
    world.create(completions=6, parallelism=3, completionMode=chance.choice(["Indexed", "NonIndexed"]))
    for _ in range(15):
        verb, plural = chance.choice([("create", "pods"), ("patch", "pods"), ("update", "jobs")])
        world.wire.arrange(verb, plural, chance.choice([Fault.HANG, Fault.LOSE_ANSWER]))
        async with world.running():
            await world.settle(chance.choice([0.01, 0.1, 0.5, 1.2]))
            for pod in world.active():
                world.node.succeed(pod)
            await world.settle(chance.choice([0.5, 0.99, 1.01, 1.5]))
        world.wire.restore()
    async with world.running():
        for _ in range(6):
            await world.settle(5)
            for pod in world.active():
                world.node.succeed(pod)
    assert "Complete" in world.conditions()
    assert world.status()["succeeded"] == len({_place(pod) for pod in world.bodies()})
    assert "failed" not in world.status()
    assert world.pods(tracked=True) == []


def _place(pod: dict[str, Any]) -> str:
    """What a success of the pod counts for: its index, or itself."""
    place: str = pod["spec"].get("hostname") or pod["metadata"]["name"]
    return place


async def test_random_faults_change_nothing_in_the_end() -> None:
    """K2: every failed request leads to another try, and each pod counts once."""
    chance = random.Random(7)
    async with job_world() as world:
        world.create(completions=12, parallelism=4)
        for _ in range(60):
            verb, plural = chance.choice([("create", "pods"), ("patch", "pods"), ("update", "jobs")])
            world.wire.arrange(verb, plural, chance.choice([Fault.BREAK, Fault.LOSE_ANSWER, CONFLICT, QUOTA]))
            await world.settle(3)
            for pod in world.active():
                world.node.succeed(pod)
        world.wire.restore()
        for _ in range(10):
            await world.settle(20)
            for pod in world.active():
                world.node.succeed(pod)
        assert "Complete" in world.conditions()
        succeeded = len(world.pods(phase="Succeeded"))
        assert world.status()["succeeded"] == succeeded
        assert world.pods(tracked=True) == []


@pytest.mark.slow
async def test_behind_a_rate_limit_the_second_status_waits_for_the_next_first_one() -> None:
    """Not while nothing waits; and the count is right in the end."""
    async with job_world() as world:
        pass
    wire = world.wire
    limiter = Limiter(20, 20, wire.clock.monotonic)
    credentials = Credentials(Endpoint("https://cluster", None), Identity())
    client = Client("cluster", credentials, limiter, transport=MemoryTransport(wire), wall=wire.clock.wall)
    names = [f"big-{number}" for number in range(3)]
    async with world.running(client):
        for name in names:
            world.create(name, completions=20, parallelism=10)
        for _ in range(60):
            await world.settle(0.5)
            for name in names:
                for pod in world.active(name):
                    world.node.succeed(pod)
    writes = world.writes()
    statuses = writes.count("update jobs/status")
    assert [world.status(name)["succeeded"] for name in names] == [20, 20, 20]
    assert len(writes) == statuses + 2 * 60
    # Two for each turn of ten pods, as without a limit, were 0.3 per pod with the first and the last one.
    assert statuses / 60 <= 0.25


async def test_the_batch_period_is_a_setting() -> None:
    """K2."""
    plain = ControllerSettings()
    constants = type(plain.behaviour.constants)(batch_period_seconds=0.1)
    settings = ControllerSettings(type(plain.behaviour)(constants=constants))
    async with job_world(settings) as world:
        world.create()
        await world.settle(0.5)
        world.node.succeed(world.pods()[0])
        await world.settle(0.3)
        assert "Complete" in world.conditions()
