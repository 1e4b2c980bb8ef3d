"""What follows of a loss, as the rules write it, is understood by who shows it beside a newer cause."""

from __future__ import annotations

import pytest
from doubles.drills import DRILL
from msgspec.structs import replace
from worlds import STARTED, lost, seen, source

from mirror.decide.plan import WriteSource
from mirror.decide.rules import decide
from mirror.decide.snapshot import AssignmentState, FenceState, Policy, Snapshot
from mirror.model import names
from mirror.model.loss_texts import follows_of
from mirror.model.losses import OnLoss
from mirror.model.reasons import Obstruction, Reason

RESCHEDULE, FENCE = (Policy(on_loss=policy) for policy in (OnLoss.RESCHEDULE, OnLoss.FENCE))
FULL = AssignmentState(obstruction=Obstruction(Reason.WORKERS_FULL, "west: at capacity; north: cordoned"))
SUSPENDED = source({**STARTED.stored.status}, spec={"suspend": True})
HELD = "nothing is moved while most workers are unreachable"
STAYS = "the Job stays assigned to it"


def text_of(found: Snapshot) -> str:
    (write,) = [one for one in decide(found).actions if isinstance(one, WriteSource)]
    return str(dict(write.annotations)[names.WAITING_BECAUSE])


@pytest.mark.parametrize(
    ("found", "follows"),
    [
        pytest.param(seen(STARTED, worker=lost(901)), STAYS, id="Wait"),
        pytest.param(
            seen(STARTED, worker=lost(120), policy=RESCHEDULE),
            "the Job is moved to another one at * UTC unless it is back",
            id="it is moved later",
        ),
        pytest.param(
            seen(STARTED, worker=lost(120), policy=FENCE, fence=FenceState(safe_in_seconds=1500, ends_in_seconds=1400)),
            "the Job is moved to another one at * UTC unless it is back (its lease ends at * UTC)",
            id="once its lease has ended",
        ),
        pytest.param(
            seen(STARTED, worker=lost(901), policy=FENCE, fence=FenceState(safe_in_seconds=900, ends_in_seconds=800)),
            f"{STAYS} until * UTC (its lease ends at * UTC)",
            id="its lease has not ended",
        ),
        pytest.param(
            seen(STARTED, worker=lost(120), policy=FENCE, fence=FenceState("it is not fenced: it had no lease")),
            "it is not fenced: it had no lease",
            id="it is not fenced",
        ),
        pytest.param(
            seen(STARTED, worker=lost(901), policy=FENCE, fence=FenceState("it is not fenced: it had no lease")),
            f"{STAYS} (it is not fenced: it had no lease)",
            id="it is not fenced, and stays",
        ),
        pytest.param(
            seen(STARTED, worker=lost(901), policy=replace(RESCHEDULE, move_limit=0)),
            f"{STAYS} (it was moved as often as workers.moveLimit allows)",
            id="moveLimit",
        ),
        pytest.param(
            seen(STARTED, worker=lost(901), policy=RESCHEDULE, moves_held=HELD), f"{STAYS} ({HELD})", id="most are lost"
        ),
        pytest.param(
            seen(STARTED, worker=lost(901), policy=RESCHEDULE, assignment=FULL),
            "the Job waits for another worker: west: at capacity; north: cordoned",
            id="it waits for a place",
        ),
        pytest.param(
            seen(STARTED, worker=replace(lost(5), is_gone=True), assignment=FULL),
            "the Job waits for another worker: west: at capacity; north: cordoned",
            id="declared dead: it waits for a place",
        ),
        pytest.param(
            seen(SUSPENDED, worker=replace(lost(5), is_gone=True)),
            f"{STAYS} (it is moved once it is resumed)",
            id="declared dead: suspended",
        ),
        pytest.param(
            seen(replace(STARTED, kind=DRILL), worker=replace(lost(5), is_gone=True)),
            f"{STAYS} (a Drill is not moved)",
            id="declared dead: of a kind that is not moved",
        ),
    ],
)
def test_what_follows_is_found_in_what_is_written(found: Snapshot, follows: str) -> None:
    """D14: it comes after how the worker is and the cause, which may look like anything."""
    first, *others = follows.split("*")
    for cause in ("network", "dial (10.0.0.1): no route (really)", ""):
        assert found.worker is not None
        told = follows_of(text_of(replace(found, worker=replace(found.worker, because=cause))), "east")
        assert told.startswith(first)
        assert all(other in told for other in others)
        assert told.endswith(others[-1] if others else first)
