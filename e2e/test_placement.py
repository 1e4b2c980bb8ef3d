"""Which worker gets a Job, who has to wait and what is said about it (D1, D5, D18, D21)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest_asyncio

from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, annotation, is_complete, job, placed_on, runs, uid, until, waits_because
from e2e.manager import ManagerProcess
from e2e.shipped import user_of

NAMESPACES = "/api/v1/namespaces"


class TestSelection:
    """Where a Job may go is said on the Job and on the workers' Secrets."""

    async def test_selectors_choose_by_label_and_by_name(
        self, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
    ) -> None:
        """``worker-selector`` is a label selector over the Secrets' labels; ``name`` is implied (docs/workers.md)."""
        wanted = {
            "region=eu": "east",
            "region in (us, asia)": "west",
            "region!=eu": "west",
            "gpu": "west",
            "!gpu": "east",
            "name=west": "west",
            "name in (east),region=eu": "east",
        }
        names = {f"by-{number}": selector for number, selector in enumerate(wanted)}
        async with ManagerProcess.start(management) as manager:
            await manager.register("east", east, labels={"region": "eu"})
            await manager.register("west", west, labels={"region": "us", "gpu": "yes"})
            await until(lambda: workers_up(manager), lambda up: up == 2)
            await scene.create(
                *(
                    job(name, manager.managed_by, annotations={"worker-selector": selector})
                    for name, selector in names.items()
                ),
                job("nowhere", manager.managed_by, annotations={"worker-selector": "region=mars"}),
                job("bad", manager.managed_by, annotations={"worker-selector": "region in (eu"}),
            )

            for source in await scene.sources_until(names, is_complete):
                assert wanted[names[source["metadata"]["name"]]] == placed_on(source)
            waiting = await scene.source_until("nowhere", waits_because("east"))
            assert (
                annotation(waiting, "waiting-because") == "east: labels do not match worker-selector (region is eu); "
                "west: labels do not match worker-selector (region is us)"
            )
            bad = await scene.source_until("bad", waits_because("worker-selector"))
            assert "annotation jobmirror.io/worker-selector: " in annotation(bad, "waiting-because")
            assert placed_on(bad) == ""

            await scene.patch("bad", {"metadata": {"annotations": {"jobmirror.io/worker-selector": "name=west"}}})
            mended = await scene.source_until("bad", is_complete)
            assert placed_on(mended) == "west"
            assert annotation(mended, "waiting-because") == ""

    async def test_a_full_worker_makes_jobs_wait_until_one_ends(
        self, management: ControlPlane, east: ControlPlane, scene: Scene
    ) -> None:
        """Capacity counts Jobs that are recorded; the oldest of those that wait is next (D21)."""
        async with ManagerProcess.start(management) as manager:
            await manager.register("east", east, annotations={"capacity": "2"})
            await scene.create(job("first", manager.managed_by, run_for="never"))
            await scene.create(job("second", manager.managed_by, run_for="never"))
            await scene.sources_until(["first", "second"], runs())

            await scene.create(job("third", manager.managed_by))
            third = await scene.source_until("third", waits_because("at capacity"))
            assert annotation(third, "waiting-because") == "east: at capacity"
            assert await scene.mirrors("third") == {}

            await scene.delete("first")
            third = await scene.source_until("third", is_complete)
            assert annotation(third, "waiting-because") == ""

            names = [f"queued-{number}" for number in range(4)]
            await scene.create(*(job(name, manager.managed_by) for name in names))
            await scene.sources_until(names, is_complete)
            assert (await scene.source_until("second", runs()))["status"]["active"] == 1

    async def test_a_cordoned_worker_gets_nothing_new_and_keeps_what_it_has(
        self, manager: ManagerProcess, scene: Scene
    ) -> None:
        """``cordoned`` on the Secret: running Jobs go on, new ones go elsewhere or wait (docs/workers.md)."""
        east_only = {"worker-selector": "name=east"}
        await scene.create(job("running", manager.managed_by, run_for="never", annotations=east_only))
        await scene.source_until("running", runs())

        await manager.annotate_worker("east", {"cordoned": "true"})
        await scene.until_jobs_wait(manager.managed_by, "east: cordoned", east_only)
        await scene.create(job("pinned", manager.managed_by, annotations=east_only))
        pinned = await scene.source_until("pinned", waits_because("cordoned"))
        assert (
            annotation(pinned, "waiting-because") == "east: cordoned; …and 1 more: labels do not match worker-selector"
        )
        names = [f"free-{number}" for number in range(3)]
        await scene.create(*(job(name, manager.managed_by) for name in names))
        assert {placed_on(found) for found in await scene.sources_until(names, is_complete)} == {"west"}

        await manager.annotate_worker("east", {"cordoned": None})
        assert placed_on(await scene.source_until("pinned", is_complete)) == "east"
        assert (await scene.mirrors("running"))["east"]["status"]["active"] == 1

    async def test_weights_share_jobs_out(
        self, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
    ) -> None:
        """Twice the weight is twice the Jobs, as long as they run (docs/workers.md)."""
        async with ManagerProcess.start(management) as manager:
            await manager.register("east", east, annotations={"weight": "2"})
            await manager.register("west", west)
            await until(lambda: workers_up(manager), lambda up: up == 2)
            names = [f"shared-{number}" for number in range(9)]

            await scene.create(*(job(name, manager.managed_by, run_for="never") for name in names))
            placed = Counter(placed_on(found) for found in await scene.sources_until(names, runs()))

        assert placed == {"east": 6, "west": 3}

    async def test_a_worker_takes_only_the_namespaces_that_its_owner_lets_in(
        self, manager: ManagerProcess, scene: Scene
    ) -> None:
        """``namespaces`` on the Secret holds names and globs; the rest goes elsewhere (D18)."""
        await manager.annotate_worker("east", {"namespaces": "team-*,prod"})
        await manager.annotate_worker("west", {"namespaces": f"prod, {scene.namespace[:-1]}?"})
        pinned = {"worker-selector": "name=east"}
        await scene.until_jobs_wait(manager.managed_by, "east: does not accept the namespace", pinned)
        await scene.create(job("pinned", manager.managed_by, annotations=pinned))
        waiting = await scene.source_until("pinned", waits_because("namespace"))
        assert (
            annotation(waiting, "waiting-because")
            == "east: does not accept the namespace; …and 1 more: labels do not match worker-selector"
        )

        await scene.create(job("free", manager.managed_by))
        assert placed_on(await scene.source_until("free", is_complete)) == "west"

        await manager.annotate_worker("east", {"namespaces": scene.namespace})
        assert placed_on(await scene.source_until("pinned", is_complete)) == "east"

    async def test_a_job_created_before_any_worker_is_placed_when_one_comes(
        self, management: ControlPlane, east: ControlPlane, scene: Scene
    ) -> None:
        """Nobody is registered: that is what it waits for, and says."""
        async with ManagerProcess.start(management) as manager:
            await scene.create(job("early", manager.managed_by))
            waiting = await scene.source_until("early", waits_because("registered"))
            assert annotation(waiting, "waiting-because") == "no worker is registered"

            await manager.register("east", east)
            assert placed_on(await scene.source_until("early", is_complete)) == "east"


