"""A short fault campaign: whatever breaks, what is promised holds, and all ends well.

Longer ones: ``python -m e2e.chaos``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.chaos import history
from e2e.chaos.campaign import Campaign
from e2e.chaos.history import Fault, Phase, Request, Version
from e2e.chaos.kinds import KINDS
from e2e.chaos.storms import eras
from e2e.chaos.story import tell

SECONDS, SEED = 25.0, 290
"""A storm in which managers, an API server and an etcd are killed, others frozen or full, and answers are lost; no
worker loses its data, which takes long."""


@pytest.mark.usefixtures("binaries")
async def test_a_short_campaign_breaks_no_invariant(tmp_path: Path) -> None:
    """D1, D2, D5, D7, D8, D14, D21, D24: two managers, two workers, faults of every scope, and a history that tells.

    Sources of both kinds had copies, under one name.
    """
    path = tmp_path / "history.jsonl"
    breaches = await Campaign(SECONDS, SEED, 2, path).play()
    assert breaches == [], "\n".join(map(str, breaches))
    records = history.read(path)
    assert {one.cluster for one in records if isinstance(one, Version)} == {"management", "worker-0", "worker-1"}
    assert any(isinstance(one, Request) for one in records)
    faults = [one for one in records if isinstance(one, Fault)]
    assert faults
    assert sum(one.is_over for one in faults) == sum(not one.is_over for one in faults)
    assert [one.name for one in records if isinstance(one, Phase)] == ["healed", "settled", "emptied"]
    story = tell(records)
    copied = [{story.sources[owner].key for owner in story.mirrors if owner[0] == kind} for kind in KINDS]
    assert set.intersection(*copied)
    assert any(deletion.met for deletion in story.deletions)


@pytest.mark.parametrize("minutes", [0.5, 3, 10, 60])
def test_eras_take_as_long_as_was_asked_for(minutes: float) -> None:
    """Storms and losses in turns; a loss that would be cut short is a storm, and long campaigns see a lease end."""
    played = list(eras(minutes * 60))
    assert sum(era.seconds for era in played) == pytest.approx(minutes * 60)
    assert [era.is_loss for era in played[:-1]] == [bool(number % 2) for number in range(len(played) - 1)]
    assert any(era.seconds > 420 for era in played) is (minutes >= 25)
