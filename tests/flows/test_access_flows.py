"""Users, their rights, and what they are told of their Jobs' mirrors: whole clusters in virtual time."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from access_world import RULES, Got, access_world
from doubles.loglines import Lines

from mirror.access.bounds import Bounds
from mirror.access.logs import Cut
from mirror.access.request_parsing import Asked
from mirror.access.reviews import GUESSES_AT_ONCE_OF_PEER
from mirror.controllers.mirroring import Mirroring
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.faults.targets import Which
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.planes.api import Json

pytestmark = [pytest.mark.looptime, pytest.mark.slow]


async def test_a_user_with_rights_reads_the_log_of_the_mirrors_pod() -> None:
    """Without a word about worker, pod or container."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"one\ntwo\n")
        got = await world.ask("train/log")

        assert bytes(got.text).endswith(b"\none\ntwo\n")
        assert got.headers == {"X-Jobmirror-Worker": "east", "X-Jobmirror-Pod": pod["metadata"]["name"]}


async def test_a_log_is_followed_to_the_end_of_its_container() -> None:
    """What is written later comes later; the end of the container is the end of the answer."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"one\n")
        got = Got()
        async with asyncio.TaskGroup() as scope:
            reading = scope.create_task(world.ask("train/log?follow=true", got=got), name="reading")
            await asyncio.sleep(1)
            assert bytes(got.text).endswith(b"\none\n")
            world.writes("east", pod, b"two\n")
            await asyncio.sleep(1)
            assert bytes(got.text).endswith(b"\none\ntwo\n")
            await world.delete("train")
            await reading
    assert b"\none\ntwo\n" in bytes(got.text)


@pytest.mark.parametrize(
    ("rules", "what", "missing"),
    [
        pytest.param(RULES[1:], "train", "get jobs.batch train", id="the Job"),
        pytest.param(RULES[:3], "train/log", "get pods/log", id="logs"),
        pytest.param(RULES[:1], "train/pods", "list pods", id="pods"),
        pytest.param(RULES[:1], "train/events", "list events", id="events"),
        pytest.param(RULES[1:], "/v1/namespaces/default/jobs", "list jobs.batch", id="the list"),
    ],
)
async def test_the_right_that_is_missing_is_named(rules: list[Json], what: str, missing: str) -> None:
    """403 with one sentence; the rest of the rights does not help."""
    async with access_world() as world:
        await world.running()
        await world.allow("bob", rules)
        got = await world.ask(what, user="bob")

        assert (got.code, got.json["reason"]) == (403, "Forbidden")
        assert f"user bob cannot {missing} in namespace default" in got.message


async def test_another_namespace_is_not_shown() -> None:
    """ann's rights are in default; that there is a Job elsewhere she does not learn."""
    async with access_world() as world:
        there = await world.ask("/v1/namespaces/other/jobs/train/log")
        everywhere = await world.ask("/v1/jobs")

        assert (there.code, everywhere.code) == (403, 403)
        assert "in namespace other" in there.message
        assert "in all namespaces" in everywhere.message


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer "}],
    ids=["no token", "an unknown one", "a password", "an empty one"],
)
async def test_whoever_is_not_known_is_told_nothing(headers: dict[str, str]) -> None:
    """401, whether there is such a Job or not."""
    async with access_world() as world:
        await world.running()
        got = await world.ask("train", headers=headers)

        assert (got.code, got.json["kind"], got.json["reason"]) == (401, "Status", "Unauthorized")


async def test_acting_as_somebody_else_is_refused() -> None:
    """The token's own rights would be more than what was asked for."""
    async with access_world() as world:
        headers = {"authorization": "Bearer token-of-ann", "impersonate-user": "bob"}
        assert (await world.ask("train", headers=headers)).code == 400


async def test_a_pod_of_another_owner_is_never_shown() -> None:
    """A label is anybody's to write; only the controller's uid counts, and a refusal does not tell what there is."""
    async with access_world() as world:
        pod = await world.running()
        await world.workers["east"].api.create("/api/v1/namespaces/default/pods", _impostor(pod))
        listed = await world.ask("train/pods")
        named = await world.ask("train/log?pod=impostor")
        missing = await world.ask("train/log?pod=nobody")

        assert [one["metadata"]["name"] for one in listed.json["items"]] == [pod["metadata"]["name"]]
        assert (named.code, missing.code) == (404, 404)
        assert named.message == missing.message.replace("nobody", "impostor")


