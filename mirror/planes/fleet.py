"""A management cluster with workers, all in this process, and the settings of a manager for them.

For ``mirror demo`` and ``mirror dev``: each cluster is served over HTTPS on this machine, its kubeconfig is a file in a
folder, and the workers are registered by Secrets, as an operator would do it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mirror.embedded import kubeconfigs
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.model import names
from mirror.planes.plane import control_plane
from mirror.planes.serving import HOST, Served, served
from mirror.planes.shape import Shape
from mirror.settings.schema import Access, Https, Page, Settings, Workers

MANAGEMENT = "management"
NAMESPACE = "jobmirror-system"
_ADDRESS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{names.ACCESS_CONFIGMAP}"
_LOOK_SECONDS = 0.02
_FIRST_NAMES = ("east", "west", "north", "south")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Clusters that are ready, and the folder with a kubeconfig of each."""

    folder: Path
    management: Served
    workers: Mapping[str, Served]

    def kubeconfig(self, name: str = MANAGEMENT) -> Path:
        """The administrator's kubeconfig of one cluster; the management cluster's has contexts of the workers, too."""
        return self.folder / f"{name}.kubeconfig"

    async def wait_for_access(self) -> None:
        """Until the manager has said where its access is."""
        while not await self._has_address():  # noqa: ASYNC110 - it may be another process
            await asyncio.sleep(_LOOK_SECONDS)

    async def forget_access(self) -> None:
        """Where it was the last time is not where it will be."""
        if await self._has_address():
            await self.management.plane.api.delete(_ADDRESS)

    async def _has_address(self) -> bool:
        try:
            await self.management.plane.api.get(_ADDRESS)
        except StatusError as refused:
            if refused.reason != "NotFound":
                raise
            return False
        return True

    def settings(self, *, page: bool = False) -> Settings:
        """For a manager of this fleet, which serves its users, too; with the page or without it."""
        return Settings(
            namespace=NAMESPACE,
            kubeconfig=str(self.kubeconfig()),
            listen="127.0.0.1:0",
            workers=Workers(allow={"loopback": True}),
            page=Page(enabled=page, listen="127.0.0.1:0"),
            https=Https(listen=f"{HOST}:0", names=(HOST,)),
            access=Access(enabled=True, url=f"https://{HOST}:0"),
        )


def worker_names(count: int) -> tuple[str, ...]:
    """``east``, ``west``, …"""
    return tuple(_FIRST_NAMES[n] if n < len(_FIRST_NAMES) else f"worker-{n + 1}" for n in range(count))


@asynccontextmanager
async def fleet(
    workers: Sequence[str], folder: Path, shape: Shape, *, keeps_data: bool = False
) -> AsyncIterator[Fleet]:
    """Run the clusters while the block runs.

    Args:
        workers: their names.
        folder: where kubeconfigs go.
        shape: what each cluster is made of; names and data are said here.
        keeps_data: whether everything is kept in the folder, too, and found there the next time.

    Raises:
        OSError: the folder cannot be written.
    """
    async with AsyncExitStack() as stack:
        found: dict[str, Served] = {}
        for name in (MANAGEMENT, *workers):
            data = folder / f"{name}.sqlite" if keeps_data else None
            own = msgspec.structs.replace(shape, name=name, data=data)
            plane = await stack.enter_async_context(control_plane(own))
            found[name] = await stack.enter_async_context(served(plane))
            found[name].write_kubeconfig(folder / f"{name}.kubeconfig")
        management = found.pop(MANAGEMENT)
        texts = (management.kubeconfig, *(one.kubeconfig for one in found.values()))
        kubeconfigs.write(folder / f"{MANAGEMENT}.kubeconfig", kubeconfigs.merged(*texts))
        made = Fleet(folder, management, found)
        await _register(made)
        await made.forget_access()
        yield made


async def _register(made: Fleet) -> None:
    """Write the Secrets of the workers."""
    api = made.management.plane.api
    try:
        await api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    except StatusError as refused:
        if refused.reason != "AlreadyExists":
            raise
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    for name, worker in made.workers.items():
        data = {"kubeconfig": base64.b64encode(worker.kubeconfig.encode()).decode()}
        try:
            await api.create(secrets, {"metadata": {"name": name, "labels": {names.WORKER: "true"}}, "data": data})
        except StatusError as refused:
            if refused.reason != "AlreadyExists":
                raise
            await api.merge(f"{secrets}/{name}", {"data": data})
