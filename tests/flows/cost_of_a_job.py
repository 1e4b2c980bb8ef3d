"""What one Job's life costs the manager, by hand: ``python tests/flows/cost_of_a_job.py [--jobs N] [--functions N]``.

Counts the bytecodes that the manager executes, in virtual time, while Jobs are created, run two pods one after the
other, end and are deleted; what it executes in as long a time without Jobs is taken off. That does not depend on what
else the machine does, so two trees can be compared anywhere. It says nothing of what C code does: decoding, TLS,
the event loop; what the clusters do, which are in the same process, is not counted either. Prints bytecodes and calls
per Job, by module and by function.
"""

from __future__ import annotations

import argparse
import asyncio
import contextvars
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent), str(HERE)]

from flow_world import FlowWorld, flow_world, has_ended  # noqa: E402 - found by the above

from mirror.embedded import virtual  # noqa: E402 - found by the above

Function = tuple[str, str]
"""Its module, as a path within ``mirror``, and its name."""

_is_the_managers = contextvars.ContextVar("_is_the_managers", default=False)
_PACKAGE = f"{HERE.parent.parent / 'mirror'}/"
_CLUSTERS = (f"{_PACKAGE}embedded/", f"{_PACKAGE}planes/")
_LOOP = f"{_PACKAGE}embedded/virtual.py"


class ManagedWorld(FlowWorld):
    """Marks what the manager does, and all tasks that come of it."""

    async def _run_manager(self) -> None:
        _is_the_managers.set(True)
        await super()._run_manager()


class Count:
    """Bytecodes and calls by function."""

    def __init__(self) -> None:
        self.bytecodes: Counter[Function] = Counter()
        self.calls: Counter[Function] = Counter()

    def start(self) -> None:
        sys.settrace(self._on_call)

    def stop(self) -> None:
        sys.settrace(None)

    def minus(self, other: Count) -> Count:
        left = Count()
        left.bytecodes, left.calls = self.bytecodes.copy(), self.calls.copy()
        left.bytecodes.subtract(other.bytecodes)
        left.calls.subtract(other.calls)
        return left

    def _on_call(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) or not _is_the_managers.get() or is_of_a_cluster(frame):
            return None
        function = code.co_filename.removeprefix(_PACKAGE), code.co_qualname
        self.calls[function] += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def on_event(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            self.bytecodes[function] += event == "opcode"
            return on_event

        return on_event


def is_of_a_cluster(frame: FrameType | None) -> bool:
    """Whether it is called, at whatever distance, by the API server that answers in this process."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_CLUSTERS) and name != _LOOP:
            return True
        frame = frame.f_back
    return False


async def live(world: FlowWorld, name: str) -> None:
    """One Job's whole life."""
    await world.create(name, run_for="5s", completions=2, parallelism=1)
    await asyncio.sleep(40)
    if not has_ended(await world.source(name)):
        raise RuntimeError(f"Job {name} has not ended after 40 s")
    await world.delete(name)
    await asyncio.sleep(5)


async def count(jobs: int) -> Count:
    """Of so many Jobs, one after the other."""
    async with flow_world("east", "west", form=ManagedWorld) as world:
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
    arguments = parser.parse_args()
    print_table(virtual.run(count(arguments.jobs)), arguments.jobs, arguments.functions)


if __name__ == "__main__":
    main()
