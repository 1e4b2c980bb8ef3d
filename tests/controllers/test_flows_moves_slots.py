"""Moves with several active managers: requested by a worker's holder, written by who assigns (D14, S2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from doubles.jobs import Body, condition, job
from doubles.refusals import forbidden
from doubles.slots import SLOTS, Board, assigner_of, holder_of, index_of, reason_of, replicas, world_of
from doubles.transport import Fault
from doubles.world import WAITING, RunningManager, World

from mirror.controllers.applying import Applier
from mirror.controllers.move_turns import MOST_ARE_LOST, MOST_OF_HOLDER_ARE_LOST, MoveTurns
from mirror.decide import requested_moves, rules
from mirror.decide.plan import ConfirmRequest
from mirror.decide.snapshot import Policy, Snapshot
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.model.moves import parse_moves

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

LOST_AFTER = 120.0
RESCHEDULE = Policy(lost_after_seconds=LOST_AFTER, on_loss=OnLoss.RESCHEDULE)
MINUTE = 60.0


async def running_on_east(world: World, manager: RunningManager, name: str = "train", **spec: Any) -> str:
    """A Job that runs on east, where alone it may be at first; the uid of its mirror."""
    world.annotate_worker("north", cordoned="true")
    await manager.settle(2)
    world.create(job(name, **spec))
    await manager.settle(2)
    assert world.placed(name) == "east"
    world.controller("east").start(name)
    await manager.settle(2)
    world.annotate_worker("north", cordoned=None)
    await manager.settle(2)
    return uid_on(world, "east", name)


async def requested(world: World, manager: RunningManager) -> str:
    """Another worker is requested for a Job on east, which is lost; there is none. The uid of the mirror there."""
    uid = await running_on_east(world, manager)
    world.annotate_worker("north", cordoned="true")
    world.workers["east"].go_down()
    await manager.settle(LOST_AFTER + 30)
    assert (world.placed(), reason_of(world)) == ("east", "Placed,MoveWanted:t1")
    return uid


def uid_on(world: World, worker: str, name: str = "train") -> str:
    found: Body | None = world.mirror(worker, name)
    return str((found or {})["metadata"]["uid"])


def moved_message(world: World, name: str = "train") -> str:
    listed = world.source(name)["status"].get("conditions", [])
    return next((one["message"] for one in listed if one["type"] == names.MOVED), "")


def live(world: World, name: str = "train") -> list[str]:
    """Where a mirror of it may run pods: of the clusters that are there, lost or not."""
    found = ((worker, world.mirror(worker, name)) for worker in world.workers)
    return [worker for worker, mirror in found if mirror is not None and not mirror["spec"].get("suspend")]


# -- from a lost worker ------------------------------------------------------------------------------------------------


async def test_a_job_of_a_lost_worker_goes_to_one_of_another_slot() -> None:
    """D14: after lostAfter; the copy there is named in the record, and deleted by its holder once it is back."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        uid = await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(LOST_AFTER - 10)
        assert world.placed() == "east"
        await manager.settle(40)
        assert (world.placed(), reason_of(world)) == ("north", "Placed:t1")
        assert world.conditions()["Suspended"] == "WorkerLost"
        (left,) = parse_moves(moved_message(world)).left_behind
        assert (left.worker, left.uid) == ("east", uid)
        assert world.texts("Moved") == ["moved from east to north (move 1); the copy on east may still run"]
        world.controller("north").start("train")
        await manager.settle(2)
        assert "Suspended" not in world.conditions()
        world.workers["east"].restore()
        await manager.settle(30)
        assert world.mirrors() == ["north"]
        world.controller("north").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_worker_that_is_back_before_there_is_a_place_has_lost_nothing() -> None:
    """The request is withdrawn before anything is done there, and what comes later moves nothing."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        uid = await requested(world, manager)
        assert "the Job waits for another worker: " in (world.annotation(WAITING) or "")
        world.workers["east"].restore()
        await manager.settle(30)
        assert (world.placed(), reason_of(world)) == ("east", "Placed:t1")
        assert world.annotation(WAITING) is None
        world.annotate_worker("north", cordoned=None)
        await manager.settle(3 * MINUTE)
        assert (world.mirrors(), uid_on(world, "east")) == (["east"], uid)
        assert moved_message(world) == ""
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_with_wait_nothing_is_requested() -> None:
    """D14: the default; its holder writes what a single manager would."""
    world = world_of()
    async with replicas(world, policy=Policy(lost_after_seconds=LOST_AFTER)) as manager:
        await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(30 * MINUTE)
        assert (world.placed(), reason_of(world)) == ("east", "Placed:t1")
        text = world.annotation(WAITING) or ""
        assert text.startswith("worker east is lost (")
        assert text.endswith("); the Job stays assigned to it")


async def test_one_that_its_user_suspends_is_not_moved_before_it_is_resumed() -> None:
    """D3: although another worker was requested; nothing is lost by that."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        await requested(world, manager)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(30)
        assert reason_of(world) == "Placed:t1"
        world.annotate_worker("north", cordoned=None)
        await manager.settle(3 * MINUTE)
        assert world.placed() == "east"
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(MINUTE)
        assert world.placed() == "north"


