"""Objects on workers that lost our labels, never had them, or are claimed by an annotation (D1, D10, D11)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from doubles.admission import mutate_jobs
from doubles.jobs import job
from doubles.refusals import Refused, forbidden
from doubles.transport import Wire
from doubles.world import HOME, WAITING, RunningManager, World, manager_of, two_workers

from mirror.model import names
from mirror.workers import mirrors as mirror_store
from mirror.workers.inventory import FORMER

pytestmark = pytest.mark.looptime

Body = dict[str, Any]


def uid_of(body: Body | None) -> str:
    return str(body["metadata"]["uid"]) if body else ""


@pytest.mark.parametrize("key", [names.ORIGIN, names.SOURCE_UID])
@pytest.mark.parametrize("value", [None, "something-else"], ids=["removed", "changed"])
async def test_a_recorded_mirror_is_ours_whatever_its_labels(key: str, value: str | None) -> None:
    """D1, D11: they are put back and that is reported; it is neither deleted nor given up."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        uid = uid_of(world.mirror("east"))

        def change(body: Body) -> None:
            labels = body["metadata"]["labels"]
            labels[key] = value
            if value is None:
                del labels[key]

        world.workers["east"].server.edit("jobs", "train", change)
        await manager.settle(5)
        mirror = world.mirror("east")
        assert uid_of(mirror) == uid
        labels = {names.ORIGIN: world.origin, names.SOURCE_UID: uid_of(world.source())}
        assert mirror["metadata"]["labels"].items() >= labels.items()
        assert world.texts("MirrorChanged") == ["the mirror on worker east had lost its labels; they were restored"]
        world.controller("east").complete("train")
        await manager.settle()
        assert "Complete" in world.conditions()


@pytest.mark.slow
@pytest.mark.parametrize("operations", [("CREATE",), ("CREATE", "UPDATE")], ids=["on create", "always"])
@pytest.mark.parametrize(
    "taken", [(names.ORIGIN, names.SOURCE_UID), (names.SOURCE_UID,), (names.ORIGIN,)], ids=["both", "uid", "origin"]
)
async def test_admission_that_drops_our_labels_costs_few_requests(
    taken: tuple[str, ...], operations: tuple[str, ...]
) -> None:
    """D1: what we created is ours by its uid; its status comes back, by reading it where no watch shows it."""
    world = World()
    east = world.add_worker("east")

    def drop(body: Body) -> None:
        for key in taken:
            (body["metadata"].get("labels") or {}).pop(key, None)

    mutate_jobs(east, drop, *operations)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(60)
        assert world.mirrors() == ["east"]
        uid = uid_of(world.mirror("east"))
        assert len(east.writes()) <= 6
        if "UPDATE" in operations:
            assert world.annotation(WAITING) == "worker east removes the labels of the mirror"
        world.controller("east").start("train")
        await manager.settle(60)
        assert world.source()["status"]["active"] == 1
    async with manager_of(world) as manager:
        await manager.settle(5)
        world.controller("east").complete("train")
        await manager.settle(60)
        assert "Complete" in world.conditions()
        assert uid_of(world.mirror("east")) == uid
        world.delete()
        await manager.settle(5)
        assert world.mirrors() == []
    assert len(east.writes()) <= 12


@pytest.mark.parametrize("labels", [(names.ORIGIN,), (names.SOURCE_UID,), ()], ids=["origin", "uid", "none"])
async def test_an_object_without_both_labels_is_never_touched(labels: tuple[str, ...]) -> None:
    """D1: whether or not a source has its name, and through the sweep."""
    world = World()
    east = world.add_worker("east")
    worn = {names.ORIGIN: world.origin, names.SOURCE_UID: "u"}
    for name in ("train", "alone"):
        east.server.put("jobs", job(name, managed_by=None, labels={key: worn[key] for key in labels}))
    before = {name: world.mirror("east", name) for name in ("train", "alone")}
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(130)
        assert world.annotation(WAITING) == "east: the name is taken there"
        world.delete()
        await manager.settle(130)
        assert {name: world.mirror("east", name) for name in before} == before


