"""Garbage collection: what goes with its owners, what stays, and what owners wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from embedded_world import CONFIGMAPS, EVENTS, NAMESPACES, Json, World, in_virtual_time, world

from mirror.embedded.controllers.discovering import Kinds
from mirror.kube.errors import Unreachable

ABSENT = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "3d5c8f6e-0000-4000-8000-000000000000"}


async def make(here: World, name: str, *owners: Json, path: str = CONFIGMAPS, **metadata: Any) -> Json:
    body = {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}
    return await here.api.create(path, body)


def owner(body: Json, *, blocks: bool = False, kind: str = "ConfigMap") -> Json:
    meta = body["metadata"]
    found = {"apiVersion": "v1", "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    return found | ({"blockOwnerDeletion": True} if blocks else {})


def owners_of(body: Json) -> list[str]:
    return [one["name"] for one in body["metadata"].get("ownerReferences") or ()]


async def maps(here: World) -> list[str]:
    return await here.names(CONFIGMAPS)


@in_virtual_time
async def test_dependents_go_after_their_owner_in_the_background() -> None:
    """And their dependents after them."""
    async with world("gc") as here:
        a = await make(here, "a")
        b = await make(here, "b", owner(a))
        await make(here, "c", owner(b))
        await make(here, "other")
        await here.api.delete(f"{CONFIGMAPS}/a")
        assert "b" in await maps(here)
        await asyncio.sleep(1)
        assert await maps(here) == ["other"]


@in_virtual_time
async def test_a_dependent_stays_while_one_owner_is_left() -> None:
    """The reference to the owner that is gone is taken out."""
    async with world("gc") as here:
        a, b = await make(here, "a"), await make(here, "b")
        await make(here, "c", owner(a), owner(b))
        await here.api.delete(f"{CONFIGMAPS}/a")
        await asyncio.sleep(1)
        assert owners_of(await here.api.get(f"{CONFIGMAPS}/c")) == ["b"]
        await here.api.delete(f"{CONFIGMAPS}/b")
        await asyncio.sleep(1)
        assert await maps(here) == []


@in_virtual_time
async def test_orphans_stay_without_a_reference() -> None:
    """The owner goes once all of them are free."""
    async with world("gc") as here:
        a = await make(here, "a")
        for name in ("b", "c"):
            await make(here, name, owner(a))
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Orphan")
        await asyncio.sleep(1)
        assert await maps(here) == ["b", "c"]
        assert [owners_of(one) for one in await here.api.list(CONFIGMAPS)] == [[], []]


@in_virtual_time
async def test_an_owner_deleted_in_the_foreground_waits_for_those_who_block_it() -> None:
    """Others may take their time; they are deleted, too."""
    async with world("gc") as here:
        a = await make(here, "a")
        await make(here, "blocks", owner(a, blocks=True), finalizers=["test.io/hold"])
        await make(here, "free", owner(a), finalizers=["test.io/hold"])
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Foreground")
        await asyncio.sleep(5)
        assert await maps(here) == ["a", "blocks", "free"]
        for name in ("blocks", "free"):
            assert "deletionTimestamp" in (await here.api.get(f"{CONFIGMAPS}/{name}"))["metadata"]
        await here.api.merge(f"{CONFIGMAPS}/blocks", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1)
        assert await maps(here) == ["free"]


@in_virtual_time
async def test_the_foreground_reaches_all_generations() -> None:
    """Grandchildren go before children, children before their owner."""
    async with world("gc") as here:
        a = await make(here, "a")
        b = await make(here, "b", owner(a, blocks=True))
        await make(here, "c", owner(b, blocks=True), finalizers=["test.io/hold"])
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Foreground")
        await asyncio.sleep(5)
        assert await maps(here) == ["a", "b", "c"]
        await here.api.merge(f"{CONFIGMAPS}/c", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1)
        assert await maps(here) == []


@in_virtual_time
async def test_a_dependent_of_two_owners_leaves_the_one_that_waits() -> None:
    """It stays for the other, and blocks no more."""
    async with world("gc") as here:
        a, b = await make(here, "a"), await make(here, "b")
        await make(here, "c", owner(a, blocks=True), owner(b))
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Foreground")
        await asyncio.sleep(1)
        assert await maps(here) == ["b", "c"]
        assert owners_of(await here.api.get(f"{CONFIGMAPS}/c")) == ["b"]


@in_virtual_time
async def test_owners_that_wait_for_each_other_go() -> None:
    """A circle is no reason to stay for ever."""
    async with world("gc") as here:
        a = await make(here, "a")
        b = await make(here, "b", owner(a, blocks=True))
        await here.api.merge(f"{CONFIGMAPS}/a", {"metadata": {"ownerReferences": [owner(b, blocks=True)]}})
        await asyncio.sleep(1)
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Foreground")
        await asyncio.sleep(30)
        assert await maps(here) == []


@in_virtual_time
async def test_an_owner_that_does_not_block_any_more_lets_go() -> None:
    """Somebody takes ``blockOwnerDeletion`` away."""
    async with world("gc") as here:
        a = await make(here, "a")
        await make(here, "c", owner(a, blocks=True), finalizers=["test.io/hold"])
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Foreground")
        await asyncio.sleep(1)
        assert await maps(here) == ["a", "c"]
        await here.api.merge(f"{CONFIGMAPS}/c", {"metadata": {"ownerReferences": [owner(a)]}})
        await asyncio.sleep(1)
        assert await maps(here) == ["c"]


@in_virtual_time
async def test_what_names_an_owner_that_never_was_is_garbage() -> None:
    """Also one that was there under another uid."""
    async with world("gc") as here:
        a = await make(here, "a")
        await make(here, "b", ABSENT)
        await make(here, "c", owner(a) | {"uid": ABSENT["uid"]})
        await asyncio.sleep(1)
        assert await maps(here) == ["a"]


@in_virtual_time
async def test_what_was_there_before_is_looked_at() -> None:
    """A collector that starts finds what is to be done."""
    async with world() as here:
        a = await make(here, "a")
        await make(here, "b", owner(a))
        await make(here, "c", ABSENT)
        await make(here, "d", ABSENT, owner(a))
        here.start("gc")
        await asyncio.sleep(1)
        assert await maps(here) == ["a", "b", "d"]
        assert owners_of(await here.api.get(f"{CONFIGMAPS}/d")) == ["a"]


@in_virtual_time
async def test_an_owner_of_an_unknown_kind_is_not_taken_for_absent() -> None:
    """Its kind may be served tomorrow."""
    async with world("gc") as here:
        await make(here, "a", {"apiVersion": "test.io/v1", "kind": "Thing", "name": "t", "uid": ABSENT["uid"]})
        await asyncio.sleep(600)
        assert await maps(here) == ["a"]


@in_virtual_time
async def test_an_owner_in_another_namespace_owns_nothing() -> None:
    """The dependent goes, since in its own namespace there is no such owner, and an event says why."""
    async with world("gc") as here:
        other = await make(here, "a", path=f"{NAMESPACES}/kube-system/configmaps")
        uid = other["metadata"]["uid"]
        await make(here, "b", owner(other))
        await asyncio.sleep(1)
        assert await maps(here) == []
        text = f'ownerRef [v1/ConfigMap, namespace: default, name: a, uid: {uid}] does not exist in namespace "default"'
        assert await here.told("b", EVENTS) == [("OwnerRefInvalidNamespace", text)]
        assert await here.names(f"{NAMESPACES}/kube-system/configmaps") == ["a"]


@in_virtual_time
async def test_a_cluster_may_own_what_is_in_a_namespace_but_not_the_other_way_round() -> None:
    """A node owns a ConfigMap; a ConfigMap owns no node."""
    async with world("gc") as here:
        node = await make(here, "n", path="/api/v1/nodes")
        a = await make(here, "a", owner(node, kind="Node"))
        await make(here, "m", owner(a), path="/api/v1/nodes")
        await make(here, "k", owner(a) | {"uid": ABSENT["uid"]}, path="/api/v1/nodes")
        await asyncio.sleep(30)
        assert await here.names("/api/v1/nodes") == ["k", "m", "n"]
        await here.api.delete("/api/v1/nodes/n")
        await asyncio.sleep(30)
        assert await maps(here) == []
        assert await here.names("/api/v1/nodes") == ["k", "m"]


@in_virtual_time
async def test_nothing_that_is_owned_is_asked_for_without_a_reason() -> None:
    """Pods that are created for a Job cost the collector no request."""
    async with world("gc") as here:
        a = await make(here, "a")
        asked: list[str] = []
        handle = here.server.handle

        async def counting(request: Any) -> Any:
            if request.peer == "gc":
                asked.append(request.path)
            return await handle(request)

        here.wire.server = type("Counting", (), {"handle": staticmethod(counting)})()
        for number in range(20):
            await make(here, f"b{number}", owner(a, blocks=True))
        await asyncio.sleep(2)
        assert asked == []


@in_virtual_time
async def test_a_storm_of_conflicts_and_failures_changes_nothing_in_the_end() -> None:
    """What could not be done is tried again."""
    async with world("gc") as here:
        a = await make(here, "a")
        for number in range(10):
            await make(here, f"b{number}", owner(a, blocks=True))
        here.wire.server = None
        await here.api.delete(f"{CONFIGMAPS}/a", propagation="Foreground")
        await asyncio.sleep(60)
        here.wire.server = here.server
        await asyncio.sleep(60)
        assert await maps(here) == []


@in_virtual_time
async def test_kinds_are_discovered_once_the_server_answers() -> None:
    """Nothing is collected before; each failure is only a wait."""
    refresh, failures = Kinds.refresh, iter((Unreachable("away"), Unreachable("away"), Unreachable("away")))

    async def failing(kinds: Kinds, api: Any) -> None:
        if (failure := next(failures, None)) is not None:
            raise failure
        await refresh(kinds, api)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kinds, "refresh", failing)
        async with world("gc") as here:
            a = await make(here, "a")
            await make(here, "b", owner(a))
            await here.api.delete(f"{CONFIGMAPS}/a")
            await asyncio.sleep(1)
            assert await maps(here) == ["b"]
            await asyncio.sleep(2)
            assert await maps(here) == []
    assert next(failures, None) is None
