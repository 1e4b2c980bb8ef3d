"""What the losses of a campaign wait for: a move, a renewed lease; the recorder tells of it when it is stored."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from e2e.chaos.campaign import breach_told
from e2e.chaos.history import Json, Version
from e2e.chaos.losses import is_move_from, is_renewed_on
from e2e.chaos.planted.writing import KEY, mirror, move, on, source, specified
from e2e.chaos.recording import Recorder
from mirror.model import names

PLACED = source(on("east"))
MOVED = source(on("west"), move("1, from east to west; left behind: east (uid m)"))
DRAINED = source(on("west"), move("1, from east to west", "WorkerDrained"))
LEASE = specified(mirror(uid="m", annotations={names.FENCE: "300"}), activeDeadlineSeconds=300)
RENEWED = specified(LEASE, activeDeadlineSeconds=400)
NO_LEASE = specified(mirror(uid="m"), activeDeadlineSeconds=200)


def stored(body: Json | None, cluster: str = "management", *, revision: int = 1) -> Version:
    """A version of an object."""
    return Version(float(revision), cluster, "jobs", revision, KEY, body)


@pytest.mark.parametrize(
    ("body", "before", "worker", "is_one"),
    [
        (MOVED, PLACED, "east", True),
        (MOVED, MOVED, "east", False),
        (MOVED, PLACED, "west", False),
        (DRAINED, PLACED, "east", False),
        (PLACED, {}, "east", False),
        (None, MOVED, "east", False),
    ],
    ids=["first move", "told again", "of another worker", "by a drain", "placed", "deleted"],
)
def test_a_move_from_a_lost_worker_is_seen(body: Json | None, before: Json, worker: str, is_one: bool) -> None:
    """D14: whoever waits to strike then must not do so for an earlier move, or a drain."""
    assert is_move_from(worker)(stored(body), before) is is_one


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            '2026-11-29T13:45:17.351Z ERROR   mirror: fence breached source="Job chaos/lost-157" worker=worker-2 '
            "mirror_uid=3f3b8348 promise=gone",
            ("worker-2", "3f3b8348"),
        ),
        ('2026-11-29T13:45:17.351Z INFO    mirror: placed source="Job chaos/lost-157" worker=worker-2', None),
    ],
    ids=["breach", "another"],
)
def test_a_breach_is_read_from_a_log(line: str, told: tuple[str, str] | None) -> None:
    """D14: the history says of which copy it was reported."""
    assert breach_told(line) == told


@pytest.mark.parametrize(
    ("body", "before", "cluster", "is_one"),
    [
        (RENEWED, LEASE, "east", True),
        (LEASE, RENEWED, "east", False),
        (LEASE, NO_LEASE, "east", False),
        (LEASE, {}, "east", False),
        (RENEWED, LEASE, "west", False),
        (None, LEASE, "east", False),
    ],
    ids=["renewed", "shorter", "first lease", "made", "on another worker", "deleted"],
)
def test_a_renewed_lease_is_seen(body: Json | None, before: Json, cluster: str, is_one: bool) -> None:
    """D14: a first lease is no renewal."""
    assert is_renewed_on("east")(stored(body, cluster), before) is is_one


async def test_a_recorder_tells_of_changes_of_one_object(tmp_path: Path) -> None:
    """A namesake has said nothing before, and who stops waiting is told nothing."""
    with closing(Recorder(tmp_path / "history.jsonl")) as recorder:
        recorder.add(stored(MOVED))
        async with asyncio.TaskGroup() as scope:
            waiting = [scope.create_task(recorder.sees(is_move_from("east")), name="sees") for _ in range(2)]
            await asyncio.sleep(0)
            recorder.add(stored(MOVED, revision=2))
            await asyncio.sleep(0)
            assert not any(one.done() for one in waiting)
            waiting.pop().cancel()
            await asyncio.sleep(0)
            another = {**MOVED, "metadata": {**MOVED["metadata"], "uid": "t"}}
            recorder.add(stored(another, revision=3))
