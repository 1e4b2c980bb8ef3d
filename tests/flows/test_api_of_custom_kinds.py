"""Whole managers and what the API of custom resources does otherwise than that of Jobs (CR1-CR12)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, runs, stored, texts, told
from doubles.drills import DRILLS, definition, drill
from flow_drills import DEFINITIONS
from flow_world import FlowWorld

from mirror.embedded.faults.kinds import too_many_requests
from mirror.embedded.faults.targets import Which
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.settings.load import parse

Json = dict[str, Any]
DEFINITION = f"{DEFINITIONS}/{definition()['metadata']['name']}"
CLUSTERS = ("management", "east", "west")
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
RUN = {"type": "object", "properties": {"managedBy": TEXT, "paused": {"type": "boolean"}}}


class OpenWorld(DeclaredWorld):
    """In which each flow defines Drills itself."""

    undefined = frozenset(CLUSTERS)


def defined(*, spec: Json = OPEN, status: Json = OPEN, has_status: bool = True, version: str = DRILLS.version) -> Json:
    """The definition of Drills with these schemas."""
    body = definition()
    (one,) = body["spec"]["versions"]
    one["name"] = version
    one["schema"]["openAPIV3Schema"]["properties"] = {"spec": spec, "status": status}
    if not has_status:
        del one["subresources"]
    return body


async def define(world: FlowWorld, **bodies: Json) -> None:
    """On each cluster, by default as everywhere; and wait until the manager has seen that."""
    for name in CLUSTERS:
        await world.planes[name].api.create(DEFINITIONS, bodies.get(name, definition()))
    await asyncio.sleep(20)


def endless(name: str = "train", **spec: Any) -> Json:
    body = drill(name)
    body["spec"] |= {"rounds": 100_000, **spec}
    return body


def is_told(world: FlowWorld, kind: str, name: str = "train") -> Callable[[], Any]:
    """Whether a Drill has this condition, True."""

    async def found() -> bool:
        return kind in told(await stored(world, name=name))

    return found


@in_world(DeclaredWorld)
async def test_what_is_for_people_goes_in_a_request_of_its_own(world: FlowWorld) -> None:
    """CR1, D25: ``/status`` drops annotations; a replaced manifest drops them, too, and they come back."""
    await world.management.api.create(PATH, endless())

    async def is_annotated() -> bool:
        found = await stored(world)
        notes = (found or {})["metadata"].get("annotations") or {}
        return notes.get(names.ASSIGNED_WORKER) == told(found)[names.PLACED]

    await world.until(is_told(world, names.MIRRORED))
    await world.until(is_annotated)
    before = told(await stored(world))
    await world.management.api.merge(f"{PATH}/train", {"metadata": {"annotations": None}})
    await world.until(is_annotated)
    assert told(await stored(world)) == before
    await world.management.api.delete(f"{PATH}/train")


@in_world(OpenWorld)
async def test_a_kind_without_the_status_subresource_is_said(world: FlowWorld) -> None:
    """CR2: its path answers as if the object was not there; nothing is placed, and an event says what is missing."""
    await define(world, management=defined(has_status=False))
    await world.management.api.create(PATH, endless())

    async def is_said() -> bool:
        return bool(await texts(world, "RecordRefused"))

    await world.until(is_said)
    (text, *_) = await texts(world, "RecordRefused")
    assert "its CustomResourceDefinition has no status subresource" in text
    assert [await stored(world, worker) for worker in ("east", "west")] == [None, None]
    await world.management.api.replace(DEFINITION, await with_version_of(world, definition()))
    await world.until(is_told(world, names.MIRRORED), seconds=120)
    await world.management.api.delete(f"{PATH}/train")


async def with_version_of(world: FlowWorld, body: Json, cluster: str = "management") -> Json:
    """A definition that replaces the stored one."""
    found = await world.planes[cluster].api.get(DEFINITION)
    return {**found, "spec": body["spec"]}


@in_world(OpenWorld)
async def test_a_field_that_a_worker_would_drop_is_a_refusal_that_names_it(world: FlowWorld) -> None:
    """CR4, D5: the next worker that knows it gets the object."""
    older = {"type": "object", "properties": {"run": RUN, "rounds": WHOLE}}
    await define(world, east=defined(spec=older))
    for name, spec in (("plain", {}), ("train", {"shape": "round"})):
        body = endless(name, **spec)
        body["metadata"]["annotations"] = {names.WORKER_SELECTOR: "name=east"}
        await world.management.api.create(PATH, body)
    await world.until(is_told(world, names.MIRRORED, "plain"))

    async def is_refused() -> bool:
        listed = ((await stored(world) or {}).get("status") or {}).get("conditions") or ()
        return any(one["reason"] == "RefusedByWorkers" for one in listed)

    await world.until(is_refused)
    assert any('unknown field "spec.shape"' in text for text in await texts(world, "Refused"))
    assert await stored(world, "east") is None
    await world.management.api.merge(f"{PATH}/train", {"metadata": {"annotations": {names.WORKER_SELECTOR: None}}})
    await world.until(is_told(world, names.MIRRORED))
    assert told(await stored(world))[names.PLACED] == "west"
    for name in ("plain", "train"):
        await world.management.api.delete(f"{PATH}/{name}")


class ShapedWorld(OpenWorld):
    """In which a change of a shape follows."""

    mirrored = kinds_of(parse(SETTINGS + b"  carry: {always: [spec.shape]}\n", "f").kinds)


@in_world(ShapedWorld)
async def test_a_change_that_a_worker_would_drop_is_a_refusal_that_names_it(world: FlowWorld) -> None:
    """CR4: as at its creation; it follows once the worker's definition knows the field."""
    older = {"type": "object", "properties": {"run": RUN, "rounds": WHOLE}}
    await define(world, east=defined(spec=older))
    body = endless()
    body["metadata"]["annotations"] = {names.WORKER_SELECTOR: "name=east"}
    await world.management.api.create(PATH, body)
    await world.until(is_told(world, names.MIRRORED))
    await world.management.api.merge(f"{PATH}/train", {"spec": {"shape": "round"}})

    async def is_refused() -> bool:
        listed = (await stored(world) or {})["status"]["conditions"]
        return any(
            one["reason"] == "ChangeRefused" and 'unknown field "spec.shape"' in one["message"] for one in listed
        )

    async def has_followed() -> bool:
        return ((await stored(world, "east") or {}).get("spec") or {}).get("shape") == "round"

    await world.until(is_refused)
    newer = await with_version_of(world, definition(), "east")
    await world.planes["east"].api.replace(DEFINITION, newer)
    await world.until(has_followed, seconds=600)
    await world.management.api.delete(f"{PATH}/train")


