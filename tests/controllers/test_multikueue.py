"""Whether a MultiKueue of the management cluster may run objects of a kind, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from doubles.clock import LoopClock

from mirror.controllers.multikueue import INTERVAL_SECONDS, MultiKueue
from mirror.controllers.stopped_kinds import StoppedKinds
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import BUILT_IN
from mirror.kube.errors import PageNotFound, Unreachable
from mirror.kube.requests import Request
from mirror.model.reasons import Reason
from mirror.settings.kinds import KindEntry
from mirror.settings.load import parse
from mirror.starting import find_multikueue
from mirror.telemetry.logs import get_log
from mirror.workers.known_workers import Workers

pytestmark = pytest.mark.looptime

SHARED = "TrainJob"
SETTINGS = b"""
kinds:
- JobSet
- TrainJob
- {kind: RayJob, besideKueue: true}
- {kind: TFJob, managedBy: {value: example.com/mirror}}
"""


class Discovery:
    """A management cluster that serves one resource of Kueue's group, in one version."""

    def __init__(self, served: str = "", version: str = "v1beta2") -> None:
        self.served = served
        self.version = version
        self.requests = 0
        self.is_unreachable = False

    async def send(self, request: Request) -> bytes:
        self.requests += 1
        if self.is_unreachable:
            raise Unreachable("no route")
        answers = {
            "/apis/kueue.x-k8s.io": f'{{"versions": [{{"version": "{self.version}"}}]}}',
            f"/apis/kueue.x-k8s.io/{self.version}": f'{{"resources": [{{"name": "{self.served}"}}]}}',
        }
        if not self.served or request.path not in answers:
            raise PageNotFound("404")
        return answers[request.path].encode()


def stopped(multikueue: MultiKueue) -> list[str]:
    kinds = StoppedKinds(LoopClock(), Workers(), multikueue)
    return [kind.name for kind in kinds_of(parse(SETTINGS, "f").kinds) if kinds.is_stopped(kind)]


async def multikueue_beside(cluster: Discovery) -> MultiKueue:
    found = await find_multikueue(cluster, kinds_of(parse(SETTINGS, "f").kinds), get_log("test"))
    assert found is not None
    return found


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1"])
async def test_only_kinds_that_name_it_are_stopped(version: str) -> None:
    """Not those of another value, nor one of which the operator says that no queue dispatches it; with what to do."""
    multikueue = await multikueue_beside(Discovery("multikueueclusters", version))
    assert stopped(multikueue) == [SHARED]
    why = StoppedKinds(LoopClock(), Workers(), multikueue).why(kinds_of([KindEntry(kind=SHARED)])[SHARED])
    assert why is not None
    assert why.reason == Reason.MULTIKUEUE_HERE
    assert "set besideKueue: true in the entry of TrainJob in the setting kinds" in why.text


async def test_what_else_kueue_serves_stops_nothing() -> None:
    """One without MultiKueue's definitions."""
    assert stopped(await multikueue_beside(Discovery("clusterqueues"))) == []


async def test_nothing_is_asked_where_no_kind_is_shared() -> None:
    """Most managers."""
    cluster = Discovery("multikueueclusters")
    for kinds in (BUILT_IN, kinds_of([KindEntry(kind="JobSet")])):
        assert await find_multikueue(cluster, kinds, get_log("test")) is None
    assert cluster.requests == 0


async def test_it_is_looked_for_while_the_manager_runs(log_lines: list[dict[str, object]]) -> None:
    """What comes and goes is known within a minute, and said once; a cluster that does not answer changes nothing."""
    cluster, looked = Discovery(), list[str]()
    multikueue = await multikueue_beside(cluster)
    running = asyncio.create_task(multikueue.run(cluster, lambda kind: looked.append(kind.name)))
    await asyncio.sleep(1)
    cluster.served = "multikueueclusters"
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    assert (stopped(multikueue), looked) == ([SHARED], [SHARED])
    cluster.is_unreachable = True
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    assert (stopped(multikueue), looked) == ([SHARED], [SHARED])
    cluster.is_unreachable, cluster.served = False, ""
    await asyncio.sleep(INTERVAL_SECONDS)
    assert (stopped(multikueue), looked) == ([], [SHARED, SHARED])
    assert [(line["event"], line["kind"]) for line in log_lines] == [
        ("kind not mirrored", SHARED),
        ("kind mirrored again", SHARED),
    ]
    running.cancel()


async def test_until_the_cluster_has_said_it_once_nothing_is_placed_that_may_run_twice() -> None:
    """A manager that starts while discovery fails must not be the second to run it (D2)."""
    cluster = Discovery()
    cluster.is_unreachable = True
    kinds = kinds_of(parse(SETTINGS, "f").kinds)
    multikueue = await find_multikueue(cluster, kinds, get_log("test"))
    assert multikueue is not None
    assert stopped(multikueue) == [SHARED]
    why = StoppedKinds(LoopClock(), Workers(), multikueue).why(next(kind for kind in kinds if kind.name == SHARED))
    assert why is not None
    assert why.text.startswith("the management cluster does not say yet whether")
    again: list[str] = []
    running = asyncio.create_task(multikueue.run(cluster, lambda kind: again.append(kind.name)))
    await asyncio.sleep(10)
    cluster.is_unreachable = False
    await asyncio.sleep(3)
    running.cancel()
    assert (stopped(multikueue), again) == ([], [SHARED])
