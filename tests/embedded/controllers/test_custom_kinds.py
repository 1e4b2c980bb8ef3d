"""Kinds that come and go: their objects are collected, and go with their namespaces, as all others."""

from __future__ import annotations

import asyncio

from embedded_world import CONFIGMAPS, NAMESPACES, Json, in_virtual_time, world

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/test.io/v1/namespaces/default/things"


def definition() -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.test.io"},
        "spec": {
            "group": "test.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def thing(name: str, *owners: Json) -> Json:
    return {"apiVersion": "test.io/v1", "kind": "Thing", "metadata": {"name": name, "ownerReferences": list(owners)}}


def owner(body: Json) -> Json:
    meta = body["metadata"]
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": meta["name"], "uid": meta["uid"]}


@in_virtual_time
async def test_objects_of_a_new_kind_own_and_are_owned() -> None:
    """Soon after the kind is served."""
    async with world("gc", "namespace") as here:
        await here.api.create(DEFINITIONS, definition())
        await asyncio.sleep(2)
        a = await here.api.create(THINGS, thing("a"))
        b = await here.api.create(CONFIGMAPS, {"metadata": {"name": "b", "ownerReferences": [owner(a)]}})
        await here.api.create(THINGS, thing("c", owner(b | {"apiVersion": "v1", "kind": "ConfigMap"})))
        await asyncio.sleep(2)
        await here.api.delete(f"{THINGS}/a")
        await asyncio.sleep(2)
        assert await here.names(THINGS) == []
        assert "b" not in await here.names(CONFIGMAPS)


@in_virtual_time
async def test_owners_of_a_kind_that_is_gone_are_not_taken_for_absent() -> None:
    """Nobody knows whether they are."""
    async with world("gc") as here:
        await here.api.create(DEFINITIONS, definition())
        await asyncio.sleep(2)
        a = await here.api.create(THINGS, thing("a"))
        await here.api.create(CONFIGMAPS, {"metadata": {"name": "b", "ownerReferences": [owner(a)]}})
        await asyncio.sleep(2)
        here.tasks["gc"].cancel()
        await here.api.delete(f"{DEFINITIONS}/things.test.io")
        await asyncio.sleep(5)
        here.start("gc")
        await asyncio.sleep(100)
        assert "b" in await here.names(CONFIGMAPS)


@in_virtual_time
async def test_an_owner_that_was_seen_to_go_with_its_kind_is_absent() -> None:
    """Then its dependents are garbage."""
    async with world("gc") as here:
        await here.api.create(DEFINITIONS, definition())
        await asyncio.sleep(2)
        a = await here.api.create(THINGS, thing("a"))
        await here.api.create(CONFIGMAPS, {"metadata": {"name": "b", "ownerReferences": [owner(a)]}})
        await asyncio.sleep(2)
        await here.api.delete(f"{DEFINITIONS}/things.test.io")
        await asyncio.sleep(10)
        assert "b" not in await here.names(CONFIGMAPS)


@in_virtual_time
async def test_a_namespace_goes_with_objects_of_a_new_kind() -> None:
    """Discovery is asked anew each time."""
    async with world("namespace") as here:
        await here.api.create(DEFINITIONS, definition())
        await asyncio.sleep(2)
        await here.api.create(NAMESPACES, {"metadata": {"name": "n"}})
        await here.api.create("/apis/test.io/v1/namespaces/n/things", thing("a"))
        await here.api.delete(f"{NAMESPACES}/n")
        await here.until(f"{NAMESPACES}/n", lambda one: one is None, seconds=30)
        assert await here.names("/apis/test.io/v1/things") == []
