"""Flows of one manager that end alike with several: losses, moves, leases, drains, progress, retries (D14, D31, S2).

Each manager of such a flow is who assigns beside holders of all slots, in their own term, after their first minute.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import ModuleType
from typing import Any

import pytest
import test_flows_declared_dead
import test_flows_draining
import test_flows_fence
import test_flows_fence_managers
import test_flows_loss_scenarios
import test_flows_losses
import test_flows_moves
import test_flows_moves_killed
import test_flows_moves_places
import test_flows_progress
import test_flows_retry
import test_flows_retry_given_up
import test_flows_retry_takeover
from doubles import retried
from doubles.world import RunningManager, World, manager_of

from mirror.controllers.move_turns import AFTER_TAKING_OVER_SECONDS
from mirror.model.terms import Terms
from mirror.sharding.share import Share
from mirror.sharding.slots import Slot, slot_of_worker
from mirror.telemetry.metrics import Metrics

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

MODULES = (
    test_flows_declared_dead,
    test_flows_draining,
    test_flows_fence,
    test_flows_fence_managers,
    test_flows_loss_scenarios,
    test_flows_losses,
    test_flows_moves,
    test_flows_moves_killed,
    test_flows_moves_places,
    test_flows_progress,
    test_flows_retry,
    test_flows_retry_given_up,
    test_flows_retry_takeover,
)
OTHERWISE = {
    "test_a_dead_worker_gets_nothing_new": "looks at what the only manager knows",
    "test_nothing_moves_in_the_first_minute_of_a_leader": "here it is over when the flow begins",
    "test_a_manager_restarts": "the same: a lease is due",
    "test_copies_that_were_left_behind_take_places_until_they_are_gone": "who assigns does not see them",
    "test_nothing_but_the_text_is_written_while_there_is_no_place": "the record says that another worker is wanted",
}
"""Flows that look at what is another's with several managers."""
SLOTS = 16
WORKERS = ("east", "west", "north", "south", "other", "self")


def flows() -> list[Any]:
    """All of these modules, each with all of its parameters."""
    found = []
    for module in MODULES:
        for name, flow in vars(module).items():
            if name.startswith("test_") and inspect.iscoroutinefunction(flow) and name not in OTHERWISE:
                short = f"{module.__name__.removeprefix('test_flows_')}: {name}"
                found += [pytest.param(module, partial(flow, **given), id=short) for given in parameters_of(flow)]
    return found


def parameters_of(flow: Callable[..., Awaitable[None]]) -> list[dict[str, Any]]:
    """What it is called with, each time; once with nothing where it has no parameters."""
    calls: list[dict[str, Any]] = [{}]
    for mark in (one for one in getattr(flow, "pytestmark", ()) if one.name == "parametrize"):
        names_of = [mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0]
        values = [
            one.values if isinstance(one, type(pytest.param())) else one if len(names_of) > 1 else (one,)
            for one in mark.args[1]
        ]
        calls = [call | dict(zip(names_of, one, strict=True)) for call in calls for one in values]
    return calls


@asynccontextmanager
async def managers_of(world: World, **changes: Any) -> AsyncIterator[RunningManager]:
    """As ``manager_of``; who assigns is given."""
    count = TERMS[id(world)] = TERMS.get(id(world), 0) + 1
    term, metrics = f"t{count}", Metrics()
    changes = {"metrics": metrics, **changes}
    async with AsyncExitStack() as stack:
        for index in sorted({slot_of_worker(worker, SLOTS).index for worker in WORKERS}):
            terms = Terms(lambda _: term)
            await stack.enter_async_context(manager_of(world, share=Share(Slot(index, SLOTS)), terms=terms, **changes))
        terms = Terms(lambda worker: term if worker else "")
        manager = await stack.enter_async_context(manager_of(world, share=Share(slots=SLOTS), terms=terms, **changes))
        await manager.settle(AFTER_TAKING_OVER_SECONDS + 1)
        yield manager


TERMS: dict[int, int] = {}
"""Of each world, how many managers it has had."""


@asynccontextmanager
async def two_workers(**changes: Any) -> AsyncIterator[tuple[World, RunningManager]]:
    """As ``doubles.world.two_workers``."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with managers_of(world, **changes) as manager:
        yield world, manager


@pytest.mark.parametrize(("module", "flow"), flows())
async def test_a_flow_ends_alike_over_slots(
    module: ModuleType, flow: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever does what: the clusters are as the flow says."""
    monkeypatch.setattr(module, "manager_of", managers_of, raising=False)
    monkeypatch.setattr(module, "two_workers", two_workers, raising=False)
    monkeypatch.setattr(retried, "manager_of", managers_of)
    TERMS.clear()
    await flow()
    assert TERMS, "none of its managers was replaced by several"


def test_what_is_left_out_is_there() -> None:
    """A flow that has another name by now is not left out any more."""
    known = {name for module in MODULES for name in vars(module)}
    assert known >= OTHERWISE.keys()
