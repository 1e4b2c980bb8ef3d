"""Creates that are refused, answered late or never, or meet somebody else's object (D1, D2, D5)."""

from __future__ import annotations

import pytest
from doubles.jobs import job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.world import ASSIGNED, WAITING, World, manager_of, two_workers

from mirror.model import names

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(forbidden(), id="403: the Role there does not allow it"),
        pytest.param(Refused(422, "Invalid"), id="422: its validation is stricter"),
        pytest.param(Refused(404, "NotFound", about_name="default"), id="404: the namespace is missing"),
        pytest.param(Refused(400, "BadRequest"), id="400: an admission webhook there"),
    ],
)
async def test_a_definite_refusal_leads_to_the_next_worker(refusal: Refused) -> None:
    """D5: the record is cleared, the reason is told, the next worker is tried."""
    async with two_workers() as (world, manager):
        world.workers["east"].arrange("create", "jobs", refusal, times=99)
        world.create(job())
        await manager.settle()
        assert world.mirrors() == ["west"]
        assert world.placed() == world.annotation(ASSIGNED) == "west"
        assert sorted(world.events()) == ["Mirrored", "Refused"]


async def test_when_all_refuse_the_job_waits_and_tries_again() -> None:
    """D5: it says who refused and why, and takes the first that changes its mind."""
    async with two_workers() as (world, manager):
        for wire in world.workers.values():
            wire.arrange("create", "jobs", forbidden(), times=999)
        world.create(job())
        await manager.settle(14)
        assert world.placed() is None
        assert "east: not allowed" in (world.annotation(WAITING) or "")
        world.workers["west"].restore()
        await manager.settle(120)
        assert world.mirrors() == ["west"]
        assert world.annotation(WAITING) is None


async def test_a_reason_that_stays_the_same_stays_written() -> None:
    """D21: each worker is tried again, recorded, and refuses again; what the Job waits for is the same all the time."""
    async with two_workers() as (world, manager):
        for wire in world.workers.values():
            wire.arrange("create", "jobs", forbidden(), times=99)
            wire.faults.latency_seconds = 0.2  # so that what is written between record and refusal is seen
        world.create(job())
        await manager.settle(4)
        text = world.annotation(WAITING)
        assert text == "east: not allowed (403 Forbidden); west: not allowed (403 Forbidden)"
        for _ in range(600):
            await manager.settle(0.1)
            assert world.annotation(WAITING) == text
        for wire in world.workers.values():
            assert len([sent for sent in wire.writes() if sent.verb == "create"]) >= 3
        world.workers["west"].restore()
        await manager.settle(120)
        assert world.mirrors() == ["west"]
        assert world.annotation(WAITING) is None


async def test_a_count_in_a_refusal_is_no_other_reason() -> None:
    """D21: an admission webhook names how many there are; that changes each time, the reason does not."""
    world = World()
    east = world.add_worker("east")
    for number in range(20):
        east.arrange("create", "jobs", Refused(400, "BadRequest", f"{number} Jobs are too many"))
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(2)
        text = world.annotation(WAITING)
        assert text == "east: 400 BadRequest: 0 Jobs are too many"
        for _ in range(60):
            await manager.settle(1)
            assert world.annotation(WAITING) == text
        assert len(world.texts("Refused")) > 1


async def test_a_missing_namespace_is_made_where_that_is_allowed() -> None:
    """``workers.createNamespaces``: the worker gets the namespace, marked as ours, then the mirror."""
    world = World()
    east = world.add_worker("east")
    world.management.server.put("namespaces", {"metadata": {"name": "ml"}})
    async with manager_of(world, create_namespaces=True) as manager:
        world.create(job(namespace="ml"))
        await manager.settle()
        assert world.mirrors("train", "ml") == ["east"]
        assert east.server.get("namespaces", "ml", "")["metadata"]["labels"][names.ORIGIN] == world.origin


async def test_a_namespace_that_is_made_has_the_pod_security_of_the_one_here() -> None:
    """Else a privileged pod that is not allowed here is a Job away (D18); other labels mean nothing there."""
    world = World()
    east = world.add_worker("east")
    security = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn-version": "v1.33"}
    world.management.server.put("namespaces", {"metadata": {"name": "ml", "labels": security | {"team": "ml"}}})
    async with manager_of(world, create_namespaces=True) as manager:
        world.create(job(namespace="ml"))
        await manager.settle()
        made = east.server.get("namespaces", "ml", "")["metadata"]["labels"]
        assert {key: value for key, value in made.items() if key.startswith("pod-security")} == security
        assert "team" not in made


