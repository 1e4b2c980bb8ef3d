"""A manager whose worker ``east`` can be lost, after which its Jobs move to ``west`` (D14). Used by tests of moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, until
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy

MOVED_SECONDS = 120.0
"""A new leader moves nothing in its first minute."""


@asynccontextmanager
async def losing_east(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, **workers: object
) -> AsyncIterator[tuple[ManagerProcess, Proxy]]:
    """The manager, which counts a worker as lost after 5 s, and the proxy before ``east``, which it is connected to.

    ``workers``: further settings of that section.
    """
    settings = {"workers": {"lostAfter": "5s", **workers}}
    async with (
        Proxy.before(east) as proxy,
        ManagerProcess.start(management, {"west": west}, settings=settings) as manager,
    ):
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        yield manager, proxy


async def until_only_on(scene: Scene, worker: str, name: str) -> None:
    """Wait until a Job has a mirror there and nowhere else: what was left behind is gone."""
    await until(lambda: scene.mirrors(name), lambda found: set(found) == {worker})
