"""Pods on simulated nodes, from their creation to their end, with scheduler and kubelet."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from embedded_world import NODES, PODS, Json, in_virtual_time, pod, world

from mirror.embedded.clocks import LoopClock, SkewedClock
from mirror.embedded.controllers.kubelet.machine import Machine
from mirror.embedded.controllers.kubelet.runtime import Instant
from mirror.embedded.controllers.kubelet.simulated import Simulated
from mirror.embedded.controllers.kubelet.status import Place
from mirror.embedded.faults.kinds import conflict
from mirror.embedded.faults.targets import Which
from mirror.embedded.podlogs import PodLogs

RUNNERS = ("scheduler", "kubelet")


def has_phase(phase: str) -> Any:
    return lambda found: found is not None and found.get("status", {}).get("phase") == phase


def container(found: Json, kind: str = "containerStatuses") -> Json:
    status: Json = found["status"][kind][0]
    return status


def condition(found: Json, kind: str) -> Json:
    return next(one for one in found["status"]["conditions"] if one["type"] == kind)


@in_virtual_time
async def test_a_node_is_registered_and_ready() -> None:
    """With a Lease that is renewed."""
    async with world("kubelet") as here:
        node = await here.until(f"{NODES}/node-0", lambda one: one and one.get("status", {}).get("conditions"))
        assert condition(node, "Ready")["status"] == "True"
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0"
        first = await here.api.get(lease)
        await asyncio.sleep(11)
        second = await here.api.get(lease)
        assert first["spec"]["holderIdentity"] == "node-0"
        assert first["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        assert first["spec"]["renewTime"] < second["spec"]["renewTime"]


@pytest.mark.parametrize(
    ("annotations", "phase", "code"),
    [
        pytest.param({}, "Succeeded", 0, id="as a rule"),
        pytest.param({"exit-code": "3"}, "Failed", 3, id="with an exit code"),
        pytest.param({"exit-code": "nonsense", "run-for": "nonsense"}, "Succeeded", 0, id="with nonsense"),
    ],
)
@in_virtual_time
async def test_a_pod_runs_and_ends_as_its_annotations_say(annotations: dict[str, str], phase: str, code: int) -> None:
    """After a tenth of a second unless they say otherwise."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations=annotations))
        await asyncio.sleep(0.05)
        running = await here.api.get(f"{PODS}/p")
        assert running["spec"]["nodeName"] == "node-0"
        assert has_phase("Running")(running)
        assert container(running)["ready"] is True
        await asyncio.sleep(0.1)
        ended = await here.api.get(f"{PODS}/p")
        assert has_phase(phase)(ended)
        assert container(ended)["state"]["terminated"]["exitCode"] == code
        assert condition(ended, "Ready")["reason"] == ("PodCompleted" if code == 0 else "PodFailed")
        assert [reason for reason, _ in await here.told("p")] == ["Scheduled", "Created", "Started"]


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(Which("create", "pods", subresource="binding", peer="scheduler"), id="it is bound"),
        pytest.param(Which("patch", "pods", subresource="status", peer="kubelet"), id="its status is written"),
    ],
)
@in_virtual_time
async def test_a_conflict_holds_no_pod_up(which: Which) -> None:
    """No watch need bring the pod again: nothing may have changed about it. A pod was left unbound, or Running."""
    async with world(*RUNNERS) as here:
        here.faults.arrange(conflict(), which, times=3)
        await here.api.create(PODS, pod("p"))
        await here.until(f"{PODS}/p", has_phase("Succeeded"), seconds=60)


@in_virtual_time
async def test_a_moment_that_is_a_rounding_error_away_is_waited_for() -> None:
    """Not looked at again and again, while no time passes."""
    body = {**pod("p", annotations={"run-for": "30s"}), "status": {}}
    body["metadata"] |= {"uid": "u", "namespace": "default", "labels": {}}
    began = Instant(datetime(2026, 3, 1, tzinfo=UTC), 57.0375)
    place = Place("10.0.0.1", "10.64.0.1", "2026-03-01T00:00:00Z", began.steady)
    runtime = Simulated(PodLogs(), random.Random(1))
    machine = Machine(body, place, runtime, wake=lambda: None, tell=lambda *_: None)
    assert await machine.advance(began) == pytest.approx(30.0)
    nearly = Instant(began.wall + timedelta(seconds=30), 87.0375 - 2.8e-14)
    again = await machine.advance(nearly)
    assert again is not None
    assert nearly.steady + again > 87.0375