async def test_a_pod_that_takes_the_name_between_two_looks_is_not_read() -> None:
    """The log is opened by name; the uid is looked at again before a byte is handed on."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"mine\n")
        plane = world.workers["east"]
        handle = plane.server.handle

        async def swapped(request: Any) -> Any:
            answer = await handle(request)
            if request.path.endswith("/log"):
                name = pod["metadata"]["name"]
                path = f"/api/v1/namespaces/default/pods/{name}"
                await plane.api.call("DELETE", path, {"gracePeriodSeconds": 0})
                await plane.api.merge(path, {"metadata": {"finalizers": None}})
                await plane.api.create("/api/v1/namespaces/default/pods", _impostor(pod, name=name))
            return answer

        plane.wire.server = type("Swapping", (), {"handle": staticmethod(swapped)})()
        got = await world.ask(f"train/log?pod={pod['metadata']['name']}")

        assert (got.code, bytes(got.text)) == (404, b"")


def _impostor(pod: Json, name: str = "impostor") -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "another", "controller": True}
    metadata = {"name": name, "labels": pod["metadata"]["labels"], "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}


async def test_a_recreated_source_has_only_its_own_pods() -> None:
    """Of the namesake that was there before nothing is shown, also while its pods still end."""
    async with access_world() as world:
        before = await world.running()
        await world.delete("train")
        after = await world.running()
        listed = await world.ask("train/pods")
        old = await world.ask(f"train/log?pod={before['metadata']['name']}")

        uids = {one["metadata"]["uid"] for one in listed.json["items"]}
        assert after["metadata"]["uid"] in uids or before["metadata"]["uid"] not in uids
        assert before["metadata"]["uid"] not in uids
        assert old.code == 404


async def test_a_worker_that_hangs_costs_ten_seconds_and_nobody_else() -> None:
    """504 in time, and 429 for what would wait in vain; another worker answers meanwhile."""
    async with access_world("east", "west", bounds=Bounds(calls_of_worker=2)) as world:
        await world.running("one", "east", parallelism=1)
        pod = await world.running("two", "west")
        world.writes("west", pod, b"fine\n")
        world.workers["east"].faults.cut_off()
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as scope:
            asked = [scope.create_task(world.ask("one/pods"), name=f"ask {number}") for number in range(3)]
            other = await world.ask("two/log?tailLines=1")
            assert (bytes(other.text), loop.time() - began < 1) == (b"fine\n", True)
        assert sorted(task.result().code for task in asked) == [429, 504, 504]
        assert loop.time() - began < 11


async def test_a_lost_worker_is_said_to_be_out_of_reach() -> None:
    """At once. The reason is for operators: it may hold the worker's address."""
    async with access_world() as world:
        await world.running()
        world.workers["east"].faults.break_connections()
        await world.workers["east"].kill()
        await asyncio.sleep(30)
        got = await world.ask("train/log")

        assert got.code == 503
        assert got.message == "worker east is unreachable from the manager; its operator can see why"


async def test_a_missing_right_of_ours_on_the_worker_is_said_plainly() -> None:
    """It is the operator's to give; users are told which file."""
    async with access_world() as world:
        await world.running()
        refusal = errors.forbidden("pods", "", "", "no role allows it")
        world.workers["east"].faults.arrange(refusal, Which("list", "pods"))
        got = await world.ask("train/pods")

        assert got.code == 502
        assert "the manager has no permission to list pods on worker east" in got.message
        assert "config/rbac/worker-logs.yaml" in got.message


async def test_only_so_many_logs_are_read_at_once() -> None:
    """By one person, and by all; whoever leaves makes room."""
    async with access_world(bounds=Bounds(streams=2, streams_of_one=1)) as world:
        await world.running()
        await world.allow("bob", RULES)
        await world.allow("eve", RULES)
        follow = "train/log?follow=true"
        reading = [asyncio.ensure_future(world.ask(follow, user=user)) for user in ("ann", "bob")]
        await asyncio.sleep(1)
        assert [(await world.ask(follow, user=user)).code for user in ("ann", "eve")] == [429, 429]
        for task in reading:
            task.cancel()
        await asyncio.wait(reading)
        assert (await world.ask("train/log", user="eve")).code == 200


