"""Ends that a worker's controller may withdraw (``done.withdrawable``), through whole managers: as Trainer's are."""

from __future__ import annotations

import asyncio
from typing import Any

from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, runs, stored, texts, told
from doubles.drills import drill
from flow_world import FlowWorld

from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure
from mirror.embedded.faults.targets import Which
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.settings.load import parse

Json = dict[str, Any]
_DONE = b"failed: [condition Broken=True]"
_WITHDRAWABLE = _DONE + b", withdrawable: [condition Broken=True, reason Broken!=Deadline]"
AT = "2026-01-01T00:00:00Z"


class WithdrawnWorld(DeclaredWorld):
    """Whose Drills may begin anew when they are broken, unless they are paused."""

    mirrored = kinds_of(parse(SETTINGS.replace(_DONE, _WITHDRAWABLE), "f").kinds)


class EarlierWorld(DeclaredWorld):
    """Whose manager knows no such ends until it is upgraded."""

    async def upgrade(self) -> None:
        await self.kill_manager()
        self._settings["kinds"] = WithdrawnWorld.mirrored
        self.start_manager()


def broken(reason: str) -> Json:
    return condition("Broken", reason)


def condition(type_name: str, reason: str) -> Json:
    return {"type": type_name, "status": "True", "reason": reason, "message": "", "lastTransitionTime": AT}