@pytest.mark.slow
@in_virtual_time
async def test_it_runs_for_as_long_as_it_says_and_becomes_ready_when_it_says() -> None:
    """``run-for`` and ``ready-after``."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "1h", "ready-after": "5s"}))
        await asyncio.sleep(4)
        found = await here.api.get(f"{PODS}/p")
        assert condition(found, "Ready")["message"] == "containers with unready status: [c]"
        await asyncio.sleep(2)
        assert condition(await here.api.get(f"{PODS}/p"), "Ready")["status"] == "True"
        await asyncio.sleep(3590)
        assert has_phase("Running")(await here.api.get(f"{PODS}/p"))
        await asyncio.sleep(10)
        assert has_phase("Succeeded")(await here.api.get(f"{PODS}/p"))


@in_virtual_time
async def test_it_starts_when_it_says() -> None:
    """``start-after``: its image takes so long."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "1h", "start-after": "20s"}))
        await asyncio.sleep(19)
        found = await here.api.get(f"{PODS}/p")
        assert has_phase("Pending")(found)
        assert container(found)["state"]["waiting"]["reason"] == "ErrImagePull"
        await asyncio.sleep(4)
        assert has_phase("Running")(await here.api.get(f"{PODS}/p"))


@in_virtual_time
async def test_one_that_never_started_ends_unstarted() -> None:
    """As kubelets since 1.27: in a final phase before it is gone, and without a start."""
    async with world(*RUNNERS) as here:
        body = pod("p", annotations={"start-after": "never"})
        body["metadata"]["finalizers"] = ["example.com/hold"]
        await here.api.create(PODS, body)
        await asyncio.sleep(5)
        await here.api.delete(f"{PODS}/p")
        await asyncio.sleep(1)
        found = await here.api.get(f"{PODS}/p")
        assert has_phase("Failed")(found)
        ended = container(found)["state"]["terminated"]
        assert (ended["reason"], ended.get("startedAt")) == ("ContainerStatusUnknown", None)
        assert container(found)["restartCount"] == 0


