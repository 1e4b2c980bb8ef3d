"""Whether a server serves resources, by one document about all that it serves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from wire import Clients, Received, answer, serving

from mirror.kube import aggregated
from mirror.kube.aggregated import Discovered, Served, discover
from mirror.kube.client import Tagged
from mirror.kube.errors import BadAnswer, TooLarge
from mirror.kube.requests import Request
from mirror.kube.resources import PODS, Resource

DRILLS = Resource("example.com", "v1", "drills", "Drill")
PITS = Resource("example.com", "v2", "pits", "Pit")
RIGS = Resource("other.example.com", "v1", "rigs", "Rig")
ALL_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
TAG = '"A1"'


def version(name: str, *plurals: str, verbs: Sequence[str] | None = ALL_VERBS, **more: Any) -> dict[str, Any]:
    scope = {"scope": "Namespaced", "responseKind": {"group": "", "version": "", "kind": "Any"}}
    listed = [{"resource": plural, "verbs": verbs, **scope} for plural in plurals]
    return {"version": name, "resources": listed, "freshness": "Current", **more}


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": None}, "versions": list(versions)}


def document(*groups: dict[str, Any], kind: str = "APIGroupDiscoveryList") -> bytes:
    return json.dumps({"kind": kind, "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)}).encode()


class Server:
    """Answers one request so."""

    def __init__(self, body: bytes | None, tag: str = TAG) -> None:
        self.requests: list[Request] = []
        self._answer = Tagged(body, tag)

    async def send_tagged(self, request: Request) -> Tagged:
        self.requests.append(request)
        return self._answer


SAID: dict[str, tuple[list[dict[str, Any]], Served]] = {
    "it is listed": ([group("example.com", version("v1", "pits", "drills"))], Served.YES),
    "others of its version are": ([group("example.com", version("v1", "pits"))], Served.NO),
    "another version is": ([group("example.com", version("v2", "drills"))], Served.NO),
    "another group has it": ([group("other.example.com", version("v1", "drills"))], Served.NO),
    "nothing is": ([], Served.NO),
    "its group has nothing": ([{"metadata": {"name": "example.com"}, "versions": None}], Served.NO),
    "its version has nothing": ([group("example.com", version("v1", resources=None))], Served.NO),
    "its definition is being deleted": (
        [group("example.com", version("v1", "drills", verbs=("delete", "get", "list", "watch")))],
        Served.NO,
    ),
    "it has no verbs": ([group("example.com", version("v1", "drills", verbs=None))], Served.NO),
    "its group's server does not answer": (
        [group("example.com", version("v1", freshness="Stale"), version("v2", "drills"))],
        Served.UNKNOWN,
    ),
    "nor did it when it was listed": (
        [group("example.com", version("v1", "drills", freshness="Stale"))],
        Served.UNKNOWN,
    ),
    "only another version's server does not": (
        [group("example.com", version("v1", "drills"), version("v2", freshness="Stale"))],
        Served.YES,
    ),
    "an older server says nothing of freshness": (
        [group("example.com", version("v1", "drills", freshness=""))],
        Served.YES,
    ),
}


@pytest.mark.parametrize(("groups", "served"), SAID.values(), ids=SAID)
async def test_a_resource_is_served_where_the_document_lists_it(groups: list[dict[str, Any]], served: Served) -> None:
    """In its version, with the verb that makes one; what the server does not know itself is unknown."""
    found = await discover(Server(document(*groups)), [DRILLS])
    assert found == Discovered(TAG, {DRILLS: served})


async def test_all_are_asked_for_at_once() -> None:
    """One request of any user's, which takes both forms of the document, and the old one from who has none."""
    server = Server(document(group("example.com", version("v1", "drills"), version("v2")), group("other.example.com")))
    found = await discover(server, [PITS, RIGS, DRILLS, PODS])
    assert found is not None
    assert found.served == {DRILLS: Served.YES, PITS: Served.NO, RIGS: Served.NO, PODS: Served.UNKNOWN}
    (request,) = server.requests
    assert (request.method, request.path, request.query, request.if_none_match) == ("GET", "/apis", (), "")
    assert [one.partition(";as=")[0] for one in request.accept.split(",")] == [
        "application/json;g=apidiscovery.k8s.io;v=v2",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1",
        "application/json",
    ]