@pytest.mark.parametrize(
    ("bounds", "because"),
    [
        (Bounds(follow_seconds=60.0), "did not end in time"),
        (Bounds(log_bytes=45), "too long"),
    ],
    ids=["time", "bytes"],
)
async def test_a_log_is_cut_at_its_bounds(bounds: Bounds, because: str) -> None:
    """It is broken off, so that nobody takes it for the whole."""
    async with access_world(bounds=bounds) as world:
        pod = await world.running()
        world.writes("east", pod, b"12345\n")
        got = Got()
        asyncio.get_running_loop().call_later(5, world.writes, "east", pod, b"67890\n")
        with pytest.raises(Cut, match=because):
            await world.ask("train/log?follow=true", got=got)
        assert b"12345\n" in bytes(got.text)


async def test_a_reader_that_does_not_read_is_left() -> None:
    """A minute later at the latest, with all that was kept for it."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"one\n")
        with pytest.raises(Cut, match="did not read"):
            await world.ask("train/log?follow=true", got=Got(takes=asyncio.Event()))


async def test_pods_and_events_are_those_of_the_mirror() -> None:
    """In the API's shapes, with hostile text made safe."""
    async with access_world() as world:
        pod = await world.running()
        east = world.workers["east"].api
        await east.create("/api/v1/namespaces/default/events", _event("a", pod["metadata"]["uid"], "\x1b[31mred\n"))
        await east.create("/api/v1/namespaces/default/events", _event("b", "somebody-else", "not yours"))
        pods, events = (await world.ask("train/pods")).json, (await world.ask("train/events")).json

        assert (pods["kind"], events["kind"]) == ("PodList", "EventList")
        (shown,) = pods["items"]
        assert shown["status"]["phase"] == "Running"
        assert shown["spec"]["containers"] == [{"name": "main", "image": "busybox"}]
        told = [one["message"] for one in events["items"] if one["involvedObject"]["kind"] == "Pod"]
        assert told == ["\\x1b[31mred\\n"]
        assert any(one["involvedObject"]["kind"] == "Job" for one in events["items"])


def _event(name: str, uid: str, message: str) -> Json:
    involved = {"kind": "Pod", "namespace": "default", "name": "any", "uid": uid}
    return {"metadata": {"name": name}, "involvedObject": involved, "message": message, "reason": "Said"}


async def test_a_job_is_told_with_its_story() -> None:
    """Where it is and why there, and what happened, oldest first."""
    async with access_world("east", "west") as world:
        await world.register("west", cordoned="true")
        await world.running()
        told = (await world.ask("train")).json
        listed = (await world.ask("/v1/namespaces/default/jobs")).json

        assert (told["job"]["state"], told["job"]["worker"]) == ("Running", "east")
        kinds = [moment["kind"] for moment in told["timeline"]]
        assert kinds[:3] == ["Created", "Placed", "Mirrored"]
        placed = told["timeline"][1]
        assert (placed["worker"], placed["text"]) == ("east", "the only eligible worker; west: cordoned")
        assert "Status" in kinds
        assert [one["name"] for one in listed["items"]] == ["train"]


async def test_a_job_that_waits_says_what_each_worker_lacks() -> None:
    """By worker, in words."""
    async with access_world("east") as world:
        await world.register("east", capacity="0")
        await asyncio.sleep(2)
        await world.create("train", annotations={names.WORKER_SELECTOR: "name=east"})
        await asyncio.sleep(15)
        told = (await world.ask("train")).json

        assert (told["job"]["state"], told["lacks"]) == ("Waiting", {"east": "at capacity"})
        assert told["waiting"] == "east: at capacity"


async def test_a_worker_that_comes_and_goes_is_in_the_story() -> None:
    """Lost and back, with the reason."""
    async with access_world() as world:
        await world.running()
        world.workers["east"].faults.break_connections()
        await world.workers["east"].kill()
        await asyncio.sleep(30)
        world.workers["east"].start()
        await asyncio.sleep(30)
        kinds = [moment["kind"] for moment in (await world.ask("train")).json["timeline"]]

        assert [kind for kind in kinds if kind in ("Lost", "Back")] == ["Lost", "Back"]


