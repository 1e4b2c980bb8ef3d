"""Workers that hang, vanish, come back, or are not what they seem (D12–D15, D19, D20)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from doubles.jobs import job
from doubles.loglines import Lines
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault, Gone
from doubles.world import HOME, WAITING, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.runtime.informer import ABSENT_SECONDS
from mirror.settings.kinds import KindEntry
from mirror.workers.inventory import FORMER

pytestmark = pytest.mark.looptime

BROKEN = Refused(500, "InternalError", "conversion failed")


@pytest.mark.slow
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


async def test_a_record_that_cannot_be_read_at_first_is_read_later() -> None:
    """A management cluster that answers a moment too late is no failure of the registry."""
    world = World()
    world.add_worker("east")
    world.management.arrange("get", "configmaps", Fault.BREAK, times=8)
    world.create(job())
    async with manager_of(world) as manager:
        assert world.mirrors() == []
        await manager.settle(10)
        assert world.mirrors() == ["east"]


async def test_a_misspelt_annotation_of_a_worker_is_told_once_and_stops_nothing() -> None:
    """D22: by an event on its Secret, and in what `mirror worker list` reads."""
    world = World()
    world.add_worker("east", annotations={"capactiy": "1"})
    text = "unknown annotation jobmirror.io/capactiy (did you mean jobmirror.io/capacity?)"
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(5)
        assert world.mirrors() == ["east"]
        assert world.texts("UnknownAnnotation") == [text]
        assert json.loads(world.record()["east"])["remark"] == text
        world.annotate_worker("east", capactiy=None, cordonned="true")
        await manager.settle(5)
        assert world.texts("UnknownAnnotation")[1:] == [
            "unknown annotation jobmirror.io/cordonned (did you mean jobmirror.io/cordoned?)"
        ]
        world.annotate_worker("east", cordonned=None)
        await manager.settle(5)
        assert "remark" not in json.loads(world.record()["east"])


async def test_an_annotation_that_is_misspelt_on_a_running_job_is_told() -> None:
    """D22: what matters only later, too; once a change, and never for a change of a status."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle(5)
        world.edit(lambda body: body["metadata"]["annotations"].update({names.PREFIX + "on-worker-los": "Wait"}))
        await manager.settle(5)
        text = "unknown annotation jobmirror.io/on-worker-los (did you mean jobmirror.io/on-worker-loss?)"
        assert world.texts("UnknownAnnotation") == [text]
        (mirror,) = world.mirrors()
        world.controller(mirror).start("train")
        await manager.settle(700)
        world.edit(lambda body: body["metadata"]["annotations"].update({"team": "b"}))
        await manager.settle(5)
        assert world.source()["status"]["active"] == 1
        assert world.texts("UnknownAnnotation") == [text]


async def test_a_label_that_was_meant_as_an_annotation_is_told_on_a_running_job() -> None:
    """D22: ``kubectl label`` in place of ``annotate``, and misspelt."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle(5)
        world.edit(lambda body: body["metadata"].update(labels={names.PREFIX + "on-worker-los": "Wait"}))
        await manager.settle(5)
        text = (
            "label jobmirror.io/on-worker-los has no effect (did you mean the annotation jobmirror.io/on-worker-loss?)"
        )
        assert world.texts("UnknownAnnotation") == [text]


async def test_a_kind_that_is_not_served_keeps_no_worker_lost() -> None:
    """D13, D23: its watch was rejected like all others, and last of all; it is not there, and what is there answers."""
    world = World()
    east = world.add_worker("east")
    east.arrange("watch", "jobsets", Refused(401, "Unauthorized"), times=1)
    async with manager_of(world, kinds=kinds_of([KindEntry(kind="JobSet")])) as manager:
        await manager.settle(3 * ABSENT_SECONDS)
        assert manager.mirroring.registry.workers["east"].is_reachable
        world.create(job())
        await manager.settle(5)
        assert world.mirrors() == ["east"]


async def test_a_worker_that_is_away_changes_nothing_within_the_grace() -> None:
    """D13: nothing is evicted, and after a minute the source says what is the matter."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(50)
        assert world.annotation(WAITING) is None
        await manager.settle(25)
        assert "worker east is unreachable" in (world.annotation(WAITING) or "")
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
        assert {name for name in world.record() if not name.startswith(FORMER)} == {"west"}