async def test_an_earlier_copy_that_completed_counts() -> None:
    """D14: by a write of the holder of its worker, although the Job runs elsewhere; what ran there is deleted."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        uid = await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(LOST_AFTER + 30)
        assert world.placed() == "north"
        world.controller("north").start("train")
        await manager.settle(2)
        world.controller("east").complete("train")
        world.workers["east"].restore()
        await manager.settle(30)
        assert "Complete" in world.conditions()
        assert (world.placed(), world.mirrors(), uid_on(world, "east")) == ("east", ["east"], uid)
        assert len(world.texts("EarlierCopyCompleted")) == 1
        await manager.settle(3 * MINUTE)
        assert world.mirrors() == ["east"]


async def test_what_was_never_made_leaves_nothing_behind() -> None:
    """No create was sent in the term in which it was recorded: nothing can be there, and the worker stays eligible."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        world.annotate_worker("north", cordoned="true")
        await manager.settle(2)
        world.workers["east"].arrange("create", "jobs", Fault.BREAK, times=1000)
        world.create(job())
        await manager.settle(5)
        assert (world.placed(), world.mirrors()) == ("east", [])
        world.workers["east"].go_down()
        world.annotate_worker("north", cordoned=None)
        await manager.settle(LOST_AFTER + MINUTE)
        assert (world.placed(), world.mirrors()) == ("north", ["north"])
        assert parse_moves(moved_message(world)).left_behind == ()


