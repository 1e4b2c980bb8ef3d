"""CronJobs whose run is on a lost worker, by the cronjob controller of the management cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from functools import partial

from e2e.controlplane.client import Json
from e2e.cronjobs import create_with_missed_run, cronjob, owner, run_again
from e2e.jobs import placed_on, runs, until
from e2e.losing import until_only_on, until_reached
from e2e.losses.stage import Act, Loss, Story

POLICIES = ("Allow", "Forbid", "Replace")


async def cronjobs(loss: Loss) -> AsyncGenerator[Act, None]:
    """53: Allow runs the next one elsewhere, Forbid skips it, Replace leaves a mirror until its worker is back."""
    scene, collection = loss.scene, f"/apis/batch/v1/namespaces/{loss.scene.namespace}/cronjobs"
    second = datetime.now(UTC).replace(second=0, microsecond=0)
    first = second - timedelta(minutes=1)
    for policy in POLICIES:
        body = cronjob(policy.lower(), loss.job("any", "Wait"), first, concurrencyPolicy=policy)
        await create_with_missed_run(scene.client, collection, body, first)
    early = {policy: (await until(partial(_jobs_of, loss, policy)))[0] for policy in POLICIES}
    for name in early.values():
        await scene.source_until(name, runs())
        assert set(await scene.mirrors(name)) == {"east"}

    yield Act.LOST
    await until_reached(loss.manager, "east", is_so=False)
    for policy in POLICIES:
        await run_again(scene.client, collection, policy.lower(), second)
    await until(lambda: _reasons(loss, "forbid"), lambda reasons: "JobAlreadyActive" in reasons)
    assert await _jobs_of(loss, "Forbid") == [early["Forbid"]]
    late = {policy: await _newer(loss, policy, early[policy]) for policy in ("Allow", "Replace")}
    assert await _jobs_of(loss, "Allow") == [early["Allow"], late["Allow"]]
    assert await _jobs_of(loss, "Replace") == [late["Replace"]]
    for name in late.values():
        await scene.source_until(name, runs())
        assert set(await scene.mirrors(name)) == {"west"}
    assert set(await scene.mirrors(early["Replace"])) == {"east"}

    yield Act.BACK
    await scene.until_no_mirror(early["Replace"])
    await scene.until_no_pods("east", early["Replace"])
    for name, worker in ((early["Allow"], "east"), (early["Forbid"], "east"), (late["Allow"], "west")):
        await until_only_on(scene, worker, name)
        assert placed_on(await scene.source_until(name, runs())) == worker


async def _jobs_of(loss: Loss, policy: str) -> list[str]:
    """The Jobs of this CronJob, oldest first."""
    found = await loss.scene.client.list(loss.scene.jobs())
    of_it = [one for one in found if owner(one) == policy.lower()]
    return [one["metadata"]["name"] for one in sorted(of_it, key=_created)]


def _created(found: Json) -> tuple[str, str]:
    return found["metadata"]["creationTimestamp"], found["metadata"]["name"]


async def _newer(loss: Loss, policy: str, than: str) -> str:
    """The newest Job of this CronJob, once that is another one."""
    return (await until(partial(_jobs_of, loss, policy), lambda names: names and names[-1] != than))[-1]


async def _reasons(loss: Loss, name: str) -> list[str]:
    """Of the events about a CronJob."""
    path = f"/api/v1/namespaces/{loss.scene.namespace}/events"
    return [one["reason"] for one in await loss.scene.client.list(path, fieldSelector=f"involvedObject.name={name}")]


STORIES: tuple[Story, ...] = (cronjobs,)
