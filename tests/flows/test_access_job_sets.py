"""Users ask about a JobSet, whose pods its child Jobs make: what is said of these is told, too (D24)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from access_world import RULES, AccessWorld, access_world
from flow_drills import DEFINITIONS
from flow_world import FlowWorld

from mirror.access.bounds import Bounds
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.resources import JOBS
from mirror.model import names
from mirror.planes.api import Json
from mirror.planes.other_kinds import JOBSETS, definition
from mirror.settings.kinds import KindEntry

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

BASE = "/v1/namespaces/default/jobsets.jobset.x-k8s.io/train"
EVENTS = "/api/v1/namespaces/default/events"
JOBSET = "jobset.sigs.k8s.io/jobset-name"
TEMPLATE: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}


class JobSetWorld(FlowWorld):
    """Its manager mirrors JobSets, and no controller of theirs runs."""

    def __init__(self, scope: asyncio.TaskGroup, workers: Sequence[str], **settings: Any) -> None:
        super().__init__(scope, workers, kinds=kinds_of([KindEntry(kind="JobSet")]), **settings)

    async def start(self) -> None:
        await super().start()
        for plane in self.planes.values():
            await plane.api.create(DEFINITIONS, definition(JOBSETS))


class World(AccessWorld, JobSetWorld):
    """With users."""


@asynccontextmanager
async def job_set(bounds: Bounds | None = None) -> AsyncIterator[tuple[World, Json]]:
    """A JobSet ``train``, and its mirror on ``east``."""
    async with access_world("east", bounds=bounds, form=World) as world:
        rules = {"apiGroups": [JOBSETS.group], "resources": [JOBSETS.plural], "verbs": ["get", "list"]}
        await world.allow("bob", [rules, *RULES[1:]])
        await asyncio.sleep(5)
        replicated = [{"name": "main", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}}]
        spec = {"managedBy": names.DEFAULT_MANAGED_BY, "replicatedJobs": replicated}
        body = {"apiVersion": JOBSETS.api_version, "kind": "JobSet", "metadata": {"name": "train"}, "spec": spec}
        await world.management.api.create(JOBSETS.path("default"), body)
        east = world.workers["east"].api

        async def is_mirrored() -> bool:
            return bool(await east.list(JOBSETS.path("default")))

        await world.until(is_mirrored)
        await asyncio.sleep(2)
        yield world, (await east.list(JOBSETS.path("default")))[0]


async def child_of(world: World, owner: Json, name: str, *, runs: bool = False) -> Json:
    """A child Job as JobSet's controller makes it; its pods have its labels, too."""
    uid = owner["metadata"]["uid"]
    reference = {
        "apiVersion": JOBSETS.api_version,
        "kind": "JobSet",
        "name": owner["metadata"]["name"],
        "uid": uid,
        "controller": True,
    }
    labels = {JOBSET: "train"}
    template = {**TEMPLATE, "metadata": {"labels": labels, "annotations": {"jobmirror.example/run-for": "never"}}}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
        "spec": {"suspend": not runs, "template": template},
    }
    return await world.workers["east"].api.create(JOBS.path("default"), body)


async def refused(world: World, about: Json) -> None:
    """Its pods may not be created."""
    metadata = about["metadata"]
    event = {
        "metadata": {"name": f"{metadata['name']}.refused"},
        "involvedObject": {
            "kind": about["kind"],
            "namespace": "default",
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "type": "Warning",
        "reason": "FailedCreate",
        "message": f"Error creating: pods of {metadata['name']} exceeded quota",
    }
    await world.workers["east"].api.create(EVENTS, event)


async def messages(world: World, query: str = "") -> set[str]:
    """Of FailedCreate, as bob sees them."""
    answer = await world.ask(f"{BASE}/events{query}", user="bob")
    assert answer.code == 200, answer.message
    return {one["message"] for one in answer.json["items"] if one["reason"] == "FailedCreate"}


def said(*children: str) -> set[str]:
    return {f"Error creating: pods of {child} exceeded quota" for child in children}


async def test_what_is_said_of_child_jobs_is_told_though_there_is_no_pod() -> None:
    """Of its own alone, whatever labels others have; and all the same once some have pods."""
    async with job_set() as (world, mirror):
        theirs = await world.workers["east"].api.create(
            JOBSETS.path("default"), {**mirror, "metadata": {"name": "theirs"}, "status": {}}
        )
        first, foreign = await child_of(world, mirror, "train-main-0"), await child_of(world, theirs, "theirs-main-0")
        for one in (first, foreign):
            await refused(world, one)
        assert await messages(world) == said("train-main-0")

        second = await child_of(world, mirror, "train-main-1", runs=True)
        await refused(world, second)

        async def has_pod() -> bool:
            return bool((await world.ask(f"{BASE}/pods", user="bob")).json["items"])

        await world.until(has_pod)
        (pod,) = (await world.ask(f"{BASE}/pods", user="bob")).json["items"]
        await refused(world, pod)
        assert await messages(world) == said("train-main-0", "train-main-1", pod["metadata"]["name"])


async def test_many_child_jobs_are_not_asked_for_one_by_one() -> None:
    """The namespace's events about Jobs are looked through instead, and those of others left out."""
    async with job_set(Bounds(pods_asked_singly=2)) as (world, mirror):
        children = [await child_of(world, mirror, f"train-main-{number}") for number in range(4)]
        stranger = await child_of(world, {**mirror, "metadata": {"name": "other", "uid": "u9"}}, "stranger")
        for one in (*children, stranger):
            await refused(world, one)
        assert await messages(world) == said(*(one["metadata"]["name"] for one in children))


async def test_events_of_one_part_are_of_its_pods() -> None:
    """Which of them a child Job without pods would be, nobody says."""
    async with job_set() as (world, mirror):
        await refused(world, await child_of(world, mirror, "train-main-0"))
        assert await messages(world, "?index=0") == set()
