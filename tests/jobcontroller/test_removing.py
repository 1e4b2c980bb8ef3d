"""What is said of pods that could not be deleted, or not even stripped (A1, A3, Y15)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cached import cached_job
from doubles.clock import LoopClock

from mirror.jobcontroller.decide.values import Pod, PodCondition
from mirror.jobcontroller.live_check import LiveCheck
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.parallel_requests import ParallelRequests
from mirror.jobcontroller.podwrites import PodWrites
from mirror.jobcontroller.removing import Remover
from mirror.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, describe

pytestmark = pytest.mark.looptime

NO = Forbidden(403, "Forbidden", "no")
BUSY = Conflict(409, "Conflict", "modified")
GONE = NotFound(404, "NotFound", "gone", about_name="p")
CHANGED = Invalid(422, "Invalid", "the server rejected our request due to an error in our request")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
READY = (PodCondition("Ready", "True", None),)


class Sees(LiveCheck):
    """Finds what it is told to, however often it looks."""

    def __init__(self, found: Pod | None) -> None:
        self._found = found

    async def look_at(self, pod: Pod, memory: JobMemory) -> Pod:
        if self._found is None:
            raise GONE
        return self._found


NO_LOOKS = Sees(None)


class Refusing(PodWrites):
    """Refuses what it is told to."""

    def __init__(self, *, strip: KubeError | None = None, delete: KubeError | None = None, changes: int = 0) -> None:
        self._refusals = {"strip": strip, "delete": delete}
        self._changes = changes
        """How many times the pod has changed when its finalizer is to go."""

    def _maybe(self, what: str) -> None:
        if (error := self._refusals[what]) is not None:
            raise error

    async def strip(self, pod: Pod, *, flow: str, memory: JobMemory | None = None) -> None:
        self._maybe("strip")

    async def strip_active(self, job: object, memory: JobMemory, pod: Pod) -> None:
        self._maybe("strip")
        self._changes -= 1
        if self._changes >= 0:
            raise CHANGED

    async def delete(self, job: object, pod: Pod) -> None:
        self._maybe("delete")


@pytest.mark.parametrize(
    ("writes", "count", "ready"),
    [
        pytest.param(Refusing(), 1, 1, id="all is well"),
        pytest.param(Refusing(delete=NO), 0, 1, id="the delete was tried: as upstream"),
        pytest.param(Refusing(delete=GONE), 1, 1, id="it was gone before the delete"),
        pytest.param(Refusing(strip=GONE), 1, 1, id="it was gone before anything"),
        pytest.param(Refusing(strip=NO), 0, 0, id="it was left as it is"),
    ],
)
async def test_a_ready_pod_is_taken_off_once_its_delete_was_tried(writes: PodWrites, count: int, ready: int) -> None:
    """One whose finalizer could not even be removed is as ready as before."""
    memory = JobMemory()
    remover = Remover(writes, ParallelRequests(), NO_LOOKS, clock=LoopClock())
    pod = Pod("u", "p", "default", "Running", conditions=READY)
    found = await remover.strip_and_delete(cached_job(), memory, [pod])
    assert (found.count, found.ready) == (count, ready)
    assert memory.expected.are_met(0.0) is (writes._refusals != {"strip": None, "delete": None})


@pytest.mark.parametrize(
    ("writes", "found", "count", "error"),
    [
        pytest.param(Refusing(changes=1), Pod("u", "p", "default", "Running"), 1, "", id="it has started"),
        pytest.param(Refusing(changes=9), Pod("u", "p", "default", has_finalizer=False), 1, "", id="it was let go"),
        pytest.param(Refusing(changes=1), None, 1, "", id="it is gone"),
        pytest.param(Refusing(changes=1), Pod("u", "p", "default", "Succeeded"), 0, "CacheBehind", id="it has ended"),
        pytest.param(Refusing(changes=1), Pod("u", "p", "default", deleted=NOW), 0, "CacheBehind", id="it is going"),
        pytest.param(Refusing(changes=9), Pod("u", "p", "default", "Running"), 1, "", id="it never rests"),
        pytest.param(Refusing(strip=BUSY), None, 0, "Conflict", id="the server is refusing"),
    ],
)
async def test_a_pod_that_has_changed_is_looked_at_before_it_is_let_go(
    writes: PodWrites, found: Pod | None, count: int, error: str
) -> None:
    """A1, A3, beyond upstream: it must never count, so it must not have ended."""
    memory, pod = JobMemory(), Pod("u", "p", "default", conditions=READY)
    deleted = await Remover(writes, ParallelRequests(), Sees(found), clock=LoopClock()).strip_and_delete(
        cached_job(), memory, [pod]
    )
    assert (deleted.count, deleted.ready) == (count, count)
    assert (type(deleted.error).__name__ if deleted.error else "") == error
    assert memory.expected.are_met(0.0) is (found is None or bool(error))


@pytest.mark.parametrize(
    ("strip", "gone", "awaited"),
    [
        pytest.param(None, True, True, id="removed: the watch will show it"),
        pytest.param(GONE, True, True, id="the pod was gone: the watch will show that"),
        pytest.param(NO, False, False, id="refused: nothing will be shown"),
    ],
)
async def test_a_finalizer_that_is_gone_is_not_removed_again(
    strip: KubeError | None, gone: bool, awaited: bool
) -> None:
    """Q1: a cache that is behind still shows it; each sync would count the pod anew."""
    memory, pod = JobMemory(), Pod("u", "p", "default", "Succeeded")
    remover = Remover(Refusing(strip=strip), ParallelRequests(), NO_LOOKS, clock=LoopClock())
    stripped = await remover.strip(cached_job(), memory, [pod])
    assert (stripped.uids == {"u"}, memory.removing == {"u"}) == (gone, awaited)


async def test_a_finalizer_that_stays_is_told_in_upstreams_words() -> None:
    """A3."""
    remover = Remover(
        Refusing(strip=Forbidden(403, "Forbidden", "no")), ParallelRequests(), NO_LOOKS, clock=LoopClock()
    )
    found = await remover.strip_and_delete(cached_job(), JobMemory(), [Pod("u", "p", "default")])
    assert found.error is not None
    assert describe(found.error) == "removing completion finalizer: 403 Forbidden: no"
