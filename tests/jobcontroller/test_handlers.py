"""From a change to keys: which, and when (H1–H6)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from cached import AT, cached_job, cached_pod, finished, owned_by
from doubles.clock import LoopClock
from doubles.jobworld import Told

from mirror.jobcontroller.consistency import CacheWaiters
from mirror.jobcontroller.handlers import Handlers, Intake
from mirror.jobcontroller.jobview import CachedJob, Jobs
from mirror.jobcontroller.memory import Memories
from mirror.jobcontroller.orphans import OrphanKey
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.podview import CachedPod
from mirror.kube.resources import PODS
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue

pytestmark = pytest.mark.looptime

KEY = "default/train"
NOW, BATCH = 0.0, 1.0


class Bench:
    """Handlers, and what they said."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.jobs, self.pods, self.memories, self.told = Jobs(), PodIndex(), Memories(), Told()
        self.queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=self.clock)
        self.cleaned: list[OrphanKey] = []
        self.cache_waiters = CacheWaiters(self.queue.add)
        self.handlers = Handlers(
            self.jobs,
            self.pods,
            self.memories,
            Intake(self.queue, self.cleaned.append, self.cache_waiters, BATCH),
            metrics=self.told,
            clock=self.clock,
        )
        self.handlers.is_leading = True

    def job(self, old: CachedJob | None, new: CachedJob | None) -> None:
        """As an informer does it: the store first."""
        if new is not None:
            self.jobs.store.put(new)
        elif old is not None:
            self.jobs.store.remove((old.metadata.namespace, old.metadata.name))
        self.handlers.on_job(old, new, Change.SEEN if new else Change.DELETED)

    def pod(self, old: CachedPod | None, new: CachedPod | None) -> None:
        self.handlers.on_pod(old, new, Change.SEEN if new else Change.DELETED)

    async def wanted(self, seconds: float = 5000.0) -> dict[str, float]:
        """Which keys come within so long, and when."""
        found: dict[str, float] = {}
        began = self.clock.monotonic()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    taken = await self.queue.take()
                    found.setdefault(taken.key, round(self.clock.monotonic() - began, 2))
                    self.queue.done(taken.key)
        except TimeoutError:
            self.queue.close()
        return found

    def names_cleaned(self) -> list[str]:
        return [key.name or "by selector" for key in self.cleaned]


def known(bench: Bench, **job: Any) -> CachedJob:
    """A Job that the cache has had for a while, with something expected of each kind."""
    found = cached_job(**job)
    bench.jobs.store.put(found)
    memory = bench.memories.of(found.metadata.uid)
    memory.expected.expect_creations(2, 0.0)
    memory.removing.add("pod")
    return found


# Jobs


async def test_a_new_job_is_synced_now() -> None:
    """H1."""
    bench = Bench()
    bench.job(None, cached_job())
    assert await bench.wanted() == {KEY: NOW}


async def test_an_external_job_counts_when_it_comes_and_never_again() -> None:
    """H1: on ADD only."""
    bench = Bench()
    old, new = cached_job(managedBy="a/b"), cached_job(managedBy="a/b", version=2)
    bench.job(None, old)
    bench.job(old, new)
    assert bench.told.counts["external", "a/b"] == 1
    bench.queue.close()


@pytest.mark.parametrize(
    ("generation", "when"),
    [pytest.param(1, BATCH, id="only the status or metadata changed"), pytest.param(2, NOW, id="the spec changed")],
)
async def test_a_changed_job_is_synced_now_or_in_a_while(generation: int, when: float) -> None:
    """H2, Q25."""
    bench = Bench()
    bench.job(cached_job(), cached_job(version=2, meta={"generation": generation}))
    assert await bench.wanted() == {KEY: when}


async def test_a_finished_job_only_has_its_pods_looked_through() -> None:
    """H2, Q24; and whatever was remembered about it is over."""
    bench = Bench()
    old = known(bench)
    bench.job(old, cached_job(status=finished(), version=2))
    assert await bench.wanted() == {}
    assert bench.names_cleaned() == ["by selector"]
    assert len(bench.memories) == 0


