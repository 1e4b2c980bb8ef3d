"""``mirror kinds --check`` as an operator types it, on real control planes with shipped roles and JobSet's CRD."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from e2e import jobsets
from e2e.commands import Said, said_by
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import until
from e2e.manager import ManagerProcess

MIRROR = Path(sys.executable).with_name("mirror")
KIND = "kind JobSet"


@pytest_asyncio.fixture(loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One that mirrors JobSets, which nobody serves yet."""
    async with ManagerProcess.start(management, {"east": east}, settings={"kinds": ["JobSet"]}) as running:
        yield running


async def mirror(manager: ManagerProcess, *arguments: str) -> Said:
    """Run a command with the administrator's kubeconfig of the management cluster."""
    return await said_by(
        await asyncio.create_subprocess_exec(
            MIRROR,
            *arguments,
            f"--kubeconfig={manager.management.kubeconfig}",
            f"--namespace={manager.namespace}",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    )


async def seen(manager: ManagerProcess) -> dict[str, str]:
    """What is said of JobSets, by cluster."""
    said = await mirror(manager, "kinds", "--check", "--allow=loopback", "--output=json")
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
            said = await mirror(
                manager, "worker", "check", "east", "--allow=loopback", f"--managed-by={manager.managed_by}"
            )
            assert f"✓ {KIND}: {usable}" in said.output
            said = await mirror(manager, "worker", "list")
            assert said.code == 0
    finally:
        for client in clients:
            await client.close()
