"""A worker is lost for longer than ``workers.lostAfter`` while Jobs run there: some stay, some start again (D14).

What people see of it is what docs/losing-a-worker.md shows; ``MIRROR_E2E_WRITE_DOCUMENTS=1`` writes it there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene
from e2e.losing import losing
from e2e.losses import cronjobs, moving, progress, returning, staying
from e2e.losses.stage import BEGINNINGS, LOST_AFTER_SECONDS, Loss, Story, play
from e2e.troubles.document import LOSSES

STORIES: tuple[Story, ...] = (
    *moving.STORIES,
    *staying.STORIES,
    *returning.STORIES,
    *progress.STORIES,
    *cronjobs.STORIES,
)
HERE = Path(__file__).parent


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def north(binaries: None) -> AsyncIterator[Cluster]:
    """A third worker, on which nothing runs Jobs."""
    async with Cluster.start("north", BARE) as cluster:
        yield cluster


@pytest.mark.timeout(900)
async def test_jobs_of_a_lost_worker_stay_or_start_again_elsewhere(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, north: Cluster, fresh_namespace: str
) -> None:
    """Scenarios 2, 3, 5, 21, 22, 25, 32, 33, 34, 43, 44, 45, 46, 48, 50, 51, 52, 53 and 57, in one loss."""
    planes = {"east": east, "west": west, "north": north}
    scene = Scene(management, planes, fresh_namespace)
    await scene.make_namespace("north")
    lost = losing(
        management,
        planes,
        lacking={"north": ["worker-progress"]},
        lostAfter=f"{LOST_AFTER_SECONDS}s",
        seedProgress=True,
        watchPods="labelled",
    )
    try:
        async with lost as (manager, proxies):
            await play(Loss(manager, scene, proxies), STORIES, BEGINNINGS)
            told = await manager.metrics()
            left_behind = 11
            assert told.value("jobmirror_left_behind_deleted_total", worker="east") == left_behind
            assert told.value("jobmirror_left_behind_deleted_total", worker="west") == 1
            assert told.value("jobmirror_fence_breaches_total") == 0
    finally:
        await scene.close()


def test_everything_that_the_document_shows_is_looked_at() -> None:
    """No section with output is without a look at it, and none has two."""
    files = [HERE / "test_fence.py", *(HERE / "losses").glob("*.py")]
    sources = "\n".join(file.read_text() for file in files)
    shown = [title for title in LOSSES.titles() if LOSSES.block(title)]
    assert len(shown) >= 10
    assert {title: sources.count(f'"{title}"') for title in shown} == dict.fromkeys(shown, 1)