@pytest.mark.parametrize(
    ("before", "after", "ago", "when"),
    [
        pytest.param(None, 60, 10, [BATCH, 50.0], id="newly set"),
        pytest.param(90, 60, 10, [BATCH, 50.0], id="shortened"),
        pytest.param(None, 60, 100, [NOW], id="past already"),
        pytest.param(60, 60, 10, [BATCH], id="the same"),
    ],
)
async def test_a_new_deadline_has_its_own_timer(before: int | None, after: int, ago: int, when: list[float]) -> None:
    """H2, Q22; here with the generation unchanged, so that only the timer is new."""
    bench = Bench()
    status = {"startTime": (bench.clock.now() - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    old = cached_job(status=status, **({"activeDeadlineSeconds": before} if before else {}))
    bench.job(old, cached_job(status=status, activeDeadlineSeconds=after, version=2))
    found = await bench.wanted()
    assert when[0] == found[KEY]


async def test_a_deleted_job_is_forgotten_now() -> None:
    """H3, Q9, Y2: backoff, expectations and all; its pods are looked through."""
    bench = Bench()
    bench.job(known(bench), None)
    assert await bench.wanted() == {KEY: NOW}
    assert bench.names_cleaned() == ["by selector"]
    assert len(bench.memories) == 0


async def test_a_job_that_a_relist_shows_with_another_uid_was_deleted_and_created() -> None:
    """H3, H1: the deletion was missed."""
    bench = Bench()
    bench.job(known(bench), cached_job(uid="job-2", managedBy="a/b", version=2))
    assert bench.names_cleaned() == ["by selector"]
    assert bench.memories.find("job-1") is None
    assert bench.told.counts["external", "a/b"] == 1
    bench.queue.close()


# Pods


async def test_a_new_pod_is_one_expected_creation_less() -> None:
    """H4: its Job is synced in a while."""
    bench = Bench()
    job = known(bench)
    bench.pod(None, cached_pod(owner=owned_by(job)))
    assert bench.memories.of("job-1").expected.creations == 1
    assert await bench.wanted() == {KEY: BATCH}


@pytest.mark.parametrize(
    "changes",
    [{"kind": "Other"}, {"name": "other"}, {"uid": "other"}],
    ids=["another kind", "another name", "a namesake that is gone"],
)
async def test_a_pod_of_somebody_else_wakes_nobody(changes: dict[str, str]) -> None:
    """H4: by kind, name, then uid."""
    bench = Bench()
    job = known(bench)
    bench.pod(None, cached_pod(owner=owned_by(job, **changes), labels={"app": "x"}))
    assert await bench.wanted() == {}
    assert bench.memories.of("job-1").expected.creations == 2


async def test_an_orphan_wakes_the_jobs_that_select_it() -> None:
    """H4: and nobody was waiting for it; its finalizer is looked at."""
    bench = Bench()
    known(bench)
    bench.jobs.store.put(cached_job("all", uid="job-2", selector={}))
    bench.jobs.store.put(cached_job("none", uid="job-3", selector={"matchLabels": {"app": "other"}}))
    bench.jobs.store.put(cached_job("null", uid="job-4", selector=None))
    bench.pod(None, cached_pod(labels={"batch.kubernetes.io/controller-uid": "job-1"}))
    assert await bench.wanted() == {KEY: BATCH, "default/all": BATCH}
    assert bench.memories.of("job-1").expected.creations == 2
    assert bench.names_cleaned() == ["pod"]


async def test_an_orphan_without_labels_wakes_nobody() -> None:
    """H4."""
    bench = Bench()
    bench.jobs.store.put(cached_job("all", selector={}))
    bench.pod(None, cached_pod(labels={}))
    assert await bench.wanted() == {}


async def test_a_pod_that_comes_being_deleted_is_no_creation() -> None:
    """H4: a restart shows such pods."""
    bench = Bench()
    job = known(bench)
    bench.memories.of("job-1").expected.expect_deletions(1, 0.0)
    bench.pod(None, cached_pod(owner=owned_by(job), deletionTimestamp=AT))
    assert bench.memories.of("job-1").expected.deletions == 0
    assert await bench.wanted() == {KEY: BATCH}


async def test_a_pod_update_of_the_same_version_is_none() -> None:
    """H5."""
    bench = Bench()
    pod = cached_pod(owner=owned_by(known(bench)))
    bench.pod(pod, pod)
    assert await bench.wanted() == {}


async def test_an_updated_pod_without_finalizer_is_a_removal_that_was_seen() -> None:
    """H5, Q1."""
    bench = Bench()
    owner = owned_by(known(bench))
    bench.pod(cached_pod(owner=owner), cached_pod(owner=owner, version=2))
    assert bench.memories.of("job-1").removing == {"pod"}
    bench.pod(cached_pod(owner=owner, version=2), cached_pod(owner=owner, version=3, tracked=False))
    assert bench.memories.of("job-1").removing == set()
    assert await bench.wanted() == {KEY: BATCH}


async def test_a_pod_that_changes_hands_wakes_both_owners() -> None:
    """H5: the old owner also learns that the finalizer went with it."""
    bench = Bench()
    old, new = known(bench), cached_job("new", uid="job-2")
    bench.jobs.store.put(new)
    bench.pod(cached_pod(owner=owned_by(old)), cached_pod(owner=owned_by(new), version=2, tracked=False))
    assert bench.memories.of("job-1").removing == set()
    assert await bench.wanted() == {KEY: BATCH, "default/new": BATCH}


@pytest.mark.parametrize(
    ("labels", "wakes"), [({"a": "1"}, False), ({"a": "2"}, True)], ids=["nothing else changed", "new labels"]
)
async def test_an_updated_orphan_wakes_jobs_when_its_labels_changed(labels: dict[str, str], wakes: bool) -> None:
    """H5; its finalizer is looked at either way."""
    bench = Bench()
    bench.jobs.store.put(cached_job(selector={}))
    bench.pod(cached_pod(labels={"a": "1"}), cached_pod(labels=labels, version=2))
    assert bool(await bench.wanted()) is wakes
    assert bench.names_cleaned() == ["pod"]


async def test_each_update_of_a_pod_that_is_being_deleted_lowers_what_is_expected() -> None:
    """H6, Q21: below zero is met, too; the finalizer is still there, so its removal is not seen."""
    bench = Bench()
    owner = owned_by(known(bench))
    memory = bench.memories.of("job-1")
    memory.expected.expect_deletions(1, 0.0)
    pods = [cached_pod(owner=owner, deletionTimestamp=AT, version=version) for version in (2, 3)]
    bench.pod(cached_pod(owner=owner), pods[0])
    bench.pod(*pods)
    assert memory.expected.deletions == -1
    assert memory.expected.are_met(1.0)
    assert memory.removing == {"pod"}
    bench.pod(pods[1], None)
    assert memory.removing == set()
    assert await bench.wanted() == {KEY: BATCH}


@pytest.mark.parametrize("how", ["finished", "gone", "nobody's"])
async def test_a_deleted_pod_that_no_sync_will_strip_is_cleaned(how: str) -> None:
    """H6, Q24."""
    bench = Bench()
    job = cached_job(status=finished())
    if how == "finished":
        bench.jobs.store.put(job)
    owner = None if how == "nobody's" else owned_by(job)
    bench.pod(cached_pod(owner=owner), cached_pod(owner=owner, deletionTimestamp=AT, version=2))
    bench.pod(cached_pod("plain", owner=owner, tracked=False), None)
    assert bench.names_cleaned() == ["pod"]
    assert await bench.wanted() == {}


async def test_a_pod_left_by_a_job_that_finished_unseen_is_cleaned() -> None:
    """Q24: whoever led was killed between the Job's end and the scan of its pods; the pod comes as known already."""
    bench = Bench()
    job = cached_job(status=finished())
    bench.jobs.store.put(job)
    for pod in (cached_pod(owner=owned_by(job)), cached_pod("plain", owner=owned_by(job), tracked=False)):
        bench.handlers.pod_found(pod)
    assert bench.names_cleaned() == ["pod"]


async def test_a_pod_that_comes_after_its_jobs_end_is_cleaned() -> None:
    """Q24: as it would be if we began after it came, so that a restart changes nothing."""
    bench = Bench()
    job = cached_job(status=finished())
    bench.jobs.store.put(job)
    bench.pod(None, cached_pod(owner=owned_by(job)))
    bench.pod(None, cached_pod("plain", owner=owned_by(job), tracked=False))
    assert bench.names_cleaned() == ["pod"]
    assert await bench.wanted() == {}


async def test_a_finished_pod_that_was_there_before_us_is_counted_before_it_is_counted_away() -> None:
    """4.16: ``delete`` must never exceed ``add``."""
    bench = Bench()
    owner = owned_by(known(bench))
    bench.handlers.is_leading = False
    over = cached_pod(owner=owner, phase="Succeeded")
    bench.pod(None, over)
    bench.handlers.is_leading = True
    bench.handlers.pod_found(over)
    bench.pod(over, cached_pod(owner=owner, phase="Succeeded", version=2, tracked=False))
    assert bench.told.counts["tracking finalizer", "add"] == 1
    assert bench.told.counts["tracking finalizer", "delete"] == 1
    bench.queue.close()


async def test_a_finished_pod_that_is_going_lowers_the_deletions_that_are_expected() -> None:
    """H4, H6: though little of it is kept, that it is being deleted is."""
    bench = Bench()
    job = known(bench)
    memory = bench.memories.of("job-1")
    memory.expected.expect_deletions(1, NOW)
    bench.pod(None, cached_pod(owner=owned_by(job), phase="Succeeded", tracked=False, deletionTimestamp=AT))
    assert memory.expected.are_met(NOW)
    bench.queue.close()


async def test_a_deadline_beyond_all_times_is_a_long_wait() -> None:
    """An int64 of seconds: an error here would end the watch of all Jobs."""
    bench = Bench()
    status = {"startTime": AT}
    old = known(bench, status=status)
    bench.job(old, cached_job(status=status, version=2, activeDeadlineSeconds=2**63 - 1))
    assert await bench.wanted() == {KEY: BATCH}


async def test_who_does_not_lead_only_keeps_the_index() -> None:
    """A standby names no keys; when it leads, all pods are taken as just come."""
    bench = Bench()
    bench.handlers.is_leading = False
    job = known(bench)
    pod = cached_pod(owner=owned_by(job))
    bench.job(None, job)
    bench.pod(None, pod)
    assert bench.pods.open_of(job) == [pod]
    assert await bench.wanted() == {}


async def test_finished_pods_with_our_finalizer_are_counted_as_they_begin_and_cease() -> None:
    """4.16: terminated_pods_tracking_finalizer_total."""
    bench = Bench()
    owner = owned_by(known(bench))
    runs, over = cached_pod(owner=owner), cached_pod(owner=owner, phase="Failed", version=2)
    counted = cached_pod(owner=owner, phase="Failed", version=3, tracked=False)
    for old, new in ((None, runs), (runs, over), (over, counted), (counted, None), (None, over), (over, None)):
        bench.pod(old, new)
    assert bench.told.counts["tracking finalizer", "add"] == 2
    assert bench.told.counts["tracking finalizer", "delete"] == 2
    bench.queue.close()


async def test_a_job_that_waits_for_a_watch_is_wanted_once_it_has_caught_up() -> None:
    """Y1: upstream waits for a second or more."""
    bench = Bench()
    owner = owned_by(known(bench))
    bench.cache_waiters.wait(KEY, PODS, 7)
    bench.pod(None, cached_pod("six", owner=owner, version=6))
    assert bench.queue.describe().ready == {}
    bench.pod(None, cached_pod("seven", owner=owner, version=7))
    assert await bench.wanted() == {KEY: NOW}
