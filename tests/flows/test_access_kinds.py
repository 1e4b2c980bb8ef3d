"""Users ask about a second kind beside Jobs, under the same names in the same namespaces (D24)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from access_world import RULES, AccessWorld, access_world
from doubles.drills import DRILLS, POD_LABEL, drill
from flow_drills import DrillWorld

from mirror.planes.api import Json

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

DRILL_RULES: list[Json] = [
    {"apiGroups": [DRILLS.group], "resources": [DRILLS.plural], "verbs": ["get", "list", "create"]}
]
BASE = "/v1/namespaces/default/drills.example.com"
PODS = "/api/v1/namespaces/default/pods"


class World(AccessWorld, DrillWorld):
    """Users, and Drills beside Jobs; ann may read both, and bob only Drills."""


@asynccontextmanager
async def both() -> AsyncIterator[World]:
    """A Job and a Drill named ``train``, which both run on ``east`` and do not end."""
    async with access_world("east", form=World) as world:
        await world.allow("bob", [*DRILL_RULES, *RULES[1:]])
        await world.allow("eve", RULES)
        await asyncio.sleep(5)
        await world.running()
        body = drill()
        body["spec"]["rounds"] = 1_000_000
        await world.management.api.create(DRILLS.path("default"), body)

        async def is_mirrored() -> bool:
            return bool(await world.drills("east"))

        await world.until(is_mirrored)
        await asyncio.sleep(2)
        yield world


async def pod_of_drill(world: World) -> Json:
    """A pod as the controller of Drills would make it, with the name of no Job's pod."""
    (mirror,) = await world.drills("east")
    uid = mirror["metadata"]["uid"]
    owner = {"apiVersion": DRILLS.api_version, "kind": DRILLS.kind, "name": "train", "uid": uid, "controller": True}
    metadata = {"name": "drill-pod", "labels": {POD_LABEL: uid}, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "bit", "image": "busybox"}], "restartPolicy": "Never"}
    east = world.workers["east"].api
    await east.create(PODS, {"metadata": metadata, "spec": spec})

    async def runs() -> bool:
        return bool((await east.get(f"{PODS}/drill-pod"))["status"].get("phase") == "Running")

    await world.until(runs)
    return await east.get(f"{PODS}/drill-pod")


async def test_each_kind_is_asked_for_by_its_resource() -> None:
    """One name in one namespace, two objects: each page is about its own."""
    async with both() as world:
        job, found = await world.ask("train", user="eve"), await world.ask(f"{BASE}/train", user="bob")
        jobs = await world.ask("/v1/namespaces/default/jobs", user="eve")
        listed = await world.ask(BASE, user="bob")

        assert (job.json["job"]["kind"], found.json["job"]["kind"]) == ("Job", "Drill")
        assert job.json["job"]["uid"] != found.json["job"]["uid"]
        assert [one["kind"] for one in jobs.json["items"]] == ["Job"]
        assert [(one["kind"], one["name"]) for one in listed.json["items"]] == [("Drill", "train")]
        assert [one["kind"] for one in found.json["timeline"]][:3] == ["Created", "Placed", "Mirrored"]


async def test_rights_are_those_of_the_kind() -> None:
    """Who may read Jobs is told nothing of Drills, and the reverse."""
    async with both() as world:
        no_drill = await world.ask(f"{BASE}/train", user="eve")
        no_list = await world.ask(BASE, user="eve")
        no_job = await world.ask("train/log", user="bob")

        assert (no_drill.code, no_list.code, no_job.code) == (403, 403, 403)
        assert "cannot get drills.example.com train in namespace default" in no_drill.message
        assert "cannot list drills.example.com in namespace default" in no_list.message
        assert "cannot get jobs.batch train in namespace default" in no_job.message
        assert no_drill.json["details"] == {"group": "example.com", "kind": "drills", "name": "train"}


async def test_logs_and_pods_are_those_of_the_kinds_mirror() -> None:
    """A pod of the Job is none of the Drill's, whose name it has, and the reverse."""
    async with both() as world:
        job_pod = (await world.pods("east"))[0]["metadata"]["name"]
        pod = await pod_of_drill(world)
        world.writes("east", pod, b"bore\n")
        log = await world.ask(f"{BASE}/train/log", user="bob")
        pods = await world.ask(f"{BASE}/train/pods", user="bob")
        events = await world.ask(f"{BASE}/train/events", user="bob")
        theirs = await world.ask(f"{BASE}/train/log?pod={job_pod}", user="bob")
        ours = await world.ask("train/log?pod=drill-pod", user="eve")
        job_pods = await world.ask("train/pods", user="eve")

        assert log.headers == {"X-Jobmirror-Worker": "east", "X-Jobmirror-Pod": "drill-pod"}
        assert bytes(log.text).endswith(b"\nbore\n")
        assert [one["metadata"]["name"] for one in pods.json["items"]] == ["drill-pod"]
        assert {one["involvedObject"]["name"] for one in events.json["items"]} <= {"drill-pod", "train"}
        assert (theirs.code, ours.code) == (404, 404)
        assert "among the pods of this Drill" in theirs.message
        assert "among the pods of this Job" in ours.message
        assert [one["metadata"]["name"] for one in job_pods.json["items"]] == [job_pod]


async def test_differences_are_the_kinds_own() -> None:
    """Of a mirror, and of a draft, whose own type says what it is."""
    async with both() as world:
        report = (await world.ask(f"{BASE}/train/diff", user="bob")).json
        body = {**drill("next"), "metadata": {"name": "next", "namespace": "default"}}
        draft = await world.ask("/v1/diff", user="bob", method="POST", body=body)
        forbidden = await world.ask("/v1/diff", user="eve", method="POST", body=body)

        assert [one["path"] for one in report["report"]["differences"]] == ["spec.run.managedBy"]
        assert [one["path"] for one in draft.json["report"]["differences"]] == ["spec.run.managedBy"]
        assert "cannot create drills.example.com in namespace default" in forbidden.message


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"apiVersion": "example.com/v2", "kind": "Drill"}, "this is no batch/v1 Job or example.com/v1 Drill"),
        ({"apiVersion": "example.com/v1", "kind": "Drill", "metadata": {}}, "this is no Drill: spec.rounds is missing"),
        (b"{", "this is no batch/v1 Job or example.com/v1 Drill"),
    ],
)
async def test_a_draft_of_no_known_kind_is_refused(body: Any, told: str) -> None:
    """The text lists the kinds that there are."""
    async with both() as world:
        got = await world.ask("/v1/diff", user="bob", method="POST", body=body)
        assert (got.code, got.message) == (400, told)


async def test_a_drill_that_is_not_there_is_told_by_its_resource() -> None:
    """404 names what was asked for, as an API server would."""
    async with both() as world:
        got = await world.ask(f"{BASE}/other", user="bob")

        assert got.code == 404
        assert 'drills.example.com "other" not found in namespace default among the Drills' in got.message
        assert got.json["details"] == {"name": "other", "group": "example.com", "kind": "drills"}
