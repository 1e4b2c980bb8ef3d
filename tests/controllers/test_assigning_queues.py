"""Those who wait in queues of Kueue are told apart by them only where that decides something."""

from __future__ import annotations

import pytest
from test_assigning import Watched, ask, matches, settle, waiter

from mirror.model.keys import SourceKey
from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.policy import DEFAULT, PlacementPolicy, Score

__all__ = ["matches"]
BY_QUEUE = PlacementPolicy(scores=((Score.CLUSTER_QUEUE, 1.0),))


@pytest.mark.parametrize(("policy", "questions"), [(DEFAULT, 1), (BY_QUEUE, 1000)], ids=["load", "clusterQueue"])
async def test_queues_tell_jobs_apart_only_where_they_count(
    matches: list[PlacementRequest], policy: PlacementPolicy, questions: int
) -> None:
    """Kueue's label may be another on each Job."""
    assigner = Watched(Candidate("w", capacity=0), policy=policy)
    for number in range(1000):
        ask(assigner, waiter(f"{number}", queue=f"q{number}"))
    matches.clear()
    assigner.update(Candidate("w", labels={"gpu": ""}, capacity=0))
    assigner.update(Candidate("w", labels={"gpu": ""}, capacity=1))
    await settle()
    assert len(matches) == questions
    assigner.set_load("w", 0)
    await settle()
    assert assigner.assigned_to(SourceKey("Job", "a", "0"), "0") == "w"