async def test_it_goes_on_to_the_next_worker_and_back() -> None:
    """D14: by its holder at that time; what was left there is deleted before the next mirror is made."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        first = await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(LOST_AFTER + 30)
        assert world.placed() == "north"
        world.controller("north").start("train")
        await manager.settle(2)
        second = uid_on(world, "north")
        world.workers["east"].restore()
        await manager.settle(30)
        world.workers["north"].go_down()
        await manager.settle(LOST_AFTER + 30)
        assert world.placed() == "east"
        assert uid_on(world, "east") != first
        assert [(one.worker, one.uid) for one in parse_moves(moved_message(world)).left_behind][-1] == (
            "north",
            second,
        )
        world.workers["north"].restore()
        await manager.settle(30)
        assert world.mirrors() == ["east"]


# -- who requests, and who assigns, change in between ------------------------------------------------------------------


async def test_a_holder_that_dies_after_its_request() -> None:
    """S8: the next one waits a minute of its term, requests in its own name, and the Job is moved then."""
    world, board = world_of(), Board()
    north = holder_of(world, index_of("north"), policy=RESCHEDULE)
    async with assigner_of(world, board=board, policy=RESCHEDULE) as manager, north:
        async with holder_of(world, index_of("east"), policy=RESCHEDULE):
            await requested(world, manager)
        board.terms[index_of("east")] = ""
        world.annotate_worker("north", cordoned=None)
        await manager.settle(MINUTE)
        assert (world.placed(), reason_of(world)) == ("east", "Placed,MoveWanted:t1")
        board.terms[index_of("east")] = "t2"
        async with holder_of(world, index_of("east"), "t2", policy=RESCHEDULE):
            await manager.settle(55)
            assert world.placed() == "east"
            await manager.settle(60)
            assert (world.placed(), world.mirrors()) == ("north", ["east", "north"])


async def test_a_holder_that_takes_over_once_the_worker_is_back() -> None:
    """What the one before has requested is withdrawn: the Job stays."""
    world, board = world_of(), Board()
    north = holder_of(world, index_of("north"), policy=RESCHEDULE)
    async with assigner_of(world, board=board, policy=RESCHEDULE) as manager, north:
        async with holder_of(world, index_of("east"), policy=RESCHEDULE):
            uid = await requested(world, manager)
        board.terms[index_of("east")] = "t2"
        world.workers["east"].restore()
        async with holder_of(world, index_of("east"), "t2", policy=RESCHEDULE):
            await manager.settle(30)
            world.annotate_worker("north", cordoned=None)
            await manager.settle(5 * MINUTE)
            assert (world.placed(), reason_of(world)) == ("east", "Placed:t2")
            assert (world.mirrors(), uid_on(world, "east")) == (["east"], uid)


async def test_who_assigns_dies_before_it_has_moved_a_job() -> None:
    """The request stands in the record: whoever assigns next fulfils it, once."""
    world = world_of()
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index, policy=RESCHEDULE))
        async with assigner_of(world, policy=RESCHEDULE) as manager:
            await requested(world, manager)
        world.annotate_worker("north", cordoned=None)
        await manager.settle(MINUTE)
        assert world.placed() == "east"
        async with assigner_of(world, policy=RESCHEDULE):
            await manager.settle(30)
            assert (world.placed(), world.mirrors()) == ("north", ["east", "north"])
            assert parse_moves(moved_message(world)).count == 1


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.HANG])
@pytest.mark.parametrize("step", ["request", "move", "withdrawal"])
async def test_an_answer_that_is_lost_changes_nothing(step: str, fault: Fault) -> None:
    """S2: whatever becomes of any of the three writes, one of a move and its withdrawal is stored, once."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        if step == "request":
            await running_on_east(world, manager)
            world.workers["east"].go_down()
            await manager.settle(LOST_AFTER - 20)
            world.management.arrange("patch", "jobs/status", fault, times=2)
        else:
            await requested(world, manager)
            world.management.arrange("patch", "jobs/status", fault, times=2)
        if step == "withdrawal":
            world.workers["east"].restore()
        elif step == "move":
            world.annotate_worker("north", cordoned=None)
        await manager.settle(4 * MINUTE)
        expected = "east" if step == "withdrawal" else "north"
        assert (world.placed(), reason_of(world)) == (expected, "Placed:t1")
        assert parse_moves(moved_message(world)).count == (0 if step == "withdrawal" else 1)
        assert expected in world.mirrors()


# -- what arrives late -------------------------------------------------------------------------------------------------


SOON = Policy(lost_after_seconds=45.0, on_loss=OnLoss.RESCHEDULE)
"""Nothing is written about a loss before it is time to move: a late request meets the version that it was for."""


async def request_under_way(world: World, manager: RunningManager, peer: str) -> None:
    """The request of this holder of east is sent, and arrives after 40 s."""
    await running_on_east(world, manager)
    await manager.settle(MINUTE)
    world.workers["east"].go_down()
    await manager.settle(30)
    version = world.source()["metadata"]["resourceVersion"]
    world.management.late[peer] = 40.0
    await manager.settle(22)
    assert (world.source()["metadata"]["resourceVersion"], reason_of(world)) == (version, "Placed:t1")


async def request_of_a_dead_holder(world: World) -> None:
    """A holder's request arrives when the next one works, whose worker is back; who assigns sees Leases late."""
    board, east = Board(), index_of("east")
    north = holder_of(world, index_of("north"), policy=SOON)
    async with assigner_of(world, board=board, policy=SOON) as manager, north:
        async with holder_of(world, east, policy=SOON, who={"peer": "dead"}):
            await request_under_way(world, manager, "dead")
        board.shown, board.terms = dict(board.terms), board.terms | {east: "t2"}
        world.workers["east"].restore()
        async with holder_of(world, east, "t2", policy=SOON, who={"peer": "next"}):
            await manager.settle(5)
            world.management.late["next"] = 30.0  # it withdraws what it sees, but not at once
            await manager.settle(3 * MINUTE)


async def test_a_request_of_a_dead_holder_that_arrives_late_moves_nothing() -> None:
    """S6: who assigns reads the Lease after it has seen the request, whatever its watch of Leases shows."""
    world = world_of()
    await request_of_a_dead_holder(world)
    assert (world.placed(), moved_message(world)) == ("east", "")


