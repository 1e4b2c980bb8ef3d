"""How a source says that it was moved, and what it left behind (D14)."""

from __future__ import annotations

import pytest

from mirror.model.losses import LossPolicy, OnLoss, loss_policy
from mirror.model.moves import LeftBehind, Moves, is_left_behind, parse_moves

EAST, WEST = LeftBehind("east", "u-1"), LeftBehind("west")


@pytest.mark.parametrize(
    "moves",
    [
        pytest.param(Moves(1, "east", "west", (EAST,)), id="one"),
        pytest.param(Moves(2, "west", "north", (EAST, WEST)), id="one whose uid was never known"),
        pytest.param(Moves(3, "a.b-c", "west"), id="nothing left"),
    ],
)
def test_what_is_written_is_read_again(moves: Moves) -> None:
    assert parse_moves(moves.message) == moves


@pytest.mark.parametrize("message", ["", "moved", "move x, from a to b", "move 1, from a to b; left behind: a (uid)"])
def test_what_is_not_ours_leaves_nothing_behind(message: str) -> None:
    assert parse_moves(message).left_behind == ()


def test_a_move_adds_what_it_leaves() -> None:
    """Once, however often it goes to and fro."""
    moves = Moves().moved("east", "west", EAST).moved("west", "east", WEST).moved("east", "west", EAST)
    assert moves == Moves(3, "east", "west", (WEST, EAST))
    assert Moves().moved("east", "west", None) == Moves(1, "east", "west")


def test_the_last_copy_on_a_worker_is_the_one_that_may_be_there() -> None:
    """Moved back to a worker, and away again: what ran there at first is gone, as its name was free for the second."""
    later = LeftBehind("east", "u-2")
    moves = Moves().moved("east", "west", EAST).moved("west", "east", LeftBehind("west", "u-3"))
    assert moves.moved("east", "west", later).last_left_on("east") == later
    assert moves.moved("east", "west", later).left_behind == (LeftBehind("west", "u-3"), later)
    assert Moves(3, "east", "west", (EAST, later)).last_left_on("east") == later
    assert moves.last_left_on("north") is None


def test_a_copy_that_counts_again_is_not_left_behind() -> None:
    moves = Moves(1, "east", "west", (EAST,))
    assert moves.returned("east", WEST) == Moves(1, "east", "west", (WEST,))
    assert moves.undone("east") == Moves(0, "east", "west")


@pytest.mark.parametrize(
    ("worker", "uid", "placed", "is_so"),
    [
        pytest.param("east", "u-1", "west", True, id="it is the one"),
        pytest.param("east", "u-2", "west", False, id="another object there is not"),
        pytest.param("north", "u-1", "west", False, id="nor is anything elsewhere"),
        pytest.param("west", "u-3", "east", True, id="any may be the one whose uid was never known"),
        pytest.param("west", "u-3", "west", False, id="but not where the source is now"),
        pytest.param("east", "u-1", "east", True, id="the known one is, wherever that is"),
        pytest.param("east", "u-1", None, False, id="without a worker it may be the only copy"),
    ],
)
def test_what_is_left_behind(worker: str, uid: str, placed: str | None, is_so: bool) -> None:
    assert is_left_behind((EAST, WEST), worker=worker, uid=uid, placed=placed) is is_so


@pytest.mark.parametrize(
    ("on_job", "on_namespace", "found"),
    [
        pytest.param(None, None, LossPolicy(OnLoss.RESCHEDULE), id="the setting"),
        pytest.param(None, "Wait", LossPolicy(OnLoss.WAIT), id="the namespace before it"),
        pytest.param("Reschedule", "Wait", LossPolicy(OnLoss.RESCHEDULE), id="the Job before that"),
        pytest.param("Fence", "Wait", LossPolicy(OnLoss.FENCE), id="a fence"),
        pytest.param(
            "fence", None, LossPolicy(OnLoss.WAIT, "the policy 'fence' is unknown"), id="not known: the safest"
        ),
        pytest.param("", None, LossPolicy(OnLoss.WAIT, "the policy '' is unknown"), id="empty: the safest"),
    ],
)
def test_who_says_what_becomes_of_it(on_job: str | None, on_namespace: str | None, found: LossPolicy) -> None:
    assert loss_policy(on_job, on_namespace, default=OnLoss.RESCHEDULE, allowed=tuple(OnLoss)) == found


def test_what_is_not_allowed_is_wait() -> None:
    found = loss_policy("Reschedule", None, default=OnLoss.WAIT, allowed=(OnLoss.WAIT,))
    assert found == LossPolicy(OnLoss.WAIT, "the policy Reschedule is not allowed here")
    assert loss_policy("Wait", None, default=OnLoss.RESCHEDULE, allowed=()) == LossPolicy(OnLoss.WAIT)


@pytest.mark.parametrize("uid", ["a b", "a), west (uid unknown", "a, fenced", "ä", "u" * 65])
def test_a_uid_that_no_api_server_gives_is_as_one_that_is_not_known(uid: str) -> None:
    """A worker gives it, and could add copies elsewhere, or promises: any object there may be the copy then."""
    moves = Moves().moved("east", "north", LeftBehind("east", uid))
    assert parse_moves(moves.message).left_behind == (LeftBehind("east"),)


def test_what_is_proved_to_be_gone_is_not_said_to_be_left() -> None:
    """Earlier copies on a worker were gone when the last one was made there."""
    before = Moves(2, "west", "east", (EAST, WEST))
    drained = before.moved("east", "north", None, is_gone=True)
    assert (drained.left_behind, drained.why) == ((WEST,), "WorkerLost")
    assert drained.event == "moved from east to north (move 3); no copy is left on east"
    over = before.moved("east", "east", None, is_gone=True)
    assert (over.is_start_over, over.why, over.left_behind) == (True, "Recreated", (WEST,))
    assert before.moved("east", "north", None).left_behind == (EAST, WEST), (
        "nothing was made there: it may be in the way"
    )
