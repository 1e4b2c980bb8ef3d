"""``mirror kinds --check`` as an operator types it, on real control planes with shipped roles and JobSet's CRD."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest_asyncio

from e2e import jobsets
from e2e.commands import administrator_says
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import until
from e2e.manager import ManagerProcess

KIND = "kind JobSet"


@pytest_asyncio.fixture(loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One that mirrors JobSets, which nobody serves yet."""
    async with ManagerProcess.start(management, {"east": east}, settings={"kinds": ["JobSet"]}) as running:
        yield running


async def seen(manager: ManagerProcess) -> dict[str, str]:
    """What is said of JobSets, by cluster."""
    said = await administrator_says(manager, "kinds", "--check", "--allow=loopback", "--output=json")
    found = json.loads(said.output)["items"]
    return {one["cluster"]: one["findings"][0]["text"] for one in found if one["findings"]}


async def test_an_operator_sees_what_each_cluster_lacks(manager: ManagerProcess, east: ControlPlane) -> None:
    """The manager's own record says which kinds; definitions that come and go are seen, and permissions that go."""
    absent = "not served: CustomResourceDefinition jobsets.jobset.x-k8s.io is missing"
    usable = "served as v1alpha2, all required permissions granted"
    await until(lambda: seen(manager), lambda found: set(found) == {"management", "east"})
    assert [text.startswith(absent) for text in (await seen(manager)).values()] == [True, True]

    clients = [plane.client() for plane in (manager.management, east)]
    try:
        async with jobsets.defined(*clients):
            await until(lambda: seen(manager), lambda found: found == {"management": usable, "east": usable})
            said = await administrator_says(
                manager, "worker", "check", "east", "--allow=loopback", f"--managed-by={manager.managed_by}"
            )
            assert f"✓ {KIND}: {usable}" in said.output
            said = await administrator_says(manager, "worker", "list")
            assert said.code == 0
    finally:
        for client in clients:
            await client.close()
