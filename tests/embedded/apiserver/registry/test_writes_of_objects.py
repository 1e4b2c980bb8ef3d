"""Create, update, patch and delete over an API server in memory."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.registry.object_meta import generated_name
from tests.embedded.apiserver.asking import JOBS, MAPS, MERGE, PODS, Asking, Json, job

pytestmark = pytest.mark.looptime

APPLY = "application/apply-patch+yaml"
POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_a_new_object_gets_what_the_server_knows() -> None:
    """A uid, a time, a version; what the client says of them does not count."""
    api = Asking()
    given = {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": None}
    meta = (await api.map(**given))["metadata"]
    assert meta["uid"] != "mine"
    assert (meta["namespace"], meta["creationTimestamp"][:4]) == ("default", "2026")
    assert meta["resourceVersion"] == str(api.server.storage.version)
    entry = meta["managedFields"][0] if "managedFields" in meta else {"manager": "tests"}
    assert entry["manager"] == "tests"


async def test_a_seed_repeats_everything() -> None:
    """Two servers with the same seed give the same uids and names."""
    first, second = Asking(), Asking()
    body = {"metadata": {"generateName": "x-"}}
    assert await first.ok("POST", MAPS, body) == await second.ok("POST", MAPS, body)


async def test_a_generated_name_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collision is no failure, unless there are eight of them."""
    api = Asking()
    await api.map("x-taken")
    names = iter(["x-taken", "x-taken", "x-free"])
    monkeypatch.setattr(
        "mirror.embedded.apiserver.registry.object_meta.generated_name", lambda random, prefix: next(names)
    )
    made = await api.ok("POST", MAPS, {"metadata": {"generateName": "x-"}})
    assert made["metadata"]["name"] == "x-free"
    monkeypatch.setattr(
        "mirror.embedded.apiserver.registry.object_meta.generated_name", lambda random, prefix: "x-taken"
    )
    status, _, message = await api.refused("POST", MAPS, {"metadata": {"generateName": "x-"}})
    assert status == 409
    assert message.endswith("already exists, the server was not able to generate a unique name for the object")


async def test_a_generated_name_is_not_too_long() -> None:
    """58 letters of the prefix and five more."""
    name = generated_name(Asking().server.dependencies.random, "a" * 100)
    assert (len(name), name[:58]) == (63, "a" * 58)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"metadata": {"name": "a"}}, (409, "AlreadyExists", 'configmaps "a" already exists')),
        (
            {"metadata": {"name": "b", "namespace": "elsewhere"}},
            (
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            ),
        ),
        (
            {"metadata": {"name": "b", "resourceVersion": "5"}},
            (500, "", "resourceVersion should not be set on objects to be created"),
        ),
    ],
)
async def test_a_new_object_is_refused(body: Json, expected: tuple[int, str, str]) -> None:
    """In upstream's words."""
    api = Asking()
    await api.map("a")
    assert await api.refused("POST", MAPS, body) == expected