async def test_a_secret_that_leads_to_another_cluster_is_refused() -> None:
    """D19: the uid that was recorded at first contact counts; mirrors stay where they are."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.add_worker("north")
        world.management.server.remove("secrets", "east", HOME)
        world.register("east", leads_to="north")
        await manager.settle(30)
        assert not manager.registry.workers["east"].is_reachable
        assert "another cluster" in world.record()["east"]
        assert world.workers["north"].server.all("jobs") == []
        assert world.mirrors() == ["east"]
        assert "IdentityRejected" in world.events()


async def test_a_cluster_is_registered_once() -> None:
    """D19: the second Secret is refused, or a Job could be mirrored there twice."""
    async with two_workers() as (world, manager):
        world.register("twin", leads_to="east")
        await manager.settle(5)
        assert not manager.registry.workers["twin"].is_reachable
        assert "registered already, as worker east" in world.record()["twin"]
        assert "deleted" not in world.record()["twin"]
        assert '"refusal":"IdentityRejected"' in world.record()["twin"]


async def test_the_management_cluster_is_a_worker_only_with_a_prefix() -> None:
    """D19: without a prefix a mirror would meet its own source."""
    world = World()
    world.register("self", leads_to="management")
    async with manager_of(world) as manager:
        await manager.settle(5)
        assert not manager.registry.workers["self"].is_reachable


@pytest.mark.parametrize("namespace", ["default", "run-default"])
async def test_a_source_with_the_labels_of_a_mirror_is_no_mirror(namespace: str) -> None:
    """D1: whoever copies the labels of a mirror, and the uid of a Job that is gone, keeps their own Job."""
    world = World()
    world.register("self", leads_to="management", annotations={"namespace-prefix": "run-"})
    for name in ("run-default", "run-run-default"):
        world.management.server.put("namespaces", {"metadata": {"name": name}})
    async with manager_of(world) as manager:
        uid = world.create(job())["metadata"]["uid"]
        await manager.settle(2)
        world.delete()
        await manager.settle(5)
        labels = {names.ORIGIN: world.origin, names.SOURCE_UID: uid}
        own = world.create(job(namespace=namespace, labels=labels))
        await manager.settle(120)
        assert world.source(namespace=namespace)["metadata"]["uid"] == own["metadata"]["uid"]
        assert world.placed(namespace=namespace) == "self"


async def test_a_source_in_the_way_of_a_mirror_is_not_taken_for_it() -> None:
    """D1: although it has the labels of that very mirror."""
    world = World()
    world.register("self", leads_to="management", annotations={"namespace-prefix": "run-"})
    for name in ("run-default", "run-run-default"):
        world.management.server.put("namespaces", {"metadata": {"name": name}})
    async with manager_of(world) as manager:
        uid = world.create(job(suspend=True))["metadata"]["uid"]
        own = world.create(
            job(namespace="run-default", labels={names.ORIGIN: world.origin, names.SOURCE_UID: uid}, suspend=True)
        )
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(120)
        found = world.source(namespace="run-default")
        assert (found["metadata"]["uid"], found["spec"]["suspend"]) == (own["metadata"]["uid"], True)
        assert "MirrorConflict" in world.events()


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
        assert manager.registry.workers["east"].is_reachable


async def test_the_origin_is_written_beside_the_workers() -> None:
    """For ``mirror worker drain``; also by one that takes over from a manager that did not write it."""
    async with two_workers() as (world, manager):
        await manager.settle(2)
        path = ("configmaps", names.WORKERS_CONFIGMAP, HOME)
        assert world.management.server.get(*path)["metadata"]["annotations"] == {names.ORIGIN: world.origin}
        world.management.server.edit(*path[:2], lambda body: body["metadata"].pop("annotations"), HOME)
    async with manager_of(world) as manager:
        await manager.settle(2)
        assert world.management.server.get(*path)["metadata"]["annotations"] == {names.ORIGIN: world.origin}


async def test_a_worker_that_is_too_old_is_refused() -> None:
    """D20: 1.29 is the oldest that works."""
    world = World()
    world.add_worker("east", minor=28)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(15)
        assert "too old" in world.record()["east"]
        too_old = "Kubernetes 1.28 is too old; 1.29 or newer is needed"
        assert world.annotation(WAITING) == f"east: unreachable ({too_old})"


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
async def test_nonsense_on_a_worker_stops_nobody(nonsense: dict[str, Any], log_lines: Lines) -> None:
    """D7, D12: an object that no API server would serve neither ends its worker's watch nor is an error of ours."""
    async with two_workers() as (world, manager):
        for name in ("train", "other"):
            world.create(job(name, annotations={names.WORKER_SELECTOR: "name=east"}))
        await manager.settle()
        world.workers["east"].server.edit("jobs", "train", lambda body: body.update(nonsense))
        world.controller("east").start("other")
        await manager.settle(5)
        assert world.source("other")["status"]["active"] == 1
        assert [line for line in log_lines if line["level"] == "error"] == []


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
        assert not manager.registry.workers["east"].is_reachable
        east.restore()
        await manager.settle(3)
        assert manager.registry.workers["east"].is_reachable


