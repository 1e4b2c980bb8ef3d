"""Namespaces that are deleted: their content goes first, conditions say how that goes."""

from __future__ import annotations

import asyncio

from embedded_world import NAMESPACES, Json, World, in_virtual_time, pod, world

from mirror.embedded.controllers.namespaces import Found, changed
from mirror.kube.resources import CONFIGMAPS, PODS

N = f"{NAMESPACES}/n"


async def prepare(here: World) -> None:
    await here.api.create(NAMESPACES, {"metadata": {"name": "n"}})
    await here.api.create(f"{N}/configmaps", {"metadata": {"name": "a"}})
    await here.api.create(f"{N}/secrets", {"metadata": {"name": "s"}})


async def conditions(here: World) -> dict[str, Json]:
    found = await here.api.get(N)
    assert found["status"]["phase"] == "Terminating"
    return {one["type"]: one for one in found["status"].get("conditions", [])}


@in_virtual_time
async def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    """Some seconds after its deletion."""
    async with world("namespace", "serviceaccount", "scheduler", "kubelet") as here:
        await prepare(here)
        await here.api.create(f"{N}/pods", pod("p", annotations={"run-for": "never"}))
        await asyncio.sleep(1)
        await here.api.delete(N)
        await asyncio.sleep(4)
        assert (await here.api.get(f"{N}/configmaps/a"))["metadata"]["name"] == "a"
        await here.until(N, lambda one: one is None, seconds=60)
        await here.api.create(NAMESPACES, {"metadata": {"name": "n"}})
        assert await here.names(f"{N}/configmaps") == []


@in_virtual_time
async def test_what_waits_for_finalizers_is_said() -> None:
    """By kind, and by finalizer; the namespace goes when they are gone."""
    async with world("namespace") as here:
        await prepare(here)
        held = {"metadata": {"name": "b", "finalizers": ["test.io/hold"]}}
        await here.api.create(f"{N}/configmaps", held)
        await here.api.delete(N)
        await asyncio.sleep(6)
        found = await conditions(here)
        assert found["NamespaceContentRemaining"]["status"] == "True"
        text = "Some resources are remaining: configmaps. has 1 resource instances"
        assert found["NamespaceContentRemaining"]["message"] == text
        text = "Some content in the namespace has finalizers remaining: test.io/hold in 1 resource instances"
        assert found["NamespaceFinalizersRemaining"]["message"] == text
        assert found["NamespaceDeletionContentFailure"]["status"] == "False"
        assert await here.names(f"{N}/configmaps") == ["b"]
        await here.api.merge(f"{N}/configmaps/b", {"metadata": {"finalizers": None}})
        await here.until(N, lambda one: one is None, seconds=20)


@in_virtual_time
async def test_pods_go_first() -> None:
    """While one is left, nothing else is touched."""
    async with world("namespace") as here:
        await prepare(here)
        await here.api.create(f"{N}/pods", pod("p") | {"metadata": {"name": "p", "finalizers": ["test.io/hold"]}})
        await here.api.delete(N)
        await asyncio.sleep(10)
        assert await here.names(f"{N}/configmaps") == ["a"]
        await here.api.merge(f"{N}/pods/p", {"metadata": {"finalizers": None}})
        await here.until(N, lambda one: one is None, seconds=60)


@in_virtual_time
async def test_finalizers_of_others_on_the_namespace_keep_it() -> None:
    """In its spec or its metadata; its content goes all the same."""
    async with world("namespace") as here:
        await prepare(here)
        await here.api.merge(N, {"metadata": {"finalizers": ["test.io/hold"]}})
        await here.api.delete(N)
        await asyncio.sleep(20)
        found = await here.api.get(N)
        assert found["spec"].get("finalizers", []) == []
        assert await here.names(f"{N}/configmaps") == []
        await here.api.merge(N, {"metadata": {"finalizers": None}})
        assert await here.get(N) is None


@in_virtual_time
async def test_a_deletion_that_began_while_nobody_looked_is_finished() -> None:
    """A controller that starts finds it."""
    async with world() as here:
        await prepare(here)
        await here.api.delete(N)
        await asyncio.sleep(60)
        here.start("namespace")
        await here.until(N, lambda one: one is None, seconds=20)


@in_virtual_time
async def test_each_namespace_has_a_default_service_account() -> None:
    """One that is deleted comes back."""
    async with world("serviceaccount") as here:
        await prepare(here)
        await asyncio.sleep(1)
        for name in ("default", "n", "kube-system"):
            assert "default" in await here.names(f"{NAMESPACES}/{name}/serviceaccounts")
        await here.api.delete(f"{N}/serviceaccounts/default")
        await asyncio.sleep(1)
        assert await here.names(f"{N}/serviceaccounts") == ["default"]


def test_conditions_are_written_only_when_they_change() -> None:
    """And their times only with their status."""
    found = Found()
    first = changed([], found, "2026-03-01T12:00:00Z")
    assert first is not None
    assert {one["status"] for one in first} == {"False"}
    assert changed(first, Found(), "2026-03-01T12:01:00Z") is None
    found.add(CONFIGMAPS, [{"metadata": {"finalizers": ["x"]}}], 15)
    second = changed(first, found, "2026-03-01T12:02:00Z")
    assert second is not None
    times = {one["type"]: one["lastTransitionTime"] for one in second}
    assert times["NamespaceContentRemaining"] == "2026-03-01T12:02:00Z"
    assert times["NamespaceDeletionContentFailure"] == "2026-03-01T12:00:00Z"
    found.errors.append("unexpected items")
    third = {one["type"]: one for one in changed(second, found, "2026-03-01T12:03:00Z") or ()}
    failure = third["NamespaceDeletionContentFailure"]
    assert failure["message"] == "Failed to delete all resource types, 1 remaining: unexpected items"


def test_while_pods_remain_the_totals_are_not_said() -> None:
    """Nobody has counted the rest."""
    found = Found(are_totals_known=False)
    found.add(PODS, [{"metadata": {}}], 30)
    first = changed([], found, "2026-03-01T12:00:00Z") or []
    assert {one["status"] for one in first} == {"False"}
    assert found.estimate_seconds == 30
