"""Kinds whose status has no conditions, or that never end: the record in an annotation, guarded (D2, D18, D25).

Users can write annotations. Whatever they do with the record, an object runs on one worker, and on none that it may
not be placed on.
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, stored, texts
from doubles.drills import DRILLS, drill
from doubles.refusals import Refused
from flow_world import MANAGER, FlowWorld

from mirror.embedded.faults.targets import Which
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.settings.load import parse

Json = dict[str, Any]
WORKERS = ("east", "west")
ANNOTATING = Which("patch", DRILLS.plural, subresource="", peer=MANAGER)
WEBHOOK_DOWN = Refused(500, "InternalError", 'failed calling webhook "drills": connection refused')


class AnnotatedWorld(DeclaredWorld):
    """Whose Drills have no conditions of ours."""

    mirrored = kinds_of(
        parse(
            SETTINGS
            + b"  record: annotation\n"
            + b"  requires: [{path: spec.shared, because: one is enough; leave it out}]\n",
            "f",
        ).kinds
    )


class EndlessWorld(DeclaredWorld):
    """Whose Drills never end, whatever they say."""

    mirrored = kinds_of(
        parse(
            b"kinds:\n- kind: Drill\n  resource: drills.v1.example.com\n  managedBy: {path: spec.run.managedBy}\n"
            b"  suspend: {path: spec.run.paused}\n  done: {never: true}\n"
            b"  suspended: {conditions: [{type: Paused}]}\n  lost: {conditions: [{type: Ready, status: 'False'}]}\n",
            "f",
        ).kinds
    )


def endless(name: str = "train", **annotations: str) -> Json:
    """A Drill that runs for long."""
    body = drill(name)
    body["spec"]["rounds"] = 100_000
    body["metadata"]["annotations"] = {names.PREFIX + key.replace("_", "-"): text for key, text in annotations.items()}
    return body


def forged(worker: str) -> str:
    """The annotation as if it was recorded."""
    at = "2026-01-01T00:00:00Z"
    placed = {"type": names.PLACED, "status": "True", "reason": "Placed", "message": worker, "lastTransitionTime": at}
    return json.dumps([placed])


def recorded(found: Json | None) -> dict[str, str]:
    """Type to message of what is recorded as True."""
    text = ((found or {})["metadata"].get("annotations") or {}).get(names.CONDITIONS, "[]")
    return {one["type"]: one["message"] for one in json.loads(text) if one["status"] == "True"}


async def is_mirrored(world: FlowWorld) -> bool:
    return names.MIRRORED in recorded(await stored(world))


async def where(world: FlowWorld, name: str = "train") -> list[str]:
    """The workers that have it."""
    return [worker for worker in WORKERS if await stored(world, worker, name) is not None]


async def note(world: FlowWorld, **annotations: str | None) -> None:
    """A user writes annotations."""
    noted = {names.PREFIX + key: text for key, text in annotations.items()}
    await world.management.api.merge(f"{PATH}/train", {"metadata": {"annotations": noted}})


@in_world(AnnotatedWorld)
async def test_its_record_is_an_annotation_and_its_status_the_mirrors(world: FlowWorld) -> None:
    """Nothing of ours is in the status; it is known where it is, until its end and after."""
    await world.management.api.create(PATH, drill())

    async def has_ended() -> bool:
        found = await stored(world)
        return bool(found) and ((found or {}).get("status") or {}).get("rounds") == 3

    await world.until(has_ended)
    source = await stored(world)
    assert source is not None
    assert [one["type"] for one in source["status"]["conditions"]] == ["Succeeded"]
    (worker,) = await where(world)
    mirror = await stored(world, worker)
    assert mirror is not None
    assert recorded(source) == {names.PLACED: worker, names.MIRRORED: mirror["metadata"]["uid"]}
    assert source["metadata"]["annotations"][names.ASSIGNED_WORKER] == worker
    assert names.CONDITIONS not in mirror["metadata"]["annotations"]


@in_world(AnnotatedWorld)
async def test_a_record_that_is_removed_or_changed_is_restored(world: FlowWorld) -> None:
    """A `kubectl replace` of the manifest removes it; it never gets a second mirror, nor another one (D2)."""
    await world.management.api.create(PATH, endless())
    await world.until(lambda: is_mirrored(world))
    (worker,) = await where(world)
    other = next(one for one in WORKERS if one != worker)
    before = recorded(await stored(world))
    for text in (None, "nonsense", "[]", forged(other), forged("nowhere")):
        await note(world, conditions=text)

        async def is_restored() -> bool:
            return recorded_or_nothing(await stored(world)) == before

        await world.until(is_restored)
        assert await where(world) == [worker]
    assert "RecordChanged" in await world.events()
    await world.management.api.delete(f"{PATH}/train")


def recorded_or_nothing(found: Json | None) -> dict[str, str]:
    try:
        return recorded(found)
    except ValueError:
        return {}


@in_world(AnnotatedWorld)
async def test_statuses_do_not_wait_for_annotations_that_change_no_record(world: FlowWorld) -> None:
    """Its webhook is down here, which is not asked for them; what has no record yet is placed when it is back."""
    await world.management.api.create(PATH, endless())
    await world.until(lambda: is_mirrored(world))
    world.management.faults.arrange(WEBHOOK_DOWN.answer(), ANNOTATING, times=math.inf)
    await note(world, **{"assigned-worker": None})
    await world.management.api.create(PATH, endless("later"))
    counted = await rounds(world)

    async def goes_on() -> bool:
        return await rounds(world) > counted + 5

    await world.until(goes_on)
    assert not await is_noted(world)
    assert await where(world, "later") == []
    world.management.faults.restore()
    await world.until(lambda: is_noted(world))
    await world.until(lambda: where(world, "later"))
    for name in ("train", "later"):
        await world.management.api.delete(f"{PATH}/{name}")


@pytest.mark.slow
@in_world(AnnotatedWorld)
async def test_a_reason_is_reported_once_though_it_cannot_be_written_down(world: FlowWorld) -> None:
    """D22: statuses go on meanwhile, of which each would say it anew; another reason is another event."""
    await world.management.api.create(PATH, endless())
    await world.until(lambda: is_mirrored(world))
    (worker,) = await where(world)
    there = world.planes[worker].api
    world.management.faults.arrange(WEBHOOK_DOWN.answer(), ANNOTATING, times=math.inf)
    await there.merge(f"{PATH}/train", {"metadata": {"finalizers": ["example.com/keep"]}})
    await there.delete(f"{PATH}/train")
    await asyncio.sleep(700)
    assert len(await texts(world, "MirrorTerminating")) == 1
    world.management.faults.restore()

    async def is_shown() -> bool:
        source = await stored(world)
        return names.WAITING_BECAUSE in ((source or {})["metadata"].get("annotations") or {})

    await world.until(is_shown)
    assert len(await texts(world, "MirrorTerminating")) == 1
    await world.management.api.delete(f"{PATH}/train")
    await there.merge(f"{PATH}/train", {"metadata": {"finalizers": None}})


async def rounds(world: FlowWorld) -> int:
    """What the source shows of its mirror."""
    return int(((await stored(world) or {}).get("status") or {}).get("rounds", 0))


async def is_noted(world: FlowWorld) -> bool:
    """Whether its worker is written where people look."""
    return names.ASSIGNED_WORKER in ((await stored(world) or {})["metadata"].get("annotations") or {})


@pytest.mark.slow
@in_world(AnnotatedWorld)
async def test_a_record_that_changes_while_no_manager_runs_is_restored_by_its_mirror(world: FlowWorld) -> None:
    """What the mirror says is right; nothing else remembers (D1, D2)."""
    await world.management.api.create(PATH, endless())
    await world.until(lambda: is_mirrored(world))
    (worker,) = await where(world)
    other = next(one for one in WORKERS if one != worker)
    for text in (None, forged(other)):
        await world.kill_manager()
        await note(world, conditions=text)
        world.start_manager()

        async def is_restored() -> bool:
            return recorded(await stored(world)).get(names.PLACED) == worker

        await world.until(is_restored)
        await asyncio.sleep(30)
        assert await where(world) == [worker]
    await world.management.api.delete(f"{PATH}/train")


@in_world(AnnotatedWorld)
async def test_a_record_that_a_user_makes_up_leads_to_no_worker_that_is_closed(world: FlowWorld) -> None:
    """D18: creating an object is no way onto a worker that does not accept its namespace."""
    await world.register("east", namespaces="other")
    await asyncio.sleep(5)
    await world.management.api.create(PATH, endless(conditions=forged("east")))
    await world.until(lambda: is_mirrored(world))
    assert await where(world) == ["west"]
    assert "RecordChanged" in await world.events()
    await world.management.api.delete(f"{PATH}/train")


@in_world(AnnotatedWorld)
async def test_one_that_cannot_be_mirrored_says_why(world: FlowWorld) -> None:
    """D22: in the annotation and an event; no worker hears of it, and it goes on once it is mended."""
    body = endless()
    body["spec"]["shared"] = "somewhere"
    await world.management.api.create(PATH, body)

    async def is_said() -> bool:
        return "UnsupportedSpec" in await world.events()

    await world.until(is_said)
    source = await stored(world)
    assert source is not None
    (placed,) = json.loads(source["metadata"]["annotations"][names.CONDITIONS])
    assert (placed["type"], placed["status"], placed["reason"]) == (names.PLACED, "False", "UnsupportedSpec")
    assert placed["message"] == "spec.shared: one is enough; leave it out"
    assert source["metadata"]["annotations"][names.WAITING_BECAUSE] == placed["message"]
    assert await where(world) == []
    await world.management.api.merge(f"{PATH}/train", {"spec": {"shared": None}})
    await world.until(lambda: is_mirrored(world))
    await world.management.api.delete(f"{PATH}/train")


@in_world(EndlessWorld)
async def test_one_that_never_ends_is_made_again_where_it_was(world: FlowWorld) -> None:
    """D11: its mirror is gone for certain, so it begins anew; nothing fails, and nothing of the old one is shown."""
    await world.management.api.create(PATH, endless())

    def uid_of(found: Json | None) -> str:
        return next((one["message"] for one in conditions(found) if one["type"] == names.MIRRORED), "")

    async def runs() -> bool:
        found = await stored(world)
        return bool(uid_of(found)) and (found or {})["status"].get("rounds", 0) > 1

    await world.until(runs)
    first = uid_of(await stored(world))
    (worker,) = await where(world)
    await world.planes[worker].api.delete(f"{PATH}/train")

    async def runs_anew() -> bool:
        return await runs() and uid_of(await stored(world)) != first

    await world.until(runs_anew)
    assert await where(world) == [worker]
    assert "MirrorLost" in await world.events()
    await world.management.api.delete(f"{PATH}/train")

    async def is_gone() -> bool:
        return not await where(world)

    await world.until(is_gone)


@in_world(EndlessWorld)
async def test_one_that_never_ends_is_not_over_when_it_says_so(world: FlowWorld) -> None:
    """D8: its mirror stays, whatever its status looks like."""
    await world.management.api.create(PATH, drill())

    async def says_so() -> bool:
        return any(one["type"] == "Succeeded" for one in conditions(await stored(world)))

    await world.until(says_so)
    await asyncio.sleep(60)
    assert len(await where(world)) == 1
    await world.management.api.delete(f"{PATH}/train")


def conditions(found: Json | None) -> list[Json]:
    listed: list[Json] = ((found or {}).get("status") or {}).get("conditions") or []
    return listed
