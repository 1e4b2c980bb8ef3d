"""Watches that are open while things happen."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tests.contract.answer import Wrong
from tests.contract.api import MERGE, Api
from tests.contract.case import Group
from tests.contract.events import told
from tests.contract.like import VERSION, differences

cases = Group("live watches")
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@cases.case
async def changes_are_told_as_they_happen(api: Api) -> None:
    async with api.watch("configmaps", resourceVersion=await api.version()) as events:
        await api.post("configmaps", {"metadata": {"name": "a"}})
        await events.expect("ADDED a")
        await api.patch("configmaps/a", {"data": {"k": "v"}})
        [changed] = await events.expect("MODIFIED a")
        assert changed["data"] == {"k": "v"}
        await api.delete("configmaps/a")
        [gone] = await events.expect("DELETED a")
        assert int(gone["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


@cases.case
async def a_watch_is_a_stream_of_lines_of_json(api: Api) -> None:
    async with api.watch("configmaps") as events:
        assert events.status == 200
        assert events.header("content-type") == "application/json"


@cases.case
async def objects_enter_and_leave_a_selection(api: Api) -> None:
    version = await api.version()
    async with api.watch("configmaps", resourceVersion=version, labelSelector="x=y") as events:
        await api.post("configmaps", {"metadata": {"name": "a"}})
        await api.patch("configmaps/a", {"metadata": {"labels": {"x": "y"}}})
        await events.expect("ADDED a")
        await api.patch("configmaps/a", {"data": {"k": "v"}})
        await events.expect("MODIFIED a")
        out = await api.patch("configmaps/a", {"metadata": {"labels": {"x": "z"}}, "data": {"k": "w"}})
        [left] = await events.expect("DELETED a")
        assert left["data"] == {"k": "v"}, "what left is told as it was before"
        assert left["metadata"]["resourceVersion"] == out.ok()["metadata"]["resourceVersion"]
        await api.patch("configmaps/a", {"data": {"k": "x"}})
        await api.delete("configmaps/a")
        await api.post("configmaps", {"metadata": {"name": "b", "labels": {"x": "y"}}})
        await events.expect("ADDED b")


@cases.case
async def pods_leave_a_selection_by_phase(api: Api) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    async with api.watch("pods", fieldSelector="status.phase=Pending") as events:
        await api.post("pods", pod)
        await events.expect("ADDED p")
        await api.patch("pods/p/status", {"status": {"phase": "Running"}})
        await events.expect("DELETED p")


@cases.case
async def every_watcher_is_told(api: Api) -> None:
    version = await api.version()
    async with (
        api.watch("configmaps", resourceVersion=version) as one,
        api.watch("configmaps", resourceVersion=version) as two,
    ):
        await api.post("configmaps", {"metadata": {"name": "a"}})
        await one.expect("ADDED a")
        await two.expect("ADDED a")


@cases.case
async def a_watch_of_one_namespace_tells_nothing_of_others(api: Api) -> None:
    await api.post("namespaces", {"metadata": {"name": "OURS-n"}})
    async with api.watch("configmaps", resourceVersion=await api.version()) as events:
        await api.post("/api/v1/namespaces/OURS-n/configmaps", {"metadata": {"name": "other"}})
        await api.post("configmaps", {"metadata": {"name": "a"}})
        await events.expect("ADDED a")


@cases.case
async def a_watch_of_a_kind_tells_nothing_of_others(api: Api) -> None:
    async with api.watch("secrets", resourceVersion=await api.version()) as events:
        await api.post("configmaps", {"metadata": {"name": "a"}})
        await api.post("secrets", {"metadata": {"name": "b"}})
        await events.expect("ADDED b")


@cases.case
async def a_dry_run_is_not_told(api: Api) -> None:
    async with api.watch("configmaps", resourceVersion=await api.version()) as events:
        await api.post("configmaps?dryRun=All", {"metadata": {"name": "a"}})
        await api.post("configmaps", {"metadata": {"name": "b"}})
        await events.expect("ADDED b")


@cases.case
async def a_watch_ends_when_its_time_is_over(api: Api) -> None:
    began = asyncio.get_running_loop().time()
    async with api.watch("configmaps", timeoutSeconds=1) as events:
        assert await events.rest() == []
    if asyncio.get_running_loop().time() - began < 0.5:
        raise Wrong(f"it took {asyncio.get_running_loop().time() - began} s")


@cases.case
async def a_bookmark_comes_before_the_end(api: Api) -> None:
    await api.post("configmaps", {"metadata": {"name": "a"}})
    version = await api.version()
    async with api.watch("configmaps", resourceVersion=version, timeoutSeconds=4, allowWatchBookmarks="true") as events:
        await api.post("secrets", {"metadata": {"name": "s"}})
        marks = [event for event in await events.rest() if event["type"] == "BOOKMARK"]
    if not marks:
        raise Wrong("there was no bookmark")
    like = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": VERSION}}
    if wrong := list(differences(like, marks[-1]["object"])):
        raise Wrong(str(wrong))
    assert int(marks[-1]["object"]["metadata"]["resourceVersion"]) >= int(version)


@cases.case
async def no_bookmark_comes_unasked(api: Api) -> None:
    async with api.watch("configmaps", timeoutSeconds=4) as events:
        assert await events.rest() == []


@cases.case
async def initial_events_are_followed_by_live_ones(api: Api) -> None:
    await api.post("configmaps", {"metadata": {"name": "a"}})
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch("configmaps", **query) as events:
        [_, mark] = await events.expect("ADDED a", "BOOKMARK")
        assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await api.post("configmaps", {"metadata": {"name": "b"}})
        await events.expect("ADDED b")


@cases.case
async def a_watch_from_a_bookmark_goes_on(api: Api) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch("configmaps", **query) as events:
        [mark] = await events.expect("BOOKMARK")
    await api.post("configmaps", {"metadata": {"name": "a"}})
    async with api.watch("configmaps", resourceVersion=mark["metadata"]["resourceVersion"]) as events:
        await events.expect("ADDED a")


@cases.case
async def a_list_and_a_watch_from_it_miss_nothing(api: Api) -> None:
    """A writer is at work all the time; the list and what follows it are the whole."""

    async def write() -> None:
        for number in range(40):
            (await api.post("configmaps", {"metadata": {"name": f"n{number}"}})).ok(201)

    async with asyncio.TaskGroup() as scope:
        scope.create_task(write(), name="writing")
        await asyncio.sleep(0.02)
        listed = (await api.get("configmaps")).ok()
        seen = [one["metadata"]["name"] for one in listed["items"]]
        async with api.watch("configmaps", resourceVersion=listed["metadata"]["resourceVersion"]) as events:
            while len(seen) < 40:
                event = await events.next()
                seen.append(told(event).removeprefix("ADDED "))
    assert sorted(seen) == sorted(f"n{number}" for number in range(40))
    assert len(set(seen)) == 40


@cases.case
async def versions_of_events_rise(api: Api) -> None:
    async with api.watch("configmaps", resourceVersion=await api.version()) as events:
        async with asyncio.TaskGroup() as scope:
            for number in range(20):
                body = {"metadata": {"name": f"n{number}"}}
                scope.create_task(api.post("configmaps", body), name=f"post {number}")
        versions = [int((await events.next())["object"]["metadata"]["resourceVersion"]) for _ in range(20)]
    assert versions == sorted(set(versions))


@cases.case
async def a_finalizer_delays_the_end_of_an_object(api: Api) -> None:
    async with api.watch("configmaps", resourceVersion=await api.version()) as events:
        await api.post("configmaps", {"metadata": {"name": "a", "finalizers": ["x.io/y"]}})
        await api.delete("configmaps/a")
        await events.expect("ADDED a", "MODIFIED a")
        await api.patch("configmaps/a", {"metadata": {"finalizers": None}}, MERGE)
        [gone] = await events.expect("DELETED a")
        assert gone["metadata"]["finalizers"] == ["x.io/y"], "it is told as it was last stored"


@cases.case
async def a_reader_that_leaves_disturbs_nobody(api: Api) -> None:
    for _ in range(5):
        async with api.watch("configmaps"):
            pass
    (await api.post("configmaps", {"metadata": {"name": "a"}})).ok(201)


@cases.case
async def a_watch_of_a_version_of_the_future_waits_or_says_so(api: Api) -> None:
    async with api.watch("configmaps", resourceVersion="999999999", timeoutSeconds=1) as events:
        said = await events.rest()
    assert [one["type"] for one in said] in ([], ["ERROR"]), said


@cases.alone
async def a_page_of_the_past_has_expired(api: Api) -> None:
    for name in "abc":
        await api.post("configmaps", {"metadata": {"name": name}})
    page = (await api.get("configmaps?limit=1")).ok()
    await api.delete("configmaps/c")
    await api.server.compact()
    await api.post("configmaps", {"metadata": {"name": "d"}})
    await api.server.compact()
    gone = await api.get(f"configmaps?limit=1&continue={page['metadata']['continue']}")
    status = gone.body
    assert (status["code"], status["reason"], status["message"]) == (410, "Expired", _TOO_OLD)
    rest = (await api.get(f"configmaps?limit=5&continue={status['metadata']['continue']}")).ok()
    assert [one["metadata"]["name"] for one in rest["items"]] == ["b", "d"]


@cases.alone
async def exactly_a_version_of_the_past_has_expired(api: Api) -> None:
    old = (await api.post("configmaps", {"metadata": {"name": "a"}})).ok(201)["metadata"]["resourceVersion"]
    await api.patch("configmaps/a", {"data": {"k": "v"}})
    await api.server.compact()
    await api.patch("configmaps/a", {"data": {"k": "w"}})
    await api.server.compact()
    gone = await api.get(f"configmaps?resourceVersion={old}&resourceVersionMatch=Exact")
    gone.refused(410, "Expired", "The resourceVersion for the provided list is too old.")


@cases.alone
async def a_watch_from_the_past_of_a_new_kind_has_expired(api: Api) -> None:
    """A real server keeps events of kinds longer than its storage does, so only a new kind has none of the past."""
    await api.server.compact()
    async with api.watch("/apis/contract.example.com/v1/namespaces/OURS/things", resourceVersion="1") as events:
        assert events.status == 200
        [event] = await events.rest()
    assert event["type"] == "ERROR", event
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 1 ("), event


@cases.case
async def each_of_several_watches_as_tables_begins_with_the_columns(api: Api) -> None:
    # A real server shares encoded events between equal watches once a kind has three: who gets an event that another
    # has encoded gets the columns again with the next one. So whether later events have them is not a promise.
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    version = await api.version()
    async with AsyncExitStack() as stack:
        watches = [
            await stack.enter_async_context(api.watch("configmaps", table, resourceVersion=version)) for _ in range(4)
        ]
        await api.post("configmaps", {"metadata": {"name": "a"}})
        for text in ("v", "w"):
            await api.patch("configmaps/a", {"data": {"k": text}})
        for events in watches:
            seen = [await events.next() for _ in range(3)]
            assert [one["type"] for one in seen] == ["ADDED", "MODIFIED", "MODIFIED"]
            assert [len(one["object"]["rows"]) for one in seen] == [1, 1, 1]
            columns = [one["object"]["columnDefinitions"] for one in seen]
            assert [one["name"] for one in columns[0]] == ["Name", "Data", "Age"]
            assert all(one in (None, columns[0]) for one in columns[1:])