async def workers_up(manager: ManagerProcess) -> float:
    """How many workers the manager reaches."""
    return (await manager.metrics()).value("jobmirror_worker_up")


class TestPreferences:
    """What a Job asks of the choice between workers that take it, and what an operator has counted."""

    async def test_an_order_and_a_spread_come_before_the_load(
        self, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
    ) -> None:
        """The first choice until it is full, then the next; a spread over a label's values counts its own Jobs."""
        async with ManagerProcess.start(management) as manager:
            await manager.register("east", east, labels={"region": "eu"})
            await manager.register("west", west, labels={"region": "us"}, annotations={"capacity": "2"})
            await until(lambda: workers_up(manager), lambda up: up == 2)
            for number in range(3):
                annotations = {"worker-order": "w*,east"}
                await scene.create(job(f"o-{number}", manager.managed_by, run_for="never", annotations=annotations))
                await scene.source_until(f"o-{number}", runs())
            ordered = [placed_on(found) for found in await scene.sources_until([f"o-{n}" for n in range(3)], runs())]
            assert sorted(ordered) == ["east", "west", "west"]

            await manager.annotate_worker("west", {"capacity": None})
            names = [f"s-{number}" for number in range(4)]
            spread = {"spread-by": "region"}
            await scene.create(*(job(one, manager.managed_by, run_for="never", annotations=spread) for one in names))
            placed = Counter(placed_on(found) for found in await scene.sources_until(names, runs()))
            assert placed == {"east": 2, "west": 2}

    async def test_priority_orders_who_waits(self, management: ControlPlane, east: ControlPlane, scene: Scene) -> None:
        """By the annotation, or by the PriorityClass of the pods where the setting has them read."""
        value, name = 1000, f"urgent-{scene.namespace}"
        async with management.client() as client:
            await client.create(
                "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
            )
        settings: Json = {"placement": {"priorityClasses": True}}
        async with ManagerProcess.start(management, settings=settings) as manager:
            await manager.register("east", east, annotations={"capacity": "1"})
            await scene.create(job("first", manager.managed_by, run_for="never"))
            await scene.source_until("first", runs())
            classed = job("classed", manager.managed_by, annotations={"worker-order": "east"})
            classed["spec"]["template"]["spec"]["priorityClassName"] = name
            for body in (
                job("plain", manager.managed_by),
                classed,
                job("first-of-all", manager.managed_by, annotations={"priority": str(value + 1)}),
                job("last", manager.managed_by, annotations={"priority": "-1"}),
            ):
                await scene.create(body)
                await scene.source_until(body["metadata"]["name"], waits_because("at capacity"))
            async with east.client() as client:
                await client.create(
                    "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
                )

            await scene.delete("first")
            names = ["first-of-all", "classed", "plain", "last"]
            ended = await scene.sources_until(names, is_complete)
            began = {found["metadata"]["name"]: mirrored_at(found) for found in ended}
            assert sorted(began, key=lambda one: began[one]) == names

    async def test_a_worker_whose_quota_is_used_up_ranks_behind(
        self, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
    ) -> None:
        """Score ``quota``, with the shipped right; where the quota is not limited any more it counts as before."""
        path = f"/api/v1/namespaces/{scene.namespace}/resourcequotas"
        status = {"hard": {"count/jobs.batch": "100"}, "used": {"count/jobs.batch": "95"}}
        async with east.client() as client:
            await client.create(path, {"metadata": {"name": "jobs"}, "spec": {"hard": {"count/jobs.batch": "100"}}})
            await client.merge(f"{path}/jobs/status", {"status": status})
        settings: Json = {"placement": {"scores": [{"name": "load"}, {"name": "quota"}]}}
        workers = {"east": east, "west": west}
        async with ManagerProcess.start(management, workers, settings=settings) as manager:
            us = user_of(manager.namespace)
            for worker in workers.values():
                await until(worker.audit_entries, lambda entries: any(has_read_quotas(one, us) for one in entries))
            names = [f"q-{number}" for number in range(6)]
            await scene.create(*(job(name, manager.managed_by, run_for="never") for name in names))
            placed = Counter(placed_on(found) for found in await scene.sources_until(names, runs()))
        assert placed == {"west": 6}

    async def test_a_worker_whose_pods_do_not_get_ready_ranks_behind(
        self, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
    ) -> None:
        """Score ``readiness``, counted from our own mirrors, without any further permission."""
        settings: Json = {"placement": {"scores": [{"name": "readiness"}]}}
        stuck, later = ([f"{when}-{number}" for number in range(4)] for when in ("stuck", "later"))
        async with ManagerProcess.start(management, {"east": east, "west": west}, settings=settings) as manager:
            for name in stuck:
                body = job(name, manager.managed_by, annotations={"worker-selector": "name=east"})
                body["spec"]["template"]["spec"]["schedulerName"] = "nobody"
                await scene.create(body)
            await scene.sources_until(stuck, is_not_ready, seconds=240)
            await scene.create(*(job(name, manager.managed_by, run_for="never") for name in later))
            placed = Counter(placed_on(found) for found in await scene.sources_until(later, runs()))
            assert placed == {"west": 4}

    async def test_a_mistake_is_told(self, manager: ManagerProcess, scene: Scene) -> None:
        """One that cannot be read keeps the Job waiting; a misspelt name is pointed out by an event."""
        await scene.create(
            job("bad", manager.managed_by, annotations={"priority": "high"}),
            job("misspelt", manager.managed_by, annotations={"workers-order": "east"}),
        )
        bad = await scene.source_until("bad", waits_because("priority"))
        assert "annotation jobmirror.io/priority: 'high' is no priority; write a whole" in annotation(
            bad, "waiting-because"
        )
        event = await scene.event("misspelt", "UnknownAnnotation")
        assert "did you mean jobmirror.io/worker-order?" in event["message"]


