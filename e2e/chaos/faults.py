"""What a campaign breaks, one at a time in each *scope*: a manager, the programs of a cluster, the way to a worker.

Each fault is a block: broken inside, whole again when it is left. Not here: when (``storms``). What cannot be done
honestly is left out: clocks of clusters (these programs are static, and take their time from the kernel; tests/flows
does it in virtual time). Those of managers' machines are set against all of them.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp

from e2e.chaos.history import ClockSet, Restored
from e2e.chaos.recording import Recorder
from e2e.chaos.world import Site, World
from e2e.controlplane.client import StatusError
from e2e.controlplane.process import Program
from e2e.proxy import Proxy

Broken = AbstractAsyncContextManager[Any]
_INSIST_SECONDS = 180.0
_TRY_SECONDS = 20.0
_RETRY_SECONDS = 0.5
_LOST_SHARE = 0.05
"""Of the pieces of answers, where answers are lost."""
_SPACE_BYTES = 64 * 1024
"""What an etcd still has before its disk is full."""
AHEAD_SECONDS = (-45, -20, -6, 6, 20, 45)
"""Of clocks of managers. Two may be 90 s apart, and the margin of a lease is 120 s."""
CLOSE_SECONDS = (-13, -6, 6, 13)
"""The same where two are always less than 30 s apart: a change of leaders is no clock that has jumped, then."""
_ROOM = 200
"""Revisions that a restored etcd goes on above what was lost."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing to break; it lasts some seconds in between these."""

    name: str
    breaks: Callable[[], Broken]
    shortest: float
    longest: float


@dataclass(frozen=True, slots=True)
class Scope:
    """What is broken one at a time."""

    target: str
    kinds: tuple[Kind, ...]

    def kind(self, name: str) -> Kind:
        """The one of this name, which must be among them."""
        return next(one for one in self.kinds if one.name == name)


