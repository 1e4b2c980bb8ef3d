"""What all random histories have in common: their world, time, faults and crashes.

A step is one rule; after each, some virtual time passes, and what must hold at every write has held
(``flow_invariants``). A run ends with quiet, after which everything agrees (``flow_settled``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from random import Random
from typing import Any, ClassVar

from doubles.known import check_known
from flow_invariants import Invariants
from flow_settled import settle
from flow_world import MANAGER, FlowWorld, flow_world
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from mirror.embedded.faults.injector import Faults
from mirror.embedded.faults.kinds import (
    Expiry,
    Loss,
    Slow,
    conflict,
    internal_error,
    too_many_requests,
    unavailable,
)
from mirror.embedded.faults.random_faults import RandomFaults
from mirror.embedded.faults.targets import EVERYBODY, Which
from mirror.embedded.virtual import VirtualLoop
from mirror.planes.plane import ControlPlane
from mirror.runtime.rest import Rest

NAMES = st.sampled_from(("a", "b", "c", "d"))
WAITS = st.sampled_from((0.0005, 0.0015, 0.01, 0.1, 0.5, 1.0, 3.0, 12.0, 70.0))
CLUSTER = st.sampled_from(("management", "east", "west"))
"""A machine without workers takes its only cluster for each."""
PEERS = st.sampled_from((EVERYBODY, MANAGER, "job", "kubelet"))
FAULTS = {
    **{loss.name: loss for loss in Loss},
    "slow": Slow(3.0),
    "conflict": conflict(),
    "429": too_many_requests(2),
    "500": internal_error(),
    "503": unavailable(1),
}
VERBS = st.sampled_from(("", "create", "patch", "update", "delete", "get", "list", "watch"))
PLURALS = st.sampled_from(("", "jobs", "pods", "secrets"))


@contextmanager
def _nearly_all_at_rest() -> Iterator[None]:
    """What stores keep is packed, but for the newest object, as if there were a hundred thousand."""
    before, Rest.most_unpacked = Rest.most_unpacked, 1
    try:
        yield
    finally:
        Rest.most_unpacked = before


class Machine(RuleBasedStateMachine):
    """Clusters, time and trouble."""

    WORKERS: ClassVar[tuple[str, ...]] = ()
    WORLD: ClassVar[type[FlowWorld]] = FlowWorld
    LOOP: ClassVar[type[VirtualLoop]] = VirtualLoop

    def __init__(self) -> None:
        super().__init__()
        self._loop = self.LOOP()
        self._end = asyncio.Event()
        self.world: FlowWorld
        self.laws: Invariants
        started: asyncio.Future[None] = self._loop.create_future()
        self._main = self._loop.create_task(self._live(started), name="world")
        self._loop.run_until_complete(asyncio.wait({self._main, started}, return_when=asyncio.FIRST_COMPLETED))
        self._check()

    async def _live(self, started: asyncio.Future[None]) -> None:
        async with AsyncExitStack() as stack:
            stack.enter_context(_nearly_all_at_rest())
            self.world = await stack.enter_async_context(flow_world(*self.WORKERS, form=self.WORLD))
            self.laws = self._laws()
            started.set_result(None)
            await self._end.wait()

    def _laws(self) -> Invariants:
        return Invariants(self.world)

    async def _settle(self) -> None:
        await settle(self.world, self.laws)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Until it has ended, or something is wrong: what goes wrong for ever need not be waited for."""
        step = self._loop.create_task(work)
        self.laws.on_wrong = step.cancel
        try:
            self._loop.run_until_complete(step)
        except asyncio.CancelledError:
            assert self.laws.violations
        finally:
            self.laws.on_wrong = None
        self._check()

    def _plane(self, cluster: str) -> ControlPlane:
        return self.world.planes.get(cluster, self.world.management)

    def _faults(self, cluster: str) -> Faults:
        return self._plane(cluster).faults

    def _check(self) -> None:
        if self._main.done():
            self._main.result()
        self.laws.check()
        if self.world.has_manager and self.world.registry is not None:
            check_known(self.world.registry)

    def teardown(self) -> None:
        """Quiet, in which everything agrees; then the end of this world."""
        try:
            if not self._main.done() and not self.laws.violations:
                self._do(self._settle())
        finally:
            self._end.set()
            try:
                self._loop.run_until_complete(self._main)
            finally:
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
                self._loop.close()

    # -- time ----------------------------------------------------------------------------------------------------------

    @rule(seconds=WAITS)
    def time_passes(self, seconds: float) -> None:
        self._do(asyncio.sleep(seconds))

    # -- faults --------------------------------------------------------------------------------------------------------

    @rule(cluster=CLUSTER, peer=PEERS, wait=WAITS)
    def a_cluster_goes_down(self, cluster: str, peer: str, wait: float) -> None:
        self._do(self._at_once(lambda: self._faults(cluster).go_down(peer), wait))

    @rule(cluster=CLUSTER, peer=PEERS, wait=WAITS)
    def a_cluster_is_cut_off(self, cluster: str, peer: str, wait: float) -> None:
        self._do(self._at_once(lambda: self._faults(cluster).cut_off(peer), wait))

    @rule(cluster=CLUSTER, wait=WAITS)
    def a_cluster_is_back(self, cluster: str, wait: float) -> None:
        self._do(self._at_once(self._faults(cluster).restore, wait))

    @rule(cluster=CLUSTER, form=st.sampled_from(Expiry), wait=WAITS)
    def versions_expire(self, cluster: str, form: Expiry, wait: float) -> None:
        self._do(self._at_once(lambda: self._plane(cluster).expire(form), wait))

    @rule(cluster=CLUSTER, peer=PEERS, how=st.sampled_from(("cut", "end", "mute")), wait=WAITS)
    def watches_end(self, cluster: str, peer: str, how: str, wait: float) -> None:
        faults = self._faults(cluster)
        ways = {"cut": faults.cut_watches, "end": faults.end_watches, "mute": faults.mute_watches}
        self._do(self._at_once(lambda: ways[how](peer), wait))

    @rule(
        cluster=CLUSTER,
        fault=st.sampled_from(sorted(FAULTS)),
        verb=VERBS,
        plural=PLURALS,
        peer=PEERS,
        times=st.integers(1, 5),
        wait=WAITS,
    )
    def requests_will_fail(
        self, cluster: str, fault: str, verb: str, plural: str, peer: str, times: int, wait: float
    ) -> None:
        faults = self._faults(cluster)
        faults.arrange(FAULTS[fault], Which(verb, plural, peer=peer), times=times)
        self._do(asyncio.sleep(wait))

    @rule(cluster=CLUSTER, fault=st.sampled_from(sorted(FAULTS)), plural=PLURALS, peer=PEERS, wait=WAITS)
    def a_cluster_tells_nothing(self, cluster: str, fault: str, plural: str, peer: str, wait: float) -> None:
        """It answers probes, and no list and no watch of a resource, until it is back."""
        faults = self._faults(cluster)
        for verb in ("list", "watch"):
            faults.arrange(FAULTS[fault], Which(verb, plural, peer=peer), times=100_000)
        self._do(self._at_once(lambda: faults.cut_watches(peer), wait))

    @rule(cluster=CLUSTER, seed=st.integers(0, 1000), wait=WAITS)
    def random_faults_begin(self, cluster: str, seed: int, wait: float) -> None:
        self._faults(cluster).random_faults = RandomFaults(Random(seed))
        self._do(asyncio.sleep(wait))

    @rule(cluster=CLUSTER, seconds=st.sampled_from((-3600.0, -20.0, 0.0, 20.0, 3600.0)), wait=WAITS)
    def a_clock_is_set(self, cluster: str, seconds: float, wait: float) -> None:
        self._plane(cluster).clock.ahead_seconds = seconds
        self._do(asyncio.sleep(wait))

    # -- crashes -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.has_manager)
    @rule(wait=WAITS)
    def the_manager_dies(self, wait: float) -> None:
        self._do(self._and_wait(self.world.kill_manager(), wait))

    @precondition(lambda self: self.WORKERS and not self.world.has_manager)
    @rule(wait=WAITS)
    def the_manager_starts(self, wait: float) -> None:
        self._do(self._at_once(self.world.start_manager, wait))

    @rule(cluster=CLUSTER, wait=WAITS)
    def a_control_plane_restarts(self, cluster: str, wait: float) -> None:
        self._do(self._and_wait(self._plane(cluster).restart(), wait))

    @staticmethod
    async def _at_once(do: Callable[[], object], seconds: float) -> None:
        do()
        await asyncio.sleep(seconds)

    @staticmethod
    async def _and_wait(work: Coroutine[Any, Any, object], seconds: float) -> None:
        await work
        await asyncio.sleep(seconds)
