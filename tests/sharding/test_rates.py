"""Several managers keep one limit together (S12)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from doubles.jobs import job
from doubles.replicas import LEASE_SECONDS, Replica, running, world_of
from doubles.transport import Sent
from doubles.world import World

from mirror.connecting import Connections
from mirror.settings.schema import Limits, Settings
from mirror.sharding.rates import Parts
from mirror.telemetry.metrics import Metrics

looptime = pytest.mark.looptime

QPS, BURST = 20.0, 20
HAIR = 1e-6


def test_one_more_is_counted_at_once_and_one_less_a_lease_later() -> None:
    parts = Parts(4, 30.0)
    assert [parts.note(count, now) for count, now in ((1, 0.0), (3, 1.0), (3, 50.0), (2, 51.0))] == [1, 3, 3, 3]
    assert [parts.note(2, now) for now in (80.0, 81.0)] == [3, 2]


def test_who_flickers_is_counted() -> None:
    parts = Parts(4, 30.0)
    seen = [parts.note(3 if second % 20 else 2, float(second)) for second in range(200)]
    assert set(seen[1:]) == {3}


def test_who_cannot_count_divides_as_before_and_at_first_by_as_many_as_there_may_be() -> None:
    parts = Parts(16, 30.0)
    assert parts.note(None, 0.0) == 16
    assert parts.note(2, 1.0) == 2
    assert [parts.note(None, now) for now in (2.0, 100.0, 1000.0)] == [2, 2, 2]
    assert [parts.note(1, now) for now in (1001.0, 1030.0, 1031.0)] == [2, 2, 1]


def sent(world: World, since: float = 0.0) -> list[Sent]:
    """What the management cluster was asked, but for Leases."""
    return [one for one in world.management.sent if "/leases" not in one.path and one.at >= since]


async def wave(world: World, name: str) -> float:
    """So many Jobs that each manager has enough to do for a minute; requests a second of the one that has sent most."""
    since = asyncio.get_running_loop().time()
    for number in range(400):
        world.create(job(f"{name}-{number}"))
    await asyncio.sleep(60)
    return max(Counter(one.peer for one in sent(world, since)).values()) / 60


def most_at_once(times: list[float]) -> float:
    """By how much the requests of any interval were more than its seconds allow."""
    most, least = 0.0, float("inf")
    for count, time in enumerate(times):
        least = min(least, count - QPS * time)
        most = max(most, count + 1 - QPS * time - least)
    return most


def rates(*replicas: Replica) -> list[float]:
    return [round(one.limiter.describe().qps, 3) for one in replicas]


@looptime
@pytest.mark.slow
async def test_three_managers_together_send_what_one_may_and_two_take_the_part_of_a_third_that_died() -> None:
    world = world_of()
    replicas = [Replica(world, name, limits=(QPS, BURST)) for name in ("one", "two", "three")]
    async with running(*replicas):
        assert rates(*replicas) == [QPS / 4] * 3, "before they have seen each other, there may be as many as slots"
        await asyncio.sleep(150)
        assert rates(*replicas) == [round(QPS / 3, 3)] * 3
        assert await wave(world, "train") >= 0.95 * QPS / 3
        world.management.faults.cut_off("two")
        for wire in world.workers.values():
            wire.faults.cut_off("two")
        died = asyncio.get_running_loop().time()
        await asyncio.sleep(LEASE_SECONDS + 10)
        assert rates(*replicas)[::2] == [round(QPS / 3, 3)] * 2, "it may be that it is not dead"
        await asyncio.sleep(LEASE_SECONDS)
        assert rates(*replicas)[::2] == [QPS / 2] * 2
        assert await wave(world, "more") >= 0.95 * QPS / 2
        alive = [one.at for one in sent(world, died) if one.peer != "two"]
        assert most_at_once([one.at for one in sent(world) if one.at < died]) <= BURST + HAIR
        assert most_at_once(alive) <= BURST + HAIR
        world.management.faults.heal("two")
        for wire in world.workers.values():
            wire.faults.heal("two")


@looptime
@pytest.mark.slow
async def test_whose_watch_of_leases_is_silent_takes_no_part_of_others() -> None:
    """All of them seem to have gone, and so does it."""
    world = world_of()
    replicas = [Replica(world, name, limits=(QPS, BURST)) for name in ("one", "two", "three")]
    async with running(*replicas):
        await asyncio.sleep(60)
        world.management.mute_watches("leases")
        for _ in range(100):
            await asyncio.sleep(1)
            assert sum(rates(*replicas)) <= QPS + 0.01


@looptime
async def test_one_manager_has_all_of_it() -> None:
    world = world_of()
    only = Replica(world, "one", limits=(QPS, BURST))
    async with running(only):
        await asyncio.sleep(10)
        assert rates(only) == [QPS]


@looptime
async def test_all_clients_of_the_management_cluster_in_a_process_share_one_limit_and_leases_have_none(
    tmp_path: Path,
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
    )
    settings = Settings(kubeconfig=str(kubeconfig), management=Limits(qps=20.0, burst=40))
    connections = Connections(settings, Metrics())
    one, other, leases = (
        await connections.management(None),
        await connections.management(None),
        await connections.leases(),
    )
    connections.limiter.divide(4)
    found = [client.describe().limits for client in (one, other, leases)]
    assert [(limits.qps, limits.burst) for limits in found] == [(5.0, 10), (5.0, 10), (0.0, 1)]
    for client in (one, other, leases):
        await client.close()
