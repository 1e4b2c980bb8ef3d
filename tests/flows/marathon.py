"""Many random steps, by hand: ``python tests/flows/marathon.py --steps 1000000 [--seed N] [--processes N] [--shrink]``.

The same machines as in ``test_everybody_at_once``, with seeds of its own, in turn; ``--machine NAME`` plays only
that one. Ends with exit code 1 at the first history that breaks a rule, which is printed as a program; ``--shrink``
takes some minutes to make it short.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

STEPS, RUNS = 100, 20
"""Of one history, and histories of one seed."""
MACHINES = ("everybody", "jobs", "interference", "kinds", "queues", "moves", "fence", "recreate")


def main() -> int:
    """Parse the arguments and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1000, help="the first; each has 2,000 steps")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--machine", choices=MACHINES, help="only this one; by default all, in turn")
    parser.add_argument("--shrink", action="store_true")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + max(1, options.steps // (STEPS * RUNS)))
    began, done = time.monotonic(), 0
    with ProcessPoolExecutor(options.processes) as pool:
        games = pool.map(partial(play, shrinks=options.shrink, only=options.machine), seeds)
        for number, failure in games:
            if failure:
                print(f"seed {number}:\n{failure}")
                pool.shutdown(cancel_futures=True)
                return 1
            done += STEPS * RUNS
            print(f"{done} steps in {time.monotonic() - began:.0f} s (seed {number})", flush=True)
    return 0


def play(number: int, *, shrinks: bool = False, only: str | None = None) -> tuple[int, str]:
    """Play the histories of one seed; what went wrong, or nothing."""
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    import gc
    import traceback

    from flow_machine import Everybody
    from flow_machine_fence import Fencing
    from flow_machine_interference import Interference
    from flow_machine_jobs import Jobs
    from flow_machine_kinds import BothKinds
    from flow_machine_moves import Moving
    from flow_machine_queues import Queues
    from flow_machine_recreate import StartingOver
    from hypothesis import HealthCheck, Phase, seed, settings
    from hypothesis.stateful import run_state_machine_as_test

    from mirror.settings.schema import Logging
    from mirror.telemetry.logs import set_up_logging

    set_up_logging(Logging(level="error"))  # warnings by the thousand are what faults are for
    played = (Everybody, Jobs, Interference, BothKinds, Queues, Moving, Fencing, StartingOver)
    machines = dict(zip(MACHINES, played, strict=True))
    wanted = settings(
        max_examples=RUNS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink) if shrinks else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    machine = machines[only or MACHINES[number % len(MACHINES)]]
    # What lives through it is most of what there is, and looking through it again and again takes a fifth of the time.
    gc.freeze()
    gc.disable()
    try:
        run_state_machine_as_test(seed(number)(machine), settings=wanted)
    except BaseException as failure:  # noqa: BLE001 - whatever it is, it is the result
        return number, "".join(traceback.format_exception(failure))
    finally:
        gc.enable()
        gc.collect()
    return number, ""


if __name__ == "__main__":
    sys.exit(main())