async def test_a_namespace_whose_pod_security_cannot_be_read_is_not_made() -> None:
    """The right is missing: the Job waits, and nothing is opened."""
    world = World()
    east = world.add_worker("east")
    world.management.server.put("namespaces", {"metadata": {"name": "ml"}})
    world.management.arrange("get", "namespaces", forbidden(), times=99)
    async with manager_of(world, create_namespaces=True) as manager:
        world.create(job(namespace="ml"))
        await manager.settle()
        assert east.server.find("namespaces", "ml", "") is None
        assert world.annotation(WAITING, "train", "ml")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault.LOSE_ANSWER, id="carried out, the answer lost"),
        pytest.param(Fault.HANG, id="never arrived, nobody knows"),
        pytest.param(Refused(500, "InternalError"), id="a failure that may have come after the write"),
        pytest.param(Refused(503, "ServiceUnavailable"), id="a proxy gave up"),
    ],
)
async def test_an_unknown_outcome_stays_on_its_worker(fault: Fault | Refused) -> None:
    """D2: there may be a mirror; no other worker is tried, even when it is refused afterwards."""
    async with two_workers() as (world, manager):
        east = world.workers["east"]
        east.arrange("create", "jobs", fault)
        east.arrange("create", "jobs", forbidden(), times=2)
        world.create(job())
        await manager.settle(200)
        assert world.mirrors() == ["east"]
        assert world.placed() == "east"
        assert world.workers["west"].writes() == []
        world.controller("east").start("train")
        await manager.settle()
        assert world.source()["status"]["active"] == 1


async def test_a_lost_answer_to_the_record_places_it_once() -> None:
    """D5: the write of the record may have been carried out; a second one must not lead elsewhere."""
    async with two_workers() as (world, manager):
        world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER)
        world.create(job())
        await manager.settle()
        assert len(world.mirrors()) == 1
        assert [world.placed()] == world.mirrors()


async def test_somebody_elses_job_of_that_name_is_never_touched() -> None:
    """D1: reported, another worker is tried, and the foreign object stays as it is."""
    async with two_workers() as (world, manager):
        foreign = world.workers["east"].server.put("jobs", job(managed_by=None))
        world.create(job())
        await manager.settle()
        assert world.mirrors() == ["east", "west"]
        assert world.mirror("east") == foreign
        assert world.placed() == "west"
        assert world.texts("MirrorConflict") == ["worker east has a Job of this name that is not ours"]
        world.delete()
        await manager.settle(70)
        assert world.mirror("east") == foreign


async def test_another_managers_mirror_is_somebody_elses() -> None:
    """D1: the origin tells; two management clusters may share a worker."""
    async with two_workers() as (world, manager):
        labels = {names.ORIGIN: "another", names.SOURCE_UID: "whose"}
        world.workers["east"].server.put("jobs", job(managed_by=None, labels=labels))
        world.create(job())
        await manager.settle(100)
        assert world.placed() == "west"
        assert world.mirror("east")["metadata"]["labels"][names.ORIGIN] == "another"


async def test_the_mirror_of_an_earlier_namesake_goes_first() -> None:
    """D1, D2: deleted and created again at once, the new Job gets a mirror of its own, on whichever worker."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        first = world.mirror("east")["metadata"]["uid"]
        world.delete()
        world.create(job())
        await manager.settle(5)
        (worker,) = world.mirrors()
        mirror = world.mirror(worker)
        assert mirror["metadata"]["uid"] != first
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source()["metadata"]["uid"]


@pytest.mark.parametrize("pause_seconds", [0, 5])
async def test_a_namesake_waits_for_a_mirror_that_is_slow_to_go(pause_seconds: float) -> None:
    """D2: as long as the old mirror has a finalizer there, the new one is not created beside it, and says so.

    Of a mirror whose source is gone for a while not everything is kept (D29), but what keeps it there is.
    """
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        east.server.edit("jobs", "train", lambda body: body["metadata"].update(finalizers=["example.com/slow"]))
        world.delete()
        await manager.settle(pause_seconds)
        world.create(job())
        await manager.settle(5)
        assert world.mirror("east")["metadata"]["deletionTimestamp"]
        await manager.settle(15)
        assert "has to go first; finalizers keep it: example.com/slow" in world.texts("PreviousMirrorExists")[0]
        east.server.edit("jobs", "train", lambda body: body["metadata"].update(finalizers=[]))
        await manager.settle(5)
        assert world.mirror("east")["metadata"]["labels"][names.SOURCE_UID] == world.source()["metadata"]["uid"]


async def test_a_namesake_says_so_where_the_old_mirror_may_not_be_deleted() -> None:
    """D22: no finalizer keeps it, and the permission is named where the operator looks for it, at once."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        east.arrange("delete", "jobs", forbidden(), times=9999)
        world.delete()
        world.create(job())
        await manager.settle(20)
        assert "the worker has not let it be deleted yet" in world.texts("PreviousMirrorExists")[0]
        assert world.texts("MirrorNotDeleted")
        east.restore()
        await manager.settle(130)
        assert world.mirror("east")["metadata"]["labels"][names.SOURCE_UID] == world.source()["metadata"]["uid"]
        assert world.annotation(WAITING) is None