@in_world(OpenWorld)
async def test_what_the_definition_here_prunes_is_not_written_for_ever(world: FlowWorld) -> None:
    """CR4, D7: what was stored is compared, and not what was sent."""
    conditions = {"type": "array", "items": OPEN}
    known = {"type": "object", "properties": {"rounds": WHOLE, "conditions": conditions}}
    await define(world, management=defined(status=known))
    await world.management.api.create(PATH, endless(run={"managedBy": names.DEFAULT_MANAGED_BY, "paused": False}))
    await world.until(is_told(world, names.MIRRORED))
    worker = told(await stored(world))[names.PLACED]
    path = f"{PATH}/train/status"
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"paused": True}}})  # it counts no more
    await asyncio.sleep(10)
    await world.planes[worker].api.merge(path, {"status": {"colour": "red", "rounds": 7}})

    async def is_stored() -> bool:
        return bool((await stored(world) or {})["status"].get("rounds") == 7)

    await world.until(is_stored)
    await asyncio.sleep(10)
    before = await stored(world)
    assert before is not None
    assert "colour" not in before["status"]
    await world.planes[worker].api.merge(path, {"status": {"colour": "blue"}})
    await asyncio.sleep(60)
    after = await stored(world)
    assert after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    await world.management.api.delete(f"{PATH}/train")


@in_world(OpenWorld)
async def test_a_value_that_comes_later_makes_it_ours_and_one_that_goes_hands_it_over(world: FlowWorld) -> None:
    """CR6, D1: Ray's may be added and removed later, though never changed."""
    rule = {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    run = {"type": "object", "properties": {**RUN["properties"], "managedBy": {**TEXT, **rule}}}
    await define(world, management=defined(spec={"type": "object", "properties": {"run": run, "rounds": WHOLE}}))
    await world.management.api.create(PATH, endless(run={"paused": True}))
    await asyncio.sleep(10)
    assert told(await stored(world)) == {}
    ours = {"spec": {"run": {"managedBy": names.DEFAULT_MANAGED_BY, "paused": False}}}
    await world.management.api.merge(f"{PATH}/train", ours)
    await world.until(is_told(world, names.MIRRORED))
    worker = told(await stored(world))[names.PLACED]
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"managedBy": None}}})

    async def is_gone() -> bool:
        return await stored(world, worker) is None

    await world.until(is_gone, seconds=20)
    (text,) = await texts(world, "ManagedByChanged")
    assert text.startswith("spec.run.managedBy is not set now")
    await world.management.api.delete(f"{PATH}/train")