async def test_a_request_that_is_believed_without_its_lease_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault (S6): who assigns believes its watch of Leases, and moves a Job from a worker that runs it."""

    async def believe(self: Applier, seen: Snapshot, action: ConfirmRequest) -> None:
        version = seen.source.found.metadata.resource_version
        self._t.state.memories.set(seen.source.uid, request_confirmed=version)
        self._t.state.intake.add(seen.key)

    monkeypatch.setattr(Applier, "_confirm_request", believe)
    world = world_of()
    await request_of_a_dead_holder(world)
    assert moved_message(world) != ""


async def request_that_arrives_when_its_worker_is_back(world: World) -> None:
    """What its holder writes 20 s after that is late as well, the withdrawal of what it sees by then included."""
    board, east = Board(), index_of("east")
    north = holder_of(world, index_of("north"), policy=SOON)
    holding = holder_of(world, east, policy=SOON, who={"peer": "east"})
    async with assigner_of(world, board=board, policy=SOON) as manager, north, holding as holder:
        await request_under_way(world, manager, "east")
        world.management.late.clear()
        world.workers["east"].restore()
        await manager.settle(20)  # the client gives up after 15 s
        assert holder.registry.workers["east"].is_reachable
        world.management.late["east"] = 30.0
        await manager.settle(3 * MINUTE)


async def test_a_request_that_arrives_when_its_worker_is_back_moves_nothing() -> None:
    """S2: its holder does not go on there before it has made sure that the request meets another version."""
    world = world_of()
    await request_that_arrives_when_its_worker_is_back(world)
    assert (world.placed(), world.mirrors(), moved_message(world)) == ("east", ["east"], "")


async def test_a_request_that_is_not_made_void_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault (S2): a holder goes on as if a request without an answer had never been sent."""
    monkeypatch.setattr(requested_moves, "void", lambda _: None)
    world = world_of()
    await request_that_arrives_when_its_worker_is_back(world)
    assert moved_message(world) != ""


async def test_a_job_that_is_followed_although_it_is_to_go_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault (S2): a holder whose worker is back goes on there without withdrawing its request."""
    monkeypatch.setattr(rules, "_RULES_OF_HOLDER", rules._RULES_OF_PLACED)
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        await requested(world, manager)
        world.workers["east"].restore()
        await manager.settle(30)
        world.annotate_worker("north", cordoned=None)
        await manager.settle(3 * MINUTE)
        assert moved_message(world) != ""


async def test_words_of_a_worker_are_no_request() -> None:
    """D20: what somebody else writes on a source is noticed, whatever its mirror's status says."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        await running_on_east(world, manager)
        stuck = condition("Stuck", world.management.clock.text(), reason="MoveWanted", message="MoveWanted")
        for ready in (1, 0, 1, 0, 1):
            status = {"active": 1, "ready": ready, "conditions": [*world.source()["status"]["conditions"], stuck]}
            world.edit(lambda body, status=status: body["status"].update(status))
            await manager.settle(2)
        assert "StatusConflict" in world.events()


# -- guards ------------------------------------------------------------------------------------------------------------


async def test_nothing_moves_while_most_workers_of_all_slots_are_lost() -> None:
    """D14: who assigns knows all of them; its words are on the Job."""
    world = world_of(("east", "north", "up"))
    async with replicas(world, policy=RESCHEDULE) as manager:
        world.annotate_worker("up", cordoned="true")
        await running_on_east(world, manager)
        for name in ("east", "up"):
            world.workers[name].go_down()
        await manager.settle(10 * MINUTE)
        assert world.placed() == "east"
        assert MOST_ARE_LOST in (world.annotation(WAITING) or "")
        assert "MovesHeld" in world.events()
        world.workers["up"].restore()
        await manager.settle(MINUTE)
        assert world.placed() == "north"


async def test_who_assigns_no_more_reports_no_moves_that_are_held() -> None:
    """S4: its process goes on with its slots, and the alert would never end."""
    world = world_of(("east", "north", "up"))
    async with replicas(world, policy=RESCHEDULE) as manager:
        await running_on_east(world, manager)
        for name in ("east", "up"):
            world.workers[name].go_down()
        await manager.settle(10 * MINUTE)
        assert manager.metrics.registry.get_sample_value("jobmirror_moves_held") == 1
    assert manager.metrics.registry.get_sample_value("jobmirror_moves_held") == 0