@pytest.mark.parametrize("name", ["train-main", "train"])
async def test_what_a_workers_controller_made_with_our_labels_is_never_touched(name: str) -> None:
    """D1: Tekton gives a PipelineRun's labels to its TaskRuns, kuberay a RayJob's to its RayCluster: no mirrors."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        labels = {names.ORIGIN: world.origin, names.SOURCE_UID: "of-a-parent"}
        child = job(name, managed_by=None, labels=labels)
        owner = {"apiVersion": "example.com/v1", "kind": "Pipeline", "name": "train", "uid": "p", "controller": True}
        child["metadata"]["ownerReferences"] = [owner]
        east.server.put("jobs", child)
        before = world.mirror("east", name)
        world.create(job())
        await manager.settle(130)
        assert world.annotation(WAITING) == ("east: the name is taken there" if name == "train" else None)
        world.delete()
        await manager.settle(130)
        assert world.mirror("east", name) == before


@pytest.mark.parametrize("victim", ["local", "mirror"])
async def test_an_annotation_claims_nothing(victim: str) -> None:
    """D1: whoever may only create and edit Jobs here neither changes nor deletes another's Job on a worker."""
    world = World()
    east = world.add_worker("east")
    labels = {"team": "victim"}
    if victim == "mirror":
        labels |= {names.ORIGIN: "another-cluster", names.SOURCE_UID: "another-uid"}
    uid = uid_of(east.server.put("jobs", job("payroll", managed_by=None, labels=labels, completions=3)))
    world.controller("east").start("payroll", active=3)
    before = world.mirror("east", "payroll")
    async with manager_of(world) as manager:
        world.create(job("payroll", annotations={names.MIRROR_UID: uid}, completions=3))
        await manager.settle(5)
        world.edit(lambda body: body["spec"].update(suspend=True), "payroll")
        await manager.settle(5)
        world.edit(lambda body: body["spec"].update(suspend=False), "payroll")
        await manager.settle(30)
        world.delete("payroll")
        await manager.settle(70)
    assert world.mirror("east", "payroll") == before


async def test_an_edited_annotation_does_not_change_whose_the_mirror_is() -> None:
    """D1: it is for people, and is put right."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        uid = uid_of(world.mirror("east"))
        for value in ("another", ""):
            world.edit(lambda body, value=value: body["metadata"]["annotations"].update({names.MIRROR_UID: value}))
            await manager.settle()
            assert world.annotation(names.MIRROR_UID) == uid
        assert uid_of(world.mirror("east")) == uid
        assert "Failed" not in world.conditions()


async def test_a_source_that_is_deleted_takes_a_mirror_along_that_has_lost_its_label() -> None:
    """D10: its uid was recorded, so nothing of it is left behind."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        east.arrange("patch", "jobs", Refused(403, "Forbidden"), times=99)
        east.server.edit("jobs", "train", lambda body: body["metadata"]["labels"].pop(names.SOURCE_UID))
        await manager.settle()
        world.delete()
        await manager.settle(5)
        assert world.mirrors() == []


def forget_uid(source: Body) -> None:
    """As if the mirror's uid had never been stored."""
    listed = source["status"]["conditions"]
    source["status"]["conditions"] = [one for one in listed if one["type"] != names.MIRRORED]


async def with_a_mirror_of_unknown_uid() -> tuple[World, Wire, str]:
    """A world whose manager has ended before it could store the mirror's uid, which is the last."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
    world.edit(forget_uid)
    return world, east, uid_of(world.mirror("east"))


@pytest.mark.parametrize("is_over", [False, True], ids=["running", "ended"])
async def test_a_mirror_whose_label_names_another_source_is_kept_before_its_uid_is_recorded(is_over: bool) -> None:
    """D1, D8: the note on it shows of which source it was made; it is not deleted as a namesake's, and made again."""
    world, east, uid = await with_a_mirror_of_unknown_uid()
    if is_over:
        world.controller("east").complete("train")
    east.server.edit("jobs", "train", lambda body: body["metadata"]["labels"].update({names.SOURCE_UID: "another"}))
    async with manager_of(world) as manager:
        await manager.settle(130)
        assert uid_of(world.mirror("east")) == uid
        assert world.mirror("east")["metadata"]["labels"][names.SOURCE_UID] == uid_of(world.source())
        if not is_over:
            world.controller("east").complete("train")
            await manager.settle(5)
        assert "Complete" in world.conditions()


@pytest.mark.parametrize("change", ["labels", "note"])
async def test_a_mirror_of_a_source_before_goes_although_its_note_is_like_ours(change: str) -> None:
    """D10: a note proves nothing but with all labels of this source, or where somebody has edited it."""
    world, east, uid = await with_a_mirror_of_unknown_uid()

    def of_another(mirror: Body) -> None:
        metadata = mirror["metadata"]
        metadata["labels"][names.SOURCE_UID] = "another"
        if change == "note":
            note = json.loads(metadata["annotations"][names.CARRIED])
            note["labels"][0] = "0" * 12
            metadata["annotations"][names.CARRIED] = json.dumps(note)

    east.server.edit("jobs", "train", of_another)
    if change == "labels":
        world.edit(lambda source: source["metadata"].update(labels={"team": "another"}))
    async with manager_of(world) as manager:
        await manager.settle(130)
        assert uid_of(world.mirror("east")) not in ("", uid)


