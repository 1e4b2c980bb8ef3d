"""Where control planes come from: our own binaries, or clusters that are there already (kind among them, ``e2e/kind``).

Chosen by the environment, so that the same tests run on either. Called by the fixtures, the demo, the benchmarks and
``python -m e2e.controlplane``. Not here: what a control plane can do (``plane``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from e2e.controlplane import components
from e2e.controlplane.assets import find_binaries, start_timeout_seconds
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER, Shape
from e2e.controlplane.nodes import add_node, remove_node, wait_until_node_is_ready
from e2e.controlplane.plane import CannotDo, ControlPlane
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch

MANAGEMENT_NAME = "management"
_WORKER_NAMES = ("east", "west", "north", "south")


class Provider(Protocol):
    """Gives control planes by name: ``management``, and workers in the order of ``worker_names``."""

    def start(self, name: str) -> AbstractAsyncContextManager[ControlPlane]:
        """One control plane, ready for use until the block is left.

        Raises:
            CannotDo: this provider has no such cluster.
        """
        ...


@dataclass(frozen=True, slots=True)
class Binaries:
    """Starts control planes of these shapes from binaries (``assets``)."""

    management: Shape = MANAGEMENT
    worker: Shape = WORKER

    def start(self, name: str) -> AbstractAsyncContextManager[ControlPlane]:
        """A new control plane; see ``Cluster.start`` for the errors."""
        return Cluster.start(name, self.management if name == MANAGEMENT_NAME else self.worker)


@dataclass(frozen=True, slots=True)
class Existing:
    """Uses clusters that others started. They keep running, and have no faults to offer."""

    kubeconfigs: Mapping[str, Path]
    simulate_nodes: bool = False
    """Whether each worker gets our simulated node for the time being; its other nodes should take no pods of tests."""

    @asynccontextmanager
    async def start(self, name: str) -> AsyncIterator[ControlPlane]:
        """The cluster that the environment names for this; what is ours in it is removed on leaving."""
        if name not in self.kubeconfigs:
            raise CannotDo(f"there is no existing cluster {name}: only {', '.join(self.kubeconfigs) or 'none'} named")
        simulated = self.simulate_nodes and name != MANAGEMENT_NAME
        async with AsyncExitStack() as stack:
            scratch = stack.enter_context(closing(Scratch(name)))
            if simulated:
                await stack.enter_async_context(_simulated_node(self.kubeconfigs[name], scratch))
            plane = ControlPlane(name, self.kubeconfigs[name], scratch.path, runs_pods=simulated)
            stack.push_async_callback(plane.close)
            yield plane


@dataclass(frozen=True, slots=True)
class Planes:
    """A management cluster and its workers by name."""

    management: ControlPlane
    workers: Mapping[str, ControlPlane]

    @property
    def by_name(self) -> dict[str, ControlPlane]:
        """All of them, the management cluster first."""
        return {self.management.name: self.management, **self.workers}


def worker_names(count: int) -> list[str]:
    """east, west, north, south, worker-5, worker-6, …"""
    return [*_WORKER_NAMES[:count], *(f"worker-{i}" for i in range(len(_WORKER_NAMES) + 1, count + 1))]


def choose_provider(environment: Mapping[str, str] = os.environ) -> Provider:
    """Existing clusters if ``USE_EXISTING_CLUSTER=true``, else binaries.

    The existing ones are ``MIRROR_E2E_MANAGEMENT`` (a kubeconfig) and ``MIRROR_E2E_WORKERS`` (kubeconfigs, separated by
    colons, in the order of ``worker_names``); ``MIRROR_E2E_SIMULATE_NODES=true`` gives each worker a simulated node.
    """
    if environment.get("USE_EXISTING_CLUSTER", "").lower() != "true":
        return Binaries()
    workers = [path for path in environment.get("MIRROR_E2E_WORKERS", "").split(":") if path]
    named = dict(zip(worker_names(len(workers)), workers, strict=True))
    if management := environment.get("MIRROR_E2E_MANAGEMENT", ""):
        named[MANAGEMENT_NAME] = management
    kubeconfigs = {name: Path(path).absolute() for name, path in named.items()}
    return Existing(kubeconfigs, environment.get("MIRROR_E2E_SIMULATE_NODES", "").lower() == "true")


async def start_all(provider: Provider, names: Iterable[str], until: AsyncExitStack) -> dict[str, ControlPlane]:
    """Start control planes of these names at the same time; they end with the stack.

    Raises the error of the first that did not come up, as ``Provider.start`` does.
    """
    try:
        async with asyncio.TaskGroup() as scope:
            starting = {
                name: scope.create_task(until.enter_async_context(provider.start(name)), name=f"start {name}")
                for name in names
            }
    except ExceptionGroup as group:  # callers tell failures apart by class
        raise group.exceptions[0] from None
    return {name: task.result() for name, task in starting.items()}


@asynccontextmanager
async def control_planes(*, workers: int = 2, provider: Provider | None = None) -> AsyncIterator[Planes]:
    """A management cluster and this many workers, ready for use until the block is left."""
    async with AsyncExitStack() as stack:
        names = [MANAGEMENT_NAME, *worker_names(workers)]
        started = await start_all(provider or choose_provider(), names, stack)
        management = started.pop(MANAGEMENT_NAME)
        yield Planes(management, started)


@asynccontextmanager
async def _simulated_node(kubeconfig: Path, scratch: Scratch) -> AsyncIterator[None]:
    """A node that kwok plays, for as long as the block lasts."""
    kwok = Program(components.kwok(find_binaries("kwok")["kwok"], kubeconfig), scratch)
    async with Client(kubeconfig) as client:
        await add_node(client)
        try:
            kwok.start()
            await wait_until_node_is_ready(client, seconds=start_timeout_seconds())
            yield
        finally:
            await kwok.kill()
            await remove_node(client)
