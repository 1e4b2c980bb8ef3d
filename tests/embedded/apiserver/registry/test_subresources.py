"""Subresources that are acts: binding, eviction, logs, tokens; on a whole server in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import ADMIN, Request, Response, Stream
from mirror.embedded.apiserver.server import ApiServer
from mirror.embedded.podlogs import ContainerLog, PodLogs

Json = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PODS = "/api/v1/namespaces/default/pods"
CONTAINERS = [{"name": "main", "image": "busybox:1.36"}]


class Still:
    """A clock that stands."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


class Asking:
    """Requests of an administrator."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def __call__(self, method: str, path: str, body: Json | None = None, query: str = "") -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        answer = await self.server.handle(Request(method, path, query, headers, data, ADMIN))
        if isinstance(answer, Stream):
            return answer.status, b"".join([piece async for piece in answer.pieces])
        assert isinstance(answer, Response)
        is_json = answer.content_type == "application/json"
        return answer.status, json.loads(answer.body) if is_json and answer.body else answer.body

    async def pod(self, name: str = "p", **spec: Any) -> Json:
        body = {"metadata": {"name": name}, "spec": {"containers": CONTAINERS, **spec}}
        status, found = await self("POST", PODS, body)
        assert status == 201, found
        return dict(found)


@pytest.fixture
def ask() -> Asking:
    server = build(clock=Still(), random=Random(1))
    server.use_logs(PodLogs())
    return Asking(server)


# -- binding ---------------------------------------------------------------------------------------------------------

BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}


@pytest.mark.parametrize("path", [f"{PODS}/p/binding", "/api/v1/namespaces/default/bindings"])
async def test_a_pod_is_bound_once(ask: Asking, path: str) -> None:
    """To the node, with a condition, and with what the binding brings."""
    await ask.pod()
    binding = BINDING | {"metadata": {"name": "p", "labels": {"zone": "z"}, "annotations": {"x": "y"}}}

    status, answer = await ask("POST", path, binding)
    assert (status, answer["status"], answer["code"]) == (201, "Success", 201)
    _, pod = await ask("GET", f"{PODS}/p")
    assert pod["spec"]["nodeName"] == "n"
    assert (pod["metadata"]["labels"], pod["metadata"]["annotations"]) == ({"zone": "z"}, {"x": "y"})
    assert pod["metadata"]["generation"] == 1
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")

    status, answer = await ask("POST", path, BINDING)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert answer["details"]["kind"] == "pods/binding"


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"metadata": {"name": "q"}}, 400, "name in URL does not match name in Binding object"),
        ({"target": {"kind": "Node"}}, 500, "target.name: Required value"),
        (
            {"metadata": {"name": "p", "uid": "x"}},
            409,
            "Precondition failed: UID in precondition: x, UID in object meta: ",
        ),
        ({"metadata": {"name": "p", "resourceVersion": "1"}}, 409, "ResourceVersion in precondition: 1"),
        (
            {"metadata": {"name": "p", "namespace": "kube-system"}},
            400,
            "the namespace of the provided object does not match",
        ),
    ],
)
async def test_a_binding_is_refused(ask: Asking, change: Json, status: int, message: str) -> None:
    """The pod stays free."""
    await ask.pod()
    found, answer = await ask("POST", f"{PODS}/p/binding", BINDING | change)

    assert found == status
    assert message in answer["message"]
    assert "nodeName" not in (await ask("GET", f"{PODS}/p"))[1]["spec"]


async def test_a_dry_run_binds_nothing(ask: Asking) -> None:
    """It only says that it could."""
    await ask.pod()

    assert (await ask("POST", f"{PODS}/p/binding", BINDING, "dryRun=All"))[0] == 201
    assert "nodeName" not in (await ask("GET", f"{PODS}/p"))[1]["spec"]


# -- eviction --------------------------------------------------------------------------------------------------------


async def test_a_pod_without_a_node_is_gone_when_it_is_evicted(ask: Asking) -> None:
    """Nothing has to be stopped."""
    await ask.pod()

    assert (await ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}))[0] == 201
    assert (await ask("GET", f"{PODS}/p"))[0] == 404


async def test_a_pod_on_a_node_gets_its_time(ask: Asking) -> None:
    """And a condition that says why it goes; the options are those of a delete."""
    await ask.pod(nodeName="n")
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 7}}

    assert (await ask("POST", f"{PODS}/p/eviction", eviction))[0] == 201
    _, pod = await ask("GET", f"{PODS}/p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


@pytest.mark.parametrize(
    ("options", "query"), [({"dryRun": ["All"]}, ""), ({}, "dryRun=All"), ({"dryRun": ["All"]}, "dryRun=All")]
)
async def test_a_dry_run_evicts_nothing(ask: Asking, options: Json, query: str) -> None:
    """Wherever it is asked for."""
    before = await ask.pod(nodeName="n")

    status, _ = await ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": options}, query)
    assert status == 201
    assert (await ask("GET", f"{PODS}/p"))[1] == before


@pytest.mark.parametrize("name", ["uid", "resourceVersion"])
async def test_preconditions_of_an_eviction(ask: Asking, name: str) -> None:
    """They speak of the pod before it was marked."""
    pod = await ask.pod(nodeName="n")
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {name: "77"}}}
    status, answer = await ask("POST", f"{PODS}/p/eviction", eviction)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "conditions" not in (await ask("GET", f"{PODS}/p"))[1]["status"]

    eviction["deleteOptions"] = {"preconditions": {name: pod["metadata"][name]}}
    assert (await ask("POST", f"{PODS}/p/eviction", eviction))[0] == 201


async def test_an_eviction_names_its_pod(ask: Asking) -> None:
    """In its body, too."""
    await ask.pod()
    status, answer = await ask("POST", f"{PODS}/p/eviction", {})

    assert (status, answer["message"]) == (400, "name in URL does not match name in Eviction object")


# -- logs ------------------------------------------------------------------------------------------------------------


async def running_pod(ask: Asking) -> ContainerLog:
    """A pod on a node, and the log that its kubelet keeps."""
    await ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    await ask.pod(nodeName="n")
    state = {"name": "main", "containerID": "test://1", "state": {"running": {}}, "ready": True, "restartCount": 0}
    status = {"containerStatuses": [state | {"image": "x", "imageID": ""}]}
    assert (await ask("PATCH", f"{PODS}/p/status", {"status": status}))[0] == 200
    log = ContainerLog()
    assert ask.server.dependencies.logs is not None
    ask.server.dependencies.logs.add("test://1", log)
    return log


async def test_a_log_is_read(ask: Asking) -> None:
    """Whole, in part, or until the container ends."""
    log = await running_pod(ask)
    log.write(b"one\ntwo\n", NOW)

    assert await ask("GET", f"{PODS}/p/log") == (200, b"one\ntwo\n")
    assert await ask("GET", f"{PODS}/p/log", query="tailLines=1&container=main") == (200, b"two\n")
    assert await ask("GET", f"{PODS}/p/log", query="limitBytes=5") == (200, b"one\nt")
    assert await ask("GET", f"{PODS}/p/log", query="sinceTime=2026-11-21T12:00:01Z") == (200, b"")
    log.end(NOW)
    assert await ask("GET", f"{PODS}/p/log", query="follow=true") == (200, b"one\ntwo\n")
    stamped = await ask("GET", f"{PODS}/p/log", query="timestamps=true&tailLines=1")
    assert stamped == (200, b"2026-11-21T12:00:00.000000000Z two\n")


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("previous=true", 400, 'previous terminated container "main" in pod "p" not found'),
        ("container=other", 400, "container other is not valid for pod p"),
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("limitBytes=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("sinceTime=x", 400, 'parsing time "x"'),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
    ],
)
async def test_a_log_is_refused(ask: Asking, query: str, status: int, message: str) -> None:
    """With a Status, though logs are text."""
    await running_pod(ask)
    found, answer = await ask("GET", f"{PODS}/p/log", query=query)

    assert found == status
    assert message in answer["message"]


async def test_what_has_no_log(ask: Asking) -> None:
    """A pod without a node has nothing to say, one on a node that is not there cannot be asked."""
    await ask.pod()
    assert await ask("GET", f"{PODS}/p/log") == (204, b"")

    await ask.pod("q", nodeName="gone")
    status, answer = await ask("GET", f"{PODS}/q/log")
    assert (status, answer["message"]) == (404, 'pods "gone" not found')


# -- tokens ----------------------------------------------------------------------------------------------------------

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def test_a_token_is_issued(ask: Asking) -> None:
    """It says whose it is and until when; nothing is stored."""
    _, account = await ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    status, answer = await ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 600}})

    assert status == 201
    assert answer["metadata"]["uid"] == account["metadata"]["uid"]
    assert answer["status"]["expirationTimestamp"] == "2026-11-21T12:10:00Z"
    headers = {"authorization": f"Bearer {answer['status']['token']}"}
    request = Request("GET", "/api", headers=headers)
    user = ask.server.authenticator.authenticate(request)
    assert user.name == "system:serviceaccount:default:robot"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"spec": {"expirationSeconds": 5}}, 422, "may not specify a duration less than 10 minutes"),
        ({"spec": {"expirationSeconds": 2**40}}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"metadata": {"name": "other"}}, 422, "must match the service account name if specified"),
        ({"metadata": {"uid": "other"}}, 409, "the UID in the token request (other) does not match"),
        (
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}},
            404,
            'pods "none" not found',
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "j"}}},
            400,
            "cannot bind token to object of type batch/v1, Kind=Job",
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}},
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
    ],
)
async def test_a_token_is_refused(ask: Asking, body: Json, status: int, message: str) -> None:
    """By the account, the time, and what it is to be bound to."""
    await ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    await ask.pod()
    found, answer = await ask("POST", f"{ACCOUNTS}/robot/token", body)

    assert found == status
    assert message in answer["message"]


async def test_a_token_for_nobody(ask: Asking) -> None:
    """There must be an account."""
    status, answer = await ask("POST", f"{ACCOUNTS}/nobody/token", {})

    assert (status, answer["message"]) == (404, 'serviceaccounts "nobody" not found')
