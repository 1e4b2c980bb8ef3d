"""The pods of a mirror are watched without any gap, or nothing is proved by them (D31, decision 0016)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.refusals import Refused, expired, forbidden
from doubles.transport import Fault, Gone, Wire, client_of, wire_to

from mirror.kube.errors import Unreachable
from mirror.model.retries import ProofState
from mirror.telemetry.logs import get_log
from mirror.workers.pod_proofs import LONGEST_SECONDS, MOST_AT_ONCE, WATCH_SECONDS, PodProofs

pytestmark = pytest.mark.looptime

LABELS = {"job": "m"}
SELECTOR = "job=m"


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Wire, PodProofs, list[str]]]:
    told: list[str] = []
    wire = wire_to("east")
    proofs = PodProofs(told.append, log=get_log("test"))
    client = client_of(wire)
    task = asyncio.ensure_future(proofs.run(lambda: client))
    await asyncio.sleep(0.1)
    try:
        yield wire, proofs, told
    finally:
        task.cancel()
        await asyncio.wait({task})
        await client.close()


def put(wire: Wire, name: str = "x", *, node: str = "", **status: Any) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "i"}]} | ({"nodeName": node} if node else {})
    wire.server.put("pods", {"metadata": {"name": name, "namespace": "default", "labels": LABELS}, "spec": spec})
    wire.server.edit("pods", name, lambda body: body.update(status={"phase": "Pending"} | status))


def remove(wire: Wire, name: str = "x") -> None:
    at = wire.clock.text()
    wire.server.edit("pods", name, lambda body: body["metadata"].update(deletionTimestamp=at))


def state(proofs: PodProofs) -> ProofState | None:
    proof = proofs.of("m")
    return proof.state if proof is not None else None


def confirmed(proofs: PodProofs) -> str:
    found = proofs.of("m")
    assert found is not None
    return found.confirmed_version if found.state is ProofState.CONFIRMED else ""


async def begin(proofs: PodProofs) -> None:
    proofs.begin("m", "u", "default", SELECTOR)
    await asyncio.sleep(0.5)
    assert state(proofs) is ProofState.WATCHED


async def test_what_is_seen_to_go_is_confirmed_for_that_version() -> None:
    async with running() as (wire, proofs, told):
        put(wire)
        await begin(proofs)
        proofs.confirm("m", "7")
        await asyncio.sleep(3 * WATCH_SECONDS)
        assert state(proofs) is ProofState.CONFIRMING, "one is left"
        remove(wire)
        await asyncio.sleep(2 * WATCH_SECONDS)
        assert confirmed(proofs) == "7"
        assert set(told) == {"u"}
        proofs.confirm("m", "8")
        assert state(proofs) is ProofState.CONFIRMING, "it is another version"
        await asyncio.sleep(2 * WATCH_SECONDS)
        assert confirmed(proofs) == "8"


async def test_a_watch_that_is_behind_confirms_nothing() -> None:
    """A pod that came and went meanwhile would be shown by it later: the empty list alone is no proof."""
    async with running() as (wire, proofs, _):
        await begin(proofs)
        wire.mute_watches("pods")
        put(wire, phase="Running")
        remove(wire)
        proofs.confirm("m", "7")
        await asyncio.sleep(WATCH_SECONDS - 2)
        assert state(proofs) is ProofState.CONFIRMING
        wire.restore()
        await asyncio.sleep(2 * WATCH_SECONDS)
        assert state(proofs) is ProofState.STARTED


@pytest.mark.parametrize("how", ["it has started", "its node lost it", "it lost its labels"])
async def test_what_is_no_proof(how: str) -> None:
    async with running() as (wire, proofs, _):
        put(wire, node="n" if how == "its node lost it" else "")
        await begin(proofs)
        if how == "it has started":
            wire.server.edit("pods", "x", lambda body: body.update(status={"phase": "Running"}))
            remove(wire)
        elif how == "its node lost it":
            remove(wire)
        else:
            wire.server.edit("pods", "x", lambda body: body["metadata"].update(labels={"job": "another"}))
        proofs.confirm("m", "7")
        await asyncio.sleep(3 * WATCH_SECONDS)
        wanted = ProofState.STARTED if how == "it has started" else ProofState.BROKEN
        assert state(proofs) is wanted


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("fault", [forbidden(), expired(), Refused(500, "InternalError"), Fault.BREAK], ids=str)
async def test_any_error_ends_it(verb: str, fault: Refused | Fault) -> None:
    """Of the list, or of a watch: what was missed cannot be known."""
    async with running() as (wire, proofs, told):
        put(wire)
        wire.arrange(verb, "pods", fault)
        proofs.begin("m", "u", "default", SELECTOR)
        await asyncio.sleep(1)
        found = proofs.of("m")
        assert found is not None
        assert found.state is ProofState.BROKEN
        assert found.because.startswith(
            "its pods cannot be listed: " if verb == "list" else "the watch of its pods has ended: "
        )
        assert told[-1] == "u"


@pytest.mark.parametrize("form", list(Gone), ids=str)
async def test_a_version_that_is_too_old_ends_it(form: Gone) -> None:
    """A list would not show what came and went since then."""
    async with running() as (wire, proofs, _):
        put(wire)
        await begin(proofs)
        wire.expire(form)
        put(wire, "late", phase="Running")
        remove(wire, "late")
        wire.server.compact()
        remove(wire)
        proofs.confirm("m", "7")
        await asyncio.sleep(3 * WATCH_SECONDS)
        assert state(proofs) in (ProofState.BROKEN, ProofState.STARTED)


async def test_watches_that_break_end_it_and_those_that_end_do_not() -> None:
    async with running() as (wire, proofs, _):
        put(wire)
        await begin(proofs)
        for _ in range(4):
            wire.end_watches()
            await asyncio.sleep(0.05)
            put(wire, f"y-{wire.server.version}")
            await asyncio.sleep(1)
        assert state(proofs) is ProofState.WATCHED
        wire.break_watches()
        await asyncio.sleep(1)
        assert state(proofs) is ProofState.BROKEN


async def test_what_came_while_a_watch_had_ended_is_seen() -> None:
    """It goes on from its version."""
    async with running() as (wire, proofs, _):
        await begin(proofs)
        wire.end_watches()
        put(wire, phase="Running")
        remove(wire)
        await asyncio.sleep(2)
        assert state(proofs) is ProofState.STARTED


async def test_pods_that_do_not_go_are_given_up() -> None:
    async with running() as (wire, proofs, _):
        put(wire)
        await begin(proofs)
        await asyncio.sleep(LONGEST_SECONDS + 1)
        found = proofs.of("m")
        assert found is not None
        assert (found.state, found.because) == (ProofState.BROKEN, "its pods took too long to go")


async def test_so_many_at_once() -> None:
    """The others wait until there is room; what is dropped makes some."""
    async with running() as (wire, proofs, _):
        for number in range(MOST_AT_ONCE):
            assert proofs.has_room
            proofs.begin(f"m-{number}", "u", "default", SELECTOR)
        assert not proofs.has_room
        proofs.begin("m", "u", "default", SELECTOR)
        assert proofs.of("m") is None
        await asyncio.sleep(1)
        before = wire.faults.open_watches
        proofs.drop("m-0")
        assert proofs.has_room
        assert proofs.of("m-0") is None
        await asyncio.sleep(0.1)
        assert wire.faults.open_watches == before - 1


async def test_whoever_watches_no_more_proves_nothing() -> None:
    """The worker's watches are begun anew: what happened between cannot be known."""
    told: list[str] = []
    wire, proofs = wire_to("east"), PodProofs(told.append, log=get_log("test"))
    client = client_of(wire)
    assert not proofs.has_room, "nobody would see to it"
    proofs.begin("m", "u", "default", SELECTOR)
    assert proofs.of("m") is None
    for _ in range(2):
        task = asyncio.ensure_future(proofs.run(lambda: client))
        await asyncio.sleep(0.1)
        if proofs.of("m") is None:
            await begin(proofs)
        task.cancel()
        await asyncio.wait({task})
        assert state(proofs) is ProofState.BROKEN
    await client.close()


async def test_without_a_client_it_is_broken() -> None:
    """Its worker is not connected."""

    def nobody() -> Any:
        raise Unreachable("worker east is not connected")

    proofs = PodProofs(lambda _: None, log=get_log("test"))
    task = asyncio.ensure_future(proofs.run(nobody))
    await asyncio.sleep(0.1)
    proofs.begin("m", "u", "default", SELECTOR)
    await asyncio.sleep(1)
    assert state(proofs) is ProofState.BROKEN
    task.cancel()
    await asyncio.wait({task})
