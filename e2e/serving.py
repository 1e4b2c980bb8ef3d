"""A manager that serves users, at an address that is known before it starts. Used by tests of what users see.

Not here: accounts of users (``test_user_commands``), and what of a manager is shipped (``shipped``).
"""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.manager import ManagerProcess


def https_at(address: str) -> Json:
    """Settings of a manager whose one TLS address is this ``HOST:PORT`` of this machine."""
    return {"listen": address, "names": ["127.0.0.1"]}


def access_at(port: int) -> Json:
    """Settings of a manager whose users reach it at this port of this machine."""
    address = f"127.0.0.1:{port}"
    return {"https": https_at(address), "access": {"enabled": True, "url": f"https://{address}"}}


async def until_announced(manager: ManagerProcess) -> None:
    """Until users' commands find where it is."""
    path = f"/api/v1/namespaces/{manager.namespace}/configmaps/jobmirror-access"
    await manager.client.wait_until(path, lambda found: found is not None)