async def test_a_dry_run_stores_nothing() -> None:
    """It answers as if it had."""
    api = Asking()
    await api.map("a", finalizers=["x.io/y"])
    before = api.server.storage.version
    assert "uid" in (await api.ok("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "b"}}))["metadata"]
    changed = await api.ok("PATCH", f"{MAPS}/a?dryRun=All", {"data": {"k": "v"}}, content_type=MERGE)
    assert changed["data"] == {"k": "v"}
    marked = await api.ok("DELETE", f"{MAPS}/a?dryRun=All")
    assert "deletionTimestamp" in marked["metadata"]
    assert api.server.storage.version == before
    assert (await api.refused("GET", f"{MAPS}/b"))[0] == 404


async def test_an_update_needs_the_version_that_is_there_if_it_names_one() -> None:
    """409 otherwise; without a version it replaces whatever there is."""
    api = Asking()
    made = await api.map("a")
    await api.ok("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    status, reason, message = await api.refused("PUT", f"{MAPS}/a", made)
    assert (status, reason) == (409, "Conflict")
    assert message.endswith("please apply your changes to the latest version and try again")
    status, reason, _ = await api.refused(
        "PATCH", f"{MAPS}/a", {"metadata": {"resourceVersion": "1"}}, content_type=MERGE
    )
    assert (status, reason) == (409, "Conflict")


async def test_an_update_of_another_uid_is_a_conflict() -> None:
    """The object was deleted and made anew since."""
    api = Asking()
    await api.map("a")
    status, _, message = await api.refused("PUT", f"{MAPS}/a", {"metadata": {"name": "a", "uid": "other"}})
    assert status == 409
    assert "Key: /registry/configmaps/default/a, ResourceVersion: 0, " in message
    assert "Precondition failed: UID in precondition: other, UID in object meta: " in message


async def test_what_changes_nothing_writes_nothing() -> None:
    """Neither a version nor an event; times of managed fields are nothing."""
    api = Asking()
    made = await api.ok("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    await asyncio.sleep(100)
    assert await api.ok("PUT", f"{MAPS}/a", {"data": {"k": "v"}, "metadata": {"name": "a"}}) == made
    assert await api.ok("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content_type=MERGE) == made
    assert str(api.server.storage.version) == made["metadata"]["resourceVersion"]


async def test_a_change_keeps_what_no_client_can_change() -> None:
    """Uid and times; the generation goes up with the spec alone."""
    api = Asking()
    made = await api.ok("POST", JOBS, job("a"))
    assert made["metadata"]["generation"] == 1
    labelled = await api.ok("PATCH", f"{JOBS}/a", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE)
    assert labelled["metadata"]["generation"] == 1
    changed = await api.ok("PATCH", f"{JOBS}/a", {"spec": {"parallelism": 2}}, content_type=MERGE)
    assert changed["metadata"]["generation"] == 2
    for name in ("uid", "creationTimestamp"):
        assert changed["metadata"][name] == made["metadata"][name]


async def test_a_status_is_written_by_itself() -> None:
    """The object's own path leaves it alone, and it leaves the rest alone."""
    api = Asking()
    await api.ok("POST", JOBS, job("a"))
    status = {"startTime": "2026-03-01T12:00:00Z", "active": 1}
    written = await api.ok(
        "PATCH", f"{JOBS}/a/status", {"status": status, "spec": {"parallelism": 7}}, content_type=MERGE
    )
    assert (written["status"], written["spec"]["parallelism"]) == (status, 1)
    kept = await api.ok("PATCH", f"{JOBS}/a", {"status": {"active": 5}}, content_type=MERGE)
    assert kept["status"] == status
    assert await api.ok("GET", f"{JOBS}/a/status") == kept
    assert (await api.refused("DELETE", f"{JOBS}/a/status"))[0] == 405
    assert (await api.refused("GET", f"{JOBS}/a/scale"))[0] == 404


async def test_an_update_creates_where_the_kind_says_so() -> None:
    """Leases by PUT, anything by apply, nothing else."""
    api = Asking()
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    status, made = await api.ask("PUT", f"{leases}/a", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})
    assert (status, made["spec"]) == (201, {"holderIdentity": "me"})
    assert (await api.refused("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}}))[0] == 404
    assert (await api.refused("PATCH", f"{MAPS}/a", {}, content_type=MERGE))[0] == 404
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    assert (await api.ask("PATCH", f"{MAPS}/a?fieldManager=me", body, content_type=APPLY))[0] == 201
    assert (await api.ask("PATCH", f"{MAPS}/a?fieldManager=me", body, content_type=APPLY))[0] == 200
    status, reason, _ = await api.refused("PATCH", f"{MAPS}/a", body, content_type=APPLY)
    assert (status, reason) == (422, "Invalid")


async def test_a_patch_of_another_name_or_type_is_refused() -> None:
    """400 and 415."""
    api = Asking()
    await api.map("a")
    status, _, message = await api.refused("PATCH", f"{MAPS}/a", {"metadata": {"name": "b"}}, content_type=MERGE)
    assert (status, message) == (400, "the name of the object (b) does not match the name on the URL (a)")
    assert (await api.refused("PATCH", f"{MAPS}/a", {}, content_type="application/json"))[0] == 415


async def test_repeated_owners_are_dropped_with_a_warning() -> None:
    """They are a set."""
    api = Asking()
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    made = await api.map("a", ownerReferences=[owner, owner])
    assert made["metadata"]["ownerReferences"] == [owner]
    assert [value for name, value in api.headers if name == "Warning" and "duplicate UID(s) observed: u" in value]


async def test_an_object_is_deleted_at_once() -> None:
    """With a Status that tells its uid."""
    api = Asking()
    made = await api.map("a")
    status = await api.ok("DELETE", f"{MAPS}/a")
    assert status["status"] == "Success"
    assert status["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (await api.refused("DELETE", f"{MAPS}/a"))[:2] == (404, "NotFound")


async def test_finalizers_hold_an_object() -> None:
    """It is marked, and goes with the last of them."""
    api = Asking()
    await api.map("a", finalizers=["x.io/y"])
    marked = await api.ok("DELETE", f"{MAPS}/a")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert await api.ok("DELETE", f"{MAPS}/a") == marked
    status, _, message = await api.refused("POST", MAPS, {"metadata": {"name": "a"}})
    assert (status, message) == (409, 'object is being deleted: configmaps "a" already exists')
    refused = await api.refused(
        "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": ["x.io/y", "x.io/z"]}}, content_type=MERGE
    )
    assert refused[0] == 422
    last = await api.ok("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert "finalizers" not in last["metadata"]
    assert (await api.refused("GET", f"{MAPS}/a"))[0] == 404


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({}, ["x.io/y"]),
        ({"propagationPolicy": "Foreground"}, ["x.io/y", "foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["x.io/y", "orphan"]),
        ({"propagationPolicy": "Background"}, ["x.io/y"]),
        ({"orphanDependents": True}, ["x.io/y", "orphan"]),
    ],
)
async def test_a_policy_becomes_a_finalizer(options: Json, finalizers: list[str]) -> None:
    """It tells the garbage collector what to do with dependents."""
    api = Asking()
    await api.map("a", finalizers=["x.io/y"])
    marked = await api.ok("DELETE", f"{MAPS}/a", options)
    assert marked["metadata"]["finalizers"] == finalizers


async def test_jobs_orphan_their_pods_unless_told_otherwise() -> None:
    """With a warning; a generation is counted for the mark."""
    api = Asking()
    await api.ok("POST", JOBS, job("a"))
    marked = await api.ok("DELETE", f"{JOBS}/a")
    assert (marked["metadata"]["finalizers"], marked["metadata"]["generation"]) == (["orphan"], 2)
    assert "child pods are preserved by default" in dict(api.headers)["Warning"]
    await api.ok("POST", JOBS, job("b"))
    assert (await api.ok("DELETE", f"{JOBS}/b?propagationPolicy=Background"))["status"] == "Success"
    assert "Warning" not in dict(api.headers)


@pytest.mark.parametrize(
    ("preconditions", "words"),
    [
        ({"uid": "other"}, "the UID in the precondition (other)"),
        ({"resourceVersion": "1"}, "the ResourceVersion in the"),
    ],
)
async def test_a_delete_has_preconditions(preconditions: Json, words: str) -> None:
    """409 if the object is another one."""
    api = Asking()
    made = await api.map("a")
    status, reason, message = await api.refused("DELETE", f"{MAPS}/a", {"preconditions": preconditions})
    assert (status, reason) == (409, "Conflict")
    assert words in message
    await api.ok("DELETE", f"{MAPS}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})


async def test_pods_on_a_node_get_their_grace() -> None:
    """It can only become shorter; with none left the pod goes, and watchers see the mark first."""
    api = Asking()
    await api.ok("POST", PODS, {**POD, "spec": {**POD["spec"], "nodeName": "n"}})
    marked = await api.ok("DELETE", f"{PODS}/p")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert await api.ok("DELETE", f"{PODS}/p?gracePeriodSeconds=60") == marked
    await asyncio.sleep(10)
    shorter = await api.ok("DELETE", f"{PODS}/p?gracePeriodSeconds=15")
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 15
    assert shorter["metadata"]["deletionTimestamp"] < marked["metadata"]["deletionTimestamp"]
    since = shorter["metadata"]["resourceVersion"]
    gone = await api.ok("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert gone["kind"] == "Pod"
    async with api.watch(f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion={since}") as watch:
        assert [kind for kind, _ in await watch.rest()] == ["MODIFIED", "DELETED"]


async def test_a_pod_without_a_node_goes_at_once() -> None:
    """Nobody would stop it."""
    api = Asking()
    await api.ok("POST", PODS, POD)
    assert (await api.ok("DELETE", f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.refused("GET", f"{PODS}/p"))[0] == 404


async def test_a_collection_is_deleted_by_selection() -> None:
    """The answer is the list of what there was."""
    api = Asking()
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "1"}), ("c", {"x": "2"})):
        await api.map(name, labels=labels)
    deleted = await api.ok("DELETE", f"{MAPS}?labelSelector=x%3D1")
    assert [one["metadata"]["name"] for one in deleted["items"]] == ["a", "b"]
    assert [one["metadata"]["name"] for one in (await api.ok("GET", MAPS))["items"]] == ["c"]
    assert (await api.refused("DELETE", "/api/v1/configmaps"))[0] == 405


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", f"{MAPS}/a", 405),
        ("PUT", MAPS, 405),
        ("PATCH", MAPS, 405),
        ("POST", "/api/v1/configmaps", 405),
        ("BREW", MAPS, 405),
        ("GET", "/api/v1/namespaces/default/nothings", 404),
        ("GET", f"{MAPS}/a/status", 404),
        ("PATCH", "/api/v1/nothings/a", 404),
    ],
)
async def test_what_is_not_served(method: str, path: str, status: int) -> None:
    """Wrong methods and unknown paths."""
    assert (await Asking().refused(method, path))[0] == status


async def test_custom_objects_have_a_router_of_their_own() -> None:
    """It has other words, and takes a POST to an object's path for one to its collection."""
    api = Asking()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.ok("POST", definitions, {"metadata": {"name": "things.example.com"}, "spec": spec})
    await asyncio.sleep(1)  # until it is established
    things = "/apis/example.com/v1/namespaces/default/things"
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    assert (await api.ask("POST", f"{things}/b", body))[0] == 201
    assert await api.refused("PUT", things, body) == (400, "BadRequest", "name must be provided")
    assert await api.refused("GET", f"{things}/a/status") == (404, "NotFound", 'things.example.com "a" not found')
    listed = await api.ok("GET", things)
    assert listed["metadata"]["continue"] == ""
    assert listed["items"][0]["kind"] == "Thing"


async def test_a_grace_wraps_as_upstreams_does() -> None:
    """It counts nanoseconds of 64 bits."""
    api = Asking()
    await api.ok("POST", PODS, {**POD, "spec": {**POD["spec"], "nodeName": "n"}})
    marked = await api.ok("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 2**40})
    assert marked["metadata"]["deletionTimestamp"].startswith("1795-")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 2**40


async def test_a_body_may_not_be_too_large() -> None:
    """3 MiB."""
    api = Asking()
    status, reason, _ = await api.refused("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v" * 3 * 2**20}})
    assert (status, reason) == (413, "RequestEntityTooLarge")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
async def test_a_body_may_not_have_too_many_values(kind: str) -> None:
    """A list of a million things takes seconds for which everybody waits; commas in a text are none."""
    asking = Asking()
    crowd = b'{"metadata":{"name":"a","finalizers":[' + b'"",' * 200_000 + b'""]}}'
    answer = await asking.raw("POST", MAPS, crowd, content_type=kind, accept="application/json")
    assert isinstance(answer, Response)
    assert answer.status == 413
    assert json.loads(answer.body)["message"] == "Request entity too large: limit is 200000 values"
    text = json.dumps({"metadata": {"name": "a"}, "data": {"table": '"a",\n' * 200_000}}).encode()
    answer = await asking.raw("POST", MAPS, text, content_type=kind, accept="application/json")
    assert isinstance(answer, Response)
    assert answer.status == 201


@pytest.mark.parametrize("version", ["0", "x", "9" * 20, "9" * 5_000], ids=["zero", "a word", "large", "endless"])
async def test_what_is_no_version_is_none_on_create(version: str) -> None:
    """As upstream; Python refuses to read numbers of thousands of digits."""
    await Asking().ok("POST", MAPS, {"metadata": {"name": "a", "resourceVersion": version}})


@pytest.mark.parametrize("number", ["9", "0x" + "f", "0" + "7", "0b" + "1", "1e9"])
async def test_a_number_in_yaml_of_thousands_of_digits_is_no_fault_of_ours(number: str) -> None:
    """Whatever it is written in."""
    body = f"metadata: {{name: a}}\ndata: {{k: {number + number[-1] * 5_000}}}\n".encode()
    answer = await Asking().raw("POST", MAPS, body, content_type="application/yaml", accept="application/json")
    assert isinstance(answer, Response)
    assert answer.status < 500


class SlowAdmission:
    """Admission that takes a while, in which others write."""

    def __init__(self) -> None:
        self.meanwhile: list[Any] = []
        self._is_inside = False

    async def mutate(self, attributes: Any) -> list[str]:
        """Let somebody in between."""
        if self.meanwhile and not self._is_inside:
            self._is_inside = True
            await self.meanwhile.pop(0)()
            self._is_inside = False
        return []

    async def validate(self, attributes: Any) -> list[str]:
        """Fine."""
        return []


async def test_a_change_starts_over_when_somebody_else_was_quicker() -> None:
    """No write is lost, as long as it does not say which version it replaces; and not for ever."""
    api = Asking()
    made = await api.map("a")
    slow = SlowAdmission()
    api.server.dependencies = replace(api.server.dependencies, admission=slow)

    async def interfere() -> None:
        number = str(api.server.storage.version)
        await api.ok("PATCH", f"{MAPS}/a", {"data": {"theirs": number}}, content_type=MERGE)

    slow.meanwhile = [interfere, interfere]
    changed = await api.ok("PATCH", f"{MAPS}/a", {"data": {"mine": "1"}}, content_type=MERGE)
    assert set(changed["data"]) == {"mine", "theirs"}
    slow.meanwhile = [interfere]
    versioned = {"metadata": {"resourceVersion": changed["metadata"]["resourceVersion"]}}
    assert (await api.refused("PATCH", f"{MAPS}/a", versioned, content_type=MERGE))[0] == 409
    slow.meanwhile = [interfere] * 20
    assert (await api.refused("PATCH", f"{MAPS}/a", {"data": {"mine": "2"}}, content_type=MERGE))[0] == 409
    slow.meanwhile = [interfere]
    status = await api.ok("DELETE", f"{MAPS}/a")
    assert status["details"]["uid"] == made["metadata"]["uid"]


async def test_what_breaks_us_is_a_500_without_secrets() -> None:
    """The client gets a Status; the log gets the rest."""
    api = Asking()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret insides")

    api.server.storage.get = broken
    status, reason, message = await api.refused("GET", f"{MAPS}/a")
    assert (status, reason) == (500, "InternalError")
    assert "secret" not in message


async def test_many_owners_and_warnings_cost_little() -> None:
    """Neither the time of the server nor headers without end."""
    api = Asking()
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n"}
    owners = [{**owner, "uid": f"u{number % 9000}"} for number in range(18_000)]
    async with asyncio.timeout(60):
        made = await api.map("a", ownerReferences=owners)
    assert len(made["metadata"]["ownerReferences"]) == 9000
    assert sum(len(value) for name, value in api.headers if name == "Warning") < 5000
