"""Garbage collection against a model of a few lines: random owners, deletions and finalizers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from doubles.examples import examples
from embedded_world import CONFIGMAPS, Json, World, in_virtual_time, world
from hypothesis import given
from hypothesis import strategies as st

NAMES = 5
FINALIZER = "test.io/hold"

NAME = st.integers(0, NAMES - 1)
CREATE = st.tuples(
    st.just("create"), NAME, st.lists(st.tuples(NAME, st.booleans()), max_size=2, unique_by=lambda o: o[0])
)
DELETE = st.tuples(st.just("delete"), NAME, st.sampled_from(["Background", "Foreground", "Orphan"]))
HOLD = st.tuples(st.just("hold"), NAME, st.booleans())
STEPS = st.lists(st.one_of(CREATE, CREATE, DELETE, HOLD), min_size=3, max_size=12)


@dataclass
class Thing:
    """An object of the model."""

    owners: dict[int, bool]
    """Identities of owners, and whether they are blocked by this."""
    name: int
    is_held: bool = False
    policy: str = ""
    """How it is being deleted."""


@dataclass
class Model:
    """What should be there once everything has settled."""

    things: dict[int, Thing] = field(default_factory=dict)
    """By identity: a number that is never used again."""
    last: int = 0

    def by_name(self, name: int) -> int | None:
        return next((one for one, thing in self.things.items() if thing.name == name), None)

    def create(self, name: int, owners: dict[int, bool]) -> None:
        self.last += 1
        self.things[self.last] = Thing(owners, name)
        self.settle()

    def delete(self, identity: int, policy: str) -> None:
        thing = self.things[identity]
        # A deletion in the background changes nothing about one that waits for dependents already.
        if not thing.policy or policy != "Background":
            thing.policy = policy
        self.settle()

    def has_dependents(self, identity: int) -> bool:
        return any(identity in one.owners for one in self.things.values())

    def settle(self) -> None:
        while self.step():
            continue

    def step(self) -> bool:
        for identity, thing in list(self.things.items()):
            if thing.policy == "Orphan":
                for other in self.things.values():
                    other.owners.pop(identity, None)
            waits = thing.policy == "Foreground" and any(one.owners.get(identity) for one in self.things.values())
            if thing.policy and not waits and not thing.is_held:
                del self.things[identity]
                return True
            if thing.policy == "Orphan" or (thing.policy == "Foreground" and not self.has_dependents(identity)):
                # The collector has done its part: who comes later sees an owner that is there.
                thing.policy = "Background"
                return True
            if thing.policy and thing.policy != "Foreground":
                continue
            alive = {one for one in thing.owners if one in self.things}
            waiting = {one for one in alive if self.things[one].policy == "Foreground"}
            solid = alive - waiting
            if solid and solid != thing.owners.keys():
                thing.owners = {one: thing.owners[one] for one in solid}
                return True
            if thing.owners and not solid and not thing.policy:
                thing.policy = "Foreground" if waiting and self.has_dependents(identity) else "Background"
                return True
        return False


async def carry_out(here: World, model: Model, uids: dict[int, str], step: tuple[str, int, object]) -> None:
    """One step on the server and in the model."""
    what, name, more = step
    identity, path = model.by_name(name), f"{CONFIGMAPS}/n{name}"
    match what, more:
        case "create", list() as chosen:
            if identity is not None:
                return
            owners = {known: blocks for other, blocks in chosen if (known := model.by_name(other)) is not None}
            references: list[Json] = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": f"n{model.things[one].name}",
                    "uid": uids[one],
                    "blockOwnerDeletion": blocks,
                }
                for one, blocks in owners.items()
            ]
            body = {"metadata": {"name": f"n{name}", "ownerReferences": references}}
            made = await here.api.create(CONFIGMAPS, body)
            uids[model.last + 1] = made["metadata"]["uid"]
            model.create(name, owners)
        case "delete", str() as policy:
            if identity is None or model.things[identity].policy:
                return
            await here.api.delete(path, propagation=policy)
            model.delete(identity, policy)
        case "hold", bool() as is_held:
            if identity is None or (model.things[identity].policy and is_held):
                return
            found = await here.api.get(path)
            others = [one for one in found["metadata"].get("finalizers", []) if one != FINALIZER]
            await here.api.merge(path, {"metadata": {"finalizers": [*others, *([FINALIZER] if is_held else [])]}})
            model.things[identity].is_held = is_held
            model.settle()


@pytest.mark.slow
@examples(60)
@given(STEPS)
@in_virtual_time
async def test_what_is_left_is_what_the_model_says(steps: list[tuple[str, int, object]]) -> None:
    """After every step, once it has settled; at the end nothing is held, and everything that should has gone."""
    async with world("gc") as here:
        model, uids = Model(), dict[int, str]()
        for step in steps:
            await carry_out(here, model, uids, step)
            await asyncio.sleep(1)
            assert await here.names(CONFIGMAPS) == sorted(f"n{one.name}" for one in model.things.values()), step
        for name in range(NAMES):
            await carry_out(here, model, uids, ("hold", name, False))
            await asyncio.sleep(1)
        assert await here.names(CONFIGMAPS) == sorted(f"n{one.name}" for one in model.things.values())
