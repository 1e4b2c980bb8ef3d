"""Model-based flows: random users, operators, strangers, faults and crashes, then quiet; D1–D15 hold all the time.

14,000 steps, a thirtieth of them in ``make check``; more, and other seeds, by ``tests/flows/marathon.py``.
"""

from __future__ import annotations

import pytest
from doubles.examples import examples
from flow_machine import Everybody
from flow_machine_base import Machine
from flow_machine_declared import Annotated, Declared
from flow_machine_fence import Fencing
from flow_machine_guards import Guarded
from flow_machine_interference import Interference
from flow_machine_jobs import Jobs
from flow_machine_kinds import BothKinds
from flow_machine_moves import Moving
from flow_machine_queues import Queues
from flow_machine_recreate import StartingOver
from flow_machine_retry import Retrying
from flow_machine_retry_slots import RetryingSlots
from flow_machine_slots import Slots
from flow_machine_standbys import MovingSlots, MovingStandbys
from flow_machine_two_managers import TwoManagers
from hypothesis import HealthCheck, Phase, seed
from hypothesis.stateful import run_state_machine_as_test

RUNS, STEPS = 4, 100
"""Of each seed: half of what a history of 50 steps costs is its beginning and its end."""
SEEDS = {Everybody: 6, Jobs: 6, Interference: 6, BothKinds: 6, Queues: 4, Moving: 4}
"""By machine; a step of the last two takes three times as long."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("machine", "number"),
    [
        pytest.param(machine, number, marks=[pytest.mark.slow] if number else [])
        for machine, seeds in SEEDS.items()
        for number in range(seeds)
    ],
)
def test_whatever_happens_the_rules_hold_and_all_is_well_in_the_end(machine: type[Machine], number: int) -> None:
    """400 steps of one seed, a hundred in a quick run: the rules at every write, agreement after every hundred."""
    play(machine, number)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("machine", [Fencing, StartingOver, Declared, Annotated, TwoManagers, Retrying])
def test_the_same_with_leases_lost_mirrors_declared_kinds_two_managers_and_retries(machine: type[Machine]) -> None:
    """A short one of each here: what they share is played above, and the rest by ``marathon``."""
    play(machine, 0, runs=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("machine", [Slots, MovingStandbys, MovingSlots, Guarded, RetryingSlots])
def test_the_same_with_several_managers_and_with_moves_that_are_held_back(machine: type[Machine]) -> None:
    """A short one of each here, and the rest by ``marathon``."""
    play(machine, 0, runs=1)


def play(machine: type[Machine], number: int, *, runs: int = RUNS) -> None:
    wanted = examples(
        runs,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(machine), settings=wanted)