@in_virtual_time
async def test_an_index_may_have_an_exit_code_of_its_own() -> None:
    """``exit-code-index-N``."""
    async with world(*RUNNERS) as here:
        for index in range(2):
            body = pod(f"p{index}", annotations={"exit-code-index-1": "7"})
            body["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = str(index)
            await here.api.create(PODS, body)
        await asyncio.sleep(1)
        codes = [container(one)["state"]["terminated"]["exitCode"] for one in await here.api.list(PODS)]
        assert codes == [0, 7]


@in_virtual_time
async def test_a_container_that_fails_is_restarted_with_growing_pauses() -> None:
    """``OnFailure``: at once, then after 10, 20, … seconds; the runs before and their logs can be seen."""
    async with world(*RUNNERS) as here:
        said = {"exit-code": "1", "exit-code-restart-3": "0"}
        await here.api.create(PODS, pod("p", annotations=said, restartPolicy="OnFailure"))
        await asyncio.sleep(1)
        waiting = await here.api.get(f"{PODS}/p")
        assert has_phase("Running")(waiting)
        assert container(waiting)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        uid = waiting["metadata"]["uid"]
        text = f"back-off 10s restarting failed container=c pod=p_default({uid})"
        assert container(waiting)["state"]["waiting"]["message"] == text
        assert container(waiting)["restartCount"] == 2
        assert container(waiting)["lastState"]["terminated"]["exitCode"] == 1
        await asyncio.sleep(12)
        assert "back-off 20s" in container(await here.api.get(f"{PODS}/p"))["state"]["waiting"]["message"]
        ended = await here.until(f"{PODS}/p", has_phase("Succeeded"))
        assert container(ended)["restartCount"] == 3
        assert ("BackOff", f"Back-off restarting failed container c in pod p_default({uid})") in await here.told("p")


@in_virtual_time
async def test_init_containers_come_first_and_sidecars_last() -> None:
    """Init containers end well at once; a sidecar runs beside the others and is stopped after them."""
    async with world(*RUNNERS) as here:
        init = [{"name": "i", "image": "i"}, {"name": "s", "image": "i", "restartPolicy": "Always"}]
        await here.api.create(PODS, pod("p", annotations={"run-for": "2s"}, initContainers=init))
        await asyncio.sleep(1)
        found = await here.api.get(f"{PODS}/p")
        assert has_phase("Running")(found)
        one, side = found["status"]["initContainerStatuses"]
        assert one["state"]["terminated"]["reason"] == "Completed"
        assert "running" in side["state"]
        ended = await here.until(f"{PODS}/p", has_phase("Succeeded"))
        assert "terminated" in ended["status"]["initContainerStatuses"][1]["state"]


@in_virtual_time
async def test_a_deleted_pod_stops_and_then_goes() -> None:
    """With a finalizer one can see its end: exit code 143, Failed."""
    async with world(*RUNNERS) as here:
        body = pod("p", annotations={"run-for": "never", "stop-after": "3s"})
        body["metadata"]["finalizers"] = ["test.io/hold"]
        await here.api.create(PODS, body)
        await asyncio.sleep(1)
        await here.api.delete(f"{PODS}/p")
        await asyncio.sleep(2)
        assert has_phase("Running")(await here.api.get(f"{PODS}/p"))
        await asyncio.sleep(2)
        ended = await here.api.get(f"{PODS}/p")
        assert has_phase("Failed")(ended)
        assert container(ended)["state"]["terminated"]["exitCode"] == 143
        assert ended["metadata"]["deletionGracePeriodSeconds"] == 0
        await here.api.merge(f"{PODS}/p", {"metadata": {"finalizers": None}})
        assert await here.get(f"{PODS}/p") is None
        assert ("Killing", "Stopping container c") in await here.told("p")


@in_virtual_time
async def test_a_pod_that_takes_longer_than_its_grace_is_killed() -> None:
    """Exit code 137; a second delete may shorten the grace."""
    async with world(*RUNNERS) as here:
        for name in ("slow", "hurried"):
            body = pod(name, annotations={"run-for": "never", "stop-after": "1h"})
            body["metadata"]["finalizers"] = ["test.io/hold"]
            await here.api.create(PODS, body)
        await asyncio.sleep(1)
        for name in ("slow", "hurried"):
            await here.api.delete(f"{PODS}/{name}")
        await here.api.call("DELETE", f"{PODS}/hurried", {"gracePeriodSeconds": 5})
        await asyncio.sleep(6)
        assert has_phase("Running")(await here.api.get(f"{PODS}/slow"))
        assert container(await here.api.get(f"{PODS}/hurried"))["state"]["terminated"]["exitCode"] == 137
        await asyncio.sleep(25)
        assert container(await here.api.get(f"{PODS}/slow"))["state"]["terminated"]["exitCode"] == 137


@in_virtual_time
async def test_a_pod_may_be_deleted_without_grace() -> None:
    """It is gone at once, and nothing is left of it on the node."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "never"}))
        await asyncio.sleep(1)
        assert len(here.logs) == 1
        await here.api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert await here.get(f"{PODS}/p") is None
        await asyncio.sleep(1)
        assert len(here.logs) == 0


@in_virtual_time
async def test_a_pod_has_a_deadline() -> None:
    """``activeDeadlineSeconds``: it is stopped and fails."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "never"}, activeDeadlineSeconds=30))
        await asyncio.sleep(29)
        assert has_phase("Running")(await here.api.get(f"{PODS}/p"))
        await asyncio.sleep(2)
        ended = await here.api.get(f"{PODS}/p")
        assert (ended["status"]["phase"], ended["status"]["reason"]) == ("Failed", "DeadlineExceeded")
        assert ended["status"]["message"] == "Pod was active on the node longer than the specified deadline"


@in_virtual_time
async def test_the_log_is_what_the_annotation_says() -> None:
    """By ``pods/log``; it is gone with the pod."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"log": "hello\nworld"}))
        await asyncio.sleep(1)
        log = here.logs.find(container(await here.api.get(f"{PODS}/p"))["containerID"])
        assert log is not None
        await here.api.delete(f"{PODS}/p")
        await asyncio.sleep(1)
        assert len(here.logs) == 0


@in_virtual_time
async def test_a_kubelet_that_starts_anew_goes_on_where_it_was() -> None:
    """Simulated containers outlive it; each runs once."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "1m"}))
        await here.api.create(PODS, pod("ended"))
        await asyncio.sleep(30)
        before = await here.api.get(f"{PODS}/p")
        here.start("kubelet")
        await asyncio.sleep(1)
        assert await here.api.get(f"{PODS}/p") == before
        ended = await here.until(f"{PODS}/p", has_phase("Succeeded"))
        assert container(ended)["containerID"] == container(before)["containerID"]
        assert container(ended)["restartCount"] == 0


@in_virtual_time
async def test_a_pod_waits_for_a_node_that_will_do() -> None:
    """It says why, and is bound when there is one."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", nodeSelector={"disk": "fast"}))
        await asyncio.sleep(1)
        waiting = await here.api.get(f"{PODS}/p")
        told = condition(waiting, "PodScheduled")
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert told["message"].startswith(
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
        )
        assert (await here.told("p"))[0][0] == "FailedScheduling"
        await here.api.merge(f"{NODES}/node-0", {"metadata": {"labels": {"disk": "fast"}}})
        await here.until(f"{PODS}/p", has_phase("Succeeded"), seconds=60)


@in_virtual_time
async def test_pods_of_other_schedulers_and_gated_pods_are_left_alone() -> None:
    """Until their gates are gone."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("other", schedulerName="mine"))
        await here.api.create(PODS, pod("gated", schedulingGates=[{"name": "test.io/gate"}]))
        await asyncio.sleep(5)
        assert [one["spec"].get("nodeName") for one in await here.api.list(PODS)] == [None, None]
        await here.api.merge(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
        await here.until(f"{PODS}/gated", has_phase("Succeeded"), seconds=60)


@in_virtual_time
async def test_what_ended_while_the_server_was_away_is_told_afterwards() -> None:
    """A partition of the kubelet loses nothing."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "5s"}))
        await asyncio.sleep(1)
        here.wire.server = None
        await asyncio.sleep(20)
        here.wire.server = here.server
        ended = await here.until(f"{PODS}/p", has_phase("Succeeded"), seconds=60)
        stopped = container(ended)["state"]["terminated"]
        assert stopped["startedAt"][:-3] == stopped["finishedAt"][:-3]


@in_virtual_time
async def test_a_pod_that_somebody_else_ends_is_ended_here() -> None:
    """Also if that was our own write, whose answer was lost."""
    async with world(*RUNNERS) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "never"}))
        await asyncio.sleep(1)
        await here.api.merge(f"{PODS}/p/status", {"status": {"phase": "Failed", "reason": "Evicted"}})
        await asyncio.sleep(1)
        found = await here.api.get(f"{PODS}/p")
        assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "Evicted")
        assert container(found)["state"]["terminated"]["exitCode"] == 143


@in_virtual_time
async def test_a_clock_that_is_set_back_prolongs_nothing() -> None:
    """Durations go by the steady clock; the wall clock is only written down."""
    clock = SkewedClock(LoopClock())
    async with world(*RUNNERS, clock=clock) as here:
        said = {"run-for": "30s"}
        await here.api.create(PODS, pod("p", annotations=said))
        await here.api.create(PODS, pod("q", annotations={"run-for": "never"}, activeDeadlineSeconds=30))
        await asyncio.sleep(10)
        clock.ahead_seconds = -3600
        await asyncio.sleep(15)
        assert has_phase("Running")(await here.api.get(f"{PODS}/p"))
        here.start("kubelet")
        await asyncio.sleep(31)
        for name, phase in (("p", "Succeeded"), ("q", "Failed")):
            found = await here.api.get(f"{PODS}/{name}")
            assert has_phase(phase)(found)
            assert container(found)["state"]["terminated"]["finishedAt"] >= found["status"]["startTime"]
