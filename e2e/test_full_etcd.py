"""etcd has no space left (alarm NOSPACE), of a worker or of the management cluster: what is said, and that it clears.

These control planes belong to this file, since it breaks them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.jobs import Scene, annotation, job, placed_on, until, waits_because
from e2e.manager import Identity, ManagerProcess
from mirror.model import names

NO_SPACE = "etcdserver: mvcc: database space exceeded"
OTHER = "other"


@asynccontextmanager
async def full(cluster: Cluster) -> AsyncIterator[None]:
    """As etcd is beyond its quota: it serves reads and deletions, and nothing else; as after a disarm when left."""
    await _alarm(cluster, "ACTIVATE")
    try:
        yield
    finally:
        await _alarm(cluster, "DEACTIVATE")


async def _alarm(cluster: Cluster, action: str) -> None:
    connector = aiohttp.UnixConnector(path=str(cluster.directory / "etcd.sock"))
    async with aiohttp.ClientSession(connector=connector) as session:
        wanted = {"action": action, "memberID": "0", "alarm": "NOSPACE"}
        async with session.post("http://etcd/v3/maintenance/alarm", json=wanted) as answer:
            assert answer.status == 200, await answer.text()


@pytest.mark.usefixtures("binaries")
async def test_a_full_etcd_is_told_and_all_goes_on_once_there_is_space() -> None:
    """D5, D28: the Job stays where it is recorded and says why; who cannot keep the Lease ends, and is not ready."""
    async with (
        Cluster.start("hub", BARE) as hub,
        Cluster.start("east", BARE) as east,
        ManagerProcess.start(hub, {"east": east}, identity=Identity.new()) as manager,
    ):
        scene = Scene(hub, {"east": east}, "default")
        manager.expect_complaints("LeadershipLost", "leadership", "Lease")
        async with full(east):
            await scene.create(job("train", manager.managed_by, run_for="never"))
            told = await scene.source_until("train", waits_because(NO_SPACE))
            assert placed_on(told) == "east"
            assert annotation(told, "waiting-because") == f"worker east: 500: {NO_SPACE}"
            (condition,) = [one for one in told["status"]["conditions"] if one["type"] == names.PROGRESSING]
            assert condition["reason"] == "MirrorRefused"
        await scene.mirror_until("east", "train", bool)
        await scene.source_until("train", lambda found: found and not annotation(found, "waiting-because"))

        async with full(hub):
            assert await manager.wait_until_ended(seconds=60) == 1
            assert any(NO_SPACE in line for line in manager.log_lines())
            manager.launch()
            code, text = await until(lambda: _readiness(manager), lambda found: NO_SPACE in found[1])
            assert code == 503, text
        await manager.wait_until_ready(seconds=90)
        await scene.create(job(OTHER, manager.managed_by, run_for="never"))
        await scene.mirror_until("east", OTHER, bool)
        await scene.close()


async def _readiness(manager: ManagerProcess) -> tuple[int, str]:
    try:
        return await manager.fetch("/readyz")
    except aiohttp.ClientError as error:
        return 0, str(error)
