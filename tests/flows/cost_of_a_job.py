"""What one Job's life costs the manager, by hand: ``python tests/flows/cost_of_a_job.py [--jobs N] [--kinds]``.

Counts the bytecodes that the manager executes, in virtual time, while Jobs are created, run two pods one after the
other, end and are deleted; what it executes in as long a time without Jobs is taken off. That does not depend on what
else the machine does, so two trees can be compared anywhere. It says nothing of what C code does: decoding, TLS,
the event loop; what the clusters do, which are in the same process, is not counted either. Prints bytecodes and calls
per Job, by module and by function. With ``--kinds`` all built-in kinds are switched on, and no cluster serves them:
each is listed again every ten minutes, so take a multiple of 40 Jobs, whose time without Jobs has as many such lists.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent), str(HERE)]

from doubles.counting import Count, as_the_managers  # noqa: E402 - found by the above
from flow_world import FlowWorld, flow_world, has_ended  # noqa: E402 - found by the above

from mirror.embedded import virtual  # noqa: E402 - found by the above
from mirror.kinds.declared.choosing import built_in, kinds_of  # noqa: E402 - found by the above
from mirror.settings.kinds import KindEntry  # noqa: E402 - found by the above


class ManagedWorld(FlowWorld):
    """Marks what the manager does, and all tasks that come of it."""

    async def _run_manager(self) -> None:
        with as_the_managers():
            await super()._run_manager()


async def live(world: FlowWorld, name: str) -> None:
    """One Job's whole life."""
    await world.create(name, run_for="5s", completions=2, parallelism=1)
    await asyncio.sleep(40)
    if not has_ended(await world.source(name)):
        raise RuntimeError(f"Job {name} has not ended after 40 s")
    await world.delete(name)
    await asyncio.sleep(5)


async def count(jobs: int, *, has_kinds: bool) -> Count:
    """Of so many Jobs, one after the other."""
    kinds = kinds_of([KindEntry(kind=name) for name in built_in()] if has_kinds else [])
    async with flow_world("east", "west", form=ManagedWorld, kinds=kinds) as world:
        await asyncio.sleep(5)
        await live(world, "first")  # what is done once
        await asyncio.sleep(100)
        busy, idle, clock = Count(), Count(), asyncio.get_running_loop().time
        began = clock()
        busy.start()
        for number in range(jobs):
            await live(world, f"job-{number}")
        busy.stop()
        seconds = clock() - began
        idle.start()
        await asyncio.sleep(seconds)
        idle.stop()
    return busy.minus(idle)


def print_table(found: Count, jobs: int, functions: int) -> None:
    modules: Counter[str] = Counter()
    for (module, _), bytecodes in found.bytecodes.items():
        modules[module] += bytecodes
    print(f"{modules.total() / jobs:9.0f}  bytecodes per Job")
    for module, bytecodes in modules.most_common(functions):
        print(f"{bytecodes / jobs:9.0f}  {module}")
    print("\nbytecodes   calls")
    for function, bytecodes in found.bytecodes.most_common(functions):
        print(f"{bytecodes / jobs:9.0f} {found.calls[function] / jobs:7.1f}  {':'.join(function)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the bytecodes that one Job's life costs the manager.")
    parser.add_argument("--jobs", type=int, default=20, help="how many, one after the other")
    parser.add_argument("--functions", type=int, default=40, help="how many lines of each table")
    parser.add_argument("--kinds", action="store_true", help="switch on all built-in kinds, which no cluster serves")
    arguments = parser.parse_args()
    counted = virtual.run(count(arguments.jobs, has_kinds=arguments.kinds))
    print_table(counted, arguments.jobs, arguments.functions)


if __name__ == "__main__":
    main()