def is_not_ready(found: Json | None) -> bool:
    """Whether it shows that its pods have not been ready for long."""
    listed = (found or {}).get("status", {}).get("conditions") or ()
    return any(one["reason"] == "PodsNotReady" for one in listed)


def has_read_quotas(entry: AuditEntry, user: str) -> bool:
    return (entry.user, entry.verb, entry.resource) == (user, "list", "resourcequotas")


def mirrored_at(found: Json) -> str:
    """When its mirror began to run, as its worker says: one after the other where there is room for one."""
    started: str = found["status"]["startTime"]
    return started


class TestRefusals:
    """A worker that definitely refuses the very first create is passed over; what is in the way is never touched."""

    async def test_a_foreign_job_of_that_name_sends_ours_to_another_worker(
        self, manager: ManagerProcess, scene: Scene
    ) -> None:
        """The namesake on east, which is the first of two that have nothing, is left alone; ours runs on west (D1)."""
        theirs = await scene.client_of("east").create(scene.jobs("east"), job("wanted", run_for="never"))

        await scene.create(job("wanted", manager.managed_by, annotations={"worker-selector": "name!=north"}))
        source = await scene.source_until("wanted", is_complete)

        assert placed_on(source) == "west"
        assert list(await scene.mirrors("wanted")) == ["west"]
        event = await scene.event("wanted", "MirrorConflict")
        assert event["message"] == "worker east has a Job of this name that is not ours"
        assert annotation(source, "waiting-because") == ""
        await assert_untouched(scene, "east", theirs)

    async def test_a_job_that_all_refuse_says_why_and_is_tried_again(
        self, shared_manager: ManagerProcess, scene: Scene, sparse: Scene
    ) -> None:
        """Taken names and missing namespaces are told by worker; nothing there is touched; the first to mend wins."""
        theirs = {
            worker: await scene.client_of(worker).create(scene.jobs(worker), job("taken", run_for="never"))
            for worker in scene.workers
        }

        await scene.create(job("taken", shared_manager.managed_by))
        await sparse.create(job("homeless", shared_manager.managed_by))
        taken = await scene.source_until("taken", waits_on_both)
        homeless = await sparse.source_until("homeless", waits_on_both)
        assert annotation(taken, "waiting-because") == "east: the name is taken there; west: the name is taken there"
        told = "east: the namespace does not exist; west: the namespace does not exist"
        assert annotation(homeless, "waiting-because") == told
        assert (placed_on(taken), placed_on(homeless)) == ("", "")
        assert len(await until(lambda: scene.events("taken", "MirrorConflict"), lambda found: len(found) == 2)) == 2
        for worker, foreign in theirs.items():
            await assert_untouched(scene, worker, foreign)

        await scene.client_of("east").delete(f"{scene.jobs('east')}/taken")
        for worker in sparse.workers:
            await sparse.make_namespace(worker)
        taken = await scene.source_until("taken", is_complete)
        homeless = await sparse.source_until("homeless", is_complete)
        assert placed_on(taken) == "east"
        assert {annotation(ended, "waiting-because") for ended in (taken, homeless)} == {""}
        await assert_untouched(scene, "west", theirs["west"])

    async def test_a_worker_without_the_namespace_is_passed_over(self, manager: ManagerProcess, sparse: Scene) -> None:
        """East, which is the first of two that have nothing, lacks it: the Job runs on west."""
        await sparse.make_namespace("west")

        await sparse.create(job("elsewhere", manager.managed_by))
        source = await sparse.source_until("elsewhere", is_complete)

        assert placed_on(source) == "west"
        event = await sparse.event("elsewhere", "Refused")
        assert event["message"] == "worker east: the namespace does not exist"

    async def test_namespaces_are_made_where_settings_say_so(
        self, management: ControlPlane, east: ControlPlane, sparse: Scene
    ) -> None:
        """``workers.createNamespaces``: the Job's namespace is made with our label, and the Job runs."""
        settings: Json = {"workers": {"createNamespaces": True}}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            await sparse.create(job("pioneer", manager.managed_by))
            await sparse.source_until("pioneer", is_complete)

            made = await sparse.client_of("east").get(f"{NAMESPACES}/{sparse.namespace}")
            assert made["metadata"]["labels"]["jobmirror.io/origin"] == manager.origin
            assert not await sparse.events("pioneer", "Refused")


@pytest_asyncio.fixture(loop_scope="session")
async def sparse(scene: Scene) -> AsyncIterator[Scene]:
    """A scene in a namespace that only the management cluster has, so far."""
    one = Scene(scene.management, scene.planes, f"{scene.namespace}-sparse")
    await one.make_namespace()
    yield one
    await one.remove_namespaces()
    await one.close()


def waits_on_both(found: Json | None) -> bool:
    """Whether it says what speaks against each worker, after both have refused it."""
    return annotation(found, "waiting-because").count("the name") == 2


async def assert_untouched(scene: Scene, worker: str, before: Json) -> None:
    """The foreign Job is as its owner made it; its own controller may have gone on with its status."""
    now = await scene.mirror(worker, before["metadata"]["name"])
    assert now is not None
    assert uid(before) == uid(now)
    assert before["spec"] == now["spec"]
    assert before["metadata"].get("labels") == now["metadata"].get("labels")
    assert now["metadata"].get("deletionTimestamp") is None
