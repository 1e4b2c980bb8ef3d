"""Get, list and watch over an API server in memory."""

from __future__ import annotations

import asyncio

import pytest

from mirror.embedded.apiserver.messages import Response, Stream
from tests.embedded.apiserver.asking import JOBS, MAPS, MERGE, Asking, job

pytestmark = pytest.mark.looptime

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def test_what_is_stored_is_what_is_shown() -> None:
    """A get answers with the stored bytes; items of a list do not repeat kind and version."""
    api = Asking()
    made = await api.map("a", labels={"x": "y"})
    assert await api.ok("GET", f"{MAPS}/a") == made
    record = api.server.storage.get("configmaps", "default", "a")
    assert record is not None
    answer = await api.raw("GET", f"{MAPS}/a")
    assert isinstance(answer, Response)
    assert answer.body == record.raw + b"\n"
    listed = await api.ok("GET", MAPS)
    assert (listed["kind"], listed["metadata"]) == ("ConfigMapList", {"resourceVersion": record_version(api)})
    assert listed["items"] == [{name: value for name, value in made.items() if name not in ("kind", "apiVersion")}]


def record_version(api: Asking) -> str:
    """The version of now."""
    return str(api.server.storage.version)


async def test_pages_agree_with_each_other() -> None:
    """The second page is of the first one's version, until that is forgotten."""
    api = Asking()
    for name in "abc":
        await api.map(name)
    first = await api.ok("GET", f"{MAPS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 1
    await api.ok("DELETE", f"{MAPS}/c")
    await api.map("d")
    target = f"{MAPS}?limit=2&continue={first['metadata']['continue']}"
    second = await api.ok("GET", target)
    assert [one["metadata"]["name"] for one in second["items"]] == ["c"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}
    api.server.storage.compact(api.server.storage.version)
    status, gone = await api.ask("GET", target)
    assert (status, gone["reason"]) == (410, "Expired")
    rest = await api.ok("GET", f"{MAPS}?continue={gone['metadata']['continue']}")
    assert [one["metadata"]["name"] for one in rest["items"]] == ["d"]


async def test_a_list_is_of_the_version_that_is_wanted() -> None:
    """Exactly, or not older; of the future there is none."""
    api = Asking()
    then = (await api.map("a"))["metadata"]["resourceVersion"]
    await api.map("b")
    exact = await api.ok("GET", f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert [one["metadata"]["name"] for one in exact["items"]] == ["a"]
    newer = await api.ok("GET", f"{MAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan")
    assert len(newer["items"]) == 2
    assert (await api.refused("GET", f"{MAPS}?resourceVersion=999"))[:2] == (504, "Timeout")
    assert (await api.refused("GET", f"{MAPS}/a?resourceVersion=999"))[:2] == (504, "Timeout")
    api.server.storage.compact(api.server.storage.version)
    assert (await api.refused("GET", f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"))[0] == 410


async def test_selectors_choose() -> None:
    """By labels, by name, by fields of the kind; unknown fields are refused (DF18)."""
    api = Asking()
    for name, colour in (("a", "red"), ("b", "blue")):
        await api.map(name, labels={"colour": colour})
    for query in ("labelSelector=colour%3Dred", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name!%3Db"):
        found = await api.ok("GET", f"{MAPS}?{query}")
        names = [one["metadata"]["name"] for one in found["items"]]
        assert [name for name in names if name in "ab"] == ["a"]
    await api.ok("POST", JOBS, job("j"))
    assert len((await api.ok("GET", f"{JOBS}?fieldSelector=status.successful%3D0"))["items"]) == 1
    assert len((await api.ok("GET", f"{JOBS}?fieldSelector=status.successful%3D1"))["items"]) == 0
    refused = await api.refused("GET", f"{JOBS}?fieldSelector=spec.suspend%3Dtrue")
    assert refused == (400, "BadRequest", 'field label "spec.suspend" not supported for Job')


async def test_tables_and_metadata() -> None:
    """One row for each object, with its metadata; or nothing but metadata."""
    api = Asking()
    await api.map("a")
    table = await api.ok("GET", f"{MAPS}/a", accept=TABLE)
    assert (table["kind"], len(table["rows"])) == ("Table", 1)
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
    whole = await api.ok("GET", f"{MAPS}?includeObject=Object", accept=TABLE)
    assert whole["rows"][0]["object"]["kind"] == "ConfigMap"
    nothing = await api.ok("GET", f"{MAPS}?includeObject=None", accept=TABLE)
    assert nothing["rows"][0]["object"] is None
    partial = await api.ok("GET", f"{MAPS}/a", accept=PARTIAL)
    assert set(partial) == {"kind", "apiVersion", "metadata"}
    listed = await api.ok("GET", MAPS, accept=PARTIAL_LIST)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["a"]
    assert (await api.refused("GET", MAPS, accept=PARTIAL))[:2] == (406, "NotAcceptable")
    assert (await api.refused("GET", f"{MAPS}/a", accept="text/plain"))[:2] == (406, "NotAcceptable")


async def test_yaml_and_pretty_answers() -> None:
    """For people."""
    api = Asking()
    await api.map("a")
    answer = await api.raw("GET", f"{MAPS}/a", accept="application/yaml")
    assert isinstance(answer, Response)
    assert answer.content_type == "application/yaml"
    assert b"\nkind: ConfigMap\n" in answer.body
    pretty = await api.raw("GET", f"{MAPS}/a?pretty=true")
    assert isinstance(pretty, Response)
    assert b'\n  "kind": "ConfigMap"' in pretty.body


async def test_a_watch_tells_changes_in_order() -> None:
    """From a version on; deletions with what was there last and the version of the deletion."""
    api = Asking()
    since = (await api.map("a"))["metadata"]["resourceVersion"]
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={since}") as watch:
        made = await api.map("b")
        await api.ok("PATCH", f"{MAPS}/b", {"data": {"k": "v"}}, content_type=MERGE)
        await api.ok("DELETE", f"{MAPS}/b")
        assert await watch.next() == ("ADDED", made)
        kind, changed = await watch.next()
        assert (kind, changed["data"]) == ("MODIFIED", {"k": "v"})
        kind, deleted = await watch.next()
        assert (kind, deleted["data"]) == ("DELETED", {"k": "v"})
        assert deleted["metadata"]["resourceVersion"] == record_version(api)


async def test_objects_enter_and_leave_a_selection() -> None:
    """Who sees only some objects sees them added and deleted as their labels change."""
    api = Asking()
    since = (await api.map("a"))["metadata"]["resourceVersion"]
    for labels in ({"x": "y"}, {"x": "y", "z": "1"}, {"x": None}, {"z": "2"}):
        await api.ok("PATCH", f"{MAPS}/a", {"metadata": {"labels": labels}}, content_type=MERGE)
    await api.ok("DELETE", f"{MAPS}/a")
    target = f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=x%3Dy&resourceVersion={since}"
    async with api.watch(target) as watch:
        assert (await watch.next())[0] == "ADDED"
        assert (await watch.next())[0] == "MODIFIED"
        kind, left = await watch.next()
        assert (kind, left["metadata"]["labels"]) == ("DELETED", {"x": "y", "z": "1"})
        assert int(left["metadata"]["resourceVersion"]) == int(since) + 3
        assert await watch.rest() == []


async def test_a_watch_begins_with_what_is_there() -> None:
    """Without a version, and on request with a bookmark at the end of it."""
    api = Asking()
    await api.map("a")
    async with api.watch(f"{MAPS}?watch=1&timeoutSeconds=1") as watch:
        assert await watch.rest() == [("ADDED", "a")]
    query = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{MAPS}?{query}") as watch:
        assert (await watch.next())[0] == "ADDED"
        kind, bookmark = await watch.next()
        assert kind == "BOOKMARK"
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["metadata"]["resourceVersion"] == record_version(api)


async def test_bookmarks_come_once_a_minute() -> None:
    """They carry the version of now, even if nothing of this kind has happened."""
    api = Asking()
    begin = asyncio.get_running_loop().time()
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={record_version(api)}&allowWatchBookmarks=true") as watch:
        await api.ok("POST", JOBS, job("j"))
        kind, bookmark = await watch.next()
        assert (kind, bookmark["metadata"]["resourceVersion"]) == ("BOOKMARK", record_version(api))
        assert asyncio.get_running_loop().time() - begin == pytest.approx(60, abs=1)
        assert (await watch.next())[0] == "BOOKMARK"


async def test_a_watch_ends_by_itself() -> None:
    """After the time that it was given, else after half an hour or up to an hour."""
    api = Asking()
    loop = asyncio.get_running_loop()
    for query, least, most in (("&timeoutSeconds=3", 3, 4), ("", 1800, 3601)):
        begin = loop.time()
        async with api.watch(f"{MAPS}?watch=1&resourceVersion={record_version(api)}{query}") as watch:
            assert await watch.rest() == []
        assert least <= loop.time() - begin <= most


async def test_a_watch_of_what_is_forgotten_says_410() -> None:
    """In an event; one that is open goes on."""
    api = Asking()
    since = (await api.map("a"))["metadata"]["resourceVersion"]
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={record_version(api)}") as open_watch:
        await api.map("b")
        assert (await open_watch.next())[0] == "ADDED"
        api.server.storage.compact(api.server.storage.version)
        async with api.watch(f"{MAPS}?watch=1&resourceVersion={since}") as watch:
            kind, status = await watch.next()
            assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
            assert status["message"].startswith(f"too old resource version: {since} (")
            assert await watch.rest() == []
        await api.map("c")
        assert (await open_watch.next())[1]["metadata"]["name"] == "c"


async def test_watchers_share_what_was_encoded() -> None:
    """The same bytes go to all who want the same form."""
    api = Asking()
    query = f"{MAPS}?watch=1&resourceVersion={record_version(api)}"
    streams = [await api.raw("GET", query), await api.raw("GET", query)]
    await api.map("a")
    pieces = []
    for stream in streams:
        assert isinstance(stream, Stream)
        assert await anext(stream.pieces) == b""
        pieces.append(await anext(stream.pieces))
        await stream.pieces.aclose()
    assert pieces[0] is pieces[1] or pieces[0] == pieces[1]
    event = api.server.storage.watch("configmaps", api.server.storage.version - 1).take()[0]
    assert event.encoded is not None
    assert list(event.encoded.values()) == [pieces[0]]


async def test_a_watch_of_tables_has_columns_once() -> None:
    """As clients that print expect it."""
    api = Asking()
    await api.map("a")
    async with api.watch(f"{MAPS}?watch=1&timeoutSeconds=1", accept=TABLE) as watch:
        first = (await watch.next())[1]
        await api.map("b")
        second = (await watch.next())[1]
    assert first["columnDefinitions"]
    assert second["columnDefinitions"] is None
    assert [one["rows"][0]["cells"][0] for one in (first, second)] == ["a", "b"]


async def test_a_watch_of_tables_has_bookmarks_too() -> None:
    """With an empty row, whose metadata has the version."""
    api = Asking()
    query = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{MAPS}?{query}", accept=TABLE) as watch:
        kind, table = await watch.next()
    assert kind == "BOOKMARK"
    assert table["rows"][0]["object"]["metadata"]["resourceVersion"] == record_version(api)


async def test_a_watch_that_breaks_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an event, and ends; the log gets the rest."""
    api = Asking()
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={record_version(api)}") as watch:
        monkeypatch.setattr("mirror.embedded.apiserver.apimachinery.objects.shown", None)
        made = api.server.storage.get("configmaps", "default", "a")
        assert made is None
        api.server.storage.write(
            "configmaps", "default", "a", lambda version: b'{"metadata":{}}', replacing=None, labels={}
        )
        kind, status = await watch.next()
        assert (kind, status["reason"]) == ("ERROR", "InternalError")
        assert await watch.rest() == []


async def test_a_named_watch_is_of_one_object() -> None:
    """By field selector, and by the old path."""
    api = Asking()
    for name in "ab":
        await api.map(name)
    old = MAPS.replace("/api/v1", "/api/v1/watch")
    for target in (f"{MAPS}?watch=1&fieldSelector=metadata.name%3Da&timeoutSeconds=1", f"{old}/a?timeoutSeconds=1"):
        async with api.watch(target) as watch:
            assert await watch.rest() == [("ADDED", "a")]


@pytest.mark.parametrize("namespace", ["", "default"])
async def test_a_watch_sees_its_namespace(namespace: str) -> None:
    """Or all of them."""
    api = Asking()
    await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    place = f"namespaces/{namespace}/" if namespace else ""
    query = f"watch=1&timeoutSeconds=1&resourceVersion={record_version(api)}"
    async with api.watch(f"/api/v1/{place}configmaps?{query}") as watch:
        await api.map("a")
        await api.ok("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "b"}})
        expected = [("ADDED", "a")] if namespace else [("ADDED", "a"), ("ADDED", "b")]
        assert await watch.rest() == expected


async def test_health_is_plain_text() -> None:
    """The server is well when it can say so."""
    api = Asking()
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
        answer = await api.raw("GET", path)
        assert isinstance(answer, Response)
        assert (answer.status, answer.body) == (200, b"ok")
    assert b"readyz check passed" in (await verbose(api))


async def test_a_path_to_nowhere_is_told_as_upstream_does() -> None:
    """In plain text, unless the client wants JSON."""
    api = Asking()
    for path in ("/nothing/here", "/apis/batch/v9/jobs", "/api/v2/pods", "/%ff"):
        answer = await api.raw("GET", path)
        assert isinstance(answer, Response)
        assert (answer.status, answer.body) == (404, b"404 page not found\n")
        status, body = await api.ask("GET", path, accept="application/json")
        assert (status, body["reason"]) == (404, "NotFound")


async def verbose(api: Asking) -> bytes:
    """What is checked."""
    answer = await api.raw("GET", "/readyz?verbose")
    assert isinstance(answer, Response)
    return answer.body