async def test_nothing_moves_while_most_workers_of_one_manager_are_lost() -> None:
    """D14: of several managers it may be that one which is cut off."""
    mine, others = ("east", "down"), ("north", "up", "near")
    assert {index_of(name) for name in mine} != {index_of(name) for name in others}
    world, board = world_of((*mine, *others)), Board(holders={0: "one", 1: "two"})
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index, policy=RESCHEDULE))
        manager = await stack.enter_async_context(assigner_of(world, board=board, policy=RESCHEDULE))
        for name in (*mine, *others):
            if name not in ("east", "north"):
                world.annotate_worker(name, cordoned="true")
        await running_on_east(world, manager)
        for name in mine:
            world.workers[name].go_down()
        await manager.settle(10 * MINUTE)
        assert world.placed() == "east"
        assert MOST_OF_HOLDER_ARE_LOST in (world.annotation(WAITING) or "")
        assert "MovesHeld" in world.events()
        board.holders[index_of("east")] = board.holders[index_of("north")]
        await manager.settle(MINUTE)
        assert world.placed() == "north"


async def test_moves_go_one_after_the_other_over_all_slots() -> None:
    """D14: ``moveRate`` is kept by who assigns; capacity as well."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE, move_rate=1.0) as manager:
        world.annotate_worker("north", cordoned="true")
        await manager.settle(2)
        names_of = [f"train-{number}" for number in range(20)]
        for name in names_of:
            world.create(job(name))
        await manager.settle(10)
        world.annotate_worker("north", cordoned=None, capacity="15")
        world.workers["east"].go_down()
        await manager.settle(LOST_AFTER)
        counts = []
        for _ in range(8):
            counts.append(sum(world.placed(name) == "north" for name in names_of))
            await manager.settle(5)
        assert all(later - before <= 6 for before, later in pairwise(counts))
        await manager.settle(MINUTE)
        assert sum(world.placed(name) == "north" for name in names_of) == 15
        assert len(world.workers["north"].server.all("jobs")) == 15


# -- drains, and workers that are gone ---------------------------------------------------------------------------------

SEEDING = Policy(seed_progress=True)
INDEXED = {"completionMode": "Indexed", "completions": 10, "parallelism": 2}


async def place_found(world: World, manager: RunningManager) -> str:
    """A Job runs on east, which is drained: a place is kept for it, and its mirror stops; its uid."""
    uid = await running_on_east(world, manager, **INDEXED)
    await manager.settle(MINUTE)
    world.annotate_worker("east", drain="move-started")
    await manager.settle(3)
    assert reason_of(world) == "Placed,PlaceFoundDrained:t1"
    assert live(world) == []
    return uid


def stopped(world: World) -> None:
    """As east's controller says it once the pods of the mirror have ended."""
    at = world.management.clock.text()
    suspended = condition("Suspended", at, reason="JobSuspended", message="Job suspended")
    counted = {"succeeded": 4, "completedIndexes": "0-3", "terminating": 0}
    world.controller("east").set("train", counted | {"conditions": [suspended]})


async def test_a_drained_job_goes_to_another_slot() -> None:
    """D15: nothing stops without a place; what was counted goes along; no copy is left behind."""
    world = world_of()
    async with replicas(world, policy=SEEDING) as manager:
        await running_on_east(world, manager, **INDEXED)
        world.annotate_worker("north", cordoned="true")
        world.annotate_worker("east", drain="move-started")
        await manager.settle(5 * MINUTE)
        assert (reason_of(world), live(world)) == ("Placed,PlaceWantedDrained:t1", ["east"])
        world.annotate_worker("north", cordoned=None)
        await manager.settle(90)
        assert (reason_of(world), live(world)) == ("Placed,PlaceFoundDrained:t1", [])
        stopped(world)
        await manager.settle(10)
        assert (world.placed(), world.mirrors(), live(world)) == ("north", ["north"], ["north"])
        assert (world.mirror("north") or {})["status"]["completedIndexes"] == "0-3"
        assert world.texts("Moved") == ["moved from east to north (move 1); no copy is left on east"]


async def test_a_holder_that_dies_while_a_drained_job_stops() -> None:
    """Its successor asks for a place in its own name, and waits for its first minute before the record leaves (S8)."""
    world, board, east = world_of(), Board(), index_of("east")
    north = holder_of(world, index_of("north"), policy=SEEDING)
    async with assigner_of(world, board=board, policy=SEEDING) as manager, north:
        async with holder_of(world, east, policy=SEEDING):
            await place_found(world, manager)
        board.terms[east] = "t2"
        stopped(world)
        async with holder_of(world, east, "t2", policy=SEEDING):
            await manager.settle(50)
            assert (world.placed(), live(world)) == ("east", [])
            await manager.settle(40)
            assert (world.placed(), world.mirrors()) == ("north", ["north"])
            assert (world.mirror("north") or {})["status"]["completedIndexes"] == "0-3"