async def test_a_new_manager_tells_the_beginning_from_the_source() -> None:
    """What was seen is gone with the process; created, placed, mirrored and started are not."""
    async with access_world() as world:
        await world.running()
        await world.kill_manager()
        world.start_manager()
        await asyncio.sleep(5)
        assert world.mirroring is not None
        kinds = [moment.kind for moment in world.mirroring.known().timeline(SourceKey("Job", "default", "train"))]

        assert kinds == ["Created", "Placed", "Mirrored", "Status"]


async def test_differences_of_a_live_mirror() -> None:
    """What was stripped, and what somebody changed on the worker."""
    async with access_world() as world:
        await world.running()
        await world.change("train", {"metadata": {"labels": {"theirs": "yes"}}}, cluster="east")
        report = (await world.ask("train/diff")).json["report"]
        found = {one["path"]: (one["kind"], one["source"], one["mirror"]) for one in report["differences"]}

        assert found["spec.managedBy"] == ("stripped", '"jobmirror.io/controller"', None)
        assert found["metadata.labels[theirs]"] == ("worker", None, '"yes"')
        assert not any(path.startswith("status") for path in found)


async def test_a_draft_is_compared_before_it_exists() -> None:
    """Nothing is stored; what workers lack is told too."""
    async with access_world() as world:
        draft = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "new", "namespace": "default", "annotations": {names.WORKER_SELECTOR: "name=west"}},
            "spec": {
                "ttlSecondsAfterFinished": 5,
                "template": {
                    "spec": {
                        "serviceAccountName": "robot",
                        "containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "keys"}}]}],
                    }
                },
            },
        }
        got = await world.ask("/v1/diff", method="POST", body=draft)
        other = await world.ask("/v1/diff", method="POST", body=draft, user="bob")

        texts = " ".join(one["text"] for one in got.json["report"]["cautions"])
        assert [word for word in ("ServiceAccount robot", "Secret keys") if word not in texts] == []
        assert got.json["lacks"] == {
            "": "no worker has name=west (did you mean name=east?)",
            "east": "labels do not match worker-selector",
        }
        assert other.code == 403
        assert await world.source("new") is None