async def begin(world: FlowWorld) -> str:
    """One that goes on for ever; its worker."""
    endless = drill()
    endless["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, endless)
    await world.until(lambda: runs(world))
    return told(await stored(world))[names.PLACED]


async def say(world: FlowWorld, worker: str, *conditions: Json) -> None:
    """As its controller on the worker would."""
    await world.planes[worker].api.merge(f"{PATH}/train/status", {"status": {"conditions": [*conditions]}})


async def is_broken(world: FlowWorld) -> bool:
    return "Broken" in told(await stored(world))


async def is_paused(world: FlowWorld, worker: str) -> bool:
    return bool((await stored(world, worker) or {})["spec"]["run"].get("paused"))


async def failed(world: FlowWorld) -> str:
    """On which worker it has failed in a way that may be withdrawn, as its source says."""
    worker = await begin(world)
    await say(world, worker, broken("FailedJobs"))
    await world.until(lambda: is_broken(world))
    return worker


@in_world(WithdrawnWorld)
async def test_what_has_failed_stays_so_and_never_begins_anew(world: FlowWorld) -> None:
    """The mirror is paused before the end is stored; when its controller forgets the end, nothing runs there again."""
    worker = await failed(world)
    assert await is_paused(world, worker)
    rounds = (await stored(world, worker) or {})["status"]["rounds"]
    await say(world, worker)
    await world.kill_manager()
    world.start_manager()
    await asyncio.sleep(30)
    assert await is_broken(world)
    assert (await stored(world, worker) or {})["status"]["rounds"] == rounds
    assert not (await stored(world) or {})["spec"]["run"].get("paused")


@in_world(WithdrawnWorld)
async def test_an_end_that_is_withdrawn_before_it_could_be_kept_is_none(world: FlowWorld) -> None:
    """Its worker takes no change for a while: nothing is said of an end, and what has begun anew goes on."""
    worker = await begin(world)
    refused = StatusError(failure(500, "InternalError", "failed calling webhook: connection refused"))
    world.planes[worker].faults.arrange(refused, Which("patch", "drills"), times=20)
    await say(world, worker, broken("FailedJobs"))
    await asyncio.sleep(2)
    assert not await is_broken(world)
    await say(world, worker)
    await asyncio.sleep(120)
    assert not await is_broken(world)
    rounds = (await stored(world) or {})["status"]["rounds"]

    async def goes_on() -> bool:
        return bool((await stored(world) or {})["status"]["rounds"] > rounds)

    await world.until(goes_on)
    assert not await is_paused(world, worker)
    await world.management.api.delete(f"{PATH}/train")


@in_world(WithdrawnWorld)
async def test_an_end_that_stays_is_stored_and_its_mirror_left_as_it_is(world: FlowWorld) -> None:
    """By the clauses of ``done.withdrawable``."""
    worker = await begin(world)
    await say(world, worker, broken("Deadline"))
    await world.until(lambda: is_broken(world))
    await asyncio.sleep(5)
    assert not await is_paused(world, worker)


@in_world(WithdrawnWorld)
async def test_an_end_that_was_withdrawn_unstored_is_not_stored_when_its_worker_is_lost(world: FlowWorld) -> None:
    """The management cluster takes no status while it is there: later, what was kept of it is no end any more."""
    worker = await begin(world)
    refused = StatusError(failure(500, "InternalError", "etcd"))
    here = world.planes["management"].faults
    here.arrange(refused, Which("patch", "drills"), times=10_000)
    await say(world, worker, broken("FailedJobs"))
    await world.until(lambda: is_paused(world, worker))
    await say(world, worker)

    async def is_resumed() -> bool:
        return not await is_paused(world, worker)

    await world.until(is_resumed)
    world.planes[worker].faults.cut_off()
    here.clear()
    await asyncio.sleep(300)
    assert not await is_broken(world)
    world.planes[worker].faults.restore()
    await asyncio.sleep(60)
    assert not await is_broken(world)
    await world.management.api.delete(f"{PATH}/train")


@in_world(EarlierWorld)
async def test_an_end_of_before_an_upgrade_is_kept_from_being_withdrawn(world: FlowWorld) -> None:
    """It was stored while its mirror was not suspended: that is made up for, and nobody is worried by it."""
    assert isinstance(world, EarlierWorld)
    worker = await failed(world)
    assert not await is_paused(world, worker)
    await world.upgrade()
    await world.until(lambda: is_paused(world, worker))
    rounds = (await stored(world, worker) or {})["status"]["rounds"]
    await say(world, worker, condition("Paused", "Suspended"))
    await asyncio.sleep(30)
    assert (await stored(world, worker) or {})["status"]["rounds"] == rounds
    assert set(told(await stored(world))) == {"Broken", names.PLACED, names.MIRRORED}
    assert not await texts(world, "MirrorChanged")


@in_world(EarlierWorld)
async def test_a_mirror_that_began_anew_before_an_upgrade_is_stopped(world: FlowWorld) -> None:
    """Its source says since then that it has failed, which does not go back (D7): so nothing of it may run."""
    assert isinstance(world, EarlierWorld)
    worker = await failed(world)
    await say(world, worker)
    before = (await stored(world, worker) or {})["status"]["rounds"]

    async def has_begun_anew() -> bool:
        return bool((await stored(world, worker) or {})["status"]["rounds"] > before)

    await world.until(has_begun_anew)
    await world.upgrade()
    await world.until(lambda: is_paused(world, worker))
    rounds = (await stored(world, worker) or {})["status"]["rounds"]
    await asyncio.sleep(30)
    assert (await stored(world, worker) or {})["status"]["rounds"] == rounds
    assert set(told(await stored(world))) == {"Broken", names.PLACED, names.MIRRORED}
    (text,) = await texts(world, "MirrorChanged")
    assert text == f"the mirror on worker {worker} runs again after the end that is stored; it is being suspended"


@in_world(EarlierWorld)
async def test_an_end_of_before_an_upgrade_that_stays_is_left_alone(world: FlowWorld) -> None:
    """By the clauses of ``done.withdrawable``, of the source or of its mirror."""
    assert isinstance(world, EarlierWorld)
    worker = await begin(world)
    await say(world, worker, broken("Deadline"))
    await world.until(lambda: is_broken(world))
    await world.upgrade()
    await asyncio.sleep(30)
    assert not await is_paused(world, worker)


@in_world(EarlierWorld)
async def test_a_worker_that_refuses_to_stop_what_has_begun_anew_is_reported(world: FlowWorld) -> None:
    """The conditions of what is over stay as they are: an event has the worker's answer; it is tried again."""
    assert isinstance(world, EarlierWorld)
    worker = await failed(world)
    await say(world, worker)
    refused = StatusError(failure(403, "Forbidden", "admission webhook: no changes today"))
    world.planes[worker].faults.arrange(refused, Which("patch", "drills"), times=2)
    await world.upgrade()
    await asyncio.sleep(100)
    (text,) = await texts(world, "ChangeRefused")
    assert text.startswith(f"worker {worker} rejected the change")
    await world.until(lambda: is_paused(world, worker))
    assert set(told(await stored(world))) == {"Broken", names.PLACED, names.MIRRORED}


@in_world(WithdrawnWorld)
async def test_a_pause_that_keeps_an_end_is_not_shown_once_that_was_withdrawn(world: FlowWorld) -> None:
    """Nobody has suspended it: until the mirror goes on, the source shows what it showed of a pause before."""
    worker = await begin(world)
    refused = StatusError(failure(500, "InternalError", "etcd"))
    here, there = world.planes["management"].faults, world.planes[worker].faults
    here.arrange(refused, Which("patch", "drills"), times=10_000)
    await say(world, worker, broken("FailedJobs"))
    await world.until(lambda: is_paused(world, worker))
    there.arrange(refused, Which("patch", "drills"), times=20)
    here.clear()
    await say(world, worker, condition("Paused", "Suspended"), condition("Warm", "Ready"))

    async def is_warm() -> bool:
        return "Warm" in told(await stored(world))

    await world.until(is_warm)
    assert await is_paused(world, worker)
    assert "Paused" not in told(await stored(world))
    await world.management.api.delete(f"{PATH}/train")
