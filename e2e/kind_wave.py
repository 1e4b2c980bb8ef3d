"""``python -m e2e.kind_wave --seed 14 --kills 50``: a wave of all kinds in which the manager is killed at any moment.

Jobs and every kind that ``MIRROR_E2E_KINDS`` chooses (``--kinds`` sets it) come in on real control planes, run by their
real controllers (Ray's: by a player); each must have one mirror in all its life, and its own end, or run if it never
ends. ``test_kind_faults`` does a small one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, control_planes
from e2e.jobs import Scene, is_complete, is_over, job, until
from e2e.lives import JOB_SET, Kind, Lives
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.waves import sources
from mirror.kube.resources import JOBS

OBJECTS_PER_KILL = 4
"""Of each kind."""
_WAIT_SECONDS = 300.0
_LONGEST_SECONDS = 1.5
"""Between two kills."""


@dataclass(frozen=True, slots=True)
class Wave:
    """What came in, by the name of its Job, and how it had to end."""

    exit_codes: dict[str, int]
    lives: tuple[Lives, ...]

    def name_of(self, kind: Kind, name: str) -> str:
        """JobSets have the Jobs' names; of other kinds they would want the JobSets' children and Services."""
        return name if kind is JOB_SET else f"{kind}-{name}".lower()


async def play(
    management: ControlPlane,
    workers: dict[str, ControlPlane],
    scene: Scene,
    *,
    kinds: Sequence[Kind],
    kills: int,
    seed: int,
) -> int:
    """Let a wave come in while the manager is killed so often; how many objects there were.

    Raises:
        AssertionError: one did not end as it had to, or had not exactly one mirror.
    """
    chance = random.Random(seed)
    settings = {"kinds": [str(kind) for kind in kinds], "leaderElection": {"enabled": False}}
    resources = [JOBS, *(kind.resource for kind in kinds)]
    async with (
        ManagerProcess.start(management, workers, settings=settings) as manager,
        Recorder.watching(workers.values(), scene.namespace, kinds=resources) as recorder,
    ):
        exit_codes = {f"wave-{number}": int(chance.random() < 0.2) for number in range(OBJECTS_PER_KILL * kills)}
        wave = Wave(exit_codes, tuple(Lives(scene, kind, manager.managed_by) for kind in kinds))
        async with asyncio.TaskGroup() as scope:
            scope.create_task(_come_in(wave, manager, scene, chance), name="wave")
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0.0, _LONGEST_SECONDS))  # the moment
                await manager.kill()
                manager.launch()
                await manager.wait_until_ready()
        await _until_over(wave, scene)
        of_sources = {source: mirrors for source, mirrors in recorder.by_source().items() if source}
        assert len(of_sources) == len(resources) * len(exit_codes)
        assert not {source: mirrors for source, mirrors in of_sources.items() if len(mirrors) != 1}
        await manager.stop()
    return len(of_sources)


async def _come_in(wave: Wave, manager: ManagerProcess, scene: Scene, chance: random.Random) -> None:
    for name, code in wave.exit_codes.items():
        run_for = f"{chance.randrange(100, 1500)}ms"
        await scene.create(job(name, manager.managed_by, run_for=run_for, exit_code=code))
        for one in wave.lives:
            await one.create(wave.name_of(one.kind, name), run_for=run_for, exit_code=code)


async def _until_over(wave: Wave, scene: Scene) -> None:
    for one in wave.lives:
        for name, code in wave.exit_codes.items():
            if one.kind.ends:
                await one.until_over(wave.name_of(one.kind, name), succeeded=not code, seconds=_WAIT_SECONDS)
            else:
                await one.until_well(wave.name_of(one.kind, name), seconds=_WAIT_SECONDS)
    jobs = await until(lambda: sources(scene), lambda found: all(map(is_over, found.values())), seconds=_WAIT_SECONDS)
    assert {name: int(not is_complete(found)) for name, found in jobs.items()} == wave.exit_codes


async def _run(kills: int, seed: int) -> str:
    # Which kinds there are is settled when these are imported.
    from e2e import kind_choice, operators

    async with control_planes(workers=2, provider=Binaries()) as planes:
        workers = dict(planes.workers)
        scene = Scene(planes.management, workers, "wave")
        for place in ("", *workers):
            await scene.make_namespace(place)
        async with operators.running(planes.management, *workers.values(), operators=kind_choice.operators()):
            started = time.monotonic()
            count = await play(planes.management, workers, scene, kinds=kind_choice.CHOSEN, kills=kills, seed=seed)
            seconds = time.monotonic() - started
        await scene.close()
    names = ", ".join(["Job", *map(str, kind_choice.CHOSEN)])
    return f"{count} objects ({names}), {kills} kills, seed {seed}: one mirror and its own end each, in {seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="how often the manager is killed")
    parser.add_argument("--seed", type=int, default=14, help="of what is random: moments, ends, how long pods run")
    parser.add_argument("--kinds", default="all", help="names with commas, or all; JobSet and MPIJob always are")
    options = parser.parse_args()
    os.environ["MIRROR_E2E_KINDS"] = options.kinds
    try:
        print(asyncio.run(_run(options.kills, options.seed)))
    except (AssertionError, ExceptionGroup, TimeoutError) as failure:
        print(f"seed {options.seed}: {failure}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
