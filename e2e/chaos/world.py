"""Where a campaign is played: a management cluster, workers, two managers, and a proxy on each way between them.

Each manager reaches the management cluster by a proxy of its own, and a worker by the one that both share, since the
worker's Secret holds one address. Both are the program with the tests' own kind in its table (``drill_manager``). Not
here: what is broken (``faults``), and who uses it (``users``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from e2e import drills, shipped
from e2e.chaos import own_machine
from e2e.chaos.etcd import Etcd
from e2e.chaos.kinds import KINDS
from e2e.chaos.lives import PODS
from e2e.chaos.recording import Recorder
from e2e.chaos.story import MANAGEMENT
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import JOB_CONTROLLERS, Shape
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, start_all
from e2e.jobs import Scene
from e2e.manager import Identity, ManagerProcess
from e2e.proxy import Proxy

NAMESPACE = "chaos"
CAPACITY = 24
FENCE_TTL = "5m"
"""The shortest that settings allow."""
_JSON = ("--storage-media-type=application/json",)
HUB = Shape(controllers=JOB_CONTROLLERS, audit="Metadata", apiserver_args=_JSON)
SITE = Shape(controllers=JOB_CONTROLLERS, scheduler=True, kwok=True, audit="Metadata", apiserver_args=_JSON)
LOST_AFTER_SECONDS, MOVE_RATE, MOVE_LIMIT = 5, 1, 20
SETTINGS: Json = {
    "workers": {
        "allow": {"loopback": True},
        "lostAfter": f"{LOST_AFTER_SECONDS}s",
        "onLossAllowed": ["Wait", "Reschedule", "Fence"],
        "onLossOfNamespaces": True,
        "fenceTTL": FENCE_TTL,
        "moveRate": MOVE_RATE,
        "moveLimit": MOVE_LIMIT,
        "watchPods": "labelled",  # the right to list pods, without which ``Recreate`` waits
    },
    "sweep": {"interval": "5s"},
    "leaderElection": {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "500ms"},
}
_LAUNCH_AGAIN_SECONDS = 0.2
_ANSWER_SECONDS = 1.0


@dataclass(slots=True)
class Site:
    """One cluster, with what breaks it."""

    cluster: Cluster
    etcd: Etcd
    proxies: list[Proxy] = field(default_factory=list)
    """To a worker one, to the management cluster one for each manager."""

    @property
    def name(self) -> str:
        """As in the history."""
        return self.cluster.name


@dataclass(slots=True)
class World:
    """All of it. Make one with ``built``."""

    identity: Identity
    management: Site
    workers: list[Site]
    managers: list[ManagerProcess]
    scene: Scene
    clocks: list[own_machine.Clock]
    """Of each manager's machine."""
    clock_steps: Sequence[int] = ()
    """To how many seconds ahead of the clusters' they jump."""
    are_managers_wanted: bool = True
    """Whether those that have ended are launched again."""
    suspends_losers: bool = False
    """Whether copies that lose stay, suspended (setting ``workers.losers``)."""
    is_losing: bool = False
    """Whether a worker is lost, or about to be."""
    marks: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """What operators have written on each worker's Secret: who gives it new credentials leaves that alone."""

    @property
    def sites(self) -> list[Site]:
        """The management cluster first."""
        return [self.management, *self.workers]

    async def keep_managers_running(self) -> None:
        """Launch whoever has ended, as a kubelet does, until cancelled."""
        while True:
            for manager in self.managers:
                if self.are_managers_wanted and not manager.is_running:
                    manager.launch()
            await asyncio.sleep(_LAUNCH_AGAIN_SECONDS)

    @asynccontextmanager
    async def without_managers(self) -> AsyncIterator[None]:
        """Nobody manages while the block lasts."""
        self.are_managers_wanted = False
        try:
            for manager in self.managers:
                await manager.kill()
            yield
        finally:
            self.are_managers_wanted = True

    async def leader(self) -> int:
        """The number of the manager that leads; the first one while none says so."""
        for number, manager in enumerate(self.managers):
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(_ANSWER_SECONDS):
                    if await manager.is_leading():
                        return number
        return 0

    async def give_credentials(self, site: Site) -> None:
        """Register a worker with a token that is made now, or register it anew."""
        leader = self.managers[0]
        path = site.cluster.directory / "chaos.kubeconfig"
        path.write_bytes(await leader.kubeconfig_of(site.cluster))
        kubeconfig = site.proxies[0].kubeconfig(path).read_bytes()
        annotations = {"capacity": str(CAPACITY), **self.marks[site.name]}
        await leader.register(site.name, annotations=annotations, kubeconfig=kubeconfig)

    async def mark(self, site: Site, name: str, value: str | None) -> None:
        """Write an annotation on a worker's Secret, or take it off."""
        if value is None:
            self.marks[site.name].pop(name, None)
        else:
            self.marks[site.name][name] = value
        await self.managers[0].annotate_worker(site.name, {name: value})

    async def revoke_credentials(self, site: Site) -> None:
        """Delete the account that the managers have on a worker: all its tokens are refused."""
        async with Client(site.cluster.kubeconfig) as client:
            await client.delete(f"/api/v1/namespaces/{self.identity.namespace}/serviceaccounts/{shipped.ACCOUNT}")

    def follow(self, recorder: Recorder, scope: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Write down all that the rules of ``judging`` look at."""
        wanted = [
            (site, name, f"{kind.etcd_prefix}{NAMESPACE}/") for name, kind in KINDS.items() for site in self.sites
        ]
        wanted += [(site, PODS, f"/registry/{PODS}/{NAMESPACE}/") for site in self.workers]
        wanted += [
            (self.management, "secrets", f"/registry/secrets/{self.identity.namespace}/"),
            (self.management, "namespaces", f"/registry/namespaces/{NAMESPACE}"),
            (self.management, "leases", f"/registry/leases/{self.identity.namespace}/"),
        ]
        return [
            scope.create_task(
                recorder.follow(site.name, site.etcd, resource, prefix), name=f"{resource} of {site.name}"
            )
            for site, resource, prefix in wanted
        ]


@asynccontextmanager
async def built(
    workers: int,
    *,
    seeds_progress: bool,
    suspends_losers: bool,
    ahead_seconds: Sequence[float],
    clock_steps: Sequence[int],
) -> AsyncIterator[World]:
    """Everything started, registered and ready; nothing of it is left when the block is.

    ``ahead_seconds``: by how much the clock of each manager's machine is ahead of all clusters' from the beginning;
    ``clock_steps``: to how much they jump.
    """
    chosen = {"seedProgress": seeds_progress, "losers": "suspend" if suspends_losers else "delete"}
    settings = {**SETTINGS, "workers": {**SETTINGS["workers"], **chosen}}
    async with AsyncExitStack() as stack:
        names = [MANAGEMENT, *(f"worker-{number}" for number in range(workers))]
        planes = await start_all(Binaries(management=HUB, worker=SITE), names, stack)
        sites = [await _site(plane, stack) for plane in planes.values()]
        management, others = sites[0], sites[1:]
        for site in others:
            site.proxies = [await stack.enter_async_context(Proxy.before(site.cluster))]
        management.proxies = [await stack.enter_async_context(Proxy.before(management.cluster)) for _ in range(2)]
        for kind in KINDS.values():
            await stack.enter_async_context(kind.served(management.cluster, *(site.cluster for site in others)))
        scene = Scene(management.cluster, {site.name: site.cluster for site in others}, NAMESPACE)
        for place in ("", *scene.workers):
            await scene.make_namespace(place)
        identity = Identity.new()
        managers = [await _manager(management, identity, number, settings, stack) for number in range(2)]
        set_to = zip(managers, ahead_seconds, strict=True)
        clocks = [own_machine.Clock(_clock_of(manager), seconds) for manager, seconds in set_to]
        world = World(identity, management, others, managers, scene, clocks, clock_steps)
        world.suspends_losers = suspends_losers
        for site in others:
            await world.give_credentials(site)
        for manager in managers:
            manager.launch()
        await managers[0].wait_until_ready(is_leading=False)
        yield world


async def _site(plane: ControlPlane, stack: AsyncExitStack) -> Site:
    assert isinstance(plane, Cluster)
    return Site(plane, await stack.enter_async_context(Etcd.connected(plane.directory / "etcd.sock")))


async def _manager(
    management: Site, identity: Identity, number: int, settings: Json, stack: AsyncExitStack
) -> ManagerProcess:
    """One with the shipped rights, that reaches the management cluster by its own proxy; closed with the stack."""
    granted = shipped.read(*shipped.on_management(settings), namespace=identity.namespace)
    account = await shipped.account(management.cluster, identity.namespace, granted)
    own = management.proxies[number].kubeconfig(account)
    manager = ManagerProcess(management.cluster, identity=identity, settings={**settings, "kubeconfig": str(own)})
    machine = {own_machine.NAME: f"manager-{number}", own_machine.CLOCK: str(_clock_of(manager))}
    manager.run_as(own_machine.command(machine, drills.MANAGER))
    stack.push_async_callback(_close, manager)
    await manager.prepare()
    return manager


def _clock_of(manager: ManagerProcess) -> Path:
    return manager.config.with_name("clock")


async def _close(manager: ManagerProcess) -> None:
    with contextlib.suppress(StatusError):
        await manager.close(removes_namespace=False)


def logs(world: World) -> Mapping[str, list[str]]:
    """What each manager has logged."""
    return {f"manager-{number}": manager.log_lines() for number, manager in enumerate(world.managers)}
