"""Rights on the Lease that are not there when a manager starts: it is not ready, says which, and leads once it may.

With all namespaces, and with Roles alone. On a control plane of its own: the logs of the others are searched for what
was refused (``conftest``).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from e2e import shipped, shipped_life
from e2e.controlplane.client import Client, Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import until
from e2e.manager import ManagerProcess
from e2e.shipped import Permission

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane, pytest.mark.timeout(300)]

LEASE = "jobmirror-manager"
TEAM = "team-rights"


class Lacking(ManagerProcess):
    """A manager whose account lacks a permission; ``give`` grants it."""

    verb = ""

    async def _account(self, plane: ControlPlane, granted: list[Json]) -> Path:
        self.whole = granted
        name = "" if self.verb == "create" else LEASE
        lacking = Permission(self.verb, "leases", self.namespace, name)
        assert lacking in set(shipped.rights(granted))
        return await super()._account(plane, shipped.without(granted, lacking))

    async def give(self) -> None:
        await shipped.account(self.management, self.namespace, self.whole)

    async def readiness(self) -> str:
        try:
            return (await self.fetch("/readyz"))[1]
        except aiohttp.ClientError:
            return ""  # it does not listen yet


@asynccontextmanager
async def lacking(cluster: Cluster, verb: str, settings: Json) -> AsyncIterator[Lacking]:
    manager = Lacking(cluster, settings=settings)
    manager.verb = verb
    manager.expect_complaints("LeadershipLost", "leadership", "fatal")
    try:
        await manager.prepare()
        manager.launch()
        yield manager
    finally:
        await manager.close()


@pytest.mark.parametrize("namespaces", [[], [TEAM]], ids=["all namespaces", "chosen namespaces"])
async def test_a_manager_that_may_not_have_its_lease_says_so_and_is_not_ready(namespaces: list[str]) -> None:
    """Each verb has its words; what is held and cannot be renewed is given up."""
    settings: Json = {
        "namespaces": namespaces,
        "leaderElection": {"leaseDuration": "10s", "renewDeadline": "8s", "retryPeriod": "1s"},
    }
    async with shipped_life.strict_cluster() as cluster:
        async with Client(cluster.kubeconfig) as client:
            for name in namespaces:
                await client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        for verb in ("get", "create"):
            async with lacking(cluster, verb, settings) as manager:
                await is_told(manager, verb)
                await manager.give()
                await until(manager.readiness, lambda said: "leader: ok leading" in said)
                await manager.stop()
        async with lacking(cluster, "update", settings) as manager:
            # It has made the Lease, and cannot renew it: it ends before another one might lead.
            assert await manager.wait_until_ended(seconds=120) == 1
            assert any("lease not renewed" in line and "403" in line for line in manager.log_lines())
            manager.launch()
            await is_told(manager, "update")
            await manager.give()
            await until(manager.readiness, lambda said: "leader: ok leading" in said)
            await manager.stop()


async def is_told(manager: Lacking, verb: str) -> None:
    """By ``/readyz`` and, once, by the log."""
    text = f"Lease {manager.namespace}/{LEASE} cannot be taken: 403 Forbidden"
    said = await until(manager.readiness, lambda said: text in said)
    (line,) = [line for line in said.splitlines() if text in line]
    assert re.search(rf"cannot {verb} resource \"?leases\"?", line), line
    assert (await manager.fetch("/readyz"))[0] == 503
    assert len([line for line in manager.log_lines() if "lease not taken" in line]) == 1
