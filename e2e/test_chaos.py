"""A short fault campaign: whatever breaks, what is promised holds, and all ends well.

Longer ones: ``python -m e2e.chaos``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.chaos import history
from e2e.chaos.campaign import Campaign
from e2e.chaos.eras import KILL, LEASES, LOSS, OTHERS, STRUCK, Moment, eras
from e2e.chaos.faults import CLOSE_SECONDS
from e2e.chaos.history import Fault, Phase, Request, Version
from e2e.chaos.kinds import KINDS
from e2e.chaos.storms import spared
from e2e.chaos.story import tell
from mirror.workers.fence_record import CLOCK_MOVED_SECONDS

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
    writers = {one.process.rpartition("_")[0] for one in records if isinstance(one, Request)}
    assert writers
    assert writers <= {"manager-0", "manager-1"}
    faults = [one for one in records if isinstance(one, Fault)]
    assert faults
    assert sum(one.is_over for one in faults) == sum(not one.is_over for one in faults)
    assert [one.name for one in records if isinstance(one, Phase)] == ["healed", "settled", "emptied"]
    story = tell(records)
    copied = [{story.sources[owner].key for owner in story.mirrors if owner[0] == kind} for kind in KINDS]
    assert set.intersection(*copied)
    assert any(deletion.met for deletion in story.deletions)


@pytest.mark.parametrize("minutes", [0.5, 3, 10, 60, 480])
@pytest.mark.parametrize("seed", [15, 16])
def test_eras_take_as_long_as_was_asked_for(minutes: float, seed: int) -> None:
    """Storms and losses in turns; a loss that would be cut short is a storm."""
    played = list(eras(minutes * 60, seed))
    assert sum(era.seconds for era in played) == pytest.approx(minutes * 60)
    assert [era.is_loss for era in played[:-1]] == [bool(number % 2) for number in range(len(played) - 1)]
    assert all(era.away_seconds < era.seconds for era in played if era.is_loss)


@pytest.mark.parametrize("seed", range(5))
def test_managers_are_killed_while_jobs_move(seed: int) -> None:
    """D28: also in ten minutes, in a loss that is long enough for two who take over; in the others they are let alone.

    In a day each moment has each strike.
    """
    (struck,) = (era for era in eras(600, seed) if era.strikes)
    assert (struck.name, struck.strikes[Moment.AT_FIRST_MOVE]) == (STRUCK, KILL)
    assert struck.away_seconds >= 2 * 60 + 60
    assert struck.strikes.keys() == {Moment.EARLY, Moment.AT_FIRST_MOVE, Moment.AT_RETURN}
    played = [era for era in eras(86_400, seed) if era.name == STRUCK]
    for moment in struck.strikes:
        assert {era.strikes[moment] for era in played} == {KILL, *OTHERS}


@pytest.mark.parametrize(("minutes", "ends"), [(24, 0), (30, 1), (60, 3), (480, 6)])
@pytest.mark.parametrize("seed", range(5))
def test_long_campaigns_see_leases_end_in_several_ways(minutes: float, ends: int, seed: int) -> None:
    """D14: scenarios 4, 6 to 9, 14, 15; a shorter one has losses of two minutes in their place."""
    played = [era.name for era in eras(minutes * 60, seed)]
    assert len({era.name for era in LEASES} & set(played)) >= ends
    assert (LOSS in played) is (ends == 0)


def test_clocks_are_let_alone_while_leases_end() -> None:
    """D14: a leader whose clock jumps distrusts leases for minutes, so that none would end; in storms all is broken."""
    played, managers = list(eras(86_400, 1)), ("manager-0", "manager-1")
    for era in played:
        found = spared(era, "worker-0", managers)
        assert ("worker-0" in found) is era.is_loss
        assert ("clock of manager-1" in found) is (era in LEASES)


def test_clocks_are_close_in_every_other_four_campaigns(tmp_path: Path) -> None:
    """D14: two never differ by as much as a clock that has jumped."""
    found = [Campaign(1, seed, 2, tmp_path).clock_steps == CLOSE_SECONDS for seed in range(8)]
    assert found == [False] * 4 + [True] * 4
    assert max(CLOSE_SECONDS) - min(CLOSE_SECONDS) < CLOCK_MOVED_SECONDS
    assert set(Campaign(1, 4, 2, tmp_path).ahead_seconds) <= {0.0, *map(float, CLOSE_SECONDS)}
