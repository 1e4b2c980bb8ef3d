"""Definitions, and the kinds that they define, on a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mirror.embedded.apiserver.storage.mvcc import Storage
from tests.embedded.apiserver.asking import MERGE, Asking

pytestmark = pytest.mark.looptime

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}},
}


def definition(**more: Any) -> dict[str, Any]:
    """Of Things."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "things", "kind": "Thing", "shortNames": ["th"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version], **more}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


def thing(name: str = "t", **more: Any) -> dict[str, Any]:
    """One of them."""
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {}, **more}


async def defined(api: Asking, **more: Any) -> None:
    """The definition is there, and carried out."""
    await api.ok("POST", CRDS, definition(**more))
    await asyncio.sleep(0)


async def test_a_kind_is_served_from_the_next_turn_of_the_loop() -> None:
    """A watch of definitions sees that without asking again."""
    api = Asking()
    async with api.watch(f"{CRDS}?watch=1") as watching:
        await api.ok("POST", CRDS, definition())
        assert (await watching.next())[1]["status"]["conditions"] is None
        _, body = await watching.next()
    assert [(one["type"], one["status"]) for one in body["status"]["conditions"]] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    made = await api.ok("POST", THINGS, thing())
    assert (made["spec"], made["metadata"]["generation"]) == ({"size": 3}, 1)
    assert await api.ok("GET", f"{THINGS}/t") == made


async def test_definitions_of_a_stored_state_are_served_at_once() -> None:
    """Also where their objects were made by an earlier server."""
    storage = Storage()
    before = Asking(storage)
    await defined(before)
    made = await before.ok("POST", THINGS, thing())
    assert await Asking(storage).ok("GET", f"{THINGS}/t") == made


async def test_objects_go_with_their_definition() -> None:
    """Watchers are told, and the kind is served no more."""
    api = Asking()
    await defined(api)
    made = await api.ok("POST", THINGS, thing())
    async with api.watch(f"{THINGS}?watch=1&resourceVersion={made['metadata']['resourceVersion']}") as watching:
        gone = await api.ok("DELETE", f"{CRDS}/things.example.com")
        assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert (await watching.next())[0] == "DELETED"
    assert (await api.ask("GET", f"{CRDS}/things.example.com"))[0] == 404
    assert (await api.ask("GET", THINGS))[0] == 404


async def test_an_object_with_a_finalizer_keeps_its_definition() -> None:
    """Until somebody takes it off."""
    api = Asking()
    await defined(api)
    held = thing()
    held["metadata"]["finalizers"] = ["example.com/held"]
    await api.ok("POST", THINGS, held)
    await api.ok("DELETE", f"{CRDS}/things.example.com")
    await asyncio.sleep(0)
    found = await api.ok("GET", f"{THINGS}/t")
    assert "deletionTimestamp" in found["metadata"]
    await api.ok("PATCH", f"{THINGS}/t", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await asyncio.sleep(0)
    assert (await api.ask("GET", f"{CRDS}/things.example.com"))[0] == 404


async def test_a_changed_schema_counts_from_the_next_turn() -> None:
    """For what is stored, too: its defaults come when it is read."""
    api = Asking()
    await defined(api)
    await api.ok("POST", THINGS, thing())
    changed = definition()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"mode": {"type": "string", "default": "A"}}}},
    }
    await api.ok("PATCH", f"{CRDS}/things.example.com", {"spec": changed["spec"]}, content_type=MERGE)
    await asyncio.sleep(0)
    assert (await api.ok("GET", f"{THINGS}/t"))["spec"] == {"mode": "A"}


async def test_rules_are_asked_where_there_is_no_thread() -> None:
    """In memory everything is done where it is asked for."""
    api = Asking()
    ruled = definition()
    schema = {**SCHEMA, "x-kubernetes-validations": [{"rule": "self.spec.size > 3", "message": "too small"}]}
    ruled["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    await api.ok("POST", CRDS, ruled)
    await asyncio.sleep(0)
    code, _, message = await api.refused("POST", THINGS, thing())
    assert code == 422
    assert "too small" in message


async def test_whole_floats_are_stored_as_whole_numbers() -> None:
    """As Go writes them; what a client sends back has not changed then."""
    api = Asking()
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    open_definition = definition()
    open_definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": open_schema}
    await api.ok("POST", CRDS, open_definition)
    await asyncio.sleep(0)
    sent = [1e10, {"x": -2.0}, 1e20, 0.5, "1.0,2.0"]
    stored = (await api.ok("POST", THINGS, thing(data=sent)))["data"]
    assert stored == sent
    assert [type(one) for one in (stored[0], stored[1]["x"], *stored[2:])] == [int, int, float, float, str]


async def test_conversion_by_webhooks_is_refused() -> None:
    """Said where the author looks."""
    api = Asking()
    code, _, message = await api.refused("POST", CRDS, definition(conversion={"strategy": "Webhook"}))
    assert code == 422
    assert "spec.conversion.strategy: Forbidden: this server does not call webhooks that convert" in message
