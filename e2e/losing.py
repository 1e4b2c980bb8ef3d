"""A manager whose workers can be lost (D14): proxies stand between them. Used by tests of losses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, until
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy

MOVED_SECONDS = 120.0
"""A new leader moves nothing in its first minute."""


@asynccontextmanager
async def losing(
    management: ControlPlane,
    planes: Mapping[str, ControlPlane],
    *,
    lacking: Mapping[str, Collection[str]] | None = None,
    **workers: object,
) -> AsyncIterator[tuple[ManagerProcess, dict[str, Proxy]]]:
    """A manager that reaches each of these workers through a proxy, with the shipped rights.

    Args:
        management: the management cluster.
        planes: the workers by their names.
        lacking: by worker, files of rights that its account does not get.
        workers: settings of that section.
    """
    async with AsyncExitStack() as stack:
        proxies = {name: await stack.enter_async_context(Proxy.before(plane)) for name, plane in planes.items()}
        started = ManagerProcess.start(management, {}, settings={"workers": workers})
        manager = await stack.enter_async_context(started)
        for name, plane in planes.items():
            granted = await manager.kubeconfig_of(plane, without=(lacking or {}).get(name, ()))
            await manager.register(name, kubeconfig=proxies[name].redirected(granted))
        for name in planes:
            await until_reached(manager, name)
        yield manager, proxies


async def until_reached(manager: ManagerProcess, worker: str, *, is_so: bool = True) -> None:
    """Wait until the manager reaches a worker, or does not."""
    await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker=worker) == is_so)


async def until_only_on(scene: Scene, worker: str, name: str) -> None:
    """Wait until a Job has a mirror there and nowhere else: what was left behind is gone."""
    await until(
        lambda: scene.mirrors(name), lambda found: set(found) == {worker}, describe=lambda: scene.describe(name)
    )