async def test_a_started_source_without_a_recorded_uid_is_not_failed_for_a_job_of_its_name() -> None:
    """D11: of an earlier version; what is there may be its mirror, and is left alone."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()

    world.edit(forget_uid)
    east.server.edit("jobs", "train", lambda body: body["metadata"].update(labels={}))
    async with manager_of(world) as manager:
        await manager.settle(60)
        assert "Failed" not in world.conditions()
        assert "without our labels" in world.annotation(WAITING)
        ours = {names.ORIGIN: world.origin, names.SOURCE_UID: uid_of(world.source())}
        east.server.edit("jobs", "train", lambda body: body["metadata"].update(labels=ours))
        await manager.settle(5)
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_namesake_that_the_watch_dropped_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """D10, D12: mirrors of Jobs that nobody knows, more than are kept; new Jobs of their names come."""
    monkeypatch.setattr(mirror_store, "MOST_UNKNOWN", 4)
    world = World()
    east = world.add_worker("east")
    for number in range(8):
        labels = {names.ORIGIN: world.origin, names.SOURCE_UID: f"old-{number}"}
        east.server.put("jobs", job(f"job-{number}", managed_by=None, labels=labels))
    async with manager_of(world) as manager:
        await manager.settle(5)
        for number in range(8):
            world.create(job(f"job-{number}"))
        await manager.settle(30)
        for number in range(8):
            mirror = world.mirror("east", f"job-{number}")
            assert mirror["metadata"]["labels"][names.SOURCE_UID] == uid_of(world.source(f"job-{number}"))
        assert len([one for one in east.sent if "/jobs" in one.path and one.verb != "watch"]) <= 8 * 6


async def test_a_restored_source_with_its_old_uid_is_followed_like_any_other() -> None:
    """D11: its mirror was deleted with it: it is given up once, not looked for at network speed."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        backup = world.source()
        world.delete()
        await manager.settle(5)
        before = len(east.sent)
        world.management.server.put_bytes("jobs", "train", msgspec.json.encode(backup))
        world.edit(lambda body: body["metadata"].setdefault("labels", {}).update(x="y"))
        await manager.settle(10)
        assert world.conditions()["Failed"] == "MirrorLost"
        assert len(east.sent) - before <= 5


