"""Workers that do not answer, or do not let us in."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.controlplane.client import Json
from e2e.jobs import placed_on
from e2e.shipped import ACCOUNT
from e2e.troubles.stage import JOB, Play, Sight, over, reason_of, says
from mirror.model import names


async def worker_away(play: Play) -> AsyncGenerator[Sight, None]:
    """Before ``lostAfter`` and after it; a new Job waits meanwhile."""
    proxy = play.stage.proxies["north"]
    await play.create(play.job(annotations={"worker-selector": "name=north"}))
    await play.scene.source_until(JOB, placed_on)
    await play.scene.mirror_until("north", JOB, bool)
    proxy.refuse()
    yield Sight("The Job's worker does not answer", says("WorkerUnreachable"), passes=True)
    yield Sight("The Job's worker is lost", says("WorkerLost"))
    await proxy.resume()
    yield over(is_reached)


async def token_refused(play: Play) -> AsyncGenerator[Sight, None]:
    manager = play.stage.manager
    account = f"/api/v1/namespaces/{manager.namespace}/serviceaccounts/{ACCOUNT}"
    await play.create(play.job(annotations={"worker-selector": "name=south"}))
    await play.scene.source_until(JOB, placed_on)
    await play.on("south").delete(account)
    play.stage.proxies["south"].cut()  # a watch that stands was allowed when it began
    yield Sight("The worker does not take the token any more", says("WorkerLost"))
    await manager.register("south", play.stage.workers["south"])
    yield over(is_reached)


async def no_worker_answers(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(annotations={"worker-selector": "name=gone"}))
    yield Sight("No worker answers that a new Job could go to", says("WorkersUnreachable"))
    await play.scene.patch(JOB, {"metadata": {"annotations": {names.WORKER_SELECTOR: "region=eu"}}})
    yield over()


def is_reached(found: Json | None) -> bool:
    """Whether nothing is said of its worker's connection: that it has no Job controller is shown after five minutes."""
    return found is not None and reason_of(found) not in ("WorkerUnreachable", "WorkerLost")


STORIES = (no_worker_answers, worker_away, token_refused)