async def test_a_secret_without_a_kubeconfig_says_so() -> None:
    """D13: the record holds the real reason, not a consequence of it; mending the Secret is enough."""
    world = World()
    world.add_worker("east")
    secret = world.management.server.get("secrets", "east", HOME)
    world.management.server.edit("secrets", "east", lambda body: body.update(data={}), HOME)
    world.create(job())
    async with manager_of(world) as manager:
        await manager.settle(30)
        assert "data.kubeconfig" in world.record()["east"]
        assert any("data.kubeconfig" in text for text in world.texts("KubeconfigRefused"))
        assert world.annotation(WAITING) == (
            "east: misconfigured (kubeconfig refused: data.kubeconfig: is missing; put the worker's kubeconfig there)"
        )
        world.management.server.edit("secrets", "east", lambda body: body.update(data=secret["data"]), HOME)
        await manager.settle(3)
        assert manager.registry.workers["east"].is_reachable
        assert "data.kubeconfig" not in world.record()["east"]
        assert world.mirrors() == ["east"]


@pytest.mark.slow
@pytest.mark.parametrize("what", [Fault.HANG, BROKEN], ids=["hangs", "fails"])
async def test_a_worker_that_answers_probes_and_never_lists_is_lost(what: Fault | Refused) -> None:
    """D13: it is away, comes back, and says nothing of its mirrors; its Jobs are moved as from any lost worker."""
    async with two_workers(policy=Policy(on_loss=OnLoss.RESCHEDULE)) as (world, manager):
        world.create(job(annotations={names.WORKER_SELECTOR: "name in (east,west)"}))
        await manager.settle()
        left = world.placed()
        assert left is not None
        worker = world.workers[left]
        worker.go_down()
        await manager.settle(5)
        worker.restore()
        worker.arrange("watch", "jobs", what, times=99999)
        worker.arrange("list", "jobs", what, times=99999)
        await manager.settle(200)
        assert manager.registry.workers[left].connection.is_connected
        await manager.settle(120)
        connection = manager.registry.workers[left].connection
        assert not connection.is_connected
        assert "its mirrors cannot be watched" in connection.because
        await manager.settle(1000)
        assert world.placed() != left
        worker.restore()
        await manager.settle(60)
        assert manager.registry.workers[left].is_reachable


async def test_a_worker_whose_watch_fails_is_lost_after_a_while() -> None:
    """D13: what was seen before is older and older, and must not be told as if it were so now."""
    async with two_workers() as (world, manager):
        east = world.workers["east"]
        for verb in ("watch", "list"):
            east.arrange(verb, "jobs", BROKEN, times=99999)
        east.break_watches()
        await manager.settle(150)
        assert manager.registry.workers["east"].is_reachable
        await manager.settle(150)
        assert not manager.registry.workers["east"].is_reachable
        before = len(east.sent)
        await manager.settle(60)
        assert len(east.sent) - before < 5 * 60
        east.restore()
        await manager.settle(60)
        assert manager.registry.workers["east"].is_reachable


async def test_a_worker_with_nothing_to_say_is_not_lost() -> None:
    """A watch of which nothing comes but its clean end, and bookmarks."""
    async with two_workers() as (_, manager):
        lost = 0
        for _ in range(40):
            await manager.settle(60)
            lost += sum(not worker.is_reachable for worker in manager.registry.workers.values())
        assert lost == 0