async def test_who_assigns_dies_while_a_drained_job_stops() -> None:
    """The next one keeps a place for it, too."""
    world = world_of()
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index, policy=SEEDING))
        async with assigner_of(world, policy=SEEDING) as manager:
            await place_found(world, manager)
        stopped(world)
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", [])
        assert reason_of(world) == "Placed,MoveWantedDrained:t1"
        async with assigner_of(world, policy=SEEDING):
            await manager.settle(20)
            assert (world.placed(), world.mirrors()) == ("north", ["north"])


@asynccontextmanager
async def nobody_assigns_while_it_stops(world: World) -> AsyncIterator[None]:
    """Who assigned has died; a place was found for a drained Job, which stops."""
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index, policy=SEEDING))
        async with assigner_of(world, policy=SEEDING) as manager:
            await place_found(world, manager)
        yield


async def test_who_assigns_next_keeps_the_place_of_a_drained_job_before_it_gives_any() -> None:
    """It was found before, and whoever waits does not get it."""
    world = world_of()
    world.annotate_worker("north", capacity="1")
    async with nobody_assigns_while_it_stops(world):
        world.create(job("other"))
        async with assigner_of(world, policy=SEEDING) as manager:
            await manager.settle(MINUTE)
            assert (reason_of(world), world.placed("other")) == ("Placed,PlaceFoundDrained:t1", None)
            stopped(world)
            await manager.settle(MINUTE)
            assert (world.placed(), world.mirrors(), world.placed("other")) == ("north", ["north"], None)


async def test_a_place_that_is_none_any_more_lets_a_drained_job_go_on() -> None:
    """D15: nothing stops without a place."""
    world = world_of()
    async with nobody_assigns_while_it_stops(world):
        world.annotate_worker("north", cordoned="true")
        async with assigner_of(world, policy=SEEDING) as manager:
            await manager.settle(MINUTE)
            stopped(world)
            await manager.settle(MINUTE)
            assert (reason_of(world), live(world)) == ("Placed,PlaceWantedDrained:t1", ["east"])
            world.annotate_worker("north", cordoned=None)
            await manager.settle(3 * MINUTE)
            assert live(world) == ["east"]  # its controller has not answered yet that it goes on
            world.controller("east").resume("train")
            await manager.settle(MINUTE)
            assert live(world) == []
            stopped(world)
            await manager.settle(MINUTE)
            assert (world.placed(), world.mirrors()) == ("north", ["north"])


@pytest.mark.parametrize("moment", ["a place is wanted", "a place is found", "a move is wanted"])
async def test_a_drain_that_is_cancelled_leaves_it_where_it_is(moment: str) -> None:
    """D15: whatever has been requested is withdrawn; what was deleted there is made again there."""
    world = world_of()
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index, policy=SEEDING))
        async with assigner_of(world, policy=SEEDING) as manager:
            if moment == "a place is wanted":
                uid = await running_on_east(world, manager, **INDEXED)
                world.annotate_worker("north", cordoned="true")
                world.annotate_worker("east", drain="move-started")
                await manager.settle(10)
                assert reason_of(world) == "Placed,PlaceWantedDrained:t1"
            else:
                uid = await place_found(world, manager)
        if moment == "a move is wanted":
            stopped(world)
            await manager.settle(20)
            assert reason_of(world) == "Placed,MoveWantedDrained:t1"
        world.annotate_worker("east", drain=None)
        await manager.settle(20)
        assert (reason_of(world), live(world)) == ("Placed:t1", ["east"])
        async with assigner_of(world, policy=SEEDING):
            world.annotate_worker("north", cordoned=None)
            await manager.settle(2 * MINUTE)
            assert (world.placed(), live(world)) == ("east", ["east"])
            assert (uid_on(world, "east") == uid) is (moment != "a move is wanted")


