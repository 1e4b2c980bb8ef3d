"""A manager that serves users, at an address that is known before it starts. Used by tests of what users see.

Not here: accounts of users (``test_user_commands``), and what of a manager is shipped (``shipped``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.manager import Identity, ManagerProcess
from e2e.ports import reserved_port


def https_at(address: str) -> Json:
    """Settings of a manager whose one TLS address is this ``HOST:PORT`` of this machine."""
    return {"listen": address, "names": ["127.0.0.1"]}


@asynccontextmanager
async def serving_manager(
    management: ControlPlane,
    workers: Mapping[str, ControlPlane],
    *,
    identity: Identity | None = None,
    settings: Json | None = None,
) -> AsyncIterator[ManagerProcess]:
    """As ``ManagerProcess.start``, with access for users, whose commands find where it is.

    It leads and reaches its workers a moment before the ConfigMap is written that users' commands read.
    """
    with reserved_port() as port:
        address = f"127.0.0.1:{port}"
        serving = {"https": https_at(address), "access": {"enabled": True, "url": f"https://{address}"}}
        started = ManagerProcess.start(management, workers, identity=identity, settings={**(settings or {}), **serving})
        async with started as manager:
            path = f"/api/v1/namespaces/{manager.namespace}/configmaps/jobmirror-access"
            await manager.client.wait_until(path, lambda found: found is not None)
            yield manager