async def test_an_erased_record_is_restored_from_the_mirror() -> None:
    """D5: somebody removed the condition: it is placed where its mirror is, not anew."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.edit(lambda body: body["status"].update(conditions=[]))
        await manager.settle()
        assert world.mirrors() == ["east"]
        assert world.placed() == "east"


async def test_a_replaced_annotation_is_put_right_and_believed_by_nobody() -> None:
    """D5: the annotation is for people; whoever may edit Jobs cannot move one by it."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.edit(lambda body: body["metadata"]["annotations"].update({ASSIGNED: "west"}))
        await manager.settle()
        assert world.annotation(ASSIGNED) == "east"
        assert world.mirrors() == ["east"]


async def test_a_throttling_worker_is_asked_later_and_not_left() -> None:
    """429 means later, with the time that it names, and is not a refusal."""
    async with two_workers() as (world, manager):
        world.workers["east"].arrange("create", "jobs", Refused(429, "TooManyRequests", retry_after=7))
        world.create(job())
        await manager.settle(5)
        assert world.mirrors() == []
        await manager.settle(4)
        assert world.mirrors() == ["east"]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        pytest.param(Refused(429, "TooManyRequests", "too many requests"), "429 TooManyRequests", id="throttled"),
        pytest.param(Fault.HANG, "no response within", id="no answer"),
    ],
)
async def test_a_create_that_is_not_answered_for_long_is_told(fault: Refused | Fault, text: str) -> None:
    """D22: not at once, since most of it passes; it goes with the mirror."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        east.arrange("create", "jobs", fault, times=9999)
        world.create(job())
        await manager.settle(20)
        assert world.annotation(WAITING) is None
        await manager.settle(35)  # before the next try, 81 s after the first
        assert (world.annotation(WAITING) or "").startswith("worker east: the copy cannot be created: ")
        assert text in (world.annotation(WAITING) or "")
        assert "MirrorNotCreated" in world.events()
        east.restore()
        await manager.settle(90)
        assert world.mirrors() == ["east"]
        assert world.annotation(WAITING) is None


async def test_a_job_that_is_too_large_for_a_worker_goes_to_the_next() -> None:
    """413 is as definite as 422."""
    async with two_workers() as (world, manager):
        world.workers["east"].arrange("create", "jobs", Refused(413, "RequestEntityTooLarge", "limit is 10"), times=99)
        world.create(job())
        await manager.settle()
        assert world.mirrors() == ["west"]
        assert any("413 RequestEntityTooLarge: limit is 10" in text for text in world.texts("Refused"))


async def test_what_a_job_waited_for_goes_although_its_mirror_says_nothing() -> None:
    """D21: a mirror that no controller there takes up, whose watch shows nothing that its create has not said."""
    world = World()
    east = world.add_worker("east")
    east.arrange("create", "jobs", forbidden(), times=1)
    async with manager_of(world) as manager:
        east.faults.mute_watches(plural="jobs")
        world.create(job())
        await manager.settle(2)
        assert world.annotation(WAITING) == "east: not allowed (403 Forbidden)"
        await manager.settle(8)
        assert world.mirrors() == ["east"]
        assert world.annotation(WAITING) is None


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        pytest.param(
            Refused(403, "Forbidden", 'User "m" cannot patch resource "jobs/status" in API group "batch"'),
            "not allowed to patch jobs/status (403 Forbidden)",
            id="a permission is missing",
        ),
        pytest.param(
            Refused(403, "Forbidden", 'admission webhook "freeze.example.com" denied the request: frozen'),
            "denied by admission webhook freeze.example.com: frozen (403 Forbidden)",
            id="a webhook",
        ),
    ],
)
async def test_a_status_that_is_refused_here_is_told_by_an_event(refusal: Refused, text: str) -> None:
    """D22: nothing can be written on the Job, so an event and the metric have to say it; it clears by itself."""
    world = World()
    world.add_worker("east", annotations={"cordoned": "true"})
    async with manager_of(world) as manager:
        world.management.arrange("patch", "jobs", refusal, times=9999)
        world.create(job())
        await manager.settle(30)
        assert world.texts("StatusRefused") == [f"the API server rejects the status: {text}"]
        sample = manager.metrics.registry.get_sample_value
        assert sample("jobmirror_refused_status_writes_total", {"worker": "", "kind": "Job"})
        world.management.restore()
        await manager.settle(130)
        assert "cordoned" in (world.annotation(WAITING) or "")