async def test_what_has_not_changed_is_not_sent_again(clients: Clients) -> None:
    """The tag goes out as it came, over a real connection, which stays open."""

    async def answering(received: Received, writer: Any) -> None:
        if received.headers.get("if-none-match") == TAG:
            writer.write(f"HTTP/1.1 304 Not Modified\r\nETag: {TAG}\r\n\r\n".encode())
        else:
            writer.write(answer(200, document(group("example.com", version("v1", "drills"))), ETag=TAG))

    async with serving(answering) as server:
        client = clients.make(server.url)
        found = await discover(client, [DRILLS])
        assert found == Discovered(TAG, {DRILLS: Served.YES})
        assert await discover(client, [DRILLS], tag=found.tag) is None
        assert await discover(client, [DRILLS], tag='"other"') == found
    assert [got.headers.get("if-none-match") for got in server.received] == [None, TAG, '"other"']
    assert server.connections == 1


async def test_not_modified_is_no_answer_to_who_has_nothing(clients: Clients) -> None:
    """It would say that nothing is served."""

    async def answering(_: Received, writer: Any) -> None:
        writer.write(b"HTTP/1.1 304 Not Modified\r\n\r\n")

    async with serving(answering) as server:
        with pytest.raises(BadAnswer, match="304"):
            await discover(clients.make(server.url), [DRILLS])


@pytest.mark.parametrize(
    "body",
    [
        b"[",
        b'{"kind":"APIGroupDiscoveryList","items":7}',
        b'{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":7}]}',
        document(group("example.com", version("v1", resources="drills"))),
        b"[" * 100_000,
        document(kind="APIGroupList"),
        b"{}",
    ],
    ids=["no JSON", "no list", "no versions", "no resources", "too deep", "groups alone", "something else"],
)
async def test_a_server_that_does_not_say_is_no_answer(body: bytes) -> None:
    """Neither yes nor no, as of one that has no such document."""
    with pytest.raises(BadAnswer):
        await discover(Server(body), [DRILLS])


@pytest.mark.parametrize("tag", ["", "A1", '"a\r\nX: b"', '"a b"', f'"{"a" * 257}"', '"ä"'])
async def test_a_tag_that_no_server_has_is_not_sent_back(tag: str) -> None:
    """D29: it comes from a worker, and would be kept; the document is read each time."""
    found = await discover(Server(document(), tag), [DRILLS])
    assert found is not None
    assert found.tag == ""


async def test_a_weak_tag_is_one() -> None:
    """A proxy that compresses makes one of it."""
    found = await discover(Server(document(), 'W/"A1"'), [DRILLS])
    assert found is not None
    assert found.tag == 'W/"A1"'


async def test_a_document_larger_than_any_is_refused() -> None:
    """D29: by its bytes before it is read, by its values before it is decoded."""
    server = Server(document(group("example.com", version("v1", *map(str, range(aggregated.MOST_VALUES // 8))))))
    with pytest.raises(TooLarge):
        await discover(server, [DRILLS])
    assert server.requests[0].most_bytes == aggregated.MOST_BYTES


async def test_the_largest_clusters_fit() -> None:
    """Two thousand definitions, each with its subresources, and more names than are usual."""
    one = version("v1", "drills")["resources"][0]
    below = [
        {"subresource": name, "responseKind": one["responseKind"], "verbs": ["get", "patch", "update"]} for name in "ab"
    ]
    resources = [
        {**one, "resource": f"resource{number}", "shortNames": ["a", "b"], "categories": ["all"], "subresources": below}
        for number in range(3000)
    ]
    found = await discover(Server(document(group("example.com", version("v1", resources=[*resources, one])))), [DRILLS])
    assert found == Discovered(TAG, {DRILLS: Served.YES})


async def test_a_request_with_a_tag_is_no_other_request(clients: Clients) -> None:
    """The header is of this one alone."""

    async def answering(received: Received, writer: Any) -> None:
        writer.write(answer(200, b"{}", ETag=TAG))

    read = Request("get", "GET", "/apis")
    async with serving(answering) as server:
        client = clients.make(server.url)
        for request in (read, replace(read, if_none_match=TAG), read):
            assert await client.send_tagged(request) == Tagged(b"{}", TAG)
    assert [got.headers.get("if-none-match") for got in server.received] == [None, TAG, None]