async def insist(action: Callable[[], Awaitable[object]]) -> None:
    """Do it in spite of the faults of others, trying again.

    Raises:
        TimeoutError: it could not be done in minutes.
    """
    async with asyncio.timeout(_INSIST_SECONDS):
        while True:
            try:
                async with asyncio.timeout(_TRY_SECONDS):
                    await action()
                    return
            except (StatusError, aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(_RETRY_SECONDS)


# -- managers ----------------------------------------------------------------------------------------------------------


def of_manager(world: World, number: int, chance: random.Random) -> Scope:
    """A manager's process, and its way to the management cluster."""
    manager = world.managers[number]

    @asynccontextmanager
    async def killed() -> AsyncIterator[None]:
        await manager.kill()
        yield

    @asynccontextmanager
    async def told_to_stop() -> AsyncIterator[None]:
        if manager.is_running:
            manager.send(signal.SIGTERM)
        yield

    @asynccontextmanager
    async def frozen() -> AsyncIterator[None]:
        if manager.is_running:
            manager.send(signal.SIGSTOP)
        try:
            yield
        finally:
            manager.send(signal.SIGCONT)

    kinds = (
        *[Kind("kill", killed, 0, 2)] * 3,
        Kind("stop", told_to_stop, 0, 1),
        Kind("freeze", frozen, 1, 10),
        *of_wire(world.management.proxies[number], chance),
    )
    return Scope(f"manager-{number}", kinds)


def of_clock(world: World, number: int, recorder: Recorder) -> Scope:
    """The clock of the machine of a manager, which jumps, and jumps back."""
    clock, manager = world.clocks[number], f"manager-{number}"

    @asynccontextmanager
    async def jumped(seconds: float) -> AsyncIterator[None]:
        usual = clock.ahead_seconds
        set_clock(world, number, recorder, seconds)
        try:
            yield
        finally:
            set_clock(world, number, recorder, usual)

    kinds = (Kind(f"clock {seconds:+d} s", partial(jumped, seconds), 5, 40) for seconds in world.clock_steps)
    return Scope(f"clock of {manager}", tuple(kinds))


def set_clock(world: World, number: int, recorder: Recorder, seconds: float) -> None:
    """The clock of a manager's machine is ahead of the clusters' by so much; the history says it."""
    recorder.add(ClockSet(time.time(), f"manager-{number}", seconds))
    world.clocks[number].ahead_seconds = seconds


# -- the wire ----------------------------------------------------------------------------------------------------------


def of_way_to(world: World, site: Site, chance: random.Random) -> Scope:
    """The way of all managers to a worker, and what they show there."""

    @asynccontextmanager
    async def without_credentials() -> AsyncIterator[None]:
        await insist(partial(world.revoke_credentials, site))
        try:
            yield
        finally:
            await insist(partial(world.give_credentials, site))

    rotated = Kind("credentials", without_credentials, 8, 15)  # API servers know a token for up to ten seconds more
    return Scope(f"way to {site.name}", (*of_wire(site.proxies[0], chance), rotated))


def of_wire(proxy: Proxy, chance: random.Random) -> tuple[Kind, ...]:
    """What becomes of packets."""

    def broken(how: Callable[[], None]) -> Callable[[], Broken]:
        @asynccontextmanager
        async def block() -> AsyncIterator[None]:
            how()
            try:
                yield
            finally:
                await proxy.resume()

        return block

    def slow() -> None:
        proxy.delay_seconds = chance.uniform(0.02, 0.4)

    def losing() -> None:
        proxy.loses_answer = lambda: chance.random() < _LOST_SHARE

    return (
        Kind("cut", broken(proxy.cut), 0, 0.5),
        Kind("refuse", broken(proxy.refuse), 1, 8),
        Kind("stall", broken(proxy.stall), 1, 8),
        Kind("stall requests", broken(partial(proxy.stall, answers=False)), 1, 6),
        Kind("stall answers", broken(partial(proxy.stall, requests=False)), 1, 6),
        Kind("slow", broken(slow), 2, 8),
        Kind("lose answers", broken(losing), 2, 8),
    )


# -- clusters ----------------------------------------------------------------------------------------------------------


def of_programs(world: World, site: Site, recorder: Recorder) -> Scope:
    """The processes of one cluster, and a worker's data."""
    is_worker = site is not world.management
    names = ["kube-apiserver", "etcd", "kube-controller-manager", *(["kube-scheduler", "kwok"] if is_worker else [])]
    kinds = [Kind(f"kill {name}", partial(_killed, site, name), 0.2, 5) for name in names]
    kinds += [Kind(f"freeze {name}", partial(_frozen, site.cluster.programs[name]), 0.5, 8) for name in names]
    kinds += [Kind("full etcd", partial(full, site), 1, 6)]
    if is_worker:
        kinds += [Kind("etcd loses data", partial(_loses_data, world, site, recorder), 2, 10)]
    return Scope(site.name, tuple(kinds))


@asynccontextmanager
async def _killed(site: Site, name: str) -> AsyncIterator[None]:
    await site.cluster.programs[name].kill()
    try:
        yield
    finally:
        if name == "kube-apiserver":
            await site.cluster.restart_apiserver()
        else:
            site.cluster.programs[name].start()
            await site.etcd.until_ready()
            start_what_has_ended(site)


@asynccontextmanager
async def _frozen(program: Program) -> AsyncIterator[None]:
    program.send(signal.SIGSTOP)
    try:
        yield
    finally:
        program.send(signal.SIGCONT)


@asynccontextmanager
async def full(site: Site) -> AsyncIterator[None]:
    """Its etcd has used up its quota, which is raised at the end, and the alarm disarmed, as operators do it."""
    etcd = site.cluster.programs["etcd"]
    usual = etcd.command
    quota = f"--quota-backend-bytes={await site.etcd.size() + _SPACE_BYTES}"
    try:
        await _start_etcd_as(site, [*usual, quota])
        await site.etcd.fill()
        yield
    finally:
        await _start_etcd_as(site, usual)
        await site.etcd.disarm()
        start_what_has_ended(site)


async def _start_etcd_as(site: Site, command: list[str]) -> None:
    etcd = site.cluster.programs["etcd"]
    await etcd.kill()
    etcd.command = command
    etcd.start()
    await site.etcd.until_ready()


@asynccontextmanager
async def _loses_data(world: World, site: Site, recorder: Recorder) -> AsyncIterator[None]:
    """A snapshot is taken now, and put back at the end, by the book: above the revisions that are lost.

    An account that was made since is lost, too, so that the operator has to register the worker anew.
    """
    snapshot_at = time.time()
    copy = await site.cluster.take_snapshot()
    try:
        yield
    finally:
        lost, _ = await site.etcd.read("/registry/jobs/")
        await site.cluster.kill_apiserver()
        etcd = site.cluster.programs["etcd"]
        await etcd.kill()
        data = site.cluster.directory / "etcd"
        await asyncio.to_thread(shutil.rmtree, data)
        await asyncio.to_thread(shutil.move, copy, data)
        recorder.add(Restored(time.time(), site.name, snapshot_at))
        etcd.start()
        await site.etcd.forget_versions_until(lost + _ROOM)
        await site.cluster.restart_apiserver()
        for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
            await site.cluster.programs[name].kill()
        start_what_has_ended(site)
        await insist(partial(world.give_credentials, site))


def start_what_has_ended(site: Site) -> None:
    """Start whatever does not run; some programs end when their API server is away for long."""
    for name, program in site.cluster.programs.items():
        if name != "kube-apiserver" and not program.is_running:
            program.start()