@pytest.mark.slow
async def test_mirrors_of_finished_jobs_are_kept_when_their_worker_gets_another_name() -> None:
    """D8, D15: drained and registered anew; they go with their sources."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(25):
            world.create(job(f"job-{number}"))
        await manager.settle()
        for number in range(25):
            world.controller("east").complete(f"job-{number}")
        await manager.settle()
        world.management.server.remove("secrets", "east", HOME)
        await manager.settle(70)
        world.register("north", leads_to="east")
        await manager.settle(130)
        assert all(world.mirror("east", f"job-{number}") for number in range(25))
        world.delete("job-0")
        await manager.settle(5)
        assert world.mirror("east", "job-0") is None


async def test_a_worker_that_was_renamed_while_no_manager_ran_is_taken() -> None:
    """D15, D19: nothing has the old name any more."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        await manager.settle()
    world.management.server.remove("secrets", "east", HOME)
    world.register("north", leads_to="east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(5)
        assert world.placed() == "north"
        assert list(world.record()) == ["north"]


@pytest.mark.slow
@pytest.mark.parametrize("refusal", [forbidden(), Refused(503, "ServiceUnavailable")], ids=["forbidden", "outage"])
@pytest.mark.parametrize("verb", ["patch", "create"])
async def test_nothing_is_done_on_a_worker_that_is_not_recorded(verb: str, refusal: Refused) -> None:
    """D19: who it is is written first, however often that fails; a restart would know nothing of what is there."""
    world = World()
    world.add_worker("east")
    world.management.arrange(verb, "configmaps", refusal, times=100_000)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(60)
        assert (world.placed(), world.mirror("east")) == (None, None)
        because = manager.registry.workers["east"].connection.because
        # Where there is no record yet nobody leads before it is made (S10), so nothing is tried on a worker.
        why = "" if verb == "create" else f"ConfigMap {HOME}/jobmirror-workers of the management cluster not written: "
        assert because.startswith(why)
        assert not world.workers["east"].writes()
        world.management.restore()
        await manager.settle(30)
        assert world.placed() == "east"
        assert json.loads(world.record()["east"])["uid"] == world.workers["east"].server.uid


async def test_a_cluster_is_not_taken_under_another_name_while_jobs_are_on_the_old_one() -> None:
    """D2, D19."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
    world.management.server.remove("secrets", "east", HOME)
    world.register("north", leads_to="east")
    async with manager_of(world) as manager:
        await manager.settle(130)
        assert manager.registry.workers["north"].connection.because == (
            "this cluster is registered already, as worker east, whose Secret was deleted while Jobs are recorded there"
        )
        assert world.placed() == "east"


@pytest.mark.parametrize("value", ["another", "policy"])
async def test_admission_that_replaces_the_uid_label_does_not_cost_the_new_mirror(value: str) -> None:
    """D1, D8: the watch may show it before the answer to its create, which makes it ours."""
    world = World()
    east = world.add_worker("east")
    mutate_jobs(east, lambda body: body["metadata"]["labels"].update({names.SOURCE_UID: value}), "CREATE")
    async with manager_of(world) as manager:
        for number in range(5):
            world.create(job(f"job-{number}"))
        await manager.settle(130)
        assert "delete" not in {one.verb for one in east.sent}
        for number in range(5):
            mirror = world.mirror("east", f"job-{number}")
            assert mirror["metadata"]["labels"][names.SOURCE_UID] == uid_of(world.source(f"job-{number}"))


def world_with_prefix(prefix: str) -> World:
    """A worker east whose mirrors live under this prefix, with the namespaces of some others."""
    world = World()
    east = world.add_worker("east", annotations={"namespace-prefix": prefix} if prefix else {})
    for namespace in ("a-default", "b-default"):
        east.server.put("namespaces", {"metadata": {"name": namespace}})
    return world


async def run_to_its_end(world: World, manager: RunningManager, prefix: str) -> None:
    """A Job is mirrored there, and its end is stored."""
    world.create(job())
    await manager.settle()
    world.controller("east").complete("train", namespace=f"{prefix}default")
    await manager.settle()


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("b-", ""), ("", "b-"), ("a-", "b-")])
async def test_a_worker_that_gets_another_name_and_prefix_keeps_the_mirrors_of_finished_jobs(
    before: str, after: str
) -> None:
    """D8, D19: a 404 in the namespace that today's prefix leads to proves nothing about an older mirror."""
    world = world_with_prefix(before)
    async with manager_of(world) as manager:
        await run_to_its_end(world, manager, before)
    world.management.server.remove("secrets", "east", HOME)
    world.register("north", leads_to="east", annotations={"namespace-prefix": after} if after else {})
    async with manager_of(world) as manager:
        await manager.settle(200)
        assert world.mirror("east", "train", f"{before}default") is not None


@pytest.mark.slow
@pytest.mark.parametrize("goes", ["before", "while", "once it is forgotten"])
@pytest.mark.parametrize(("before", "after"), [("b-", ""), ("", "b-"), ("a-", "b-")])
async def test_a_worker_that_gets_another_name_and_prefix_loses_what_has_no_source(
    before: str, after: str, goes: str
) -> None:
    """D8, D19: the prefix in use goes with the cluster, not with its name, until nothing is left under it."""
    world = world_with_prefix(before)
    async with manager_of(world) as manager:
        await run_to_its_end(world, manager, before)
        world.management.server.remove("secrets", "east", HOME)
        if goes == "once it is forgotten":
            world.delete()
            await manager.settle(130)
            assert "east" not in world.record()
    if goes == "before":
        world.delete()
    world.register("north", leads_to="east", annotations={"namespace-prefix": after} if after else {})
    async with manager_of(world) as manager:
        await manager.settle(10)
        if goes == "while":
            world.delete()
        await manager.settle(200)
        assert world.mirror("east", "train", f"{before}default") is None
        world.create(job())
        await manager.settle()
        assert world.mirror("east", "train", f"{after}default") is not None
        assert list(world.record()) == ["north"]


async def test_a_worker_that_nothing_declares_any_more_when_a_manager_begins_is_forgotten() -> None:
    """D15: nobody led when its Secret went; where its mirrors lived stays known (D19)."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        await manager.settle(5)
    world.management.server.remove("secrets", "east", HOME)
    async with manager_of(world) as manager:
        await manager.settle(700)
    recorded = world.management.server.get("configmaps", names.WORKERS_CONFIGMAP, HOME)["data"]
    assert [name.startswith(FORMER) for name in recorded] == [True]