async def create_that_comes_late(world: World) -> list[str]:
    """Where a Job was live at once: a holder's create arrives when the next one has drained its worker."""
    board, east, found = Board(), index_of("east"), list[str]()
    north = holder_of(world, index_of("north"))
    async with assigner_of(world, board=board) as manager, north:
        world.annotate_worker("north", cordoned="true")
        async with holder_of(world, east, who={"peer": "dead"}):
            await manager.settle(5)
            world.workers["east"].late["dead"] = 45.0
            world.create(job())
            await manager.settle(2)
            assert (world.placed(), world.mirrors()) == ("east", [])
        board.terms[east] = "t2"
        world.annotate_worker("north", cordoned=None)
        async with holder_of(world, east, "t2"):
            await manager.settle(2)
            assert live(world) == ["east"]
            world.annotate_worker("east", drain="move-started")
            for _ in range(3 * 60):
                await manager.settle(1)
                if len(live(world)) > 1:
                    found = live(world)
                if (mirror := world.mirror("east")) is not None:
                    on_east = world.controller("east")
                    (on_east.suspend if mirror["spec"].get("suspend") else on_east.start)("train")
            assert world.placed() == "north"
    return found


async def test_a_create_of_before_a_takeover_is_waited_for() -> None:
    """S8: what the holder before has sent is carried out before it is proved that nothing is there."""
    world = world_of()
    assert await create_that_comes_late(world) == []


async def test_a_record_that_leaves_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault (S8): nothing is waited for after a takeover, and a Job runs on two workers."""
    monkeypatch.setattr(MoveTurns, "settles_in_seconds", 0.0)
    world = world_of()
    assert await create_that_comes_late(world) == ["east", "north"]


async def test_a_worker_that_is_declared_gone_is_left_at_once_but_for_the_first_minute() -> None:
    """D14, S8: whatever the policy is."""
    world, board, east = world_of(), Board(), index_of("east")
    north = holder_of(world, index_of("north"))
    async with assigner_of(world, board=board) as manager, north:
        async with holder_of(world, east):
            uid = await running_on_east(world, manager)
        board.terms[east] = "t2"
        world.workers["east"].go_down()
        async with holder_of(world, east, "t2"):
            world.annotate_worker("east", gone="true")
            await manager.settle(50)
            assert world.placed() == "east"
            await manager.settle(30)
            assert world.placed() == "north"
            (left,) = parse_moves(moved_message(world)).left_behind
            assert (left.uid, left.promise) == (uid, "gone")


async def test_a_copy_that_is_the_only_one_counts_again() -> None:
    """57: no worker of another slot takes it; its worker is back, and it is there as before."""
    world = world_of()
    async with replicas(world, policy=RESCHEDULE) as manager:
        uid = await running_on_east(world, manager)
        world.workers["north"].arrange("create", "jobs", forbidden(), times=100)
        world.workers["east"].go_down()
        await manager.settle(5 * MINUTE)
        assert world.mirrors() == ["east"]
        world.workers["east"].restore()
        await manager.settle(30)
        assert (world.placed(), world.mirrors(), uid_on(world, "east")) == ("east", ["east"], uid)
        assert moved_message(world) == ""


async def test_a_copy_that_is_about_to_go_is_not_counted_on() -> None:
    """The next worker refuses the Job while the delete of the copy that it left is on its way (D11)."""
    world, east = world_of(), index_of("east")
    holding, north = holder_of(world, east, policy=RESCHEDULE, who={"peer": "east"}), world.workers["north"]
    async with (
        holding,
        holder_of(world, index_of("north"), policy=RESCHEDULE),
        replicas(world, slots=(), policy=RESCHEDULE) as manager,
    ):
        await running_on_east(world, manager)
        north.arrange("create", "jobs", Fault.BREAK, times=10_000)
        world.workers["east"].go_down()
        await manager.settle(LOST_AFTER + 30)
        assert (world.placed(), world.mirrors()) == ("north", ["east"])
        world.workers["east"].late["east"] = 20.0
        world.workers["east"].is_down = False
        for _ in range(120):
            await manager.settle(0.5)
            if any(one.method == "DELETE" for one in world.workers["east"].coming):
                break
        else:
            pytest.fail("no delete was sent")
        north.restore()
        north.arrange("create", "jobs", forbidden(), times=1)
        world.annotate_worker("east", cordoned="true")
        world.edit(lambda body: body["metadata"]["labels"].update(team="a"))  # it is looked at, and created now
        await manager.settle(5)
        assert (world.placed(), world.mirrors()) == (None, ["east"])
        await manager.settle(3 * MINUTE)
        assert "Failed" not in world.conditions()
        assert (world.placed(), world.mirrors()) == ("north", ["north"])
