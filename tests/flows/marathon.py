"""Many random steps, by hand: ``python tests/flows/marathon.py --steps 1000000 [--seed N] [--processes N] [--shrink]``.

The same machines as in ``test_everybody_at_once``, with seeds of its own, in turn; ``--machine NAME``, once or more,
plays only those. Half of what a history of 100 steps costs is its beginning and its end: ``--length 300`` makes longer
ones, of which a seed has fewer. A history that breaks a rule is printed as a program (``--shrink`` takes some minutes
to make it short), and the rest of its seed is left out; the exit code is 1 then, and the others are played to the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

STEPS = 2_400
"""Of one seed, whatever the length of its histories."""
MACHINES = (
    "everybody",
    "jobs",
    "interference",
    "kinds",
    "queues",
    "moves",
    "fence",
    "recreate",
    "declared",
    "annotated",
    "two-managers",
    "retrying",
    "slots",
    "standbys",
    "moving-slots",
    "guards",
    "retrying-slots",
)


def main() -> int:
    """Parse the arguments and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1000, help="the first; each has 2,400 steps")
    parser.add_argument("--length", type=int, default=100, help="steps of one history")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--machine", choices=MACHINES, action="append", help="only this one; by default all, in turn")
    parser.add_argument("--shrink", action="store_true")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + max(1, -(-options.steps // STEPS)))
    machines = tuple(options.machine or MACHINES)
    began, done, broken = time.monotonic(), 0, 0
    with ProcessPoolExecutor(options.processes) as pool:
        for number, failure in pool.map(
            partial(play, machines=machines, length=options.length, shrinks=options.shrink), seeds
        ):
            if failure:
                broken += 1
                print(f"seed {number} of {machine_of(number, machines)}:\n{failure}")
            else:
                done += STEPS
            print(f"{done} steps in {time.monotonic() - began:.0f} s, {broken} broken (seed {number})", flush=True)
    return 1 if broken else 0


def machine_of(number: int, machines: Sequence[str]) -> str:
    """The one that this seed plays."""
    return machines[number % len(machines)]


def play(
    number: int, *, machines: Sequence[str] = MACHINES, length: int = 100, shrinks: bool = False
) -> tuple[int, str]:
    """Play the histories of one seed; what went wrong, or nothing."""
    # Of this tree, whichever is installed.
    sys.path[:0] = [str(Path(__file__).parents[above]) for above in range(3)]
    import gc
    import traceback

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
    from hypothesis import HealthCheck, Phase, seed, settings
    from hypothesis.stateful import run_state_machine_as_test

    from mirror.settings.schema import Logging
    from mirror.telemetry.logs import set_up_logging

    set_up_logging(Logging(level="error"))  # warnings by the thousand are what faults are for
    played: Sequence[type[Machine]] = (Everybody, Jobs, Interference, BothKinds, Queues, Moving, Fencing, StartingOver)
    played = (*played, Declared, Annotated, TwoManagers, Retrying, Slots, MovingStandbys, MovingSlots, Guarded)
    played = (*played, RetryingSlots)
    machine = dict(zip(MACHINES, played, strict=True))[machine_of(number, machines)]
    wanted = settings(
        max_examples=max(1, STEPS // length),
        stateful_step_count=length,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink) if shrinks else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    # What lives through it is most of what there is, and looking through it again and again takes a fifth of the time;
    # what a history leaves, some hundred MiB, goes at its end.
    gc.freeze()
    gc.disable()

    def begin() -> Machine:
        gc.collect()
        return machine()

    try:
        run_state_machine_as_test(seed(number)(begin), settings=wanted)
    except BaseException as failure:  # noqa: BLE001 - whatever it is, it is the result
        return number, "".join(traceback.format_exception(failure))
    finally:
        gc.enable()
        gc.collect()
    return number, ""


if __name__ == "__main__":
    sys.exit(main())