@pytest.mark.slow
@in_world(OpenWorld)
async def test_a_worker_whose_definition_goes_takes_nothing_new(world: FlowWorld) -> None:
    """CR7, D23: a finalizer holds an object there, and with it the definition; that is no missing permission."""
    await define(world)
    held = drill("held")
    held["spec"]["run"] = {"paused": True}
    held["metadata"]["finalizers"] = ["example.com/held"]
    east = world.planes["east"].api
    await east.create(PATH, held)
    await east.delete(DEFINITION)
    for name, selector in (("train", "name=east"), ("other", None)):
        body = endless(name)
        body["metadata"]["annotations"] = {names.WORKER_SELECTOR: selector} if selector else {}
        await world.management.api.create(PATH, body)
    await world.until(is_told(world, names.MIRRORED, "other"))
    assert told(await stored(world, name="other"))[names.PLACED] == "west"

    async def is_said() -> bool:
        return any("its CustomResourceDefinition is being deleted" in one for one in await texts(world, "Refused"))

    await world.until(is_said)
    await east.merge(f"{PATH}/held", {"metadata": {"finalizers": None}})
    await asyncio.sleep(20)
    await east.create(DEFINITIONS, definition())
    await world.until(is_told(world, names.MIRRORED), seconds=120)
    for name in ("train", "other"):
        await world.management.api.delete(f"{PATH}/{name}")


@in_world(OpenWorld)
async def test_a_definition_that_is_not_served_everywhere_yet_delays_and_no_more(world: FlowWorld) -> None:
    """CR8: there are some 429 meanwhile; nothing was done, so that nothing is unknown."""
    await define(world)
    for worker in ("east", "west"):
        which = Which("create", DRILLS.plural)
        world.planes[worker].faults.arrange(too_many_requests(1), which, times=3)
    await world.management.api.create(PATH, endless())
    await world.until(is_told(world, names.MIRRORED))
    await world.management.api.delete(f"{PATH}/train")


@in_world(OpenWorld)
async def test_a_definition_that_changes_while_they_run_is_no_event(world: FlowWorld) -> None:
    """CR10: watches end and go on; on either side, and what the new one knows is told from then on."""
    known = {"type": "object", "properties": {"conditions": {"type": "array", "items": OPEN}}}
    await define(world, management=defined(status=known))
    await world.management.api.create(PATH, endless())
    await world.until(is_told(world, names.MIRRORED))
    before = told(await stored(world))
    worker = before[names.PLACED]
    await world.planes[worker].api.replace(DEFINITION, await with_version_of(world, defined(spec=OPEN), worker))
    await world.management.api.replace(DEFINITION, await with_version_of(world, definition()))
    for plane in world.planes.values():
        plane.faults.end_watches()
    await world.until(lambda: runs(world), seconds=200)
    assert told(await stored(world)) == before
    await world.management.api.delete(f"{PATH}/train")


@in_world(OpenWorld)
async def test_a_version_that_a_worker_serves_no_more_fails_nothing(world: FlowWorld) -> None:
    """CR10, CR11, D23: the objects are there in another one, and go on when ours is served again."""
    await define(world)
    await world.management.api.create(PATH, endless())
    await world.until(lambda: runs(world))
    before = told(await stored(world))
    worker = before[names.PLACED]
    body = definition()
    (one,) = body["spec"]["versions"]
    body["spec"]["versions"] = [{**one, "served": False, "storage": False}, {**one, "name": "v2"}]
    await world.planes[worker].api.replace(DEFINITION, await with_version_of(world, body, worker))
    world.planes[worker].faults.end_watches()
    await asyncio.sleep(200)
    assert told(await stored(world)) == before
    body["spec"]["versions"][0]["served"] = True
    await world.planes[worker].api.replace(DEFINITION, await with_version_of(world, body, worker))
    rounds = (await stored(world) or {})["status"]["rounds"]

    async def goes_on() -> bool:
        return bool((await stored(world) or {})["status"]["rounds"] > rounds)

    await world.until(goes_on)
    assert told(await stored(world)) == before
    await world.management.api.delete(f"{PATH}/train")


@in_world(DeclaredWorld)
async def test_an_end_that_only_the_deletion_shows_is_stored(world: FlowWorld) -> None:
    """CR12, D7: a worker's own time to live deletes what has just ended; its last status comes with it."""
    await world.management.api.create(PATH, endless(run={"managedBy": names.DEFAULT_MANAGED_BY}))
    await world.until(lambda: runs(world))
    worker = told(await stored(world))[names.PLACED]
    ended = {"type": "Succeeded", "status": "True", "reason": "", "message": "", "lastTransitionTime": at()}
    api = world.planes[worker].api
    await api.merge(f"{PATH}/train/status", {"status": {"rounds": 9, "conditions": [ended]}})
    await api.delete(f"{PATH}/train")
    await world.until(is_told(world, "Succeeded"))
    assert "Broken" not in told(await stored(world))
    assert re.search("MirrorLost", " ".join(await world.events())) is None


def at() -> str:
    return "2026-01-01T00:00:00Z"