async def test_every_request_leaves_one_line_without_token_or_content(log_lines: Lines) -> None:
    """Who, what, of which Job, which pod, and the verdict."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"secret content\n")
        await world.ask("train/log")
        await world.ask("train/pods", user="bob")
        await world.ask("train/pods", headers={"authorization": "Bearer stolen-token"})
        lines = [line for line in log_lines if line["event"] == "access"]

        assert [(line["user"], line["verb"], line["verdict"], line["code"]) for line in lines] == [
            ("ann", "log", "allowed", 200),
            ("bob", "pods", "refused", 403),
            ("(nobody known)", "GET", "refused", 401),
        ]
        assert (lines[0]["job"], lines[0]["pod"]) == ("train", pod["metadata"]["name"])
        assert not [word for word in ("secret content", "stolen-token", "token-of") if word in str(lines)]


async def test_a_token_is_shown_to_the_cluster_once_in_ten_seconds() -> None:
    """Its rights are remembered as long; a token that is withdrawn is refused after that."""
    async with access_world() as world:
        await world.running()
        asked: list[str] = []
        handle = world.management.server.handle

        async def counted(request: Any) -> Any:
            asked.append(request.path.rpartition("/")[2])
            return await handle(request)

        world.management.wire.server = type("Counting", (), {"handle": staticmethod(counted)})()
        for _ in range(3):
            await world.ask("train")
        assert (asked.count("tokenreviews"), asked.count("subjectaccessreviews")) == (1, 1)
        await asyncio.sleep(11)
        await world.ask("train")
        assert asked.count("tokenreviews") == 2


async def test_guessing_tokens_is_slowed_down() -> None:
    """The management cluster is not asked about thousands of them."""
    async with access_world() as world:
        codes = [(await world.ask("train", headers={"authorization": f"Bearer {n}"})).code for n in range(60)]

        assert (codes[0], codes[-1]) == (401, 429)


async def test_guessing_many_tokens_at_once_helps_nobody() -> None:
    """Those that are being looked at count already, so that users elsewhere are not kept from being looked at."""
    async with access_world() as world:
        guesses = [world.ask("train", headers={"authorization": f"Bearer {n}"}) for n in range(150)]
        codes = [got.code for got in await asyncio.gather(*guesses)]
        got = Got()
        target = "/v1/namespaces/default/jobs/train"
        await world.access.handle(Asked("GET", target, {"authorization": "Bearer token-of-ann"}, "10.0.0.2"), got)

        assert codes.count(401) <= GUESSES_AT_ONCE_OF_PEER
        assert got.code == 404


async def test_many_users_behind_one_address_are_no_guessers() -> None:
    """Only tokens that are refused are held against it."""
    async with access_world() as world:
        for _ in range(5):
            assert [(await world.ask("train", user=user)).code for user in ("ann", "bob", "eve")] == [404, 403, 403]
            await asyncio.sleep(11)


async def test_a_pod_name_that_could_do_harm_is_left_out() -> None:
    """A worker answers with what it likes; names go into headers and paths."""
    async with access_world() as world:
        await world.running()
        plane = world.workers["east"]
        handle = plane.server.handle

        async def lying(request: Any) -> Any:
            answer = await handle(request)
            if request.path.endswith("/pods"):
                return _with_evil_name(answer)
            return answer

        plane.wire.server = type("Lying", (), {"handle": staticmethod(lying)})()
        assert (await world.ask("train/log")).code == 404
        assert (await world.ask("train/pods")).json["items"] == []


def _with_evil_name(answer: Any) -> Any:
    return replace(answer, body=re.sub(rb'"name":"train-[a-z0-9]+"', rb'"name":"a\\r\\nX: y"', answer.body))


async def test_lists_and_drafts_of_one_person_are_few() -> None:
    """Each goes through thousands of Jobs, or a long body."""
    async with access_world() as world:
        await world.allow("bob", RULES)
        codes = [(await world.ask("/v1/namespaces/default/jobs")).code for _ in range(12)]

        assert (codes[0], codes[-1]) == (200, 429)
        assert (await world.ask("/v1/namespaces/default/jobs", user="bob")).code == 200


async def test_lists_of_all_together_are_few_and_of_those_who_may() -> None:
    """However many people there are; whoever has no right to a list takes nobody's turn."""
    path = "/v1/namespaces/default/jobs"
    async with access_world() as world:
        await world.allow("bob", RULES)
        assert {(await world.ask(path, user="eve")).code for _ in range(10)} == {403}
        await asyncio.sleep(5)
        for user in ("ann", "bob"):
            assert {(await world.ask(path, user=user)).code for _ in range(10)} == {200}
        await world.allow("eve", RULES)
        await asyncio.sleep(11)
        for user in ("ann", "bob"):
            assert {(await world.ask(path, user=user)).code for _ in range(10)} == {200}
        assert (await world.ask(path, user="eve")).code == 429


async def test_a_body_of_somebody_unknown_is_not_read() -> None:
    """First the token."""
    async with access_world() as world:
        got = Got()

        async def body(most_bytes: int) -> bytes:
            pytest.fail("was read")

        got.body = body
        await world.ask("/v1/diff", method="POST", user="nobody", got=got)
        assert got.code == 401


async def test_a_standby_serves_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its caches are as good; it only was not there when things were decided."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"one\n")
        await world.kill_manager()
        monkeypatch.setattr(Mirroring, "lead", _stand_by)
        world.start_manager()
        await asyncio.sleep(5)
        world.open_access()
        log, told = await world.ask("train/log?tailLines=1"), (await world.ask("train")).json

        assert bytes(log.text) == b"one\n"
        assert [moment["kind"] for moment in told["timeline"]] == ["Created", "Placed", "Mirrored", "Started"]


async def _stand_by(_: Mirroring) -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_mirror_that_cannot_be_read_is_no_defect_of_ours() -> None:
    """Whole objects are only skimmed when they arrive."""
    async with access_world() as world:
        await world.running()
        assert world.registry is not None
        found = world.registry.workers["east"].mirrors_of(JOB).get("default", "train")
        assert found is not None
        found.spec = msgspec.Raw(b"[" * 5000)
        assert [(await world.ask(f"train/{what}")).code for what in ("diff", "pods", "log")] == [502, 502, 502]
